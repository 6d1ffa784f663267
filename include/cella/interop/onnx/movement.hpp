// Operators that make, rearrange, cut and join tensors.
#pragma once

#include <algorithm>
#include <cella/interop/onnx/elementwise.hpp>
#include <cella/ops/array.hpp>
#include <cella/ops/diagonal.hpp>
#include <cella/ops/image.hpp>
#include <cella/ops/padding.hpp>
#include <cella/ops/slicing.hpp>
#include <numeric>

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
  const word_list words = cella::detail::converted_words(values.data(), values.size(), t);
  const auto a = cella::detail::apply_constant(b.g, {t, s}, words);
  return {&b, b.emit(*a.op, span<const node_id>{}, a.options)};
}
inline var integers_as_constant(builder& b, const std::vector<std::int64_t>& values) {
  return integers_as_constant(b, values, {std::int64_t(values.size())});
}
/// A constant of numbers, converted to the type `t`.
inline var numbers_as_constant(builder& b, const std::vector<double>& values, shape s, dtype t) {
  const word_list words = cella::detail::converted_words(values.data(), values.size(), t);
  const auto a = cella::detail::apply_constant(b.g, {t, s}, words);
  return {&b, b.emit(*a.op, span<const node_id>{}, a.options)};
}
/// The axes of x in another order, as a vector.
inline var permuted(var x, const std::vector<int>& order) { return transpose(x, axis_list(order)); }

// ---- constants

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

// ---- other extents

inline list<var> reshape_rule(onnx_node& n) {
  const var x = n.in(0);
  shape s = shape_in(n, n.attribute_or_operand("shape", 1));
  if (!n.integer("allowzero", 0)) {
    for (int i = 0; i < s.rank; ++i) {
      if (s[i] != 0) continue;
      if (i >= x.rank()) n.refuse("keeps an axis that its operand does not have");
      s[i] = x.extent(i);
    }
  }
  return {reshape(x, s)};
}
inline list<var> flatten_rule(onnx_node& n) {
  const var x = n.in(0);
  const std::int64_t axis = n.integer("axis", 1);
  const std::int64_t first = axis < 0 ? axis + x.rank() : axis;
  if (first < 0 || first > x.rank()) n.refuse("names axis " + std::to_string(axis));
  const shape s = x.shape();
  return {reshape(x, {s.size(0, int(first)), s.size(int(first), s.rank)})};
}
inline list<var> squeeze_rule(onnx_node& n) {
  const var x = n.in(0);
  unsigned gone = 0;
  for (std::int64_t a : n.attribute_or_operand("axes", 1)) gone |= 1u << n.axis(a, x.rank());
  const bool all = !n.has(1) && !n.has_attribute("axes");
  shape s;
  for (int d = 0; d < x.rank(); ++d) {
    const bool squeezed = all ? x.extent(d) == 1 : gone >> d & 1;
    if (squeezed && x.extent(d) != 1) n.refuse("squeezes an axis of more than one element");
    if (!squeezed) s.push_back(x.extent(d));
  }
  return {reshape(x, s)};
}
inline list<var> unsqueeze_rule(onnx_node& n) {
  const var x = n.in(0);
  const auto axes = n.attribute_or_operand("axes", 1);
  const int rank = x.rank() + int(axes.size());
  if (rank > max_rank) n.not_supported("a tensor of more than 8 axes");
  unsigned fresh = 0;
  for (std::int64_t a : axes) fresh |= 1u << n.axis(a, rank);
  shape s;
  for (int d = 0, from = 0; d < rank; ++d) {
    if (!(fresh >> d & 1) && from == x.rank()) n.refuse("names an axis twice");
    s.push_back(fresh >> d & 1 ? 1 : x.extent(from++));
  }
  return {reshape(x, s)};
}
inline list<var> transpose_rule(onnx_node& n) {
  const var x = n.in(0);
  std::vector<int> order;
  for (std::int64_t a : n.integers("perm")) order.push_back(n.axis(a, x.rank()));
  if (order.empty())
    for (int d = x.rank(); d-- > 0;) order.push_back(d);
  return {permuted(x, order)};
}
inline list<var> expand_rule(onnx_node& n) {
  const var x = n.in(0);
  // An extent of 1 leaves that of the operand.
  shape s = shape_in(n, n.integers(1));
  while (s.rank < x.rank()) s.insert(0, 1);
  for (int d = 0; d < x.rank(); ++d) {
    const int at = s.rank - x.rank() + d;
    if (s[at] == 1) s[at] = x.extent(d);
  }
  n.limit_result(s, {});
  return {broadcast_to(x, s)};
}
inline list<var> tile_rule(onnx_node& n) {
  std::vector<int> all;
  for (std::int64_t r : n.integers(1)) all.push_back(int(n.between(0, r, 1 << 30, "repetition")));
  n.limit_result(n.in(0).shape(), all);
  return {tile(n.in(0), axis_list(all))};
}

// ---- cutting and joining

inline list<var> concat_rule(onnx_node& n) {
  const list<var> parts = n.inputs();
  if (parts.empty()) n.refuse("has no operands");
  const int axis = n.axis("axis", 1, parts[0].rank());
  list<var> some;  // those that hold elements
  for (const var& p : parts)
    if (p.rank() != parts[0].rank() || p.extent(axis) != 0) some.push_back(p);
  return {some.empty() ? parts[0] : concat(span<const var>(some.data(), some.size()), axis)};
}
/// Elements of a grid: `start`, `count` and `step` for each axis.
struct grid {
  std::array<std::int32_t, max_rank> start{}, step{1, 1, 1, 1, 1, 1, 1, 1};
  shape count;
};
inline var cut(var x, const grid& g) {
  if (g.count.size() == 0) return constant(*x.b, 0, {x.element(), g.count});
  if (g.count == x.shape() && g.step == grid{}.step) return x;
  slice_op::options o{g.count, g.start, g.step};
  for (int d = 0; d < x.rank(); ++d)
    if (g.count[d] == 1) o.step[std::size_t(d)] = 1;
  return emit<slice_op>(o, std::source_location::current(), x);
}
inline var cut(var x, int axis, std::int64_t start, std::int64_t count) {
  grid g{{}, grid{}.step, x.shape()};
  g.start[std::size_t(axis)] = std::int32_t(start);
  g.count[axis] = std::int32_t(count);
  return cut(x, g);
}
inline list<var> slice_rule(onnx_node& n) {
  const var x = n.in(0);
  const auto starts = n.attribute_or_operand("starts", 1);
  const auto stops = n.attribute_or_operand("ends", 2);
  auto axes = n.attribute_or_operand("axes", 3);
  const auto steps = n.has(4) ? n.integers(4) : std::vector<std::int64_t>(starts.size(), 1);
  if (axes.empty() && !n.has(3))
    for (std::size_t d = 0; d < starts.size(); ++d) axes.push_back(std::int64_t(d));
  if (stops.size() != starts.size() || axes.size() != starts.size() ||
      steps.size() != starts.size())
    n.refuse("has starts, ends, axes and steps of different numbers");
  grid g{{}, grid{}.step, x.shape()};
  for (std::size_t k = 0; k < starts.size(); ++k) {
    const int d = n.axis(axes[k], x.rank());
    const std::int64_t extent = x.extent(d), step = steps[k];
    if (step == 0) n.refuse("has a step of 0");
    auto place = [&](std::int64_t p, std::int64_t least, std::int64_t most) {
      return std::clamp(p < 0 ? p + extent : p, least, most);
    };
    const std::int64_t start =
        step > 0 ? place(starts[k], 0, extent) : place(starts[k], 0, extent - 1);
    // Far below 0 stays there: it is before the first element.
    const std::int64_t low = std::numeric_limits<std::int64_t>::min() / 2;
    const std::int64_t stop =
        step > 0 ? place(stops[k], 0, extent) : place(std::max(stops[k], low), -1, extent - 1);
    const std::int64_t length = step > 0 ? stop - start : start - stop;
    const std::int64_t by = step > 0 ? step : step == low * 2 ? extent : -step;
    g.count[d] = std::int32_t(length > 0 ? (length - 1) / by + 1 : 0);
    g.start[std::size_t(d)] = std::int32_t(start);
    g.step[std::size_t(d)] = g.count[d] > 1 ? std::int32_t(step) : 1;
  }
  return {cut(x, g)};
}
inline list<var> split_rule(onnx_node& n) {
  const var x = n.in(0);
  const int axis = n.axis("axis", 0, x.rank());
  const std::int64_t extent = x.extent(axis);
  auto sizes = n.attribute_or_operand("split", 1);
  if (sizes.empty()) {
    const std::int64_t count = std::max(1, n.output_count());
    const std::int64_t each = (extent + count - 1) / count;
    for (std::int64_t k = 0; k < count; ++k)
      sizes.push_back(std::clamp<std::int64_t>(extent - k * each, 0, each));
  }
  if (std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != extent ||
      std::ranges::any_of(sizes, [](auto s) { return s < 0; }))
    n.refuse("has parts that do not make up the axis of " + std::to_string(extent));
  list<var> all;
  std::int64_t first = 0;
  for (std::int64_t s : sizes) {
    all.push_back(cut(x, axis, first, s));
    first += s;
  }
  return all;
}
inline list<var> pad_rule(onnx_node& n) {
  var x = n.in(0);
  auto pads = n.attribute_or_operand("pads", 1);
  if (pads.empty() && n.has_attribute("paddings")) pads = n.integers("paddings");
  std::vector<std::int64_t> axes;
  if (n.has(3)) axes = n.integers(3);
  if (!n.has(3))
    for (int d = 0; d < x.rank(); ++d) axes.push_back(d);
  if (pads.size() != 2 * axes.size()) n.refuse("has not two pads for each axis");
  std::vector<int> before(std::size_t(x.rank())), after(std::size_t(x.rank()));
  grid inner{{}, grid{}.step, x.shape()};
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const auto d = std::size_t(n.axis(axes[k], x.rank()));
    const std::int64_t most = 1 << 30;
    const std::int64_t low = n.between(-most, pads[k], most, "pad");
    const std::int64_t high = n.between(-most, pads[k + axes.size()], most, "pad");
    before[d] = int(std::max<std::int64_t>(low, 0));
    after[d] = int(std::max<std::int64_t>(high, 0));
    // What is negative cuts off.
    inner.start[d] = std::int32_t(std::max<std::int64_t>(-low, 0));
    inner.count[int(d)] -= inner.start[d] + std::int32_t(std::max<std::int64_t>(-high, 0));
    if (inner.count[int(d)] < 0) n.refuse("cuts off more than there is");
  }
  x = cut(x, inner);
  shape padded = x.shape();
  for (int d = 0; d < padded.rank; ++d)
    padded[d] += before[std::size_t(d)] / 2 + after[std::size_t(d)] / 2;
  n.limit_result(padded, {});
  const std::string mode = n.one_of("mode", {"constant", "reflect", "edge", "wrap"});
  if (mode == "reflect") return {pad_reflect(x, before, after)};
  if (mode == "edge") return {pad_replicate(x, before, after)};
  if (mode == "wrap") {
    for (int d = 0; d < x.rank(); ++d) {
      const auto k = std::size_t(d);
      if (before[k] > x.extent(d) || after[k] > x.extent(d))
        n.not_supported("wrapping an axis more than once");
      list<var> parts;
      if (before[k]) parts.push_back(cut(x, d, x.extent(d) - before[k], before[k]));
      parts.push_back(x);
      if (after[k]) parts.push_back(cut(x, d, 0, after[k]));
      x = concat(span<const var>(parts.data(), parts.size()), d);
    }
    return {x};
  }
  const bool none = std::ranges::all_of(before, [](int w) { return w == 0; }) &&
                    std::ranges::all_of(after, [](int w) { return w == 0; });
  if (none) return {x};
  if (x.shape().size() == 0) {
    shape s = x.shape();
    for (int d = 0; d < s.rank; ++d) s[d] += before[std::size_t(d)] + after[std::size_t(d)];
    x = constant(n.b(), 0, {x.element(), s});
    if (n.has(2)) x = broadcast_to(reshape(n.in(2), shape{}), s);
    return {x};
  }
  const double value = n.has(2) ? n.number(2) : n.number("value", 0);
  return {pad(x, before, after, value)};
}
inline list<var> center_crop_pad_rule(onnx_node& n) {
  var x = n.in(0);
  const auto target = n.integers(1);
  auto axes = n.integers("axes");
  if (axes.empty())
    for (int d = 0; d < x.rank(); ++d) axes.push_back(d);
  if (target.size() != axes.size()) n.refuse("has not one extent for each axis");
  std::vector<int> before(std::size_t(x.rank())), after(std::size_t(x.rank()));
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const int d = n.axis(axes[k], x.rank());
    const std::int64_t more = n.between(0, target[k], 1 << 30, "extent") - x.extent(d);
    if (more < 0) {
      x = cut(x, d, -more / 2, target[k]);
    } else {
      before[std::size_t(d)] = int(more / 2);
      after[std::size_t(d)] = int(more - more / 2);
    }
  }
  return {pad(x, before, after, 0)};
}
inline list<var> trilu_rule(onnx_node& n) {
  const var x = n.in(0, 2);
  const std::int64_t k = n.has(1) ? n.integer(1) : 0;
  const std::int64_t bound = x.extent(-1) + x.extent(-2);
  const int diagonal = int(std::clamp(k, -bound, bound));
  if (x.shape().size() == 0) return {x};
  return {n.integer("upper", 1) ? triu(x, diagonal) : tril(x, diagonal)};
}

// ---- images

/// [N, C, H, W] as [N, ...] of these extents, its axes in this order, and merged to [N, C', H',
/// W'].
inline list<var> depth_to_space_rule(onnx_node& n) {
  const var x = n.in(0, 4, 4);
  const std::int64_t s = n.between(1, n.integer("blocksize", 1), 1 << 10, "blocksize");
  const shape e = x.shape();
  if (e[1] % (s * s)) n.refuse("has a blocksize that does not divide the channels");
  const std::int64_t c = e[1] / (s * s);
  if (n.one_of("mode", {"DCR", "CRD"}) == "DCR") {
    const var y = reshape(x, {e[0], s, s, c, e[2], e[3]});
    return {reshape(transpose(y, {0, 3, 4, 1, 5, 2}), {e[0], c, e[2] * s, e[3] * s})};
  }
  const var y = reshape(x, {e[0], c, s, s, e[2], e[3]});
  return {reshape(transpose(y, {0, 1, 4, 2, 5, 3}), {e[0], c, e[2] * s, e[3] * s})};
}
inline list<var> space_to_depth_rule(onnx_node& n) {
  const var x = n.in(0, 4, 4);
  const std::int64_t s = n.between(1, n.integer("blocksize", 1), 1 << 10, "blocksize");
  const shape e = x.shape();
  if (e[2] % s || e[3] % s) n.refuse("has a blocksize that does not divide the image");
  const var y = reshape(x, {e[0], e[1], e[2] / s, s, e[3] / s, s});
  return {reshape(transpose(y, {0, 3, 5, 1, 2, 4}), {e[0], e[1] * s * s, e[2] / s, e[3] / s})};
}

inline constexpr named_onnx_rule movement_rules[] = {
    {"CenterCropPad", center_crop_pad_rule},
    {"Concat", concat_rule},
    {"Constant", constant_rule},
    {"ConstantOfShape", constant_of_shape_rule},
    {"DepthToSpace", depth_to_space_rule},
    {"Expand", expand_rule},
    {"EyeLike", eye_like_rule},
    {"Flatten", flatten_rule},
    {"Pad", pad_rule},
    {"Range", range_rule},
    {"Reshape", reshape_rule},
    {"Shape", shape_rule},
    {"Size", size_rule},
    {"Slice", slice_rule},
    {"SpaceToDepth", space_to_depth_rule},
    {"Split", split_rule},
    {"Squeeze", squeeze_rule},
    {"Tile", tile_rule},
    {"Transpose", transpose_rule},
    {"Trilu", trilu_rule},
    {"Unsqueeze", unsqueeze_rule},
};

}  // namespace cella::interop
