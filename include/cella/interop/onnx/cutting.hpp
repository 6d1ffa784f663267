// Operators that cut and join.
#pragma once

#include <cella/interop/onnx/constants.hpp>
#include <cella/ops/slicing.hpp>
#include <limits>
#include <numeric>

namespace cella::interop {

/// Tensors joined along an axis.
inline var joined_along(const list<var>& parts, int axis) {
  list<var> some;  // those that hold elements
  for (const var& p : parts)
    if (p.rank() != parts[0].rank() || p.extent(axis) != 0) some.push_back(p);
  return some.empty() ? parts[0] : concat(span<const var>(some.data(), some.size()), axis);
}
inline list<var> concat_rule(onnx_node& n) {
  const list<var> parts = n.inputs();
  if (parts.empty()) n.refuse("has no operands");
  return {joined_along(parts, n.axis("axis", 1, parts[0].rank()))};
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
    if (extent == 0) continue;
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
/// Parts of x of these sizes along an axis, which they make up.
inline list<var> parts_along(const onnx_node& n, var x, int axis,
                             const std::vector<std::int64_t>& sizes) {
  const std::int64_t extent = x.extent(axis);
  if (sizes.size() > 1 << 16) n.refuse("makes too many parts");
  if (std::ranges::any_of(sizes, [&](auto s) { return s < 0 || s > extent; }) ||
      std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) != extent)
    n.refuse("has parts that do not make up the axis of " + std::to_string(extent));
  list<var> all;
  std::int64_t first = 0;
  for (std::int64_t s : sizes) {
    all.push_back(cut(x, axis, first, s));
    first += s;
  }
  return all;
}
/// The sizes of equal parts, of which the last one may be smaller.
inline std::vector<std::int64_t> equal_sizes(const onnx_node& n, std::int64_t extent,
                                             std::int64_t each) {
  const std::int64_t count = (extent + each - 1) / each;
  n.limit(double(count));
  std::vector<std::int64_t> sizes(std::size_t(count), each);
  if (extent % each) sizes.back() = extent % each;
  return sizes;
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
  return parts_along(n, x, axis, sizes);
}

inline constexpr named_onnx_rule cutting_rules[] = {
    {"Concat", concat_rule},
    {"Slice", slice_rule},
    {"Split", split_rule},
};

}  // namespace cella::interop
