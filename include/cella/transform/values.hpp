// What functions take and return: a var, or a std::array, std::pair, std::tuple or plain aggregate
// of values. A member that is a shape says what the vars mean, and stays as it is.
#pragma once

#include <cella/graph/reflection.hpp>
#include <cella/graph/var.hpp>
#include <tuple>
#include <type_traits>

namespace cella {

/// Calls f(var&) for each var of a value, in order.
template <class T, class F>
constexpr void for_each_var(T& value, F&& f) {
  using V = std::remove_const_t<T>;
  if constexpr (std::is_same_v<V, var>) {
    f(value);
  } else if constexpr (std::is_same_v<V, shape>) {
  } else if constexpr (requires { std::tuple_size<V>::value; }) {
    std::apply([&](auto&... x) { (for_each_var(x, f), ...); }, value);
  } else if constexpr (detail::is_sequence<V>) {
    for (auto& x : value) for_each_var(x, f);
  } else {
    static_assert(std::is_aggregate_v<V>,
                  "a value is a var, or an array, tuple or plain struct of values");
    std::apply([&](auto&... x) { (for_each_var(x, f), ...); },
               detail::tie_members<detail::member_count<V>()>(value));
  }
}

/// The ids of a value's vars.
template <class T>
constexpr ids flatten_value(const T& value) {
  ids r;
  for_each_var(value, [&](const var& v) { r.push_back(v.id); });
  return r;
}
/// A value like `value`, with these nodes of `b` as its vars.
template <class T>
constexpr T rebuild_value(T value, builder& b, span<const node_id> nodes) {
  std::size_t next = 0;
  for_each_var(value, [&](var& v) { v = {&b, nodes[next++]}; });
  return value;
}
/// The builder of a value's first var; null if it has none.
template <class T>
constexpr builder* builder_of(const T& value) {
  builder* b = nullptr;
  for_each_var(value, [&](const var& v) {
    if (!b) b = v.b;
  });
  return b;
}

namespace detail {
/// Calls f with a value, or with the elements of a tuple as its arguments if f takes those.
template <class F, class T>
constexpr auto call_with(F& f, const T& value) {
  if constexpr (std::is_invocable_v<F&, const T&>) {
    return f(value);
  } else {
    static_assert(
        requires { std::tuple_size<T>::value; },
        "the body of a loop takes its state, or the elements of a state that is a tuple");
    return std::apply(f, value);
  }
}
}  // namespace detail

}  // namespace cella
