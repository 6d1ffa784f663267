// Numbers of few bits: integers q that stand for (q - zero) scale. To them and back, the same
// within floating point for training, and which scale and zero a range of numbers wants. Products
// of such integers stand in integer_products.hpp.
#pragma once

#include <cella/ops/array.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/rounding.hpp>
#include <cmath>

namespace cella {

/// y = `value`, but its derivative is that of `x`: for what is piecewise constant, as rounding is,
/// and is to be trained through.  Bengio, Leonard and Courville 2013
struct straight_through_op : elementwise<straight_through_op> {
  static constexpr std::string_view name = "straight_through";
  static constexpr std::string_view formula = "y = a, of the derivative of b";
  static constexpr auto apply(auto value, auto x) {
    static_cast<void>(x);
    return value;
  }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type>,
                                   const attributes&) {
    return in[0];
  }
  static constexpr var partial(node_ref, int i) { return i == 0 ? zero_partial : one_partial; }
};
constexpr var straight_through(operand value, operand x) {
  return detail::binary<straight_through_op>(value, x);
}

/// The integers that quantized numbers may be, ends included: those of an element type, or of few
/// bits: `{-8, 7}` has four, `{-127, 127}` is symmetric.
struct quantized_range {
  double low{};
  double high{};

  constexpr quantized_range(double least, double most) : low(least), high(most) {}
  constexpr quantized_range(dtype t) {
    double values = 1;
    for (std::size_t bit = 0; bit < 8 * size_of(t); ++bit) values *= 2;
    low = is_unsigned(t) ? 0 : -values / 2;
    high = low + values - 1;
  }
};

namespace detail {

/// A scale or a zero beside x: one number, or one for each slice along `axis`.
constexpr var beside_slices(std::string_view op, std::string_view what, operand number, var x,
                            int axis, dtype element) {
  builder& b = *x.b;
  if (number.is_number()) return constant(b, number.number(), {element, {}});
  var v = number.in(b);
  if (v.element() != element) v = cast(v, element);
  if (v.shape().size() == 1) return reshape(v, shape{});
  const int at = axis < 0 ? axis + x.rank() : axis;
  if (v.rank() != 1 || at < 0 || at >= x.rank() || v.extent(0) != x.extent(at)) {
    b.fail(text() << number.at() << ": " << op << ": the " << what << " " << b.describe(v.id) << " "
                  << v.shape() << " is neither one number nor one for each slice along axis "
                  << axis << " of " << b.describe(x.id) << " " << x.shape());
    return constant(b, 1, {element, {}});
  }
  shape s;
  for (int d = 0; d < x.rank(); ++d) s.push_back(d == at ? v.extent(0) : 1);
  return reshape(v, s);
}
constexpr bool is_quantizable(std::string_view op, var x, std::source_location at) {
  if (is_floating(x.element())) return true;
  x.b->fail(text() << at << ": " << op << ": " << x.b->describe(x.id) << " is " << x.type()
                   << "; it needs numbers of floating point");
  return false;
}
/// Numbers of 16 bits have not all integers of 8 with a zero: they are computed in single
/// precision.
constexpr dtype quantizing_type(dtype t) { return t == dtype::f64 ? t : dtype::f32; }
/// x / scale, rounded, and the zero.
struct on_grid {
  var exact, rounded, zero, scale;
};
constexpr on_grid on_quantized_grid(std::string_view op, var x, operand scale, operand zero,
                                    int axis) {
  const dtype wide = quantizing_type(x.element());
  const var v = cast(x, wide);
  const var s = beside_slices(op, "scale", scale, x, axis, wide);
  const var z = beside_slices(op, "zero", zero, x, axis, wide);
  const var exact = v / s;
  return {exact, round(exact), z, s};
}

}  // namespace detail

/// The integers of type `element` that stand for x: x / scale, rounded to the nearest, of two to
/// the even one, plus zero, and kept within what the type holds. Scale and zero are one number, or
/// have one for each slice of x along `axis`; a symmetric scheme has the zero 0. NaN becomes 0.
/// ONNX: QuantizeLinear
constexpr var quantize(operand x, operand scale, operand zero, dtype element, int axis = 1) {
  const var v = x.in(*x.owner());
  if (!detail::is_quantizable("quantize", v, x.at())) return v;
  if (!is_integer(element)) {
    v.b->fail(text() << x.at() << ": quantize: " << name(element)
                     << " is no type of integers; i8 and u8 are usual");
    return v;
  }
  const quantized_range range(element);
  const auto grid = detail::on_quantized_grid("quantize", v, scale, zero, axis);
  return cast(clamp(grid.rounded + grid.zero, range.low, range.high), element);
}
/// (q - zero) scale: the numbers, of the scale's type, for which integers q stand. Scale and zero
/// as of `quantize`; a scale that is written as a number makes f32.  ONNX: DequantizeLinear
constexpr var dequantize(operand q, operand scale, operand zero = 0, int axis = 1) {
  builder& b = owner_of(q, scale);
  const var v = q.in(b);
  if (!is_integer(v.element())) {
    b.fail(text() << q.at() << ": dequantize: " << b.describe(v.id) << " is " << v.type()
                  << "; it needs integers");
    return v;
  }
  const dtype to = scale.is_number() ? dtype::f32 : scale.in(b).element();
  if (!is_floating(to)) {
    b.fail(text() << scale.at() << ": dequantize: the scale is " << scale.in(b).type()
                  << "; it needs floating point");
    return v;
  }
  // Integers of 16 bits and their differences are exact in single precision.
  const dtype wide = detail::quantizing_type(to);
  const dtype in = size_of(v.element()) <= 2 ? wide : dtype::i64;
  const var z = detail::beside_slices("dequantize", "zero", zero, v, axis, in);
  const var s = detail::beside_slices("dequantize", "scale", scale, v, axis, wide);
  return cast(cast(cast(v, in) - z, wide) * s, to);
}
/// What is left of x when it is quantized and dequantized, for training that is to bear it. The
/// rounding has the derivative one: x gets the gradient where it lies in the range, none beyond its
/// ends, and scale and zero, if they are trained, get theirs.  Jacob et al. 2018; of the scale
/// Esser et al. 2020 (LSQ)
constexpr var fake_quantize(operand x, operand scale, operand zero, quantized_range range,
                            int axis = 1) {
  const var v = x.in(*x.owner());
  if (!detail::is_quantizable("fake_quantize", v, x.at())) return v;
  const auto grid = detail::on_quantized_grid("fake_quantize", v, scale, zero, axis);
  const var q = straight_through(grid.rounded, grid.exact) + grid.zero;
  return cast((clamp(q, range.low, range.high) - grid.zero) * grid.scale, v.element());
}

/// What `quantize` and its kin want of a scheme.
struct quantization_scheme {
  var scale;
  var zero;  ///< whole numbers, of the scale's type
};
/// The scheme whose range reaches from `low` to `high`, and has 0 as one of its numbers;
/// `symmetric` has it in the middle. What is 0 alone gets the scale 1.
constexpr quantization_scheme quantization_of(operand low, operand high, quantized_range range,
                                              bool symmetric = false) {
  const var a = minimum(low, 0), b = maximum(high, 0);
  if (symmetric) {
    const var most = maximum(-a, b);
    const var scale = most * (1 / std::min(-range.low, range.high));
    return {select(scale > 0, scale, ones_like(scale)), zeros_like(scale)};
  }
  const var wanted = (b - a) / (range.high - range.low);
  const var scale = select(wanted > 0, wanted, ones_like(wanted));
  return {scale, clamp(range.low + round(0 - a / scale), range.low, range.high)};
}

}  // namespace cella
