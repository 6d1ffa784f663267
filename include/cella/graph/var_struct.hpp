// Structs, tuples and arrays of vars, as what is made of their vars and taken apart into them.
#pragma once

#include <cella/graph/list.hpp>
#include <cella/graph/reflection.hpp>
#include <cella/graph/var.hpp>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cella::detail {

/// How many vars a T has: itself, or the elements of a tuple or array, or the members of a struct,
/// each with its own. -1: that is known at run time only.
template <class T>
constexpr int var_count() {
  if constexpr (std::is_base_of_v<var, T>) {
    return 1;
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    int all = 0;
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      ((all = all < 0 || var_count<std::tuple_element_t<I, T>>() < 0
                  ? -1
                  : all + var_count<std::tuple_element_t<I, T>>()),
       ...);
    }
    (std::make_index_sequence<std::tuple_size_v<T>>{});
    return all;
  } else if constexpr (is_sequence<T> || !std::is_aggregate_v<T> || std::is_empty_v<T>) {
    return -1;
  } else {
    using members = decltype(tie_members<member_count<T>()>(std::declval<T&>()));
    return []<class... M>(const std::tuple<M&...>*) {
      return ((var_count<M>() < 0) || ...) ? -1 : (var_count<M>() + ... + 0);
    }(static_cast<members*>(nullptr));
  }
}

/// Calls f(var&) for each var of `t`, in the order in which a trace lists results.
template <class T, class F>
constexpr void visit_vars(T& t, F&& f) {
  if constexpr (std::is_base_of_v<var, T>) {
    f(static_cast<var&>(t));
  } else if constexpr (requires { std::tuple_size<T>::value; }) {
    std::apply([&](auto&... x) { (visit_vars(x, f), ...); }, t);
  } else {
    std::apply([&](auto&... x) { (visit_vars(x, f), ...); }, tie_members<member_count<T>()>(t));
  }
}

/// A T of the vars from `first` on; a var is the first.
template <class T>
constexpr T of_vars(const var* first) {
  T t{};
  visit_vars(t, [&](var& v) { v = *first++; });
  return t;
}

}  // namespace cella::detail
