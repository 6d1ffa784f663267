// Sums, products and quotients, element by element with NumPy's broadcasting, and what all
// elementwise operations are applied by.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/broadcast.hpp>
#include <cmath>
#include <limits>
#include <utility>

namespace cella {

namespace detail {

/// A var that remembers where it was passed, for operators with something else on the left.
struct located {
  var value;
  std::source_location at;
  constexpr located(var v, std::source_location where = std::source_location::current())
      : value(v), at(where) {}
  constexpr operator operand() const { return {value, at}; }
};

/// Widens `s` to the common shape of both; false if there is none.
constexpr bool broadcast_with(shape& s, shape t) {
  if (s.rank < t.rank) std::swap(s, t);
  for (int i = 1; i <= t.rank; ++i) {
    std::int32_t& e = s[s.rank - i];
    const std::int32_t f = t[t.rank - i];
    if (e != f && e != 1 && f != 1) return false;
    if (e == 1) e = f;
  }
  return true;
}

/// The common shape of two operands, or a fault that names both.
CELLA_ONCE constexpr shape broadcast_shape(builder& b, std::string_view op, var x, var y,
                                           std::source_location at) {
  shape s = x.shape();
  if (broadcast_with(s, y.shape())) return s;
  b.fail(text() << at << ": " << op << ": shapes do not broadcast: " << b.describe(x.id) << " is "
                << x.shape() << ", " << b.describe(y.id) << " is " << y.shape());
  return x.shape();
}

/// A number as a constant of the type of `v`, or a fault if an integer tensor would change it.
CELLA_ONCE constexpr var literal(std::string_view op, var v, const operand& x,
                                 std::source_location at) {
  const double number = x.number();
  if (is_floating(v.element()) || is_complex(v.element())) return constant(*v.b, number, v.type());
  // From 2^53 on all are whole; beyond 2^63 the conversion would overflow.
  const bool large = number <= -0x1p53 || number >= 0x1p53;
  const bool whole = large ? number >= -0x1p63 && number < 0x1p64
                           : number == number && double(std::int64_t(number)) == number;
  text fault;
  if (!x.is_exact())
    fault << "the number beside it has more than 53 binary digits; make it an argument";
  else if (!whole)
    fault << "the number beside it is not an integer; convert the tensor with cast()";
  else if (is_integer(v.element()) &&
           (number < least_integer(v.element()) || number >= beyond_integers(v.element())))
    fault << "the number beside it is none of this type; convert the tensor with cast()";
  if (!fault.view().empty()) {
    v.b->fail(text() << at << ": " << op << ": " << v.b->describe(v.id) << " is " << v.type()
                     << " and " << fault);
  }
  return constant(*v.b, number, v.type());
}

/// Appends an operation on one operand.
CELLA_ONCE constexpr var apply_to(const op_info& op, operand x, const attributes& options) {
  builder& b = *x.owner();
  return {&b, b.emit(op, {x.in(b).id}, options, x.at())};
}
template <class Op>
constexpr var unary(operand x, const attributes& options = {}) {
  return apply_to(bound<Op>(), x, options);
}

/// Appends an operation on two operands, broadcast to one shape; numbers take the other's type.
CELLA_ONCE constexpr var combine(const op_info& op, operand x, operand y,
                                 const attributes& options) {
  builder& b = owner_of(x, y);
  const auto append = [&](var v, var w) {
    return var{&b, b.emit(op, {v.id, w.id}, options, y.at())};
  };
  if (y.is_number()) {
    const var v = x.in(b);
    return append(v, literal(op.name, v, y, y.at()));
  }
  if (x.is_number()) {
    const var v = y.in(b);
    return append(literal(op.name, v, x, y.at()), v);
  }
  const var v = x.in(b);
  const var w = y.in(b);
  if (v.element() != w.element()) {
    b.fail(text() << y.at() << ": " << op.name << ": element types differ: " << b.describe(v.id)
                  << " is " << v.type() << ", " << b.describe(w.id) << " is " << w.type()
                  << "; convert one with cast()");
    return v;
  }
  const shape s = broadcast_shape(b, op.name, v, w, y.at());
  if (b.failed()) return v;
  return append(broadcast_to({v, y.at()}, s), broadcast_to({w, y.at()}, s));
}
template <class Op>
constexpr var binary(operand x, operand y, const attributes& options = {}) {
  return combine(bound<Op>(), x, y, options);
}

/// Of integers, rounded by `round`: a quotient is no larger than what is divided, and 0 by a
/// divisor of 0.
template <class Round>
interval bounds_of_quotient(interval x, interval y, Round round) {
  if (y.contains(0)) return {-x.magnitude(), x.magnitude()};
  const interval q = x / y;
  return {round(q.low), round(q.high)};
}

}  // namespace detail

// ---- arithmetic

struct add_op : elementwise<add_op>,
                keeps_zero,
                foldable,
                commutative,
                takes_complex,
                nondecreasing,
                takes_records {
  static constexpr std::string_view name = "add";
  static constexpr std::string_view infix = " + ";
  static constexpr int precedence = 2;
  static constexpr std::string_view numpy = "np.add";
  static constexpr std::string_view torch = "torch.add";
  static constexpr std::string_view formula = "y = a + b";
  static constexpr onnx_operator onnx{"Add", 7};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x, auto y) {
    if constexpr (detail::is_whole<decltype(x)>)
      return detail::wrapping_sum(x, y);
    else
      return x + y;
  }
  static constexpr var partial(node_ref, int) { return one_partial; }
};
struct sub_op : elementwise<sub_op>, keeps_zero, foldable, takes_complex {
  static constexpr std::string_view name = "sub";
  static constexpr std::string_view infix = " - ";
  static constexpr int precedence = 2;
  static constexpr std::string_view numpy = "np.subtract";
  static constexpr std::string_view torch = "torch.sub";
  static constexpr std::string_view formula = "y = a - b";
  static constexpr onnx_operator onnx{"Sub", 7};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x, auto y) {
    if constexpr (detail::is_whole<decltype(x)>)
      return detail::wrapping_difference(x, y);
    else
      return x - y;
  }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type>,
                                   const attributes&) {
    return in[0] - in[1];
  }
  static constexpr var partial(node_ref, int i) { return i ? minus_one_partial : one_partial; }
};
struct mul_op : elementwise<mul_op>, foldable, commutative, takes_complex {
  static constexpr std::string_view name = "mul";
  static constexpr std::string_view infix = " * ";
  static constexpr int precedence = 3;
  static constexpr std::string_view numpy = "np.multiply";
  static constexpr std::string_view torch = "torch.mul";
  static constexpr std::string_view formula = "y = a b";
  static constexpr onnx_operator onnx{"Mul", 7};
  static constexpr bool integral = true;
  static constexpr unsigned zero_where = 0b11;
  static constexpr auto apply(auto x, auto y) {
    if constexpr (detail::is_whole<decltype(x)>)
      return detail::wrapping_product(x, y);
    else
      return x * y;
  }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type>,
                                   const attributes&) {
    return in[0] * in[1];
  }
  static constexpr var partial(node_ref n, int i) { return n.operand(1 - i); }
};
/// Integers: rounded towards zero, and 0 where the divisor is 0.
struct div_op : elementwise<div_op>, foldable, takes_complex {
  static constexpr std::string_view name = "div";
  static constexpr std::string_view infix = " / ";
  static constexpr int precedence = 3;
  static constexpr std::string_view numpy = "np.divide";
  static constexpr std::string_view torch = "torch.div";
  static constexpr std::string_view formula = "y = a / b";
  static constexpr onnx_operator onnx{"Div", 7};
  static constexpr bool integral = true;
  static constexpr unsigned zero_where = 0b01;
  static constexpr auto apply(auto x, auto y) {
    if constexpr (std::is_integral_v<decltype(x)>)
      return detail::wrapping_quotient(x, y);
    else
      return x / y;
  }
  static interval bounds(span<const interval> in, span<const tensor_type> types,
                         const attributes&) {
    if (is_floating(types[0].element)) return in[0] / in[1];
    return detail::bounds_of_quotient(in[0], in[1], [](double q) { return std::trunc(q); });
  }
  static constexpr var partial(node_ref n, int i);
};
struct neg_op : elementwise<neg_op>, keeps_zero, foldable, takes_complex {
  static constexpr std::string_view name = "neg";
  static constexpr std::string_view numpy = "np.negative";
  static constexpr std::string_view torch = "torch.neg";
  static constexpr std::string_view formula = "y = -x";
  static constexpr onnx_operator onnx{"Neg", 6};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x) {
    if constexpr (detail::is_whole<decltype(x)>)
      return detail::wrapping_difference(decltype(x)(0), x);
    else
      return -x;
  }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type>,
                                   const attributes&) {
    return -in[0];
  }
  static constexpr var partial(node_ref, int) { return minus_one_partial; }
};

/// Element by element, as the other operators. Either side may be a parameter or a number; extents
/// of 1, and axes that are missing in front, are repeated as in NumPy. Both have one element type.
constexpr var operator+(var x, operand y) { return detail::binary<add_op>({x, y.at()}, y); }
constexpr var operator-(var x, operand y) { return detail::binary<sub_op>({x, y.at()}, y); }
constexpr var operator*(var x, operand y) { return detail::binary<mul_op>({x, y.at()}, y); }
constexpr var operator/(var x, operand y) { return detail::binary<div_op>({x, y.at()}, y); }
template <literal_operand S>
constexpr var operator+(const S& x, detail::located y) {
  return detail::binary<add_op>({x, y.at}, y);
}
template <literal_operand S>
constexpr var operator-(const S& x, detail::located y) {
  return detail::binary<sub_op>({x, y.at}, y);
}
template <literal_operand S>
constexpr var operator*(const S& x, detail::located y) {
  return detail::binary<mul_op>({x, y.at}, y);
}
template <literal_operand S>
constexpr var operator/(const S& x, detail::located y) {
  return detail::binary<div_op>({x, y.at}, y);
}
constexpr var operator+(const parameter_base& x, operand y) { return detail::binary<add_op>(x, y); }
constexpr var operator-(const parameter_base& x, operand y) { return detail::binary<sub_op>(x, y); }
constexpr var operator*(const parameter_base& x, operand y) { return detail::binary<mul_op>(x, y); }
constexpr var operator/(const parameter_base& x, operand y) { return detail::binary<div_op>(x, y); }
template <class S>
requires std::is_arithmetic_v<S>
constexpr var operator+(S x, const parameter_base& y) { return detail::binary<add_op>(x, y); }
template <class S>
requires std::is_arithmetic_v<S>
constexpr var operator-(S x, const parameter_base& y) { return detail::binary<sub_op>(x, y); }
template <class S>
requires std::is_arithmetic_v<S>
constexpr var operator*(S x, const parameter_base& y) { return detail::binary<mul_op>(x, y); }
template <class S>
requires std::is_arithmetic_v<S>
constexpr var operator/(S x, const parameter_base& y) { return detail::binary<div_op>(x, y); }
constexpr var operator-(detail::located x) { return detail::unary<neg_op>(x); }
constexpr var& operator+=(var& x, operand y) { return x = x + y; }
constexpr var& operator-=(var& x, operand y) { return x = x - y; }
constexpr var& operator*=(var& x, operand y) { return x = x * y; }
constexpr var& operator/=(var& x, operand y) { return x = x / y; }

constexpr var div_op::partial(node_ref n, int i) {
  // One division for both partials, and for those of all quotients by the same number.
  const var reciprocal = 1 / n.operand(1);
  return i == 0 ? reciprocal : -(n.output() * reciprocal);
}

/// Passes its operand through; every transform hands its function such a fresh node.
struct identity_op : elementwise<identity_op>, keeps_zero, alias_of_operand, takes_records {
  static constexpr std::string_view name = "identity";
  static constexpr std::string_view numpy = "np.copy";
  static constexpr std::string_view torch = "torch.clone";
  static constexpr std::string_view formula = "y = x";
  static constexpr onnx_operator onnx{"Identity", 1};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x) { return x; }
  static constexpr var partial(node_ref, int) { return one_partial; }
};
/// The value of x, whose derivative is taken to be zero.
struct stop_gradient_op : elementwise<stop_gradient_op>,
                          zero_derivative,
                          alias_of_operand,
                          takes_records {
  static constexpr std::string_view name = "stop_gradient";
  static constexpr std::string_view torch = "Tensor.detach";
  static constexpr std::string_view formula = "y = x, of derivative zero";
  static constexpr bool integral = true;
  static constexpr auto apply(auto x) { return x; }
};
constexpr var stop_gradient(operand x) { return detail::unary<stop_gradient_op>(x); }

}  // namespace cella
