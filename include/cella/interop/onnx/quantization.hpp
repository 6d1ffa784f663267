// Numbers of 8 bits beside their scale and zero: to them, back, and products of them.
#pragma once

#include <cella/interop/onnx/convolutions.hpp>
#include <cella/interop/onnx/products.hpp>

namespace cella::interop {

/// A scale or a zero of one number, or of one for each slice along an axis of x.
inline var along_quantized(const onnx_node& n, var v, var x) {
  if (v.rank() == 0 || v.shape().size() == 1) return reshape(v, shape{});
  const int axis = n.axis("axis", 1, x.rank());
  if (v.rank() != 1 || v.extent(0) != x.extent(axis))
    n.refuse("has not one scale for each slice along its axis");
  shape s;
  for (int d = 0; d < x.rank(); ++d) s.push_back(d == axis ? v.extent(0) : 1);
  return reshape(v, s);
}
inline std::pair<double, double> limits_of(dtype t) {
  const double size = std::ldexp(1.0, int(size_of(t)) * 8);
  return is_unsigned(t) ? std::pair{0.0, size - 1} : std::pair{-size / 2, size / 2 - 1};
}
/// round(x / scale) + zero, kept within what the type holds.
inline var quantized(var x, var scale, var zero, dtype to) {
  const auto [least, most] = limits_of(to);
  return cast(clamp(round(x / scale) + cast(zero, x.element()), least, most), to);
}
inline list<var> quantize_rule(onnx_node& n) {
  const var x = n.in(0);
  const var scale = along_quantized(n, n.in(1), x);
  const dtype to = n.has(2) ? n.in(2).element() : dtype::u8;
  if (!is_integer(to)) n.not_supported("numbers of 8 bits with a point");
  const var zero = n.has(2) ? along_quantized(n, n.in(2), x) : constant(n.b(), 0, {to, {}});
  return {quantized(cast(x, scale.element()), scale, zero, to)};
}
inline list<var> dequantize_rule(onnx_node& n) {
  const var x = n.in(0);
  const var scale = along_quantized(n, n.in(1), x);
  var wide = cast(x, dtype::i32);
  if (n.has(2)) wide = wide - cast(along_quantized(n, n.in(2), x), dtype::i32);
  return {cast(wide, scale.element()) * scale};
}
inline list<var> dynamic_quantize_rule(onnx_node& n) {
  const var x = n.in(0);
  const var low = minimum(min(x), 0), high = maximum(max(x), 0);
  const var scale = (high - low) / 255;
  const var zero = cast(clamp(round(0 - low / scale), 0, 255), dtype::u8);
  return {quantized(x, scale, zero, dtype::u8), scale, zero};
}

/// Integers without their zero, in 32 bits. A zero for each row of the left matrix stands before
/// its columns, one for each column of the right one beside its rows.
inline var without_zero(const onnx_node& n, int operand, int zero, bool by_row) {
  const var x = cast(n.in(operand), dtype::i32);
  if (!n.has(zero)) return x;
  var z = cast(n.in(zero), dtype::i32);
  if (z.shape().size() == 1) return x - reshape(z, shape{});
  if (z.rank() == 1 && by_row) z = expand_dims(z, 1);
  return x - z;
}
inline list<var> matmul_integer_rule(onnx_node& n) {
  return {broadcast_product(n, without_zero(n, 0, 2, true), without_zero(n, 1, 3, false))};
}
/// The same of filters, one zero for each of them.
inline var filters_without_zero(const onnx_node& n, int operand, int zero) {
  const var x = cast(n.in(operand), dtype::i32);
  if (!n.has(zero)) return x;
  const var z = cast(n.in(zero), dtype::i32);
  if (z.shape().size() == 1) return x - reshape(z, shape{});
  shape s{z.extent(0)};
  while (s.rank < x.rank()) s.push_back(1);
  return x - reshape(z, s);
}
inline list<var> convolution_integer_rule(onnx_node& n) {
  const var x = without_zero(n, 0, 2, false), filter = filters_without_zero(n, 1, 3);
  window_axes w = read_windows(n, x, kernel_of(n, filter));
  pad_by_name(n, w);
  return {convolved(n, x, filter, w)};
}
/// An exact sum of products as a quantized number: its scale is `scale` / that of the result.
inline var requantized(var sums, var scale, var result_scale, var zero) {
  const var x = cast(sums, dtype::f32) * (scale / result_scale);
  return quantized(x, constant(*x.b, 1, {dtype::f32, {}}), zero, zero.element());
}
inline var one_number(const onnx_node& n, int i) {
  const var x = n.in(i);
  return x.shape().size() == 1 ? reshape(x, shape{}) : x;
}
inline list<var> quantized_matmul_rule(onnx_node& n) {
  const var sums = broadcast_product(n, without_zero(n, 0, 2, true), without_zero(n, 3, 5, false));
  var left = cast(one_number(n, 1), dtype::f32);
  if (left.rank() == 1) left = expand_dims(left, 1);
  const var scale = left * cast(one_number(n, 4), dtype::f32);
  return {requantized(sums, scale, cast(one_number(n, 6), dtype::f32), one_number(n, 7))};
}
inline list<var> quantized_convolution_rule(onnx_node& n) {
  const var x = without_zero(n, 0, 2, false), filter = filters_without_zero(n, 3, 5);
  window_axes w = read_windows(n, x, kernel_of(n, filter));
  pad_by_name(n, w);
  const var sums = with_bias(n, convolved(n, x, filter, w), 8);
  var filter_scale = one_number(n, 4);
  if (filter_scale.rank() == 1) filter_scale = by_channel(filter_scale, sums);
  return {requantized(sums, one_number(n, 1) * filter_scale, one_number(n, 6), one_number(n, 7))};
}

inline constexpr named_onnx_rule quantization_rules[] = {
    {"ConvInteger", convolution_integer_rule},
    {"DequantizeLinear", dequantize_rule},
    {"DynamicQuantizeLinear", dynamic_quantize_rule},
    {"MatMulInteger", matmul_integer_rule},
    {"QLinearConv", quantized_convolution_rule},
    {"QLinearMatMul", quantized_matmul_rule},
    {"QuantizeLinear", quantize_rule},
};

}  // namespace cella::interop
