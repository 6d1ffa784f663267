// Operators that pick elements by index, and those that put them.
#pragma once

#include <cella/interop/onnx/movement.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/one_hot.hpp>
#include <cella/ops/reduction.hpp>
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

/// Row-major places in the first axes of `s`, of index tuples along the last axis.
inline var places_of(var tuples, const shape& s) {
  return cella::detail::flat_index(tuples_from_the_front(cast(tuples, dtype::i64), s), s);
}
/// `rows` with `values` put at `places`, several rows at one place combined as `how` says. Cella's
/// scatter adds; the others compare each place with each value.
inline var put_rows(const onnx_node& n, var rows, var places, var values, const std::string& how) {
  const int extent = rows.extent(0), count = places.extent(0);
  if (how == "add") return scatter_add(rows, places, values);
  if (how == "none") {
    const var hit = scatter(constant(*rows.b, 1, {dtype::i32, places.shape()}), places, extent);
    shape s = hit.shape();
    while (s.rank < rows.rank()) s.push_back(1);
    return select(reshape(hit, s) > 0, scatter(values, places, extent), rows);
  }
  const double work = double(count) * double(rows.shape().size());
  if (work > double(1 << 28)) n.not_supported("so large a scatter by " + how);
  // [count, extent, ...]: where value k is for row r.
  shape at{count, 1}, wide = values.shape();
  while (at.rank < values.rank() + 1) at.push_back(1);
  wide.insert(1, 1);
  shape all = rows.shape();
  all.insert(0, count);
  shape along = all;
  for (int d = 2; d < along.rank; ++d) along[d] = 1;
  const var here = equal(reshape(places, at), positions(*rows.b, along, 1));
  const var shown = broadcast_to(reshape(values, wide), all);
  const var kept = broadcast_to(rows, all);
  if (how == "mul") return rows * prod(select(here, shown, ones_like(shown)), {0});
  if (how == "max") return maximum(rows, max(select(here, shown, kept), {0}));
  return minimum(rows, min(select(here, shown, kept), {0}));
}
inline std::string combination_in(const onnx_node& n) {
  return n.one_of("reduction", {"none", "add", "mul", "max", "min"});
}
inline list<var> scatter_elements_rule(onnx_node& n) {
  const var x = n.in(0), values = n.in(2);
  const var i = cast(n.in(1), dtype::i64);
  const shape s = x.shape(), t = i.shape();
  const int axis = n.axis("axis", 0, s.rank);
  if (t.rank != s.rank || t != values.shape()) n.refuse("has indices and updates of other shapes");
  var place = constant(n.b(), 0, {dtype::i64, t});
  for (int d = 0; d < s.rank; ++d)
    place = place * s[d] + (d == axis ? from_the_front(i, s[d]) : positions(n.b(), t, d));
  const var flat = put_rows(n, reshape(x, {s.size()}), reshape(place, {t.size()}),
                            reshape(values, {t.size()}), combination_in(n));
  return {reshape(flat, s)};
}
inline list<var> scatter_nd_rule(onnx_node& n) {
  const var x = n.in(0), i = n.in(1), values = n.in(2);
  const int k = i.rank() ? i.extent(-1) : 0;
  if (k < 1 || k > x.rank()) n.refuse("has index tuples that are longer than the operand's rank");
  const shape s = x.shape();
  const std::int64_t count = i.shape().size() / k;
  shape rows{s.size(0, k)}, put{count};
  for (int d = k; d < s.rank; ++d) {
    rows.push_back(s[d]);
    put.push_back(s[d]);
  }
  const var places = places_of(reshape(i, {count, k}), s);
  return {
      reshape(put_rows(n, reshape(x, rows), places, reshape(values, put), combination_in(n)), s)};
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
  std::vector<int> order;
  for (int d = 0; d < rank - 1; ++d) order.push_back(d);
  order.insert(order.begin() + axis, rank - 1);
  const var off = reshape(cut(values, 0, 0, 1), shape{}),
            on = reshape(cut(values, 0, 1, 1), shape{});
  return {select(permuted(hot, order), on, off)};
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
    {"Scatter", scatter_elements_rule},
    {"ScatterElements", scatter_elements_rule},
    {"ScatterND", scatter_nd_rule},
    {"TopK", top_k_rule},
};

}  // namespace cella::interop
