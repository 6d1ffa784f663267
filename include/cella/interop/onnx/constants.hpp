// Constants, and operators that make them.
#pragma once

#include <algorithm>
#include <cella/interop/onnx/elementwise.hpp>
#include <cella/ops/array.hpp>

namespace cella::interop {

/// The extents that a list of numbers says.
inline shape shape_in(const onnx_node& n, const std::vector<std::int64_t>& extents) {
  if (extents.size() > std::size_t(max_rank))
    n.not_supported("a tensor of " + std::to_string(extents.size()) + " axes, of which 8");
  shape s;
  for (std::int64_t e : extents) {
    if (e < -1 || e > std::numeric_limits<std::int32_t>::max())
      n.refuse("asks for an extent of " + std::to_string(e));
    s.push_back(int(e));
  }
  n.limit_result(s, {});
  return s;
}
/// A constant of integers, of type i64 and rank 1 if not said otherwise.
inline var integers_as_constant(builder& b, const std::vector<std::int64_t>& values, shape s,
                                dtype t = dtype::i64) {
  return constant_of_words(b, {t, s},
                           cella::detail::converted_words(values.data(), values.size(), t));
}
inline var integers_as_constant(builder& b, const std::vector<std::int64_t>& values) {
  return integers_as_constant(b, values, {std::int64_t(values.size())});
}
/// A constant of numbers, converted to the type `t`.
inline var numbers_as_constant(builder& b, const std::vector<double>& values, shape s, dtype t) {
  return constant_of_words(b, {t, s},
                           cella::detail::converted_words(values.data(), values.size(), t));
}
/// The axes of x in another order, as a vector.
inline var permuted(var x, const std::vector<int>& order) { return transpose(x, axis_list(order)); }
/// Axis `from` of x at the place `to`, the others in their order.
inline var with_axis_moved(var x, int from, int to) {
  std::vector<int> order;
  for (int d = 0; d < x.rank(); ++d)
    if (d != from) order.push_back(d);
  order.insert(order.begin() + to, from);
  return permuted(x, order);
}
/// A vector of one number for each channel, beside x.
inline var by_channel(var v, var x) {
  shape s{1, x.extent(1)};
  while (s.rank < x.rank()) s.push_back(1);
  return reshape(v, s);
}

inline list<var> constant_rule(onnx_node& n) {
  if (const auto t = n.tensor("value")) return {constant_of(n.b(), *t)};
  if (n.has_attribute("value_float"))
    return {numbers_as_constant(n.b(), {n.number("value_float", 0)}, {}, dtype::f32)};
  if (n.has_attribute("value_int"))
    return {integers_as_constant(n.b(), {n.integer("value_int", 0)}, {})};
  if (n.has_attribute("value_floats")) {
    const auto all = n.numbers("value_floats");
    return {numbers_as_constant(n.b(), all, {std::int64_t(all.size())}, dtype::f32)};
  }
  if (n.has_attribute("value_ints")) return {integers_as_constant(n.b(), n.integers("value_ints"))};
  n.not_supported("a constant of strings, or a sparse one");
}
inline list<var> constant_of_shape_rule(onnx_node& n) {
  const shape s = shape_in(n, n.integers(0));
  const auto value = n.tensor("value");
  if (!value) return {constant(n.b(), 0, {dtype::f32, s})};
  return {broadcast_to(reshape(constant_of(n.b(), *value), shape{}), s)};
}
inline list<var> eye_like_rule(onnx_node& n) {
  const var x = n.in(0);
  if (x.rank() != 2) n.refuse("must have an operand of rank 2");
  n.limit(double(x.shape().size()));
  const std::int64_t k = n.integer("k", 0);
  std::vector<std::int64_t> all;
  for (int i = 0; i < x.extent(0); ++i)
    for (int j = 0; j < x.extent(1); ++j) all.push_back(j - i == k);
  return {integers_as_constant(n.b(), all, x.shape(), n.element("dtype", x.element()))};
}
inline list<var> range_rule(onnx_node& n) {
  const double start = n.number(0), limit = n.number(1), step = n.number(2);
  if (step == 0) n.refuse("has a step of 0");
  const double count = std::max(0.0, std::ceil((limit - start) / step));
  n.limit(count);
  std::vector<double> all;
  for (double i = 0; i < count; ++i) all.push_back(start + i * step);
  return {numbers_as_constant(n.b(), all, {std::int64_t(all.size())}, n.in(0).element())};
}
inline list<var> shape_rule(onnx_node& n) {
  const shape s = n.in(0).shape();
  auto place = [&](std::int64_t i) {
    return std::clamp<std::int64_t>(i < 0 ? i + s.rank : i, 0, s.rank);
  };
  const std::int64_t first = place(n.integer("start", 0));
  const std::int64_t last = std::max(first, place(n.integer("end", s.rank)));
  return {integers_as_constant(n.b(), {s.begin() + first, s.begin() + last})};
}
inline list<var> size_rule(onnx_node& n) {
  return {integers_as_constant(n.b(), {n.in(0).shape().size()}, {})};
}

inline constexpr named_onnx_rule constant_rules[] = {
    {"Constant", constant_rule}, {"ConstantOfShape", constant_of_shape_rule},
    {"EyeLike", eye_like_rule},  {"Range", range_rule},
    {"Shape", shape_rule},       {"Size", size_rule},
};

}  // namespace cella::interop
