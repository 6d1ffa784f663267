// A program bound to memory and parameters: call it, and a straight line of kernels runs.
#pragma once

#include <bit>
#include <cella/backend/buffer.hpp>
#include <cella/backend/cpu/run/control.hpp>
#include <cella/backend/single_caller.hpp>
#include <cella/backend/threads.hpp>
#include <cella/graph/error.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/runtime/profile.hpp>
#include <cella/runtime/program.hpp>
#include <memory>
#include <span>
#include <string>

namespace cella {

/// Runs program P. Not copyable: it owns its arena. Calls allocate nothing, take no lock and make
/// no virtual call. With CELLA_DEBUG=nan in the environment when it is made, a call throws
/// `number_error` at the first operation that makes a NaN or an infinity. With CELLA_PROFILE=1
/// every kernel call is timed: see profile.hpp. Serves one thread at a time: what calls it while
/// another thread's call is running gets a `concurrency_error`.
template <class P>
class executable {
 public:
  using element_type = element<P::element_type>;

  /// `store` holds the parameters and outlives the executable; several executables may share it.
  /// `threads` may be null: then everything runs on the calling thread. `slots` is memory for the
  /// optimizer's state, `P::plan.slot_bytes` of it, that outlives the executable; null: its own.
  explicit executable(parameter_store& store, thread_pool* threads = nullptr,
                      std::byte* slots = nullptr)
      : store_(&store),
        arena_(std::size_t(P::plan.arena_bytes)),
        slots_(slots ? 0 : std::size_t(P::plan.slot_bytes)),
        scratch_(std::size_t(scratch_bytes * (threads ? threads->capacity() : 1))),
        scalars_(std::size_t(P::count(input_role::scalar)) * 8) {
    store.check(P::signature, P::element_type);
    context_.threads = threads;
    if (stops_at_nan()) context_.watch = &watch_;
    profile_ = call_profile::if_wanted(
        [] { return labels_of(step_labels<P>::steps, step_labels<P>::characters, calls::steps); },
        threads ? threads->size() : 1);
    spaces_[arena_space] = arena_.data();
    spaces_[parameter_space] = store.data();
    spaces_[slot_space] = slots ? slots : slots_.data();
    spaces_[scalar_space] = scalars_.data();
  }
  executable(const executable&) = delete;
  executable& operator=(const executable&) = delete;

  /// Sets a run-time number of the step (learning rate, step count); see `program::scalar`.
  void scalar(int index, double value) {
    *reinterpret_cast<element_type*>(scalars_.data() + std::size_t(index) * 8) =
        static_cast<element_type>(value);
  }

  /// Runs the program on the arguments, row-major and of the program's types (unchecked: the
  /// checked call is above this room).
  template <class... Pointers>
  void operator()(const Pointers*... arguments) {
    static_assert(sizeof...(Pointers) == std::size_t(P::count(input_role::argument)),
                  "as many arguments as the program has");
    const single_caller::turn turn(caller_,
                                   "this executable is in use by another thread; build one for "
                                   "each thread over the same parameter_store");
    int i = first_argument;
    ((spaces_[std::size_t(i++)] =
          const_cast<std::byte*>(reinterpret_cast<const std::byte*>(arguments))),
     ...);
    const cpu::flush_denormals guard;
    context_.records.release({});
    if (prepared_ != store_->version()) {
      for (const auto& call : calls::preparation) run(call);
      prepared_ = store_->version();
    }
    if (context_.watch) [[unlikely]]
      cpu::run_watched<P>(memory_, scratch_.data(), scratch_bytes);
    else if (profile_) [[unlikely]]
      profile_->time_all(calls::steps.size(), [this](std::size_t k) { run(calls::steps[k]); });
    else
      for (const auto& call : calls::steps) run(call);
    if constexpr (P::training) store_->touch();
  }

  /// From the next call on result `K` is written to `place`, row-major, which must have room for it
  /// and overlap with no argument or other result. For programs `with_bound_results`: each result
  /// needs a place before the first call.
  template <int K = 0, class T>
  void bind(T* place) {
    static_assert(P::results_bound, "cella: only a program with_bound_results can be told where");
    static_assert(
        std::is_same_v<T, element<P::graph.type(P::plan.results[std::size_t(K)].value).element>>,
        "cella: the place of a result has the result's element type");
    spaces_[std::size_t(P::plan.results[std::size_t(K)].at.space)] =
        reinterpret_cast<std::byte*>(place);
  }

  /// Result `K` of the last call, row-major; valid until the next call, whichever thread makes it.
  template <int K = 0>
  auto result() const {
    constexpr plan_value r = P::plan.results[std::size_t(K)];
    constexpr tensor_type t = P::graph.type(r.value);
    return std::span<const element<t.element>>(memory_.at<const element<t.element>>(r.at),
                                               std::size_t(t.size()));
  }

  /// The optimizer's state, one tensor per slot input of the graph.
  std::byte* slots() const { return spaces_[slot_space]; }

 private:
  using calls = cpu::kernel_calls<P>;
  static constexpr std::int64_t scratch_bytes = calls::scratch_bytes();

  void run(const cpu::kernel_call& call) {
    cpu::run_call(call, memory_, scratch_.data(), scratch_bytes);
  }

  parameter_store* store_;
  cpu::run_context context_;
  cpu::number_watch watch_;
  std::unique_ptr<call_profile> profile_;  // null: nothing is timed
  static constexpr int bound_results = P::results_bound ? P::plan.result_count : 0;
  std::array<std::byte*,
             std::size_t(first_argument + P::count(input_role::argument) + bound_results)>
      spaces_{};
  cpu::memory memory_{spaces_.data(), &context_};
  aligned_buffer arena_;
  aligned_buffer slots_;
  aligned_buffer scratch_;
  aligned_buffer scalars_;
  std::uint64_t prepared_ = ~std::uint64_t{0};
  single_caller caller_;
};

}  // namespace cella
