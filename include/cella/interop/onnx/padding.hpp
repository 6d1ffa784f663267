// Operators that put something around a tensor, or in its place.
#pragma once

#include <cella/interop/onnx/cutting.hpp>
#include <cella/ops/arranging.hpp>
#include <cella/ops/diagonal.hpp>

namespace cella::interop {

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
    for (int d = 0; d < x.rank(); ++d)
      if (std::max(before[std::size_t(d)], after[std::size_t(d)]) > x.extent(d))
        n.not_supported("wrapping an axis more than once");
    return {pad_wrap(x, before, after)};
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

inline constexpr named_onnx_rule padding_rules[] = {
    {"CenterCropPad", center_crop_pad_rule},
    {"Pad", pad_rule},
    {"Trilu", trilu_rule},
};

}  // namespace cella::interop
