// Dense arrays of any library: where they begin, their elements and extents.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>

namespace cella {

/// Dense arrays as they come from elsewhere: `data()` with `shape()` or `extents()`, or with
/// `size()`. xtensor's containers, `data::tensor_view`, `std::vector` and `std::span` are some.
template <class A>
concept array_like = requires(const A& a) {
  *a.data();
  requires requires { std::begin(a.shape()); } || requires {
    std::begin(a.extents());
  } || requires { a.size(); };
};

namespace detail {

/// Whether an array lies row by row without gaps; a library's column-major array does not.
template <array_like A>
bool is_dense([[maybe_unused]] const A& a) {
  if constexpr (requires {
                  std::begin(a.strides());
                  std::begin(a.shape());
                }) {
    std::int64_t expected = 1;
    for (std::size_t i = a.shape().size(); i-- > 0;) {
      const auto extent = std::int64_t(a.shape()[i]);
      if (extent != 1 && std::int64_t(a.strides()[i]) != expected) return false;
      expected *= extent;
    }
  }
  return true;
}
template <class A>
requires array_like<std::remove_reference_t<A>>
auto first_element(A&& a) {
  if constexpr (requires { a.data_offset(); })
    return a.data() + a.data_offset();
  else
    return a.data();
}

/// An array of the language as a span, others as they are.
template <class T, std::size_t N>
constexpr std::span<T> as_array(T (&a)[N]) {
  return a;
}
template <array_like A>
constexpr A& as_array(A& a) {
  return a;
}
template <class A>
concept array_argument = requires(A& a) {
  as_array(a);
};
/// `const` where the array is.
template <array_argument A>
using element_of_array =
    std::remove_pointer_t<decltype(first_element(as_array(std::declval<A&>())))>;

/// Calls f with its extents, if it has any.
template <array_like A, class F>
constexpr void with_extents([[maybe_unused]] const A& a, [[maybe_unused]] F f) {
  if constexpr (requires { std::begin(a.shape()); })
    f(a.shape());
  else if constexpr (requires { std::begin(a.extents()); })
    f(a.extents());
}

}  // namespace detail

}  // namespace cella
