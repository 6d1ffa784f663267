// A program bound to memory and parameters: call it, and a straight line of kernels runs.
#pragma once

#include <cella/backend/default_kernels.hpp>
#include <cella/backend/host/single_caller.hpp>
#include <cella/backend/host/threads.hpp>
#include <cella/graph/error.hpp>
#include <cella/runtime/profile.hpp>
#include <cella/runtime/program_arguments.hpp>
#include <cella/runtime/program_memory.hpp>
#include <cella/runtime/program_results.hpp>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cella {

/// Runs a program on its back end, or on another one. Not copyable: it owns its arena. Calls
/// allocate nothing, take no lock and make no virtual call. With CELLA_DEBUG=nan in the environment
/// when it is made, a call throws `number_error` at the first operation that makes a NaN or an
/// infinity. With CELLA_PROFILE=1 every kernel call is timed: see profile.hpp. Serves one thread at
/// a time: what calls it while another thread's call is running gets a `concurrency_error`.
template <class Program, class Backend>
class executable {
 public:
  using program =
      std::conditional_t<std::is_void_v<Backend>, Program, with_backend<Program, Backend>>;
  using element_type = element<program::element_type>;

  /// `store` holds the parameters and outlives the executable; several executables may share it.
  /// `threads` may be null: then everything runs on the calling thread. `slots` is memory for the
  /// optimizer's state, `program::plan.slot_bytes` of it, that outlives the executable; null: its
  /// own.
  explicit executable(parameter_store& store, thread_pool* threads = nullptr,
                      std::byte* slots = nullptr)
      : store_(&store), memory_(checked(store), slots), runner_(memory_.spaces(), threads) {
    using labels = step_labels<program>;
    profile_ = call_profile::if_wanted(
        [] {
          return labels_of(labels::steps, labels::characters, labels::template of_calls<runner>);
        },
        &runner::peak, threads ? threads->size() : 1);
  }
  executable(const executable&) = delete;
  executable& operator=(const executable&) = delete;
  /// Without a store, of a net, of a store that is gone.
  template <class... A, class Why = detail::no_store_fault<A...>>
  requires(!detail::begins_with_a_store<A...>)  //
      explicit executable(A&&...) = delete;

  /// Sets a run-time number of the step (learning rate, step count); see `program::scalar`. A call
  /// throws `error` as long as one was never set.
  void scalar(int index, double value) { memory_.scalar(index, value); }

  /// Runs the program on arrays, row-major and of the program's types: vectors, arrays, spans,
  /// `data::tensor_view`, xtensor's. Throws `error`, which names the argument, unless each has the
  /// argument's extents, or, where it has none, so many elements.
  template <class... A, class Why = detail::program_arguments_fault<program, A...>>
  requires(!has_words<Why>)  //
      void
      operator()(const A&... arguments) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      [[maybe_unused]] const std::tuple addresses{
          detail::checked_array(arguments, program::argument_types[I],
                                [] { return detail::label_of_argument<program>(I); })...};
      call_unchecked(std::get<I>(addresses)...);
    }
    (std::index_sequence_for<A...>{});
  }
#if !defined(__clang__)
  /// Why others are refused is in the error itself; clang has it in the note behind the error, and
  /// would report the deleted operator twice.
  template <class... A, class Why = detail::program_arguments_fault<program, A...>>
  requires has_words<Why>
  void operator()(const A&...) = delete;
#endif

  /// The same on the addresses of their first elements: neither types nor sizes are looked at.
  template <class... Pointers>
  void call_unchecked(const Pointers*... arguments) {
    static_assert(sizeof...(Pointers) == std::size_t(program::count(input_role::argument)),
                  "as many arguments as the program has");
    const single_caller::turn turn(caller_,
                                   "this executable is in use by another thread; build one for "
                                   "each thread over the same parameter_store");
    memory_.check_scalars();
    int i = 0;
    (memory_.argument(i++, arguments), ...);
    const typename program::backend::arithmetic guard;
    const bool changed = prepared_ != store_->version();
    memory_.begin(changed);
    runner_.begin();
    if (changed) {
      runner_.prepare();
      prepared_ = store_->version();
    }
    if (profile_) [[unlikely]]
      profile_->time_all(runner::calls, [this](std::size_t k) { runner_.run(k); });
    else
      runner_.run_all();
    memory_.end();
    if constexpr (program::training) store_->touch();
  }

  /// From the next call on result `K` is written to `place`, an array of the result's type, which
  /// outlives the calls and overlaps with no argument or other result. For programs
  /// `with_bound_results`: each result needs a place before the first call. Throws `error` unless
  /// the place has the result's extents, or, where it has none, so many elements.
  template <int K = 0, class A, class Why = detail::place_fault<program, K, A>>
  requires(!has_words<Why>)  //
      void bind(A&& place) {
    const auto name = [] { return text() << "the place of result " << K; };
    bind_unchecked<K>(detail::checked_array(place, result_type<K>(), name));
  }
  template <int K = 0, class A, class Why = detail::place_fault<program, K, A>>
  requires has_words<Why>
  void bind(A&&) = delete;
  /// The same with the address of its first element: its size is not looked at.
  template <int K = 0, class T>
  void bind_unchecked(T* place) {
    static_assert(program::options.results_bound,
                  "cella: only a program with_bound_results can be told where");
    static_assert(std::is_same_v<T, element<result_type<K>().element>>,
                  "cella: the place of a result has the result's element type");
    memory_.bind(K, place);
  }

  static constexpr int result_count = detail::result_count<program>();
  /// Result `K` of the last call, row-major; valid until the next call, whichever thread makes it.
  template <int K = 0>
  requires(K >= 0 && K < result_count)  //
      auto result() const {
    constexpr tensor_type t = result_type<K>();
    using T = const element<t.element>;
    return std::span<T>(reinterpret_cast<T*>(memory_.result(K)), std::size_t(t.size()));
  }

  /// The optimizer's state, one tensor per slot input of the graph.
  std::byte* slots() const { return memory_.slots(); }

 private:
  using runner = typename program::backend::template runner<program>;

  template <int K>
  static constexpr tensor_type result_type() {
    return detail::result_type<program>(K);
  }
  static parameter_store& checked(parameter_store& store) {
    store.check(program::signature, program::element_type);
    return store;
  }

  parameter_store* store_;
  program_memory<program> memory_;
  runner runner_;
  std::unique_ptr<call_profile> profile_;  // null: nothing is timed
  std::uint64_t prepared_ = ~std::uint64_t{0};
  single_caller caller_;
};

/// Of a program that the compiler refused: to make it is the error, and nothing follows from it.
template <class Program, class Backend>
requires(!Program::accepted) class executable<Program, Backend> {
 public:
  using program = Program;
  using element_type = element<program::element_type>;

  template <class Why = typename Program::fault>
  requires has_words<Why>
  explicit executable(parameter_store&, thread_pool* = nullptr, std::byte* = nullptr) = delete;
  /// The compiler could not run the cell, and says here why.
  consteval explicit executable(parameter_store&, thread_pool* = nullptr,
                                std::byte* = nullptr) requires(!Program::runs) {
    detail::say_where_it_stops<typename Program::make>();
  }

  void scalar(int, double) {}
  template <class... A>
  void operator()(const A&...) {}
  template <class... Pointers>
  void call_unchecked(const Pointers*...) {}
  template <int K = 0, class A>
  void bind(A&&) {}
  template <int K = 0, class T>
  void bind_unchecked(T*) {}
  template <int K = 0>
  auto result() const {
    constexpr auto& g = program::interface_graph;
    using T = const element<g.type(g.region_outputs(0)[std::size_t(K)]).element>;
    return std::span<T>();
  }
  std::byte* slots() const { return nullptr; }
};

/// Of what is no program: to make it is the error.
template <class T, class Backend>
requires(!compiled_program<T>) class executable<T, Backend> {
 public:
  template <class... A, class Why = detail::program_fault<T>>
  requires has_words<Why>
  explicit executable(A&&...) = delete;

  void scalar(int, double) {}
  template <class... A>
  void operator()(const A&...) {}
  template <class... Pointers>
  void call_unchecked(const Pointers*...) {}
  template <int K = 0>
  std::span<const float> result() const {
    return {};
  }
};

}  // namespace cella
