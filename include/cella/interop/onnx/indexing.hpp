// Operators that pick elements by index.
#pragma once

#include <cella/interop/onnx/cutting.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/one_hot.hpp>
#include <cella/ops/sorting.hpp>

namespace cella::interop {

/// Indices that count from the end if they are negative.
inline var from_the_front(var i, int extent) {
  if (is_unsigned(i.element())) return i;
  return select(i < 0, i + extent, i);
}
/// The numbers 0, 1, ... along one axis of a tensor of this shape.
inline var positions(builder& b, const shape& s, int axis) {
  return iota(b, {dtype::i64, s}, axis);
}

inline list<var> gather_rule(onnx_node& n) {
  const var x = n.in(0);
  const int axis = n.axis("axis", 0, x.rank());
  return {gather(x, from_the_front(n.in(1), x.extent(axis)), axis)};
}
inline list<var> gather_elements_rule(onnx_node& n) {
  const var x = n.in(0);
  const int axis = n.axis("axis", 0, x.rank());
  return {gather_elements(x, from_the_front(n.in(1), x.extent(axis)), axis)};
}
/// Index tuples [..., K] into the first K axes of a shape, counted from the front.
inline var tuples_from_the_front(var i, const shape& s) {
  const int k = i.extent(-1);
  shape along{std::int64_t(k)};
  while (along.rank < i.rank()) along.insert(0, 1);
  const var extents = integers_as_constant(*i.b, {s.begin(), s.begin() + k}, along, i.element());
  return select(i < 0, i + extents, i);
}
inline list<var> gather_nd_rule(onnx_node& n) {
  const var x = n.in(0);
  var i = cast(n.in(1, 1), dtype::i64);
  const int batches = int(n.between(0, n.integer("batch_dims", 0), max_rank, "batch_dims"));
  if (batches >= i.rank() || i.extent(-1) < 1 || batches + i.extent(-1) > x.rank())
    n.refuse("names more axes than its operand has");
  if (batches == 0) return {gather_nd(x, tuples_from_the_front(i, x.shape()))};
  // The samples are one more axis, whose index each tuple gets in front.
  shape merged = x.shape(), tuples = i.shape(), result = i.shape();
  merged = {x.shape().size(0, batches)};
  for (int d = batches; d < x.rank(); ++d) merged.push_back(x.extent(d));
  tuples = {i.shape().size(0, batches)};
  for (int d = batches; d < i.rank(); ++d) tuples.push_back(i.extent(d));
  result.erase(result.rank - 1);
  for (int d = batches + i.extent(-1); d < x.rank(); ++d) result.push_back(x.extent(d));
  shape tail = merged;
  tail.erase(0);
  i = tuples_from_the_front(reshape(i, tuples), tail);
  tuples[tuples.rank - 1] = 1;
  const var sample = positions(n.b(), tuples, 0);
  return {reshape(gather_nd(reshape(x, merged), concat({sample, i}, -1)), result)};
}

inline list<var> one_hot_rule(onnx_node& n) {
  const var values = n.in(2, 1, 1);
  if (values.extent(0) != 2) n.refuse("takes two values, for off and on");
  const auto depth = int(n.between(0, n.integer(1), 1 << 30, "depth"));
  var i = n.in(0);
  if (is_floating(i.element())) i = cast(i, dtype::i64);
  const int rank = i.rank() + 1;
  const int axis = n.axis("axis", -1, rank);
  // What lies outside is nowhere.
  const var hot = one_hot(from_the_front(i, depth), depth, dtype::boolean);
  const var off = reshape(cut(values, 0, 0, 1), shape{}),
            on = reshape(cut(values, 0, 1, 1), shape{});
  return {select(with_axis_moved(hot, rank - 1, axis), on, off)};
}
/// Which elements stay is known.
inline list<var> compress_rule(onnx_node& n) {
  var x = n.in(0);
  const bool flat = !n.has_attribute("axis");
  if (flat) x = reshape(x, {x.shape().size()});
  const int axis = flat ? 0 : n.axis("axis", 0, x.rank());
  std::vector<std::int64_t> kept;
  const auto condition = n.integers(1);
  for (std::size_t k = 0; k < condition.size() && k < std::size_t(x.extent(axis)); ++k)
    if (condition[k]) kept.push_back(std::int64_t(k));
  if (kept.empty()) return {cut(x, axis, 0, 0)};
  return {gather(x, integers_as_constant(n.b(), kept), axis)};
}
/// The first elements of each sample in the reverse order, as many as its length says.
inline list<var> reverse_sequence_rule(onnx_node& n) {
  const var x = n.in(0, 2), lengths = n.in(1);
  const int batch = n.axis("batch_axis", 1, x.rank()), time = n.axis("time_axis", 0, x.rank());
  if (batch == time) n.refuse("names one axis for both batch and time");
  std::vector<int> order{batch, time}, back(std::size_t(x.rank()));
  for (int d = 0; d < x.rank(); ++d)
    if (d != batch && d != time) order.push_back(d);
  for (std::size_t k = 0; k < order.size(); ++k) back[std::size_t(order[k])] = int(k);
  const var y = permuted(x, order);
  const shape s = y.shape();
  const shape places{s[0], s[1]};
  const var t = positions(n.b(), places, 1);
  const var length = reshape(cast(lengths, dtype::i64), {s[0], 1});
  const var from = select(t < length, length - 1 - t, t) + positions(n.b(), places, 0) * s[1];
  shape merged{std::int64_t{s[0]} * s[1]};
  for (int d = 2; d < s.rank; ++d) merged.push_back(s[d]);
  return {permuted(reshape(gather(reshape(y, merged), reshape(from, {merged[0]}), 0), s), back)};
}

inline list<var> top_k_rule(onnx_node& n) {
  const var x = n.in(0);
  const std::int64_t k = n.opset() < 10 ? n.integer("k", 1) : n.integer(1);
  const int axis = n.axis("axis", -1, x.rank());
  if (k < 1 || k > x.extent(axis)) n.refuse("asks for " + std::to_string(k) + " elements");
  const auto [values, places] = top_k(x, int(k), axis, n.integer("largest", 1) != 0);
  return {values, places};
}

inline constexpr named_onnx_rule indexing_rules[] = {
    {"Compress", compress_rule},
    {"Gather", gather_rule},
    {"GatherElements", gather_elements_rule},
    {"GatherND", gather_nd_rule},
    {"OneHot", one_hot_rule},
    {"ReverseSequence", reverse_sequence_rule},
    {"TopK", top_k_rule},
};

}  // namespace cella::interop
