// Updates a table only in the rows that have a gradient.
#pragma once

#include <cella/ops/elementwise.hpp>
#include <cella/ops/put_rows.hpp>
#include <cella/passes/rewriting/rewrite.hpp>

namespace cella {

namespace detail {

/// scatter(values, indices) times what `factor` repeats, if it is one number; else the scatter
/// alone.
struct scaled_rows {
  node_id scatter = no_node;
  node_id factor = no_node;  ///< [], or none
};
constexpr scaled_rows rows_of(rewriter& r, node_id n) {
  if (!r.has_one_user(n)) return {};
  if (r.is<scatter_op>(n)) return {n};
  if (!r.is<mul_op>(n)) return {};
  for (int k = 0; k < 2; ++k) {
    const node_id s = r.operand_if<scatter_op>(n, k), f = r.operand(n, 1 - k);
    if (s < 0 || !r.has_one_user(s)) continue;
    if (r.is_constant(f)) return {s, r.constant(r.value(f), {r.type(f).element, {}})};
    if (r.is<broadcast_op>(f) && r.shape_of(r.operand(f, 0)).rank == 0) return {s, r.operand(f, 0)};
  }
  return {};
}
/// w + f scatter(v, i) = put_rows(w, i, f v, adding), and the same with a minus.
constexpr node_id as_row_update(rewriter& r, node_id n) {
  const bool minus = r.is<sub_op>(n);
  if (!minus && !r.is<add_op>(n)) return no_node;
  for (int k = 1; k >= (minus ? 1 : 0); --k) {
    const scaled_rows found = rows_of(r, r.operand(n, k));
    if (found.scatter < 0) continue;
    node_id values = r.operand(found.scatter, 0);
    if (found.factor >= 0) {
      const node_id f = minus ? r.emit<neg_op>({found.factor}) : found.factor;
      const broadcast_op::options all{r.shape_of(values), iteration_space::no_axes};
      values = r.emit<mul_op>({values, r.emit<broadcast_op>({f}, all)});
    } else if (minus) {
      values = r.emit<neg_op>({values});
    }
    const auto o = r.as<indexing_options>(found.scatter);
    return r.emit<put_rows_op>({r.operand(n, 1 - k), r.operand(found.scatter, 1), values},
                               put_rows_op::options{o.axis, 1});
  }
  return no_node;
}

}  // namespace detail

/// The graph whose parameters and states that become `w + factor scatter(...)` - by a step of SGD
/// on a table of embeddings - change in the rows that the indices name, in their place: a table may
/// have a million rows, of which a step has gradients for some hundred.
constexpr graph row_updates(graph g) {
  flags updates(g.nodes.size(), 0);
  bool scatters = false, found = false;
  for (node_id n : g.regions[0].nodes) scatters |= is<scatter_op>(g.nodes[std::size_t(n)]);
  if (!scatters) return g;
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    if (g.outputs[i].updates < 0) continue;
    updates[std::size_t(g.regions[0].outputs[i])] = 1;
    found = true;
  }
  if (!found) return g;
  constexpr rule_table none{span<const rule>()};
  rewriter r(g, none);
  r.count_users();
  r.sweep([&](node_id n) {
    return std::size_t(n) < updates.size() && updates[std::size_t(n)] ? detail::as_row_update(r, n)
                                                                      : no_node;
  });
  return g;
}

}  // namespace cella
