// What threads.hpp declares.
#pragma once

#include <algorithm>
#include <cella/backend/host/threads.hpp>
#include <system_error>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

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

CELLA_BODY thread_pool::thread_pool(std::optional<int> threads, int guests,
                                    std::chrono::nanoseconds patience)
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

CELLA_BODY thread_pool::thread_pool(seats_for s, std::chrono::nanoseconds patience)
    : patience_(patience), generation_(process_generation::watched()) {
  if (s.guests < 0 || s.guests > most_threads) {
    throw error(text() << "a pool for " << s.guests << " guests was asked for; give 0 to "
                       << most_threads);
  }
  seat_count_ = s.own + s.guests;
  seats_ = std::make_unique<seat[]>(static_cast<std::size_t>(seat_count_));
  threads_.resize(static_cast<std::size_t>(s.own));
}

CELLA_BODY thread_pool::~thread_pool() {
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

CELLA_BODY bool thread_pool::worker(std::stop_token stop) {
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

CELLA_HOT_BODY void thread_pool::seat::send_away() {
  state.fetch_or(leaving);
  state.notify_all();
}

CELLA_HOT_BODY bool thread_pool::seat::try_open() {
  unsigned expected = idle;
  if (state.compare_exchange_strong(expected, open)) return true;
  expected = asleep;
  if (!state.compare_exchange_strong(expected, open)) return false;
  state.notify_all();
  return true;
}

CELLA_HOT_BODY bool thread_pool::seat::try_take_back() {
  unsigned now = state.load(std::memory_order_relaxed);
  while (phase_of(now) == open) {
    if (state.compare_exchange_weak(now, idle | (now & leaving))) return true;
  }
  return false;
}

CELLA_HOT_BODY void thread_pool::seat::wait_until_done(std::chrono::nanoseconds patience) {
  detail::spin_timer timer(patience);
  for (;;) {
    unsigned now = state.load(std::memory_order_acquire);
    const unsigned phase = phase_of(now);
    if (phase != busy && phase != awaited) return;
    if (timer.keep_spinning()) continue;
    if (phase == busy && !state.compare_exchange_strong(now, awaited | (now & leaving))) continue;
    state.wait(awaited | (now & leaving));
  }
}

CELLA_HOT_BODY void thread_pool::run_region(int units, int most) {
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

CELLA_HOT_BODY void thread_pool::serve(seat& mine) {
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

}  // namespace cella
