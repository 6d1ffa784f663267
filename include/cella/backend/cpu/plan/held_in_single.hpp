// Numbers of 16 bits, held in single precision where that lets the batch lie in the lanes.
#pragma once

#include <cella/backend/cpu/plan/layout.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/names.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/passes/rewriting/move_first.hpp>
#include <cella/passes/rewriting/rewrite.hpp>
#include <cella/passes/simplify/cse.hpp>
#include <cella/passes/simplify/dce.hpp>
#include <cella/passes/simplify/fold_values.hpp>

namespace cella {

namespace detail {

/// Holds numbers of type `narrow`, of 16 bits, in single precision, rounded to what 16 bits hold.
class sweep_into_single {
 public:
  constexpr sweep_into_single(rewriter& r, dtype narrow) : r_(r), narrow_(narrow) {}

  /// What takes the place of node `n`, or no_node.
  constexpr node_id visit(node_id n) {
    if (r_.is<max_pool_op>(n)) return pooled_before_rounding(n);
    if (&r_.op(n) == &get_info_of) return rounded_after_pooling(n);
    if (r_.type(n).element != narrow_) {
      const bool same = r_.is<cast_op>(n) && r_.type(r_.operand(n, 0)) == r_.type(n);
      return same ? r_.operand(n, 0) : no_node;
    }
    if (r_.is_constant(n)) return r_.constant(stored(r_.value(n)), {dtype::f32, r_.shape_of(n)});
    return rounded(r_.is<cast_op>(n) ? r_.operand(n, 0) : copy(n));
  }

 private:
  constexpr double stored(double value) const { return fold_rules::stored(narrow_, value); }
  constexpr node_id cast_to(node_id n, dtype t) {
    return r_.emit<cast_op>({n}, cast_op::options{{std::int32_t(t)}});
  }
  constexpr node_id copy(node_id n, node_id first = no_node) {
    std::array<node_id, 8> in{};
    const int count = r_.operand_count(n);
    for (int i = 0; i < count; ++i) in[std::size_t(i)] = r_.operand(n, i);
    if (first >= 0) in[0] = first;
    return r_.emit(r_.op(n), span<const node_id>(in.data(), std::size_t(count)),
                   r_.g().nodes[std::size_t(n)].attributes);
  }
  /// What is repeated is rounded before: kernels of the lanes know what is repeated for all
  /// samples.
  constexpr node_id rounded(node_id n) {
    if (is_rounded(n)) return n;
    if (r_.is<broadcast_op>(n)) return copy(n, rounded(r_.operand(n, 0)));
    return cast_to(cast_to(n, narrow_), dtype::f32);
  }
  /// What `n` was before it was rounded; no_node if it was not.
  constexpr node_id before_rounding(node_id n) const {
    const bool widens = r_.is<cast_op>(n) && r_.type(r_.operand(n, 0)).element == narrow_;
    return widens ? r_.operand(r_.operand(n, 0), 0) : no_node;
  }
  /// Whether `n` is rounded already: such numbers in other places, or chosen from such.
  constexpr bool is_rounded(node_id n) {
    if (known_.size() < r_.g().nodes.size()) known_.resize(r_.g().nodes.size());
    if (known_[std::size_t(n)] == 0) known_[std::size_t(n)] = looks_rounded(n) ? 1 : 2;
    return known_[std::size_t(n)] == 1;
  }
  constexpr bool looks_rounded(node_id n) {
    if (before_rounding(n) >= 0) return true;
    if (r_.is_constant(n)) return stored(r_.value(n)) == r_.value(n);
    if (r_.is<unpool_op>(n)) {
      const auto o = r_.as<pooling_options>(n);
      return o.kernel == o.window.stride && is_rounded(r_.operand(n, 0));
    }
    const op_info& op = r_.op(n);
    if (op.computes != compute_class::movement &&
        !operation_list<relu_op, relu_gradient_op, select_op, maximum_op, minimum_op,
                        neg_op>::contains(op))
      return false;
    for (int i = 0; i < r_.operand_count(n); ++i) {
      const node_id o = r_.operand(n, i);
      if (r_.type(o).element == dtype::f32 && !is_rounded(o)) return false;
    }
    return r_.operand_count(n) > 0;
  }

  /// The largest of rounded numbers is the largest, rounded; pooling is then part of the kernel
  /// that computes them. (Of several that round to the same one the largest has its place, not the
  /// first.)
  constexpr node_id pooled_before_rounding(node_id n) {
    const node_id before = before_rounding(r_.operand(n, 0));
    if (before >= 0) pools_.push_back(copy(n, before));
    return before < 0 ? no_node : pools_.back();
  }
  constexpr node_id rounded_after_pooling(node_id n) {
    for (node_id pool : pools_) {
      if (pool == r_.operand(n, 0) && r_.as<get_attributes>(n).result == 0)
        return rounded(r_.get(pool, 0));
    }
    return no_node;
  }

  rewriter& r_;
  dtype narrow_;
  ids pools_;    ///< those of numbers that are rounded behind them
  flags known_;  ///< of each node: 1 if it is rounded, 2 if not, 0 if nobody has asked
};

/// What is rounded of inputs stands first: then kernels that compute with the inputs can use it.
constexpr void round_inputs_first(graph& g) {
  flags wanted(g.nodes.size(), 0);
  for (node_id n : g.regions[0].nodes) {
    if (!is<cast_op>(g.nodes[std::size_t(n)])) continue;
    const auto from = std::size_t(g.operand(n, 0));
    wanted[std::size_t(n)] = wanted[from] || g.nodes[from].op == &input_info_of;
  }
  move_first(g, wanted);
}
/// The type of 16 bits of a graph if the sweep knows all of it: such numbers are of one type, and
/// neither given nor handed out; and there is more than products, whose kernels of 16 bits are as
/// fast. Else f32.
constexpr dtype type_to_hold(const graph& g) {
  dtype found = dtype::f32;
  bool windows = false;
  if (g.regions.size() != 1) return dtype::f32;
  for (node_id n : g.regions[0].nodes) {
    const node& x = g.nodes[std::size_t(n)];
    windows |= x.op->computes == compute_class::window;
    if (!is_storage_only(x.type.element)) continue;
    const bool given = x.operand_count == 0 && !is<constant_op>(x);
    if (given || x.operand_count > 8 || x.op == &get_info_of ||
        (found != dtype::f32 && found != x.type.element))
      return dtype::f32;
    found = x.type.element;
  }
  for (node_id n : g.regions[0].outputs)
    if (is_storage_only(g.type(n).element)) return dtype::f32;
  return windows ? found : dtype::f32;
}

}  // namespace detail

/// The graph of a program of type `element` as kernels compute it best: where the batch would lie
/// in the lanes but for numbers of 16 bits, which kernels of the lanes cannot read, these are held
/// in single precision, and rounded as they would be in memory. What is computed is the same, but
/// for which of the largest elements of a window is taken, if several round to the same.
constexpr graph held_in_single(graph g, dtype element, int lanes) {
  const dtype narrow = detail::type_to_hold(g);
  if (element != dtype::f32 || narrow == dtype::f32) return g;
  graph single = g;
  const rule_table none{span<const rule>()};
  rewriter r(single, none);
  detail::sweep_into_single into_single(r, narrow);
  r.sweep([&](node_id n) { return into_single.visit(n); });
  single = dce(cse(std::move(single)));
  detail::round_inputs_first(single);
  return choose_layout(single, element, lanes) == layout::lanes ? std::move(single) : std::move(g);
}

}  // namespace cella
