// What parts of a node cost a rank: its time, and the memory that they take.
#pragma once

#include <cella/ops/broadcast.hpp>
#include <cella/ops/cost.hpp>
#include <cella/parallel/partition.hpp>

namespace cella::parallel {

/// Whether a node is taken to run with those that read it, so that its results are not stored.
constexpr bool runs_with_readers(const node& x) {
  return x.op->pointwise || x.op->computes == compute_class::source || x.op->traits.alias ||
         is<broadcast_op>(x);
}

/// The time that one device takes for a node: the longer of its arithmetic and its memory traffic.
/// Of what runs with its readers only the arithmetic counts.
constexpr double seconds_of_node(const graph& g, node_id n, const device& d) {
  const node& x = g.nodes[std::size_t(n)];
  if (x.op == &get_info_of || x.op == &input_info_of) return 0;
  const double work =
      double(operations_of_node(g, n) + cella::operations_of_regions(g, x)) / d.flops_per_second;
  if (runs_with_readers(x)) return work;
  const node_bytes b = bytes_of_node(g, n);
  return std::max(work, double(b.read + b.written) / d.memory_bytes_per_second);
}

/// The bytes of the keys and the values that a rank has in attention `n`.
constexpr double bytes_of_keys(const graph& g, node_id n, const node_choice& c,
                               const device_mesh& m) {
  const tensor_type query = g.type(g.operand(n, 0));
  const double keys =
      double(g.type(g.operand(n, 1)).bytes()) + double(g.type(g.operand(n, 2)).bytes());
  return double(part_of(query, c.results[0], m).size()) / double(query.size()) * keys;
}
/// The bytes of what attention makes for each pair of places, and its gradient once more. In a ring
/// that is of a block, and blocks of keys and values are received, for the gradient with theirs:
/// the next one while one is read.
constexpr double memory_within_attention(const graph& g, node_id n, const node_choice& c,
                                         const device_mesh& m) {
  const node& x = g.nodes[std::size_t(n)];
  const auto o = x.attributes.as<attention_op_options>();
  const tensor_type part = part_of(g.type(g.operand(n, 0)), c.results[0], m);
  const double rows = double(part.size()) / part[part.rank() - 1];
  const bool is_gradient = is<attention_gradient_op>(x);
  const int axis = ring_axis(g, n, c.cut, m);
  // Whole: the scores and the weights, which the gradient reads again, and their slopes.
  if (axis < 0) return rows * double(size_of(part.element)) * o.places * (is_gradient ? 1 : 2);
  const int blocks = std::min(m[axis].size - 1, 2);
  const double summed = double(size_of(cella::detail::summed_in(part.element)));
  return rows * summed * size_of_part(o.places, m[axis].size, 0) * (is_gradient ? 2 : 1) +
         bytes_of_keys(g, n, c, m) * blocks * (is_gradient ? 2 : 1);
}
/// What a node's results, or an input, take in the memory of a rank: what is stored.
constexpr double memory_of_node(const graph& g, node_id n, const node_choice& c,
                                const device_mesh& m) {
  const node& x = g.nodes[std::size_t(n)];
  if (x.op == &get_info_of || runs_with_readers(x)) return 0;
  double bytes = 0;
  for (int k = 0; k < detail::result_count(x); ++k)
    bytes += double(part_of(detail::result_type(g, n, k), c.results[std::size_t(k)], m).bytes());
  if (is_attention(x)) bytes += memory_within_attention(g, n, c, m);
  return bytes;
}

/// The share of all pairs of places that is computed for whole attention: back ends leave out what
/// a causal query does not see, but not what masks hide. In a ring along axis `ring`, by the rank
/// that computes most.
constexpr double share_of_pairs(const graph& g, node_id n, int ring, const device_mesh& m) {
  const auto o = g.nodes[std::size_t(n)].attributes.as<attention_op_options>();
  if (ring < 0) {
    const bool is_plain = o.is_causal() && !o.mask.given() && !o.bias.given();
    const double queries = o.queries, keys = o.places;
    if (!is_plain) return 1;
    return queries > keys ? 1 - (keys - 1) / (2 * queries) : (queries + 1) / (2 * keys);
  }
  const detail::attention_turns turns(o, g.type(g.operand(n, 0)).rank() - 2, m[ring].size);
  std::int64_t most = 0;
  // Ranks that stand for all: in windows, and where queries are not shared, ends differ.
  const int last = m[ring].size - 1;
  for (int r : {0, (last + 1) / 2, last}) most = std::max(most, turns.pairs_of(r));
  return double(most) / (double(o.queries) * o.places);
}
/// The share of a node's work that the rank with the largest part has.
constexpr double share_of(const graph& g, node_id n, const loop_cut& c, const device_mesh& m) {
  const int ring = ring_axis(g, n, c, m);
  double share = is_attention(g.nodes[std::size_t(n)]) ? share_of_pairs(g, n, ring, m) : 1;
  if (c.is_whole()) return share;
  iteration_space space = loops_of(g, n);
  for (int a = 0; a < m.axis_count; ++a) {
    if (c[a] < 0 || a == ring) continue;
    std::int64_t& extent = space.factors[std::size_t(c[a])].extent;
    const int part = size_of_part(int(extent), m[a].size, 0);
    share *= double(part) / double(extent);
    extent = part;
  }
  return share;
}

/// The time of the messages of a rank in a ring of attention; of the gradient, that of blocks and
/// of their gradients, which go home besides. They are under way while it computes.
constexpr move_cost cost_of_ring(const graph& g, node_id n, const node_choice& c,
                                 const device_mesh& m) {
  const int axis = ring_axis(g, n, c.cut, m);
  if (axis < 0) return {};
  const mesh_axis& a = m[axis];
  const double bytes = bytes_of_keys(g, n, c, m);
  const bool is_gradient = is<attention_gradient_op>(g.nodes[std::size_t(n)]);
  const auto o = g.nodes[std::size_t(n)].attributes.as<attention_op_options>();
  double messages = a.size - 1 + (is_gradient ? a.size : 0);
  if (o.in_band()) {
    const detail::attention_turns turns(o, g.type(g.operand(n, 0)).rank() - 2, a.size);
    messages = turns.with_messages() * (is_gradient ? 2 : 1);
  }
  // Keys and values are two.
  return {messages * (2 * a.latency + bytes / a.bytes_per_second), messages * bytes};
}

}  // namespace cella::parallel
