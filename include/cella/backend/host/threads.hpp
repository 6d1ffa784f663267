// A thread pool for kernels: a parallel region costs well under a microsecond while the threads are
// awake, takes no lock and allocates nothing. Threads that find no work spin for a while, then
// sleep.
#pragma once

#include <algorithm>
#include <atomic>
#include <cella/backend/host/floating_point_mode.hpp>
#include <cella/backend/host/process_generation.hpp>
#include <cella/backend/host/thread_count.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/graph/once.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <vector>

namespace cella {

/// Runs functions on a fixed number of threads, of which the caller is one. Each thread sits on a
/// **seat**; a region gives every seat one range of the work. Ranges that no thread has begun by
/// the time the caller is done are done by the caller, so a thread that sleeps, leaves or is held
/// up by the operating system costs time but never blocks a region. Kernels hand out units that
/// share no output, therefore results do not depend on the number of threads.
///
/// A process that is forked has none of the pool's threads: in the child regions run on the calling
/// thread alone, and the destructor waits for nobody. (A child that is forked inside a region may
/// do nothing but `exec` or `_exit`.)
class thread_pool {
 public:
  /// A pool of `threads` threads with the caller (0: one for each core; unset: what the environment
  /// variable CELLA_THREADS says, or one for each core), of which it starts `threads - 1`, and with
  /// `guests` seats for threads of the host. A thread without work spins for `patience`, then
  /// sleeps: waking it costs the next region some 30 to 80 microseconds. Throws `error` if one of
  /// the numbers is negative or above `most_threads`, or if the system starts fewer threads.
  explicit thread_pool(std::optional<int> threads = {}, int guests = 0,
                       std::chrono::nanoseconds patience = std::chrono::microseconds(100));

  /// Sends every thread away and waits until it has gone. No region may be running.
  ~thread_pool();

  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;

  /// Threads that a region can ever use, the caller and guests included.
  int capacity() const { return 1 + seat_count_; }

  /// Threads that a region can use now, the caller included.
  int size() const {
    if (!has_threads()) return 1;
    int threads = 1;
    for (int i = 0; i < seat_count_; ++i) {
      const auto state = seats_[static_cast<std::size_t>(i)].state.load(std::memory_order_relaxed);
      threads += phase_of(state) != vacant;
    }
    return std::min(threads, limit_.load(std::memory_order_relaxed));
  }

  /// Regions use at most `threads` threads from now on; 1 makes `run` a plain call.
  void limit(int threads) { limit_.store(std::max(threads, 1), std::memory_order_relaxed); }

  /// Calls `f(work_range)` with contiguous ranges that make up [0, units) and differ in size by at
  /// most one, one range on each of at most `threads` threads (0: all), and returns when all are
  /// done. `f` is called by several threads at once, in the caller's floating-point mode, and must
  /// not throw (std::terminate). A region that is begun inside another one, or while another thread
  /// runs one on the same pool, is one call `f({0, units})` on the calling thread.
  template <class F>
  void run(int units, F&& f, int threads = 0) {
    if (units <= 0) return;
    void* function = const_cast<void*>(static_cast<const void*>(std::addressof(f)));
    int most = std::min(units, limit_.load(std::memory_order_relaxed));
    if (threads > 0) most = std::min(most, threads);
    if (most == 1 || !has_threads() || running_.load(std::memory_order_relaxed) ||
        running_.exchange(true, std::memory_order_acquire)) {
      call<F>(function, {0, units});
      return;
    }
    task_ = {&call<F>, function, detail::get_floating_point_mode()};
    run_region(units, most);
    running_.store(false, std::memory_order_release);
  }

  /// Lends the calling thread to the pool: works on regions until `stop` is requested or the pool
  /// is destroyed, then returns true. Returns false at once if all guest seats are taken, or if the
  /// pool was built before this process was forked.
  bool worker(std::stop_token stop);

 private:
  // The life of a seat. `leaving` may be added to any phase: the thread goes once its work is done,
  // and the caller gives it no more.
  //   vacant -> idle -> open (has a range) -> busy (begun) [-> awaited (caller sleeps)] -> idle
  //             idle -> asleep -> open;    open -> idle when the caller takes the range back
  enum : unsigned { idle = 0, vacant, asleep, open, busy, awaited, leaving = 8 };
  static constexpr unsigned phase_of(unsigned state) { return state & ~unsigned{leaving}; }

  struct task {
    void (*call)(void*, work_range) noexcept {};
    void* function{};
    detail::floating_point_mode mode{};
  };

  // Two cache lines: neighbouring lines are fetched in pairs.
  struct alignas(128) seat {
    std::atomic<unsigned> state{vacant};
    bool opened{};       // the caller's note
    work_range range{};  // written before the seat is opened

    void send_away();
    /// False if the thread is leaving or has left.
    bool try_open();
    /// False if the seat's thread has begun.
    bool try_take_back();
    void wait_until_done(std::chrono::nanoseconds patience);
  };

  struct seats_for {
    int own, guests;
  };
  thread_pool(seats_for s, std::chrono::nanoseconds patience);

  /// Whether there can be other threads: there are seats, and this process was not forked since.
  bool has_threads() const { return seat_count_ && generation_ == process_generation::now(); }

  template <class F>
  static void call(void* function, work_range range) noexcept {
    (*static_cast<std::remove_reference_t<F>*>(function))(range);
  }

  void run_region(int units, int most);
  void serve(seat& mine);

  std::unique_ptr<seat[]> seats_;
  int seat_count_{};
  std::chrono::nanoseconds patience_;
  unsigned generation_;      // of the process that started the threads
  alignas(64) task task_{};  // valid while a region runs
  std::atomic<bool> running_{};
  std::atomic<int> limit_{1 << 20};
  std::vector<std::thread> threads_;
};

}  // namespace cella

#if CELLA_HAS_BODIES
#include <cella/backend/host/threads_body.hpp>
#endif
