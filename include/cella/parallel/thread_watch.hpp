// How threads that are ranks wait for each other, and what ends it when one does not come.
#pragma once

#include <atomic>
#include <cella/graph/error.hpp>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace cella::parallel {

/// A rank that another one's failure has ended.
struct rank_error : error {
  using error::error;
};

namespace detail {

/// Between two looks at what others do. With more ranks than cores, who waits makes room.
inline void pass_time(int looks) {
  if (looks > 4000)
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  else if (looks > 2000)
    std::this_thread::yield();
}

/// Who waits, who has failed, and how long is waited for a rank that does not come.
class thread_watch {
 public:
  thread_watch(int ranks, double longest) : seconds(longest), waits_(std::size_t(ranks)) {}
  const double seconds;

  /// A rank has thrown.
  void failed(int rank) { end(2 * rank); }
  /// Waits for something that other ranks do. Where a rank has failed, throws, unless `abandons()`
  /// says that it has come about all the same.
  template <class Condition, class Abandon>
  void wait(int rank, Condition holds, Abandon abandons) {
    std::chrono::steady_clock::time_point begin{};
    for (int spins = 0; !holds(); ++spins) {
      if (why_.load(std::memory_order_relaxed) != nothing && abandons()) stop();
      pass_time(spins);
      if (spins == 4000) {
        begin = std::chrono::steady_clock::now();
        waits_[std::size_t(rank)] = true;
      } else if (spins > 4000 && spins % 1000 == 0 &&
                 std::chrono::steady_clock::now() - begin >
                     std::chrono::duration<double>(seconds)) {
        give_up();
      }
    }
    waits_[std::size_t(rank)] = false;
  }
  template <class Condition>
  void wait(int rank, Condition holds) {
    wait(rank, holds, [] { return true; });
  }
  /// Throws what has ended all.
  [[noreturn]] void stop() const {
    const int who = why_ / 2;
    if (why_ % 2 == 0)
      throw rank_error(text() << "rank " << who << " has failed; the others stop, too");
    if (who == int(waits_.size()))
      throw rank_error(text() << "all ranks have waited for each other for " << seconds
                              << " s: they do not run the same program");
    throw rank_error(text() << "rank " << who << " has not come to a collective operation for "
                            << seconds << " s; the others stop");
  }

 private:
  static constexpr int nothing = -1;

  void end(int why) {
    int before = nothing;
    why_.compare_exchange_strong(before, why);
  }
  /// The first rank that does not wait has not come; the number of ranks: all wait.
  void give_up() {
    int who = 0;
    while (who < int(waits_.size()) && waits_[std::size_t(who)]) ++who;
    end(2 * who + 1);
  }

  std::vector<std::atomic<bool>> waits_;
  std::atomic<int> why_{nothing};  ///< all end: twice the rank, and 1 if it did not come
};

/// Where the threads of a group wait for each other. When a rank has failed or does not come, all
/// others throw instead of waiting on; who comes later throws, too: what the others had there is
/// gone.
class meeting {
 public:
  explicit meeting(int size) : size_(size) {}
  void arrive_and_wait(thread_watch& watch, int rank) {
    const std::uint32_t turn = turn_.load(std::memory_order_acquire);
    if (turn & is_over) watch.stop();
    if (is_last()) {
      std::uint32_t expected = turn;
      if (!turn_.compare_exchange_strong(expected, turn + next_turn)) watch.stop();
      return;
    }
    // Either it comes about, or it is over: not both.
    watch.wait(
        rank, [&] { return turn_.load(std::memory_order_acquire) / next_turn != turn / next_turn; },
        [&] {
          std::uint32_t expected = turn;
          return turn_.compare_exchange_strong(expected, turn | is_over) ||
                 expected == (turn | is_over);
        });
  }
  /// Behind what nobody stops in: all come.
  void arrive_and_leave() {
    const std::uint32_t turn = turn_.load(std::memory_order_acquire);
    if (is_last())
      turn_.fetch_add(next_turn, std::memory_order_acq_rel);
    else
      for (int looks = 0; turn_.load(std::memory_order_acquire) == turn; ++looks) pass_time(looks);
  }

 private:
  static constexpr std::uint32_t is_over = 1, next_turn = 2;

  bool is_last() {
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < size_) return false;
    arrived_.store(0, std::memory_order_relaxed);
    return true;
  }

  const int size_;
  std::atomic<int> arrived_{0};
  std::atomic<std::uint32_t> turn_{0};
};

}  // namespace detail
}  // namespace cella::parallel
