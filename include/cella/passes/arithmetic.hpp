// What a graph computes, counted in floating-point operations.
#pragma once

#include <cella/ops/broadcast.hpp>
#include <cella/ops/control.hpp>
#include <cella/ops/elementwise.hpp>

namespace cella {

/// Operations that node `id` takes by itself, without its regions: a multiplication and an addition
/// are two, other elementwise functions and each element of a reduction one, moving data none.
constexpr std::int64_t operations_of_node(const graph& g, node_id id);

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
  if (n.result_count || n.operand_count == 0 || n.op == &get_info_of) return 0;
  const tensor_type first = g.type(g.operand(id, 0));
  switch (n.op->kind) {
    case op_kind::bilinear: {
      if (!n.op->space) return n.type.size();
      const std::array types{first, g.type(g.operand(id, 1))};
      return 2 * n.op->space(types, n.attributes).points();
    }
    case op_kind::elementwise:
      return is<identity_op>(n) || is<stop_gradient_op>(n) ? 0 : n.type.size();
    case op_kind::linear:
      return is<sum_op>(n) ? first.size() : 0;
    case op_kind::opaque:
      return first.size();
    default:
      return 0;
  }
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
