// A function of tensors as a compiled program that can be called.
#pragma once

#include <cella/runtime/executable.hpp>
#include <cella/runtime/struct_arguments.hpp>
#include <concepts>
#include <span>

namespace cella {

namespace detail {

template <class... Arguments>
inline constexpr dtype precision_of = [] {
  for (const tensor_type& t : tensors_of<Arguments...>::types) {
    if (t.element == dtype::f64 || t.element == dtype::c128) return dtype::f64;
  }
  return dtype::f32;
}();
/// The program of F for arguments of the types `Arguments`.
template <class F, class... Arguments>
using program_of = typename tensors_of<Arguments...>::template program<tensor_cell<F, Arguments...>,
                                                                       precision_of<Arguments...>>;

}  // namespace detail

/// F, a cell or a lambda without captures, compiled for arguments of the types `Arguments`: each a
/// `tensor<...>`, or a struct of them, for which F is given the struct, and which the caller hands
/// over member by member. Its parameters, if it has any, are initialized from a seed. Not copyable.
template <class F, class... Arguments>
class compiled {
 public:
  using program = detail::program_of<F, Arguments...>;

  explicit compiled(std::uint64_t seed = 0, thread_pool* threads = nullptr)
      : store_(cell(), seed, program::element_type), run_(store_, threads) {}
  compiled(const compiled&) = delete;
  compiled& operator=(const compiled&) = delete;

  /// Runs on arrays (see `executable`), and returns the first result, which is valid until the
  /// next call. Throws `error`, which names the argument, if one has other extents or another size.
  template <class... A, class Why = detail::program_arguments_fault<program, A...>>
  requires(!has_words<Why>)  //
      auto
      operator()(const A&... x) {
    run_(x...);
    return result<0>();
  }
#if !defined(__clang__)  // see `executable`
  template <class... A, class Why = detail::program_arguments_fault<program, A...>>
  requires has_words<Why> std::span<const float>
  operator()(const A&...) = delete;
#endif
  /// The same with the addresses of their first elements: neither types nor sizes are looked at.
  template <class... T>
  auto call_unchecked(const T*... x) {
    run_.call_unchecked(x...);
    return result<0>();
  }
  static constexpr int result_count = executable<program>::result_count;
  /// Result `K` of the last call.
  template <int K = 0>
  requires(K >= 0 && K < result_count)  //
      auto result() const {
    return run_.template result<K>();
  }
  auto& cell() { return detail::function_of(cell_); }
  parameter_store& parameters() { return store_; }

 private:
  typename program::traced_cell cell_{};
  parameter_store store_;
  executable<program> run_;
};

namespace detail {
/// What stands for what `compile` did not yield, so that nothing follows from that.
template <class F>
struct stopped {
  template <class... T>
  std::span<const float> operator()(const T&...) const;
  template <class... T>
  std::span<const float> call_unchecked(const T*...) const;
  template <int K = 0>
  std::span<const float> result() const;
  F& cell();
  parameter_store& parameters();
};

template <class... Arguments>
inline constexpr text arguments_fault = [] {
  text fault;
  ((fault.empty() && !compiled_argument<Arguments>
        ? void(fault << "compile: " << type_name<Arguments>()
                     << " is no tensor; write tensor<dtype::f32, 32, 10> and the like")
        : void()),
   ...);
  return fault;
}();
template <class F, class... Arguments>
constexpr auto find_compile_fault() {
  if constexpr (!arguments_fault<Arguments...>.empty())
    return fault_of<arguments_fault<Arguments...>>{};
  else
    return typename program_of<F, Arguments...>::fault{};
}
template <class F, class... Arguments>
using compile_fault = decltype(find_compile_fault<F, Arguments...>());
/// The program of what was refused, if its arguments make one.
template <class F, class... Arguments>
struct refused_program {};
template <class F, compiled_argument... Arguments>
struct refused_program<F, Arguments...> {
  using program = program_of<F, Arguments...>;
};
template <class F, class... Arguments>
inline constexpr bool compiles = [] {
  if constexpr ((... && compiled_argument<Arguments>))
    return program_of<F, Arguments...>::accepted;
  else
    return false;
}();
}  // namespace detail

/// Of what the compiler refused: to make it is the error, and nothing follows from it.
template <class F, class... Arguments>
requires(!detail::compiles<F, Arguments...>)  //
    class compiled<F, Arguments...> : public detail::stopped<F>,
                                      public detail::refused_program<F, Arguments...> {
 public:
  static constexpr int result_count = 0;

  template <class Why = detail::compile_fault<F, Arguments...>>
  requires has_words<Why>
  explicit compiled(std::uint64_t = 0, thread_pool* = nullptr) = delete;
  /// The compiler could not run F, and says here why.
  template <class Cell = F>
  requires(!detail::program_of<Cell, Arguments...>::runs)  //
      consteval explicit compiled(std::uint64_t = 0, thread_pool* = nullptr) {
    detail::say_where_it_stops<typename detail::program_of<Cell, Arguments...>::make>();
  }
};

/// A cell or a lambda without captures as a function of arrays, for arguments of these types:
///
///   auto run = compile<tensor<dtype::f64, 2>>([](var x) { return grad(f)(x); });
///   run(std::array{1.0, 2.0})[0]
template <detail::compiled_argument... Arguments, class F>
requires(detail::program_of<F, Arguments...>::accepted)  //
    auto compile(F, std::uint64_t seed = 0, thread_pool* threads = nullptr) {
  return compiled<F, Arguments...>(seed, threads);
}
/// What the compiler refuses is refused here.
template <class... Arguments, class F, class Why = detail::compile_fault<F, Arguments...>>
requires has_words<Why>  //
    detail::stopped<F> compile(F, std::uint64_t = 0, thread_pool* = nullptr)
= delete;
/// Where the compiler could not run F, it says why here.
template <detail::compiled_argument... Arguments, class F>
requires(!detail::program_of<F, Arguments...>::runs)  //
    consteval detail::stopped<F> compile(F, std::uint64_t = 0, thread_pool* = nullptr) {
  detail::say_where_it_stops<typename detail::program_of<F, Arguments...>::make>();
  return {};
}

}  // namespace cella
