// Operators that put elements by index.
#pragma once

#include <cella/interop/onnx/indexing.hpp>
#include <cella/ops/reduction.hpp>

namespace cella::interop {

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

inline constexpr named_onnx_rule scattering_rules[] = {
    {"Scatter", scatter_elements_rule},
    {"ScatterElements", scatter_elements_rule},
    {"ScatterND", scatter_nd_rule},
};

}  // namespace cella::interop
