// The same elements under other extents, in another order, or repeated.
#pragma once

#include <cella/interop/onnx/constants.hpp>
#include <cella/ops/padding.hpp>

namespace cella::interop {

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
  const bool columns_first = n.one_of("mode", {"DCR", "CRD"}) == "CRD";
  const var y = reshape(x, {e[0], e[1], e[2] / s, s, e[3] / s, s});
  const var z = columns_first ? transpose(y, {0, 1, 3, 5, 2, 4}) : transpose(y, {0, 3, 5, 1, 2, 4});
  return {reshape(z, {e[0], e[1] * s * s, e[2] / s, e[3] / s})};
}

inline constexpr named_onnx_rule shape_rules[] = {
    {"DepthToSpace", depth_to_space_rule},
    {"Expand", expand_rule},
    {"Flatten", flatten_rule},
    {"Reshape", reshape_rule},
    {"SpaceToDepth", space_to_depth_rule},
    {"Squeeze", squeeze_rule},
    {"Tile", tile_rule},
    {"Transpose", transpose_rule},
    {"Unsqueeze", unsqueeze_rule},
};

}  // namespace cella::interop
