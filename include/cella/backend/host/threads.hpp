// A thread pool for kernels: a parallel region costs well under a microsecond while the threads are
// awake, takes no lock and allocates nothing. Threads that find no work spin for a while, then
// sleep.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <system_error>
#include <thread>
#include <type_traits>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include <cella/backend/host/floating_point_mode.hpp>
#include <cella/backend/host/process_generation.hpp>
#include <cella/backend/host/thread_count.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/graph/once.hpp>

namespace cella {

namespace detail {
/// Tells the processor that this thread waits for another one.
inline void spin_pause() {
#if defined(__SSE2__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}
/// Counts off a stretch of spinning; reads the clock only now and then.
class spin_timer {
 public:
  explicit spin_timer(std::chrono::nanoseconds patience) : patience_(patience) {}
  /// Pauses for an instant; false once the patience is used up.
  bool keep_spinning() {
    spin_pause();
    if (++pauses_ % 64 != 0) return true;
    const auto now = std::chrono::steady_clock::now();
    if (pauses_ == 64) start_ = now;
    return now - start_ < patience_;
  }
  void restart() { pauses_ = 0; }

 private:
  std::chrono::nanoseconds patience_;
  std::chrono::steady_clock::time_point start_{};
  unsigned pauses_{};
};
}  // namespace detail

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
  CELLA_ONCE explicit thread_pool(
      std::optional<int> threads = {}, int guests = 0,
      std::chrono::nanoseconds patience = std::chrono::microseconds(100))
      : thread_pool(seats_for{thread_count(threads, 0) - 1, guests}, patience) {
    // The object counts as built from here on: its destructor follows what is thrown.
    for (std::size_t i = 0; i < threads_.size(); ++i) {
      seat& mine = seats_[i];
      mine.state.store(idle);
      try {
        threads_[i] = std::thread([this, &mine] {
          serve(mine);
          mine.state.store(vacant, std::memory_order_release);
        });
      } catch (const std::system_error& fault) {
        mine.state.store(vacant);
        throw error(text() << "the system started " << i << " of the " << threads_.size()
                           << " threads that a pool of " << threads_.size() + 1
                           << " has besides the caller (" << fault.code().message()
                           << "); ask for at most " << i + 1
                           << " threads, or raise the limits of processes and memory (ulimit -u, "
                              "ulimit -v, pids.max)");
      } catch (...) {
        mine.state.store(vacant);
        throw;
      }
    }
  }

  /// Sends every thread away and waits until it has gone. No region may be running.
  CELLA_ONCE ~thread_pool() {
    if (!has_threads()) {
      // They can neither be joined nor detached: there is nothing behind the handles.
      for (std::thread& gone : threads_) std::construct_at(&gone);
      return;
    }
    for (int i = 0; i < seat_count_; ++i) seats_[static_cast<std::size_t>(i)].send_away();
    for (std::thread& t : threads_) {
      if (t.joinable()) t.join();
    }
    for (int i = 0; i < seat_count_; ++i) {  // guests
      while (phase_of(seats_[static_cast<std::size_t>(i)].state.load(std::memory_order_acquire)) !=
             vacant) {
        std::this_thread::yield();
      }
    }
  }

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
  bool worker(std::stop_token stop) {
    if (!has_threads()) return false;
    for (int i = 0; i < seat_count_; ++i) {
      seat& free = seats_[static_cast<std::size_t>(i)];
      unsigned expected = vacant;
      if (free.state.compare_exchange_strong(expected, idle)) {
        {
          std::stop_callback on_stop(stop, [&free] { free.send_away(); });
          serve(free);
        }
        // Last of all, when no callback can reach the seat any more: the next guest may sit down.
        free.state.store(vacant, std::memory_order_release);
        return true;
      }
    }
    return false;
  }

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

    void send_away() {
      state.fetch_or(leaving);
      state.notify_all();
    }

    /// False if the thread is leaving or has left.
    bool try_open() {
      unsigned expected = idle;
      if (state.compare_exchange_strong(expected, open)) return true;
      expected = asleep;
      if (!state.compare_exchange_strong(expected, open)) return false;
      state.notify_all();
      return true;
    }

    /// False if the seat's thread has begun.
    bool try_take_back() {
      unsigned now = state.load(std::memory_order_relaxed);
      while (phase_of(now) == open) {
        if (state.compare_exchange_weak(now, idle | (now & leaving))) return true;
      }
      return false;
    }

    void wait_until_done(std::chrono::nanoseconds patience) {
      detail::spin_timer timer(patience);
      for (;;) {
        unsigned now = state.load(std::memory_order_acquire);
        const unsigned phase = phase_of(now);
        if (phase != busy && phase != awaited) return;
        if (timer.keep_spinning()) continue;
        if (phase == busy && !state.compare_exchange_strong(now, awaited | (now & leaving)))
          continue;
        state.wait(awaited | (now & leaving));
      }
    }
  };

  struct seats_for {
    int own, guests;
  };
  CELLA_ONCE thread_pool(seats_for s, std::chrono::nanoseconds patience)
      : patience_(patience), generation_(process_generation::watched()) {
    if (s.guests < 0 || s.guests > most_threads) {
      throw error(text() << "a pool for " << s.guests << " guests was asked for; give 0 to "
                         << most_threads);
    }
    seat_count_ = s.own + s.guests;
    seats_ = std::make_unique<seat[]>(static_cast<std::size_t>(seat_count_));
    threads_.resize(static_cast<std::size_t>(s.own));
  }

  /// Whether there can be other threads: there are seats, and this process was not forked since.
  bool has_threads() const { return seat_count_ && generation_ == process_generation::now(); }

  template <class F>
  static void call(void* function, work_range range) noexcept {
    (*static_cast<std::remove_reference_t<F>*>(function))(range);
  }

  void run_region(int units, int most) {
    int parts = 1;
    for (int i = 0; i < seat_count_ && parts < most; ++i) {
      seat& s = seats_[static_cast<std::size_t>(i)];
      parts += phase_of(s.state.load(std::memory_order_relaxed)) != vacant;
    }
    // The range of a seat that falls vacant meanwhile goes to the next seat, or to the caller.
    int part = 1, last = 0;
    for (; last < seat_count_ && part < parts; ++last) {
      seat& s = seats_[static_cast<std::size_t>(last)];
      s.opened = false;
      if (phase_of(s.state.load(std::memory_order_acquire)) == vacant) continue;
      s.range = part_of(units, parts, part);
      s.opened = s.try_open();
      part += s.opened;
    }
    task_.call(task_.function, part_of(units, parts, 0));
    for (; part < parts; ++part) task_.call(task_.function, part_of(units, parts, part));
    for (int i = 0; i < last; ++i) {
      seat& s = seats_[static_cast<std::size_t>(i)];
      if (s.opened && s.try_take_back()) {
        s.opened = false;
        task_.call(task_.function, s.range);
      }
    }
    for (int i = 0; i < last; ++i) {
      seat& s = seats_[static_cast<std::size_t>(i)];
      if (s.opened) s.wait_until_done(patience_);
    }
  }

  void serve(seat& mine) {
    const auto own_mode = detail::get_floating_point_mode();
    detail::spin_timer timer(patience_);
    for (;;) {
      unsigned now = mine.state.load(std::memory_order_acquire);
      if (phase_of(now) == open) {
        if (!mine.state.compare_exchange_strong(now, busy | (now & leaving))) continue;
        const task todo = task_;
        if (todo.mode != own_mode) detail::set_floating_point_mode(todo.mode);
        todo.call(todo.function, mine.range);
        if (todo.mode != own_mode) detail::set_floating_point_mode(own_mode);
        // `idle` is zero: this clears the phase alone.
        if (phase_of(mine.state.fetch_and(leaving)) == awaited) { mine.state.notify_all(); }
        timer.restart();
      } else if (now & leaving) {
        return;
      } else if (!timer.keep_spinning()) {
        if (now == idle && mine.state.compare_exchange_strong(now, asleep)) {
          mine.state.wait(asleep);
        }
        timer.restart();
      }
    }
  }

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
