// Functions of the standard library that are called with a var by habit. They are declared for it
// all the same, so that the compiler says in that line what to write instead, and nothing more.
// They stand in namespace std, where a program may add none by the standard: no other place is
// looked into when somebody writes std::sin(x). The supported compilers allow it, and nothing that
// compiles calls them.
#pragma once

#include <algorithm>
#include <cella/ops/comparison.hpp>
#include <initializer_list>
#include <type_traits>

namespace cella::detail {

struct no_standard_function {
  __attribute__((unavailable(
      "functions of the standard library take numbers; leave std:: out, Cella's take a var")))  //
  constexpr no_standard_function(const var& v)
      : x(v) {}
  var x;
};
template <class Iterator>
concept goes_over_vars = requires(Iterator i) {
  requires std::is_same_v<std::remove_cvref_t<decltype(*i)>, var>;
};
/// Of an algorithm that adds vars to a number.
template <class T, class Iterator>
concept first_sum_is_a_number = std::is_arithmetic_v<T> && requires(Iterator i) {
  requires std::is_same_v<std::remove_cvref_t<decltype(*i)>, var>;
};
struct no_standard_choice {
  __attribute__((unavailable("write maximum(x, y), minimum(x, y), mod(x, y) or abs(x)")))  //
  constexpr no_standard_choice(const var& v)
      : x(v) {}
  var x;
};

struct no_standard_test {
  __attribute__((unavailable("write is_nan(x), is_inf(x) or is_finite(x)")))  //
  constexpr no_standard_test(const var& v)
      : x(v) {}
  var x;
};

/// The other operand: converted, so that it fits no better than with a function of Cella.
struct anything {
  constexpr anything(const auto&) {}
};
struct any_number {
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr any_number(T) {}
};

}  // namespace cella::detail

// Templates, so that with `using namespace std;` sin(x) remains that of Cella.
namespace std {

#define CELLA_NO_FUNCTION(name)                                           \
  template <int = 0>                                                      \
  constexpr ::cella::var name(::cella::detail::no_standard_function of) { \
    return of.x;                                                          \
  }
CELLA_NO_FUNCTION(abs)
CELLA_NO_FUNCTION(acos)
CELLA_NO_FUNCTION(acosh)
CELLA_NO_FUNCTION(asin)
CELLA_NO_FUNCTION(asinh)
CELLA_NO_FUNCTION(atan)
CELLA_NO_FUNCTION(atanh)
CELLA_NO_FUNCTION(ceil)
CELLA_NO_FUNCTION(cos)
CELLA_NO_FUNCTION(cosh)
CELLA_NO_FUNCTION(erf)
CELLA_NO_FUNCTION(erfc)
CELLA_NO_FUNCTION(exp)
CELLA_NO_FUNCTION(expm1)
CELLA_NO_FUNCTION(floor)
CELLA_NO_FUNCTION(lgamma)
CELLA_NO_FUNCTION(log)
CELLA_NO_FUNCTION(log1p)
CELLA_NO_FUNCTION(log2)
CELLA_NO_FUNCTION(round)
CELLA_NO_FUNCTION(sin)
CELLA_NO_FUNCTION(sinh)
CELLA_NO_FUNCTION(sqrt)
CELLA_NO_FUNCTION(tan)
CELLA_NO_FUNCTION(tanh)
CELLA_NO_FUNCTION(trunc)
#undef CELLA_NO_FUNCTION

template <int = 0>
constexpr ::cella::var pow(::cella::detail::no_standard_function base, ::cella::detail::anything) {
  return base.x;
}
template <int = 0>
constexpr ::cella::var pow(::cella::detail::any_number,
                           ::cella::detail::no_standard_function exponent) {
  return exponent.x;
}
template <int = 0>
constexpr ::cella::var fabs(::cella::detail::no_standard_choice of) {
  return of.x;
}
template <int = 0>
constexpr ::cella::var isnan(::cella::detail::no_standard_test of) {
  return not_equal(of.x, of.x);
}
template <int = 0>
constexpr ::cella::var isinf(::cella::detail::no_standard_test of) {
  return not_equal(of.x, of.x);
}
template <int = 0>
constexpr ::cella::var isfinite(::cella::detail::no_standard_test of) {
  return not_equal(of.x, of.x);
}
template <int = 0>
constexpr ::cella::var fmax(::cella::detail::no_standard_choice a, ::cella::detail::anything) {
  return a.x;
}
template <int = 0>
constexpr ::cella::var fmin(::cella::detail::no_standard_choice a, ::cella::detail::anything) {
  return a.x;
}
template <int = 0>
constexpr ::cella::var fmod(::cella::detail::no_standard_choice a, ::cella::detail::anything) {
  return a.x;
}

// What these ask of two vars is a fault of the trace, which has a sentence for it.
constexpr ::cella::var max(std::initializer_list<::cella::var> all) {
  return std::max(*all.begin(), *(all.end() - 1));
}
constexpr ::cella::var min(std::initializer_list<::cella::var> all) {
  return std::min(*all.begin(), *(all.end() - 1));
}
/// What puts vars in order would have to know their values.
template <class Iterator>
requires ::cella::detail::goes_over_vars<Iterator>
constexpr void sort(Iterator first, Iterator last) {
  if (first == last) return;
  const ::cella::var x = *first;
  x.b->fail(
      ::cella::text("std::sort: vars have no values while they are traced; stack them, and write "
                    "sort(stack(x, 0), 0)"));
}
template <class Iterator>
requires ::cella::detail::goes_over_vars<Iterator>
constexpr Iterator max_element(Iterator first, Iterator last) {
  if (first == last) return last;
  const ::cella::var x = *first;
  x.b->fail(
      ::cella::text("std::max_element: vars have no values while they are traced; stack them, and "
                    "write max(stack(x, 0), {0}), or argmax(stack(x, 0), 0)"));
  return first;
}
template <class Iterator>
requires ::cella::detail::goes_over_vars<Iterator>
constexpr Iterator min_element(Iterator first, Iterator last) {
  if (first == last) return last;
  const ::cella::var x = *first;
  x.b->fail(
      ::cella::text("std::min_element: vars have no values while they are traced; stack them, and "
                    "write min(stack(x, 0), {0}), or argmin(stack(x, 0), 0)"));
  return first;
}
/// A sum of vars that begins with a number would be one.
template <class Iterator, class T>
requires ::cella::detail::first_sum_is_a_number<T, Iterator>
constexpr ::cella::var accumulate(Iterator first, Iterator last, T) {
  if (first == last) return {};
  const ::cella::var x = *first;
  x.b->fail(
      ::cella::text("std::accumulate: a sum of vars begins with a number; let it begin with "
                    "one of them: std::accumulate(x.begin() + 1, x.end(), x[0])"));
  return x;
}

}  // namespace std
