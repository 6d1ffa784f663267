// Puts the products and activations of a net into 16 bits.
#pragma once

#include <cella/ops/batch_norm.hpp>
#include <cella/ops/broadcast.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/exponential.hpp>
#include <cella/passes/rewriting/rewrite.hpp>

namespace cella {

/// The graph of a net that computes in `compute`, bf16 or f16, what gains by it; of another type it
/// stays as it is. Parameters, inputs and results keep their types.
///
/// - Products and convolutions take operands of 16 bits, sum in f32, and yield 16 bits.
/// - Elementwise operations on such values, and rows of tables, are of 16 bits, too.
/// - Sums, norms, softmax, exponentials, logarithms and products inside attention are of f32. What
///   norms, pooling and tables yield is rounded, and what a norm has centered or scaled.
/// - What follows from parameters alone, and the bodies of loops and branches, stays in f32.
///
/// It precedes differentiation, so that cotangents are of the types of their values.
/// Micikevicius et al. 2018
constexpr graph mixed_precision(graph g, dtype compute);

namespace detail {

/// Every value keeps its type, so that whatever reads it still fits: one that is held in 16 bits
/// becomes the conversion of such a number, and who computes in 16 bits takes the number itself.
class precision_sweep {
 public:
  constexpr precision_sweep(rewriter& r, dtype compute) : r_(r), compute_(compute) {
    const graph& g = r.g();
    follows_from_parameters_.assign(g.nodes.size(), 0);
    is_only_summed_.assign(g.nodes.size(), 1);
    for (node_id n : g.regions[0].nodes) {
      const bool sums = r.op(n).computes == compute_class::reduction;
      for (node_id o : g.operands(n)) is_only_summed_[std::size_t(o)] &= char(sums);
    }
    for (std::size_t i = 0; i < g.inputs.size(); ++i)
      follows_from_parameters_[std::size_t(g.input(int(i)))] = owned_by_cell(g.inputs[i].role);
  }

  /// What takes the place of node `n`, or no_node.
  constexpr node_id visit(node_id n) {
    const node x = r_.g().nodes[std::size_t(n)];
    const op_info& op = *x.op;
    if (x.region != 0 || x.type.element != dtype::f32 || op.kind == op_kind::control)
      return no_node;
    if (&op == &get_info_of) {
      const op_info& from = r_.op(r_.operand(n, 0));
      const bool image =
          r_.as<get_attributes>(n).result == 0 &&
          (from.computes == compute_class::window || r_.is<batch_norm_op>(r_.operand(n, 0)));
      return image ? round(r_.get(r_.operand(n, 0), 0)) : no_node;
    }
    if (note_if_of_parameters(n) || r_.is<cast_op>(n) || r_.operand_count(n) > most_operands)
      return no_node;
    switch (op.computes) {
      case compute_class::contraction:
        return is_of_batches(n) ? no_node : narrow(n);
      case compute_class::window:
        return op.kind == op_kind::bilinear ? narrow(n) : round(copy(n));
      case compute_class::pointwise:
        if (is_narrow_elementwise(n)) return narrow(n);
        return is_centered(n) ? round(copy(n)) : no_node;
      case compute_class::indexed:
        return round(copy(n));
      default:
        return no_node;
    }
  }

 private:
  static constexpr int most_operands = 8;

  constexpr bool is_real(node_id n) const { return r_.type(n).element == dtype::f32; }
  constexpr node_id cast_to(node_id n, dtype t) {
    return r_.emit<cast_op>({n}, cast_op::options{{std::int32_t(t)}});
  }
  constexpr node_id round(node_id n) { return cast_to(cast_to(n, compute_), dtype::f32); }
  constexpr node_id copy(node_id n) {
    std::array<node_id, most_operands> in{};
    const int count = r_.operand_count(n);
    for (int i = 0; i < count; ++i) in[std::size_t(i)] = r_.operand(n, i);
    return r_.emit(r_.op(n), {in.data(), std::size_t(count)},
                   r_.g().nodes[std::size_t(n)].attributes);
  }
  /// The operation of `n` on numbers of 16 bits.
  constexpr node_id on_narrow_operands(node_id n) {
    std::array<node_id, most_operands> in{};
    const int count = r_.operand_count(n);
    for (int i = 0; i < count; ++i) {
      const node_id o = r_.operand(n, i);
      in[std::size_t(i)] = is_real(o) ? narrowed(o, r_.is<add_op>(n) || r_.is<sub_op>(n)) : o;
    }
    return r_.emit(r_.op(n), {in.data(), std::size_t(count)},
                   r_.g().nodes[std::size_t(n)].attributes);
  }
  constexpr node_id narrow(node_id n) { return cast_to(on_narrow_operands(n), dtype::f32); }

  /// Value `n` in 16 bits. What repeats a parameter is converted before that: whole tensors of it
  /// would be kept for the derivative, but for one that is `added`, whose gradient is a sum, which
  /// is worth more digits.
  constexpr node_id narrowed(node_id n, bool added = false) {
    if (is_widened(n)) return r_.operand(n, 0);
    if (r_.is_constant(n)) return r_.constant(r_.value(n), {compute_, r_.shape_of(n)});
    const bool repeats = r_.is<broadcast_op>(n) && is_of_parameters(n) && !added;
    return repeats || is_narrow(n) ? on_narrow_operands(n) : cast_to(n, compute_);
  }
  constexpr bool is_widened(node_id n) const {
    return r_.is<cast_op>(n) && r_.type(r_.operand(n, 0)).element == compute_;
  }
  /// Whether nothing is lost if `n` is taken in 16 bits: such numbers, maybe in other places.
  constexpr bool is_narrow(node_id n) const {
    if (is_widened(n)) return true;
    const int count = r_.operand_count(n);
    if (r_.op(n).computes != compute_class::movement || count > most_operands) return false;
    bool any = false;
    for (int i = 0; i < count; ++i) {
      const node_id o = r_.operand(n, i);
      if (!is_real(o)) continue;
      if (!is_narrow(o)) return false;
      any = true;
    }
    return any;
  }

  /// Whether `n` follows from parameters and constants alone, which it is told from then on.
  constexpr bool note_if_of_parameters(node_id n) {
    if (&r_.op(n) == &input_info_of) return is_of_parameters(n);
    if (r_.op(n).computes == compute_class::random) return false;
    bool all = true;
    for (int i = 0; i < r_.operand_count(n); ++i) all = all && is_of_parameters(r_.operand(n, i));
    follows_from_parameters_[std::size_t(n)] = char(all);
    return all;
  }
  constexpr bool is_of_parameters(node_id n) const {
    return std::size_t(n) < follows_from_parameters_.size() &&
           follows_from_parameters_[std::size_t(n)] != 0;
  }
  /// A product of two batches of matrices, none of which is a weight: those of attention, which
  /// back ends know as a whole in one type.
  constexpr bool is_of_batches(node_id n) const {
    for (int i = 0; i < r_.operand_count(n); ++i) {
      if (r_.shape_of(r_.operand(n, i)).rank < 3 || is_of_parameters(r_.operand(n, i)))
        return false;
    }
    return true;
  }
  /// Whether `n` takes a statistic from, or divides by one, whole tensors of what is normalized:
  /// the derivative will ask for it.
  constexpr bool is_centered(node_id n) const {
    if ((!r_.is<sub_op>(n) && !r_.is<mul_op>(n)) || is_only_summed_[std::size_t(n)]) return false;
    const auto is_statistic = [&](int i) {
      const node_id o = r_.operand(n, i);
      return r_.is<broadcast_op>(o) && !is_of_parameters(o) && r_.type(r_.operand(o, 0)).size() > 1;
    };
    return is_statistic(0) != is_statistic(1);
  }
  /// An elementwise operation with at least one operand of 16 bits, none of which is a statistic:
  /// what repeats numbers of f32 that follow from the data. Squares and the like that are only
  /// summed are worth more digits; so are exponentials and logarithms.
  constexpr bool is_narrow_elementwise(node_id n) const {
    if (!r_.op(n).pointwise || is_only_summed_[std::size_t(n)] || r_.is<exp_op>(n) ||
        r_.is<expm1_op>(n) || r_.is<log_op>(n) || r_.is<log1p_op>(n) || r_.is<log2_op>(n) ||
        r_.is<pow_op>(n))
      return false;
    bool any = false;
    for (int i = 0; i < r_.operand_count(n); ++i) {
      const node_id o = r_.operand(n, i);
      if (!is_real(o)) continue;
      const bool narrow = is_narrow(o);
      if (!narrow && r_.is<broadcast_op>(o) && !is_of_parameters(o)) return false;
      any |= narrow;
    }
    return any;
  }

  rewriter& r_;
  dtype compute_;
  flags follows_from_parameters_, is_only_summed_;
};

}  // namespace detail

constexpr graph mixed_precision(graph g, dtype compute) {
  if (!is_storage_only(compute)) return g;
  const rule_table none{span<const rule>()};
  rewriter r(g, none);
  detail::precision_sweep precision(r, compute);
  r.sweep([&](node_id n) { return precision.visit(n); });
  return g;
}

}  // namespace cella
