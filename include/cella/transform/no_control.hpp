// What is written with control flow by habit and is none: a var in place of a function, functions
// behind what they are called with, functions that take or return something else. It is declared
// all the same, so that one sentence says what to write instead. Each yields what was handed over,
// so that nothing follows. Included by control.hpp.
#pragma once

#include <cella/transform/control.hpp>
#include <concepts>

namespace cella {

namespace detail {

struct no_truth {
  template <std::same_as<bool> Truth>
  __attribute__((unavailable("a bool is known before anything runs; write a native if")))  //
  constexpr no_truth(Truth) {}
};
struct no_settings {
  template <class Number>
  requires std::is_arithmetic_v<Number>
  __attribute__((
      unavailable("options stand in braces: {.max_steps = 10}, or {.reverse = true}")))  //
  constexpr no_settings(Number) {}
};
struct no_count {
  __attribute__((unavailable(
      "how often is an int that is known before anything runs; where the data say it, write "
      "while_loop")))  //
  constexpr no_count(const var&) {}
};
struct no_first {
  __attribute__((unavailable("for_i counts from 0: for_i(count, body, state)")))  //
  constexpr no_first(int) {}
};

/// The first of the arguments that has vars.
template <class First, class... Others>
constexpr auto first_value(const First& x, const Others&... others) {
  if constexpr (has_vars<First>)
    return x;
  else if constexpr (sizeof...(Others) > 0)
    return first_value(others...);
  else
    return var{};
}
/// The builder of a var in what may have numbers as well.
template <class T>
constexpr builder* builder_in(const T& value) {
  if constexpr (requires { std::tuple_size<T>::value; } && !std::is_base_of_v<var, T>) {
    builder* b = nullptr;
    std::apply([&](const auto&... x) { ((b = b ? b : builder_in(x)), ...); }, value);
    return b;
  } else if constexpr (made_of_vars<T>) {
    return builder_of(value);
  } else {
    return nullptr;
  }
}
/// The fault of an operation that is told what it does not take, in the trace of `value`.
template <class Value>
constexpr Value refuse_form(std::string_view op, std::string_view form, std::source_location at,
                            const Value& value) {
  if (builder* b = builder_in(value)) b->fail(text() << at << ": " << op << ": " << form);
  return value;
}

}  // namespace detail

template <class F, class G, class... X>
constexpr var cond(detail::located predicate, F, G, X...) {
  return detail::refuse_form(
      "cond",
      "takes a bool, two functions, and what both are called with; they return a var, or "
      "the same struct: cond(p, [&] { return x; }, [&] { return -x; })",
      predicate.at, predicate.value);
}
template <class F>
constexpr var cond(detail::located predicate, F) {
  return detail::refuse_form(
      "cond", "takes two functions, of which the second is called if the condition does not hold",
      predicate.at, predicate.value);
}
/// A condition that is known before anything runs.
template <class F, class G, class... X>
constexpr auto cond(detail::no_truth, F then, G, X... operands) {
  return then(operands...);
}
template <class P, class F, class State>
constexpr auto while_loop(P condition, F body, State state, while_settings = {},
                          std::source_location at = std::source_location::current()) {
  return detail::refuse_form(
      "while_loop",
      "takes two functions of the state, then the state; one returns a bool, the "
      "other one a state: "
      "while_loop([](var s) { return s > 0; }, [](var s) { return s - 1; }, x)",
      at, detail::first_value(state, condition, body));
}
template <class F, class State, class X>
constexpr auto scan(F body, State init, X xs, scan_settings = {},
                    std::source_location at = std::source_location::current()) {
  const auto value = detail::refuse_form(
      "scan",
      "takes a function of the state and a slice, then the first state, then what "
      "it goes along: scan([](var s, var x) { return std::pair{s + x, s}; }, s, xs)",
      at, detail::first_value(init, xs, body));
  return std::pair{value, value};
}
template <class F, class State>
constexpr auto for_i(int, F body, State state, scan_settings = {},
                     std::source_location at = std::source_location::current()) {
  return detail::refuse_form(
      "for_i",
      "takes a count, a function of the place and the state that returns a state, "
      "then the first state: for_i(3, [](var i, var s) { return s + 1; }, x)",
      at, detail::first_value(state, body));
}
/// A number in the place of options, or of a count.
template <class P, class F, class State>
constexpr State while_loop(P, F, State state, detail::no_settings) {
  return state;
}
template <class F, class State, class X>
constexpr auto scan(F, State init, X, detail::no_settings) {
  return std::pair{init, init};
}
template <class F, class State>
constexpr State for_i(detail::no_count, F, State state) {
  return state;
}
template <class F, class State>
constexpr State for_i(detail::no_first, int, F, State state) {
  return state;
}
template <class F, class X, class... More>
constexpr auto map(F, X xs, detail::located other, More...) {
  return detail::refuse_form(
      "map",
      "goes along one value; several are a tuple: map([](auto v) { return std::get<0>(v) + "
      "std::get<1>(v); }, std::tuple{x, y})",
      other.at, xs);
}
template <class F, class X>
constexpr auto map(F f, X xs, std::source_location at = std::source_location::current()) {
  return detail::refuse_form(
      "map",
      "takes a function of a slice, then what it goes along: map([](var x) { "
      "return -x; }, xs)",
      at, detail::first_value(xs, f));
}

}  // namespace cella

#include <cella/transform/no_transform.hpp>
