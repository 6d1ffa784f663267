// Moves monotone functions behind the maximum, where they have fewer elements to do.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/passes/rewriting/rewrite.hpp>

namespace cella {

namespace sink_rules {

/// The pooling whose values `n` reads, if nobody reads its positions: those may change.
constexpr node_id pooled_values(const rewriter& r, node_id n) {
  const node_id pool = r.operand_if<max_pool_op>(n, 0);
  if (pool < 0 || r.as<get_attributes>(n).result != 0 || !r.has_one_user(pool)) return no_node;
  return r.has_one_user(r.operand(pool, 0)) ? pool : no_node;
}
constexpr node_id pool_again(rewriter& r, node_id pool, node_id image) {
  return r.get(r.emit<max_pool_op>({image}, r.as<pooling_options>(pool)), 0);
}

/// max_pool(f(x)) = f(max_pool(x)) for a monotone f
///
/// The gradient is the same, too. Where a window's largest f is that of one element only, the
/// position stays. Where several elements have it the position may differ, but then they have the
/// same derivative of f, too (all zeros of relu: none).
constexpr node_id monotone_behind_pooling(rewriter& r, node_id n) {
  const node_id pool = pooled_values(r, n);
  if (pool < 0) return no_node;
  const node_id y = r.operand(pool, 0);
  if (!r.op(y).traits.monotone || r.operand_count(y) != 1) return no_node;
  const std::array pooled{pool_again(r, pool, r.operand(y, 0))};
  return r.emit(r.op(y), pooled, r.g().nodes[std::size_t(y)].attributes);
}

/// max_pool(x + c) = max_pool(x) + c, for a c that is the same all over an image's channel
///
/// Rounding is monotone, so the values are the same (an infinite c aside). Two elements that differ
/// but have equal rounded sums were a tie whose first won; now the larger wins: either is a
/// subgradient.
constexpr node_id bias_behind_pooling(rewriter& r, node_id n) {
  const node_id pool = pooled_values(r, n);
  const node_id y = pool < 0 ? no_node : r.operand_if<add_op>(pool, 0);
  if (y < 0) return no_node;
  for (int side = 1; side >= 0; --side) {
    const node_id c = r.operand_if<broadcast_op>(y, side);
    if (c < 0) continue;
    auto o = r.as<broadcast_op::options>(c);
    bool varies = false;
    for (std::int8_t a : o.axes) varies |= a >= 2;
    if (varies) continue;
    const node_id pooled = pool_again(r, pool, r.operand(y, 1 - side));
    o.shape = r.shape_of(pooled);
    return r.emit<add_op>({pooled, r.emit<broadcast_op>({r.operand(c, 0)}, o)});
  }
  return no_node;
}

inline constexpr std::array rules{
    rule{"monotone_behind_pooling", &get_info_of, monotone_behind_pooling},
    rule{"bias_behind_pooling", &get_info_of, bias_behind_pooling},
};
inline constexpr rule_table table(rules);

}  // namespace sink_rules

/// Turns max_pool(relu(x + bias)) into relu(max_pool(x) + bias), which does the same on a quarter
/// of the elements (for windows of 2 x 2). To be run before differentiation: the backward pass
/// reads the positions.
CELLA_ONCE constexpr graph sink_monotone(graph g) {
  rewriter r(g, sink_rules::table);
  r.count_users();
  r.apply_rules();
  return g;
}

}  // namespace cella
