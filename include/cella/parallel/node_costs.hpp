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

/// What a node's results, or an input, take in the memory of a rank: what is stored.
constexpr double memory_of_node(const graph& g, node_id n, const node_choice& c,
                                const device_mesh& m) {
  const node& x = g.nodes[std::size_t(n)];
  if (x.op == &get_info_of || runs_with_readers(x)) return 0;
  double bytes = 0;
  for (int k = 0; k < detail::result_count(x); ++k)
    bytes += double(part_of(detail::result_type(g, n, k), c.results[std::size_t(k)], m).bytes());
  return bytes;
}

/// The share of a node's work that the rank with the largest part has.
constexpr double share_of(const graph& g, node_id n, const loop_cut& c, const device_mesh& m) {
  if (c.is_whole()) return 1;
  iteration_space space = loops_of(g, n);
  double share = 1;
  for (int a = 0; a < m.axis_count; ++a) {
    if (c[a] < 0) continue;
    std::int64_t& extent = space.factors[std::size_t(c[a])].extent;
    const int part = size_of_part(int(extent), m[a].size, 0);
    share *= double(part) / double(extent);
    extent = part;
  }
  return share;
}

}  // namespace cella::parallel
