// Tells a process from the one that forked it.
#pragma once

#include <pthread.h>

#include <atomic>
#include <new>

namespace cella {

/// The number of forks between this process and the first that asked: what was started under
/// another number, threads above all, does not exist here.
class process_generation {
 public:
  static unsigned now() { return forks_.load(std::memory_order_relaxed); }
  /// The same; from the first call on forks are counted.
  static unsigned watched() {
    static const bool watching = ::pthread_atfork(nullptr, nullptr, [] {
                                   forks_.fetch_add(1, std::memory_order_relaxed);
                                 }) == 0;
    if (!watching) throw std::bad_alloc();  // the only reason that the system gives
    return now();
  }

 private:
  static inline std::atomic<unsigned> forks_{0};
};

}  // namespace cella
