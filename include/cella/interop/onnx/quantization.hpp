// Numbers of 8 bits beside their scale and zero: to them, back, and products of them.
#pragma once

#include <cella/interop/onnx/convolutions.hpp>
#include <cella/interop/onnx/products.hpp>
#include <cella/ops/integer_products.hpp>
#include <cella/ops/quantization.hpp>

namespace cella::interop {

inline list<var> quantize_rule(onnx_node& n) {
  const var x = n.in(0);
  if (n.integer("block_size", 0)) n.not_supported("a scale for each block of numbers");
  dtype to = dtype::u8;
  if (n.has(2))
    to = n.in(2).element();
  else if (n.integer("output_dtype", 0))
    to = n.element("output_dtype", to);
  if (!is_integer(to)) n.not_supported("numbers of 8 bits with a point");
  const int axis = int(n.integer("axis", 1));
  const var real = is_floating(x.element()) ? x : cast(x, n.in(1).element());
  return {n.has(2) ? quantize(real, n.in(1), n.in(2), to, axis)
                   : quantize(real, n.in(1), 0, to, axis)};
}
inline list<var> dequantize_rule(onnx_node& n) {
  if (n.integer("block_size", 0)) n.not_supported("a scale for each block of numbers");
  const int axis = int(n.integer("axis", 1));
  return {n.has(2) ? dequantize(n.in(0), n.in(1), n.in(2), axis)
                   : dequantize(n.in(0), n.in(1), 0, axis)};
}
inline list<var> dynamic_quantize_rule(onnx_node& n) {
  const var x = n.in(0);
  const quantization_scheme s = quantization_of(min(x), max(x), dtype::u8);
  const var zero = cast(s.zero, dtype::u8);
  return {quantize(x, s.scale, zero, dtype::u8), s.scale, zero};
}

/// The zero of an operand, 0 if it is left out.
inline var zero_of(const onnx_node& n, int i, var x) {
  if (!n.has(i)) return constant(n.b(), 0, {x.element(), {}});
  const var z = n.in(i);
  return z.shape().size() == 1 ? reshape(z, shape{}) : z;
}
/// Sums of products of integers without their zeros. Of bytes there is one operation; what else
/// there may be, vectors, and zeros for each matrix of a batch, is computed from differences.
inline var product_of_integers(const onnx_node& n, std::array<int, 2> at,
                               std::array<int, 2> zeros) {
  const var x = n.in(at[0]), y = n.in(at[1]), v = zero_of(n, zeros[1], y);
  var u = zero_of(n, zeros[0], x);
  const int r = x.rank();
  const bool whole = y.rank() == 2 || (y.rank() == r && begins_with(y.shape(), x.shape(), r - 2));
  if (r >= 2 && whole && u.rank() <= 1 && v.rank() <= 1) return matmul_integer(x, y, u, v);
  // A zero for each row of the left matrix stands before its columns.
  if (u.rank() == 1) u = expand_dims(u, 1);
  const auto less = [](var all, var zero) {
    return cast(all, dtype::i32) - cast(zero, dtype::i32);
  };
  return broadcast_product(n, less(x, u), less(y, v));
}
inline list<var> matmul_integer_rule(onnx_node& n) {
  return {product_of_integers(n, {0, 1}, {2, 3})};
}
inline var convolution_of_integers(const onnx_node& n, std::array<int, 2> at,
                                   std::array<int, 2> zeros) {
  const var x = n.in(at[0]), filter = n.in(at[1]);
  const var u = zero_of(n, zeros[0], x), v = zero_of(n, zeros[1], filter);
  window_axes w = read_windows(n, x, kernel_of(n, filter));
  pad_by_name(n, w);
  if (w.size() == 2) {
    const std::int64_t groups = n.between(1, n.integer("group", 1), 1 << 30, "group");
    return conv2d_integer(x, filter, window_of(w[0], w[1], groups), u, v);
  }
  // One zero for each filter.
  shape s{filter.extent(0)};
  while (s.rank < filter.rank()) s.push_back(1);
  const var zero = cast(v.rank() ? reshape(v, s) : v, dtype::i32);
  return convolved(n, cast(x, dtype::i32) - cast(u, dtype::i32), cast(filter, dtype::i32) - zero,
                   w);
}
inline list<var> convolution_integer_rule(onnx_node& n) {
  return {convolution_of_integers(n, {0, 1}, {2, 3})};
}
/// An exact sum of products as a quantized number: its scale is `scale` / that of the result.
inline var requantized(var sums, var scale, var result_scale, var zero) {
  return quantize(cast(sums, dtype::f32) * (scale / result_scale), 1, zero, zero.element());
}
inline var one_number(const onnx_node& n, int i) {
  const var x = n.in(i);
  return x.shape().size() == 1 ? reshape(x, shape{}) : x;
}
inline list<var> quantized_matmul_rule(onnx_node& n) {
  const var sums = product_of_integers(n, {0, 3}, {2, 5});
  var left = cast(one_number(n, 1), dtype::f32);
  if (left.rank() == 1) left = expand_dims(left, 1);
  const var scale = left * cast(one_number(n, 4), dtype::f32);
  return {requantized(sums, scale, cast(one_number(n, 6), dtype::f32), one_number(n, 7))};
}
inline list<var> quantized_convolution_rule(onnx_node& n) {
  const var sums = with_bias(n, convolution_of_integers(n, {0, 3}, {2, 5}), 8);
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
