// What a graph computes, counted in floating-point operations.
#pragma once

#include <cella/ops/control.hpp>

namespace cella {

/// Operations that node `id` takes by itself, without its regions: as many as its operation says
/// for each point of its loops. A multiplication and an addition are two, other elementwise
/// functions and each element of a reduction one, moving data none.
constexpr std::int64_t operations_of_node(const graph& g, node_id id);

/// What a node reads and writes if nothing is fused: of a table only the rows that indices name.
struct node_bytes {
  std::int64_t read{}, written{};
};
constexpr node_bytes bytes_of_node(const graph& g, node_id id);

/// Operations of region `r` and all regions in it. A loop counts as often as it runs, if that is
/// known, else once; of two branches both count, recursion once.
constexpr std::int64_t operations_of_region(const graph& g, int r);

/// Operations of the regions of node `n`.
constexpr std::int64_t operations_of_regions(const graph& g, const node& n);

/// How often the regions of a node run, as far as it is known before.
constexpr std::int64_t runs_of_regions(const node& n) {
  return is<scan_op>(n) ? n.attributes.as<scan_options>().length : 1;
}

// ------------------------------------------------------------------------------------------------

constexpr std::int64_t operations_of_node(const graph& g, node_id id) {
  const node& n = g.nodes[std::size_t(id)];
  const int each = n.op->operations_per_point;
  if (each == 0 || n.op == &get_info_of) return 0;
  return each * (n.op->pointwise || !n.op->space ? n.type.size() : loops_of(g, id).points());
}

constexpr node_bytes bytes_of_node(const graph& g, node_id id) {
  const node& n = g.nodes[std::size_t(id)];
  node_bytes b;
  const bool picks = n.op->computes == compute_class::indexed && n.op->space;
  const auto in = g.operands(id);
  for (std::size_t k = 0; k < in.size(); ++k) {
    const tensor_type t = g.type(in[k]);
    const std::int64_t read = picks ? loops_of(g, id).elements_of(int(k), t) : t.size();
    b.read += read * std::int64_t(size_of(t.element));
  }
  for (int k = 0; k < n.result_count; ++k) b.written += g.result_type(id, k).bytes();
  if (n.result_count == 0) b.written = n.type.bytes();
  return b;
}

constexpr std::int64_t operations_of_region(const graph& g, int r) {
  std::int64_t sum = 0;
  for (node_id id : g.regions[std::size_t(r)].nodes) {
    sum += operations_of_node(g, id) + operations_of_regions(g, g.nodes[std::size_t(id)]);
  }
  return sum;
}

constexpr std::int64_t operations_of_regions(const graph& g, const node& n) {
  std::int64_t sum = 0;
  for (int r : n.regions) {
    if (r >= 0 && !is<call_op>(n)) sum += runs_of_regions(n) * operations_of_region(g, r);
  }
  return sum;
}

}  // namespace cella
