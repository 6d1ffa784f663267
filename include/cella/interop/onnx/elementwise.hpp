// Operators that go element by element.
#pragma once

#include <cella/interop/onnx/node.hpp>
#include <cella/ops/arithmetic.hpp>
#include <cella/ops/bitwise.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/comparison.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/rounding.hpp>
#include <cella/ops/trigonometry.hpp>
#include <limits>

namespace cella::interop {

template <var (*F)(operand)>
list<var> unary_rule(onnx_node& n) {
  return {F(n.in(0))};
}
template <var (*F)(operand, operand)>
list<var> binary_rule(onnx_node& n) {
  return {F(n.in(0), n.in(1))};
}
/// Of as many operands as there are.
template <var (*F)(operand, operand)>
list<var> folded_rule(onnx_node& n) {
  var all = n.in(0);
  for (int i = 1; i < n.input_count(); ++i) all = F(all, n.in(i));
  return {all};
}
/// A tensor of one number beside x.
inline var scalar_like(var x, double value) { return constant(*x.b, value, {x.element(), {}}); }

/// Of numbers in opsets before 7, whose operands were broadcast only where asked to.
template <class Op>
list<var> arithmetic_rule(onnx_node& n) {
  const var x = n.in(0);
  var y = n.in(1);
  if (n.opset() < 7 && n.integer("broadcast", 0) && n.has_attribute("axis")) {
    const int first = n.axis("axis", 0, x.rank());
    shape s = y.shape();
    while (s.rank < x.rank() - first) s.push_back(1);
    y = reshape(y, s);
  }
  return {cella::detail::binary<Op>(x, y)};
}
inline var total(operand x, operand y) { return cella::detail::binary<add_op>(x, y); }
inline var negated(operand x) { return cella::detail::unary<neg_op>(x); }

inline list<var> pow_rule(onnx_node& n) {
  const var x = n.in(0), y = n.in(1);
  const dtype t = x.element();
  if (is_floating(t) && t == y.element()) return {pow(x, y)};
  // The result has the type of the base.
  const dtype wide =
      t == dtype::f32 || t == dtype::f16 || t == dtype::bf16 ? dtype::f32 : dtype::f64;
  return {cast(pow(cast(x, wide), cast(y, wide)), t)};
}
inline list<var> mod_rule(onnx_node& n) {
  return {n.integer("fmod", 0) ? fmod(n.in(0), n.in(1)) : mod(n.in(0), n.in(1))};
}
inline list<var> mean_rule(onnx_node& n) {
  return {folded_rule<total>(n)[0] / double(n.input_count())};
}

inline list<var> clip_rule(onnx_node& n) {
  var x = n.in(0);
  if (n.opset() < 11) {
    if (n.has_attribute("min")) x = maximum(x, n.number("min", 0));
    if (n.has_attribute("max")) x = minimum(x, n.number("max", 0));
    return {x};
  }
  if (n.has(1)) x = maximum(x, n.in(1));
  if (n.has(2)) x = minimum(x, n.in(2));
  return {x};
}
inline list<var> is_nan_rule(onnx_node& n) { return {not_equal(n.in(0), n.in(0))}; }
inline list<var> is_inf_rule(onnx_node& n) {
  const var x = n.in(0);
  const double infinity = std::numeric_limits<double>::infinity();
  const bool up = n.integer("detect_positive", 1), down = n.integer("detect_negative", 1);
  if (up && down) return {equal(abs(x), infinity)};
  return {up ? equal(x, infinity) : equal(x, down ? -infinity : std::nan(""))};
}
inline list<var> cast_rule(onnx_node& n) { return {cast(n.in(0), n.element("to", dtype::f32))}; }
inline list<var> cast_like_rule(onnx_node& n) { return {cast(n.in(0), n.in(1).element())}; }
inline list<var> where_rule(onnx_node& n) { return {select(n.in(0), n.in(1), n.in(2))}; }
inline list<var> xor_rule(onnx_node& n) { return {not_equal(n.in(0), n.in(1))}; }
inline list<var> bit_shift_rule(onnx_node& n) {
  const bool left = n.one_of("direction", {"LEFT", "RIGHT"}) == "LEFT";
  return {left ? left_shift(n.in(0), n.in(1)) : right_shift(n.in(0), n.in(1))};
}
inline list<var> reciprocal_rule(onnx_node& n) { return {1 / n.in(0)}; }

inline constexpr named_onnx_rule elementwise_rules[] = {
    {"Abs", unary_rule<abs>},
    {"Acos", unary_rule<acos>},
    {"Acosh", unary_rule<acosh>},
    {"Add", arithmetic_rule<add_op>},
    {"And", binary_rule<logical_and>},
    {"Asin", unary_rule<asin>},
    {"Asinh", unary_rule<asinh>},
    {"Atan", unary_rule<atan>},
    {"Atanh", unary_rule<atanh>},
    {"BitShift", bit_shift_rule},
    {"BitwiseAnd", binary_rule<bitwise_and>},
    {"BitwiseNot", unary_rule<bitwise_not>},
    {"BitwiseOr", binary_rule<bitwise_or>},
    {"BitwiseXor", binary_rule<bitwise_xor>},
    {"Cast", cast_rule},
    {"CastLike", cast_like_rule},
    {"Ceil", unary_rule<ceil>},
    {"Clip", clip_rule},
    {"Cos", unary_rule<cos>},
    {"Cosh", unary_rule<cosh>},
    {"Div", arithmetic_rule<div_op>},
    {"Equal", binary_rule<equal>},
    {"Erf", unary_rule<erf>},
    {"Exp", unary_rule<exp>},
    {"Floor", unary_rule<floor>},
    {"Greater", binary_rule<greater>},
    {"GreaterOrEqual", binary_rule<greater_equal>},
    {"IsInf", is_inf_rule},
    {"IsNaN", is_nan_rule},
    {"Less", binary_rule<less>},
    {"LessOrEqual", binary_rule<less_equal>},
    {"Log", unary_rule<log>},
    {"Max", folded_rule<maximum>},
    {"Mean", mean_rule},
    {"Min", folded_rule<minimum>},
    {"Mod", mod_rule},
    {"Mul", arithmetic_rule<mul_op>},
    {"Neg", unary_rule<negated>},
    {"Not", unary_rule<logical_not>},
    {"Or", binary_rule<logical_or>},
    {"Pow", pow_rule},
    {"Reciprocal", reciprocal_rule},
    {"Round", unary_rule<round>},
    {"Sign", unary_rule<sign>},
    {"Sin", unary_rule<sin>},
    {"Sinh", unary_rule<sinh>},
    {"Sqrt", unary_rule<sqrt>},
    {"Sub", arithmetic_rule<sub_op>},
    {"Sum", folded_rule<total>},
    {"Tan", unary_rule<tan>},
    {"Tanh", unary_rule<tanh>},
    {"Where", where_rule},
    {"Xor", xor_rule},
};

}  // namespace cella::interop
