// What patterns of several operations ask about the nodes round a node.
#pragma once

#include <cella/ops/matmul.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/ops/softmax.hpp>

namespace cella {

/// Looks at graphs through `Cut`, which knows the users of nodes.
template <class Cut>
class pattern_questions {
 protected:
  constexpr explicit pattern_questions(const Cut& cut) : cut_(cut), g(cut.g) {}

  constexpr const node& at(node_id n) const { return g.nodes[std::size_t(n)]; }
  constexpr bool constant_of(node_id n, double& v) const {
    if (!is<constant_op>(at(n))) return false;
    v = at(n).attributes.template as<constant_op::options>().value;
    return true;
  }
  /// The only user of `n` if it is an `Op`.
  template <class Op>
  constexpr node_id then(node_id n) const {
    const node_id u = n < 0 ? no_node : cut_.only_user(n);
    return u >= 0 && is<Op>(at(u)) ? u : no_node;
  }
  constexpr node_id scaled(node_id n, double& factor) const {
    const node_id u = then<mul_op>(n);
    return u >= 0 && constant_of(g.operand(u, 1), factor) ? u : no_node;
  }
  /// Operand of `n` that is not `x`.
  constexpr node_id other(node_id n, node_id x) const {
    return g.operand(n, g.operand(n, 0) == x ? 1 : 0);
  }
  /// column - row <= 0, for the last two axes.
  constexpr bool is_causal(node_id mask) const {
    double zero = 1;
    if (!is<less_equal_op>(at(mask)) || !constant_of(g.operand(mask, 1), zero) || zero != 0)
      return false;
    node_id d = g.operand(mask, 0);
    if (is<broadcast_op>(at(d))) d = g.operand(d, 0);
    if (!is<sub_op>(at(d)) || at(d).type.rank() != 2) return false;
    return counts_along(g.operand(d, 0), 1) && counts_along(g.operand(d, 1), 0);
  }
  constexpr bool counts_along(node_id n, int axis) const {
    return is<iota_op>(at(n)) && at(n).attributes.template as<iota_op::options>().axis == axis;
  }
  constexpr matmul_op::options options(node_id m) const {
    return at(m).attributes.template as<matmul_op::options>();
  }
  static constexpr const iteration_space::axes& axes(const matmul_op::options& o, int side) {
    return side == 0 ? o.a : side == 1 ? o.b : o.result;
  }
  constexpr bool same(node_id a, node_id b) const { return cut_.source(a) == cut_.source(b); }
  /// Whether `b` is `a`, or the same part of what was converted again (passes/order/
  /// casts_apart.hpp).
  constexpr bool same_or_again(node_id a, node_id b) const {
    if (same(a, b)) return true;
    if (g.type(a) != g.type(b)) return false;
    a = cut_.source(a);
    b = cut_.source(b);
    if (is<slice_op>(at(a)) && is<slice_op>(at(b)) && g.type(a) == g.type(b) &&
        at(a).attributes == at(b).attributes) {
      a = cut_.source(g.operand(a, 0));
      b = cut_.source(g.operand(b, 0));
    }
    return is<cast_op>(at(a)) && is<cast_op>(at(b)) && g.type(a) == g.type(b) &&
           g.operand(a, 0) == g.operand(b, 0);
  }
  constexpr bool only_leads_to(node_id n, node_id end) const {
    while (n != end) {
      n = cut_.only_user(n);
      if (n < 0 || (n != end && !cut_.is_alias(n))) return false;
    }
    return true;
  }

  const Cut& cut_;
  const graph& g;
};

}  // namespace cella
