// What is written with a var by habit and is no operation. It is declared all the same, so that the
// compiler says in the line where it is written what to write instead. Each yields what was meant
// where it can, so that nothing follows from it; what is unavailable is a conversion of the
// operand, because g++ says that once and of a function twice.
#pragma once

#include <cella/ops/axis_list.hpp>
#include <cella/ops/comparison.hpp>
#include <initializer_list>
#include <iosfwd>

namespace cella {

namespace detail {

struct no_range {
  __attribute__((unavailable("a var is no range; loop over unstack(x, axis)")))  //
  constexpr no_range(const var& v)
      : x(v) {}
  var x;
};
struct no_shown {
  __attribute__((
      unavailable("a var has no value while it is traced; write x = print(x, \"x\")")))  //
  constexpr no_shown(const var& v)
      : x(v) {}
  var x;
};
struct no_equality {
  __attribute__((unavailable("write equal(x, y), which goes element by element")))  //
  constexpr no_equality(const var& v)
      : x(v) {}
  var x;
};
struct no_inequality {
  __attribute__((unavailable("write not_equal(x, y), which goes element by element")))  //
  constexpr no_inequality(const var& v)
      : x(v) {}
  var x;
};
struct no_bitwise_and {
  __attribute__((unavailable("write logical_and(x, y), which goes element by element")))  //
  constexpr no_bitwise_and(const var& v)
      : x(v) {}
  var x;
};
struct no_bitwise_or {
  __attribute__((unavailable("write logical_or(x, y), which goes element by element")))  //
  constexpr no_bitwise_or(const var& v)
      : x(v) {}
  var x;
};
struct no_bitwise_xor {
  __attribute__((unavailable("write pow(x, y), or logical_xor(x, y) of conditions")))  //
  constexpr no_bitwise_xor(const var& v)
      : x(v) {}
  var x;
};
struct no_complement {
  __attribute__((unavailable("write logical_not(x), which goes element by element")))  //
  constexpr no_complement(const var& v)
      : x(v) {}
  var x;
};
struct no_remainder {
  __attribute__((unavailable("write mod(x, y), which goes element by element")))  //
  constexpr no_remainder(const var& v)
      : x(v) {}
  var x;
};
struct no_increment {
  __attribute__((unavailable("write x = x + 1 or x = x - 1")))  //
  constexpr no_increment(var& v)
      : x(&v) {}
  var* x;
};
struct no_shift {
  __attribute__((unavailable("write x * pow(2, n), or left_shift(x, n) of integers")))  //
  constexpr no_shift(const var& v)
      : x(v) {}
  var x;
};
struct no_axis_of_argmax {
  __attribute__((unavailable("write along which axis: argmax(x, 1)")))  //
  constexpr no_axis_of_argmax(const var& v)
      : x(v) {}
  var x;
};
struct no_swapped_axes {
  __attribute__((unavailable("write the places of all axes in braces: transpose(x, {1, 0})")))  //
  constexpr no_swapped_axes(const var& v)
      : x(v) {}
  var x;
};
struct no_leading_axis {
  __attribute__((unavailable("write the axis behind the tensors: concat({x, y}, 1)")))  //
  constexpr no_leading_axis(int) {}
};
struct no_slice {
  __attribute__((unavailable("write the axis, then from where to where: slice(x, 0, 1, 3)")))  //
  constexpr no_slice(const var& v)
      : x(v) {}
  var x;
};
struct no_box {
  __attribute__((
      unavailable("write strided_slice(x, {0, 1}, {8, 4}): where each axis begins, and "
                  "where it ends")))  //
  constexpr no_box(const var& v)
      : x(v) {}
  var x;
};
/// A layer or an array beside a var, on the left of it: see `operand`.
struct no_left_operand {
  template <layer_like Layer>
  __attribute__((unavailable("a layer is called with what it is to compute on: fc(x)")))  //
  constexpr no_left_operand(const Layer&) {}
  template <array_of_numbers Values>
  __attribute__((unavailable("an array becomes a var by constant(x, values)")))  //
  constexpr no_left_operand(const Values&) {}
};
/// What a comparison for equality yields: in a native `if` it is a choice.
struct no_comparison : var {
  constexpr explicit operator bool() const { return false; }
};
/// What a stream yields behind a var.
struct no_stream {
  template <class T>
  constexpr no_stream operator<<(const T&) const {
    return {};
  }
  constexpr no_stream operator<<(std::ostream& (*)(std::ostream&)) const { return {}; }
};

}  // namespace detail

/// A loop over a var asks for both; one of them is the error.
constexpr const var* begin(detail::no_range) { return nullptr; }
constexpr const var* end(const var&) { return nullptr; }

constexpr detail::no_stream operator<<(std::ostream&, detail::no_shown) { return {}; }

constexpr var& operator++(detail::no_increment i) { return *i.x; }
constexpr var operator++(detail::no_increment i, int) { return *i.x; }
constexpr var& operator--(detail::no_increment i) { return *i.x; }
constexpr var operator--(detail::no_increment i, int) { return *i.x; }

constexpr detail::no_comparison operator==(detail::no_equality a, operand) { return {a.x}; }
constexpr detail::no_comparison operator!=(detail::no_inequality a, operand) { return {a.x}; }
template <literal_operand S>
constexpr detail::no_comparison operator==(const S&, detail::no_equality b) {
  return {b.x};
}
template <literal_operand S>
constexpr detail::no_comparison operator!=(const S&, detail::no_inequality b) {
  return {b.x};
}
constexpr var operator+(detail::no_left_operand, var y) { return y; }
constexpr var operator-(detail::no_left_operand, var y) { return y; }
constexpr var operator*(detail::no_left_operand, var y) { return y; }
constexpr var operator/(detail::no_left_operand, var y) { return y; }
constexpr var operator&(detail::no_bitwise_and a, operand b) { return logical_and(a.x, b); }
constexpr var operator|(detail::no_bitwise_or a, operand b) { return logical_or(a.x, b); }
constexpr var operator^(detail::no_bitwise_xor a, operand) { return a.x; }
constexpr var operator~(detail::no_complement a) { return logical_not(a.x); }
constexpr var argmax(detail::no_axis_of_argmax a) { return a.x; }
constexpr var argmin(detail::no_axis_of_argmax a) { return a.x; }
constexpr var transpose(detail::no_swapped_axes a, int, int) { return a.x; }
/// Elements of the first axis, or of all, as other libraries write them.
constexpr var slice(detail::no_slice x, int, int) { return x.x; }
constexpr var slice(detail::no_box x, const axis_list&, const axis_list&) { return x.x; }
constexpr var concat(detail::no_leading_axis, std::initializer_list<var> all) {
  return *all.begin();
}
constexpr var stack(detail::no_leading_axis, std::initializer_list<var> all) {
  return *all.begin();
}
constexpr var operator<<(detail::no_shift a, int) { return a.x; }
constexpr var operator>>(detail::no_shift a, int) { return a.x; }
constexpr var operator%(detail::no_remainder a, operand) { return a.x; }

}  // namespace cella
