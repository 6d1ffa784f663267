// A program's kernel calls with what they need besides the program's memory.
#pragma once

#include <cella/backend/cpu/backend.hpp>
#include <cella/backend/cpu/run/control.hpp>
#include <cella/backend/cpu/run/peak.hpp>
#include <cella/backend/host/finite.hpp>

namespace cella::cpu {

/// Runs program P on memory spaces that somebody else owns.
template <class P>
class runner {
  using table = kernel_calls<P>;

 public:
  /// `spaces` are the addresses of the program's memory spaces, which may change between calls.
  runner(std::byte* const* spaces, thread_pool* threads)
      : scratch_(std::size_t(scratch_bytes * (threads ? threads->capacity() : 1))) {
    context_.threads = threads;
    if (stops_at_nan()) context_.watch = &watch_;
    memory_ = {spaces, &context_};
  }
  runner(const runner&) = delete;
  runner& operator=(const runner&) = delete;

  static constexpr std::size_t calls = table::steps.size();
  /// The step of the plan that call k belongs to.
  static constexpr int step_of(std::size_t k) { return table::steps[k].step; }

  /// Before the calls of one run of the program.
  void begin() { context_.records.release({}); }
  /// Makes what depends on parameters only.
  void prepare() {
    for (const kernel_call& call : table::preparation) run(call);
  }
  void run(std::size_t k) { run(table::steps[k]); }
  void run_all() {
    if (context_.watch) [[unlikely]]
      return run_watched<P>(memory_, scratch_.data(), scratch_bytes);
    for (const kernel_call& call : table::steps) run(call);
  }

  /// Floating-point operations per second that one thread can do at most.
  static double peak() { return measured_peak(); }

 private:
  static constexpr std::int64_t scratch_bytes = table::scratch_bytes();

  void run(const kernel_call& call) { run_call(call, memory_, scratch_.data(), scratch_bytes); }

  run_context context_;
  number_watch watch_;
  memory memory_;
  aligned_buffer scratch_;
};

}  // namespace cella::cpu
