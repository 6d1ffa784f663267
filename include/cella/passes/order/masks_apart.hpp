// Gives each use of a truth value a comparison of its own.
#pragma once

#include <cella/passes/simplify/fold.hpp>

namespace cella {

namespace detail {

/// The elementwise truth values of region `r` that are used more than once: those cannot be
/// computed in the registers of the loops that use them.
constexpr bool shares_masks(const graph& g, const region& r, list<int>& uses) {
  for (node_id n : r.nodes) uses[std::size_t(n)] = 0;
  for (node_id n : r.outputs) ++uses[std::size_t(n)];
  bool shared = false;
  for (node_id n : r.nodes) {
    for (node_id o : g.operands(n)) {
      const node& x = g.nodes[std::size_t(o)];
      shared |= ++uses[std::size_t(o)] > 1 && x.type.element == dtype::boolean && x.op->pointwise;
    }
  }
  return shared;
}

/// Whether truth value `o` is elementwise and used more than once.
constexpr bool is_shared_mask(const graph& g, node_id o, const list<int>& uses) {
  return g.nodes[std::size_t(o)].op->pointwise && std::size_t(o) < uses.size() &&
         uses[std::size_t(o)] > 1;
}
/// Whether `n` is elementwise and reads such a value.
constexpr bool reads_shared_mask(const graph& g, node_id n, const list<int>& uses) {
  const node& x = g.nodes[std::size_t(n)];
  if (!x.op->pointwise) return false;
  const node_id* const in = g.operand_pool.data() + x.first_operand;
  const node* const nodes = g.nodes.data();
  for (int j = 0; j < x.operand_count; ++j) {
    if (nodes[in[j]].type.element == dtype::boolean && is_shared_mask(g, in[j], uses)) return true;
  }
  return false;
}

/// A copy of node `n` of region `r`, not yet in the region's list.
constexpr node_id copy_of(graph& g, node_id n) {
  node x = g.nodes[std::size_t(n)];
  const auto first = std::int32_t(g.operand_pool.size());
  for (int i = 0; i < x.operand_count; ++i) g.operand_pool.push_back(g.operand(n, i));
  x.first_operand = first;
  return g.append(x);
}

}  // namespace detail

/// Copies comparisons (and what combines them) for each elementwise user. Truth values have no form
/// in memory that loops could read: shared by the forward pass and the backward pass, a mask would
/// be stored byte by byte, and all that selects by it computed element by element. To compare again
/// costs one instruction.
constexpr graph masks_apart(graph g) {
  list<int> uses(g.nodes.size(), 0);
  for (region& r : g.regions) {
    if (!detail::shares_masks(g, r, uses)) continue;
    // From the last node to the first: users of a copy's operands are complete when those are met.
    ids reversed;
    for (std::size_t i = r.nodes.size(); i-- > 0;) {
      if (!detail::reads_shared_mask(g, r.nodes[i], uses)) {
        reversed.push_back(r.nodes[i]);
        continue;
      }
      // The nodes that are met: this one, then the copies that it needs, in front of it.
      ids open{r.nodes[i]};
      for (std::size_t k = 0; k < open.size(); ++k) {
        const node_id n = open[k];
        reversed.push_back(n);
        const int count = g.nodes[std::size_t(n)].operand_count;
        if (!g.nodes[std::size_t(n)].op->pointwise) continue;
        for (int j = 0; j < count; ++j) {
          const node_id o = g.operand(n, j);
          if (g.type(o).element != dtype::boolean || !detail::is_shared_mask(g, o, uses)) continue;
          --uses[std::size_t(o)];
          const node_id copy = detail::copy_of(g, o);
          for (node_id p : g.operands(copy)) {
            if (std::size_t(p) < uses.size()) ++uses[std::size_t(p)];
          }
          g.operand_pool[std::size_t(g.nodes[std::size_t(n)].first_operand + j)] = copy;
          open.push_back(copy);
        }
      }
    }
    const std::size_t size = reversed.size();
    r.nodes = ids(size, no_node);
    for (std::size_t i = 0; i < size; ++i) r.nodes[i] = reversed[size - 1 - i];
    g.number_nodes(r);
  }
  return g;
}

}  // namespace cella
