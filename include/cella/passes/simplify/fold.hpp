// Constant folding and algebraic simplification, as a table of identities.
//
// What is kept: every finite value bit for bit, unless the rule says that it reassociates. What is
// not kept: the sign of a zero. `x * 0` stays (x may be infinite or NaN), and so does `x - x`.
#pragma once

#include <cella/ops/activation.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/passes/rewriting/rewrite.hpp>
#include <cella/passes/simplify/fold_movement.hpp>
#include <cella/passes/simplify/fold_values.hpp>
#include <cella/passes/simplify/late_broadcasts.hpp>

namespace cella {

namespace fold_rules {

// ---- constants

/// The value of a constant, as kernels see it.
constexpr bool constant_value(const rewriter& r, node_id n, double& v) {
  if (!r.is_constant(n)) return false;
  const dtype t = r.g().nodes[std::size_t(n)].type.element;
  v = r.value(n);
  if (!fits(t, v)) return false;
  v = stored(t, v);
  return true;
}

/// f(c1, c2, ...) = c for arithmetic on constants
constexpr node_id all_constant(rewriter& r, node_id n) {
  const op_info& op = r.op(n);
  const int count = r.operand_count(n);
  if (!op.traits.foldable || count > 3 || !r.is_constant(r.operand(n, 0))) return no_node;
  std::array<double, 3> x{};
  for (int i = 0; i < count; ++i) {
    double& v = x[std::size_t(i)];
    if (!constant_value(r, r.operand(n, i), v) || !is_moderate(v)) return no_node;
  }
  if (r.is<div_op>(n) && x[1] == 0) return no_node;
  const double y = op.scalar(r.g().nodes[std::size_t(n)].attributes, x[0], x[1], x[2]);
  const tensor_type t = r.type(n);
  return fits(t.element, y) ? r.constant(stored(t.element, y), t) : no_node;
}

/// move(c) = c for an operation that moves elements
constexpr node_id moved_constant(rewriter& r, node_id n) {
  if (!r.op(n).traits.rearranges || r.operand_count(n) != 1) return no_node;
  const node_id x = r.operand(n, 0);
  return r.is_constant(x) ? r.constant(r.value(x), r.type(n)) : no_node;
}
/// cast(c) = c, truncated if the result is an integer
constexpr node_id cast_constant(rewriter& r, node_id n) {
  double v{};
  const tensor_type t = r.type(n);
  if (!constant_value(r, r.operand(n, 0), v) || !converts(v, t.element)) return no_node;
  return r.constant(stored(t.element, v), t);
}
/// cast(cast(x)) = x for x of 16 bits: what is between has all of its values
constexpr node_id cast_back(rewriter& r, node_id n) {
  const node_id wide = r.operand_if<cast_op>(n, 0);
  if (wide < 0 || !is_floating(r.type(wide).element)) return no_node;
  const node_id x = r.operand(wide, 0);
  const bool lossless =
      is_storage_only(r.type(x).element) && !is_storage_only(r.type(wide).element);
  return lossless && r.type(x).element == r.type(n).element ? x : no_node;
}
/// f(0) = 0
constexpr node_id zero_of_zeros(rewriter& r, node_id n) {
  const unsigned of = r.op(n).zero_of;
  if (!of) return no_node;
  for (int i = 0; i < r.operand_count(n); ++i) {
    if (of >> std::min(i, 31) & 1 && !r.is_constant(r.operand(n, i), 0)) return no_node;
  }
  return r.constant(0, r.type(n));
}
/// sum(c) = count c
constexpr node_id sum_of_constant(rewriter& r, node_id n) {
  double v{};
  const tensor_type t = r.type(n);
  if (!constant_value(r, r.operand(n, 0), v) || !is_moderate(v)) return no_node;
  v *= double(r.type(r.operand(n, 0)).size()) / double(t.size());
  return fits(t.element, v) ? r.constant(stored(t.element, v), t) : no_node;
}
/// Brings a constant operand to the right, where the rules below look for it: c + x = x + c
constexpr node_id constant_to_the_right(rewriter& r, node_id n) {
  if (!r.op(n).traits.commutative) return no_node;
  if (r.is_constant(r.operand(n, 0)) && !r.is_constant(r.operand(n, 1))) r.swap_operands(n);
  return no_node;
}

// ---- arithmetic

/// x + 0 = x - 0 = x
constexpr node_id plus_zero(rewriter& r, node_id n) {
  return r.is_constant(r.operand(n, 1), 0) ? r.operand(n, 0) : no_node;
}
/// x * 1 = x / 1 = x
constexpr node_id times_one(rewriter& r, node_id n) {
  return r.is_constant(r.operand(n, 1), 1) ? r.operand(n, 0) : no_node;
}
/// x * -1 = -x
constexpr node_id times_minus_one(rewriter& r, node_id n) {
  return r.is_constant(r.operand(n, 1), -1) ? r.emit<neg_op>({r.operand(n, 0)}) : no_node;
}
/// (x * a) * b = x * (a b); reassociates
constexpr node_id times_twice(rewriter& r, node_id n) {
  double a{};
  double b{};
  const node_id x = r.operand_if<mul_op>(n, 0);
  if (x < 0 || !constant_value(r, r.operand(n, 1), b) || !constant_value(r, r.operand(x, 1), a))
    return no_node;
  const tensor_type t = r.type(n);
  if (!is_floating(t.element) || !is_moderate(a) || !is_moderate(b) || !fits(t.element, a * b))
    return no_node;
  return r.emit<mul_op>({r.operand(x, 0), r.constant(a * b, t)});
}
/// broadcast(x) * (y * c) = y * broadcast(x * c): the constant meets fewer elements, and y c need
/// not be kept beside y. Reassociates, with small c, for types of a wide range.
constexpr node_id constant_to_repeated(rewriter& r, node_id n) {
  const dtype element = r.type(n).element;
  if (element != dtype::f32 && element != dtype::f64) return no_node;
  for (int k : {0, 1}) {
    const node_id repeated = r.operand_if<broadcast_op>(n, k);
    const node_id scaled = r.operand_if<mul_op>(n, 1 - k);
    double c{};
    if (repeated < 0 || scaled < 0 || !constant_value(r, r.operand(scaled, 1), c)) continue;
    const double size = c < 0 ? -c : c;
    if (size < 1e-3 || size > 1e3) continue;
    const node_id x = r.operand(repeated, 0);
    const node_id y = r.operand(scaled, 0);
    const auto o = r.as<broadcast_op::options>(repeated);
    const node_id product = r.emit<mul_op>({x, r.constant(c, r.type(x))});
    return r.emit<mul_op>({y, r.emit<broadcast_op>({product}, o)});
  }
  return no_node;
}
/// (-x) * c = x * -c
constexpr node_id negated_times(rewriter& r, node_id n) {
  const node_id x = r.operand_if<neg_op>(n, 0);
  const node_id c = r.operand(n, 1);
  if (x < 0 || !r.is_constant(c) || !fits(r.type(n).element, -r.value(c))) return no_node;
  return r.emit<mul_op>({r.operand(x, 0), r.constant(-r.value(c), r.type(n))});
}
/// (-x) * (-y) = x * y
constexpr node_id negated_times_negated(rewriter& r, node_id n) {
  const node_id x = r.operand_if<neg_op>(n, 0);
  const node_id y = r.operand_if<neg_op>(n, 1);
  return x < 0 || y < 0 ? no_node : r.emit<mul_op>({r.operand(x, 0), r.operand(y, 0)});
}
/// x / c = x * (1 / c) where c is a power of two, which is exact
constexpr node_id divided_by_power_of_two(rewriter& r, node_id n) {
  double c{};
  const tensor_type t = r.type(n);
  if (!is_floating(t.element) || !constant_value(r, r.operand(n, 1), c)) return no_node;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(c);
  constexpr std::uint64_t fraction = (std::uint64_t{1} << 52) - 1;
  if (c == 0 || (bits & fraction) || !is_moderate(c) || !fits(t.element, 1 / c)) return no_node;
  return r.emit<mul_op>({r.operand(n, 0), r.constant(1 / c, t)});
}
/// x + (-y) = x - y
constexpr node_id plus_negated(rewriter& r, node_id n) {
  const node_id y = r.operand_if<neg_op>(n, 1);
  return y < 0 ? no_node : r.emit<sub_op>({r.operand(n, 0), r.operand(y, 0)});
}
/// (-x) + y = y - x
constexpr node_id negated_plus(rewriter& r, node_id n) {
  const node_id x = r.operand_if<neg_op>(n, 0);
  return x < 0 ? no_node : r.emit<sub_op>({r.operand(n, 1), r.operand(x, 0)});
}
/// x - (-y) = x + y
constexpr node_id minus_negated(rewriter& r, node_id n) {
  const node_id y = r.operand_if<neg_op>(n, 1);
  return y < 0 ? no_node : r.emit<add_op>({r.operand(n, 0), r.operand(y, 0)});
}
/// 0 - x = -x
constexpr node_id zero_minus(rewriter& r, node_id n) {
  return r.is_constant(r.operand(n, 0), 0) ? r.emit<neg_op>({r.operand(n, 1)}) : no_node;
}
/// -(-x) = x
constexpr node_id twice_negated(rewriter& r, node_id n) {
  const node_id x = r.operand_if<neg_op>(n, 0);
  return x < 0 ? no_node : r.operand(x, 0);
}
/// -(x - y) = y - x
constexpr node_id negated_difference(rewriter& r, node_id n) {
  const node_id x = r.operand_if<sub_op>(n, 0);
  return x < 0 ? no_node : r.emit<sub_op>({r.operand(x, 1), r.operand(x, 0)});
}
/// -(x * c) = x * -c
constexpr node_id negated_product(rewriter& r, node_id n) {
  const node_id x = r.operand_if<mul_op>(n, 0);
  const node_id c = x < 0 ? no_node : r.operand_if<constant_op>(x, 1);
  if (c < 0 || !fits(r.type(n).element, -r.value(c))) return no_node;
  return r.emit<mul_op>({r.operand(x, 0), r.constant(-r.value(c), r.type(n))});
}
/// x^1 = x
constexpr node_id first_power(rewriter& r, node_id n) {
  return r.is_constant(r.operand(n, 1), 1) ? r.operand(n, 0) : no_node;
}
/// x^2 = x x
constexpr node_id second_power(rewriter& r, node_id n) {
  return r.is_constant(r.operand(n, 1), 2) ? r.emit<square_op>({r.operand(n, 0)}) : no_node;
}

// ---- choice

/// c ? x : y, for a constant c
constexpr node_id constant_choice(rewriter& r, node_id n) {
  const node_id c = r.operand(n, 0);
  return r.is_constant(c) ? r.operand(n, r.value(c) != 0 ? 1 : 2) : no_node;
}
/// p ? x : x = x
constexpr node_id same_choice(rewriter& r, node_id n) {
  return r.operand(n, 1) == r.operand(n, 2) ? r.operand(n, 1) : no_node;
}

/// relu(relu(x)) = relu(x)
constexpr node_id relu_twice(rewriter& r, node_id n) { return r.operand_if<relu_op>(n, 0); }

// ---- products and sums

/// A matrix product that sums over one element = the elementwise product of both operands, spread
/// over the result: loops fuse it with what follows. The operands' axes must be in the result's
/// order.
constexpr node_id outer_product(rewriter& r, node_id n) {
  const auto o = r.as<matmul_op::options>(n);
  const shape s = r.shape_of(n);
  std::array<unsigned, 2> axes{};  // of the result, that an operand has
  for (std::size_t k = 0; k < 2; ++k) {
    const shape x = r.shape_of(r.operand(n, int(k)));
    for (int d = 0; d < x.rank; ++d) {
      const int f = (k == 0 ? o.a : o.b)[std::size_t(d)];
      const int axis = late_broadcasts::dimension_of(o.result, f);
      if (axis < 0 && x[d] == 1) continue;  // summed over
      if (axis < 0 || axes[k] >> axis) return no_node;
      axes[k] |= 1u << axis;
    }
  }
  std::array<node_id, 2> in{};
  for (std::size_t k = 0; k < 2; ++k) {
    const shape own = late_broadcasts::only(s, axes[k]);
    in[k] = r.emit<reshape_op>({r.operand(n, int(k))}, reshape_op::options{own});
    in[k] = late_broadcasts::widened(r, in[k], s, axes[k]);
  }
  return r.emit<mul_op>({in[0], in[1]});
}
/// sum(broadcast(x)) = count broadcast(sum(x)): the repeated axes that are summed give the count;
/// reassociates
constexpr node_id sum_of_broadcast(rewriter& r, node_id n) {
  const node_id b = r.operand_if<broadcast_op>(n, 0);
  if (b < 0) return no_node;
  const node_id x = r.operand(b, 0);
  const unsigned summed = r.as<axes_options>(n).axes;
  const auto o = r.as<broadcast_op::options>(b);
  const int rank = r.shape_of(x).rank;
  // Each axis of the broadcast is x's own or repeated, and summed or kept.
  unsigned own = 0;
  unsigned own_summed = 0;
  broadcast_op::options rest{r.shape_of(n), iteration_space::no_axes};
  std::size_t kept = 0;
  for (int i = 0; i < rank; ++i) {
    const int axis = o.axes[std::size_t(i)];
    own |= 1u << axis;
    if (summed >> axis & 1) {
      own_summed |= 1u << i;
      continue;
    }
    int position = axis;
    for (int a = 0; a < axis; ++a) position -= summed >> a & 1;
    rest.axes[kept++] = std::int8_t(position);
  }
  double count = 1;
  for (int a = 0; a < o.shape.rank; ++a) {
    if ((summed & ~own) >> a & 1) count *= o.shape[a];
  }
  const dtype t = r.type(n).element;
  if (!fits(t, count)) return no_node;
  node_id y = x;
  if (own_summed) y = r.emit<sum_op>({y}, axes_options{own_summed});
  if (count != 1) y = r.emit<mul_op>({y, r.constant(count, r.type(y))});
  return r.shape_of(y) == rest.shape ? y : r.emit<broadcast_op>({y}, rest);
}

// ---- marks

/// f(x) = x, for operations that only mark a value while it is differentiated
constexpr node_id operand_itself(rewriter& r, node_id n) { return r.operand(n, 0); }

// clang-format off
inline constexpr std::array rules{
    rule{"all_constant",            nullptr,                   all_constant},
    rule{"moved_constant",          nullptr,                   moved_constant},
    rule{"all_values",              nullptr,                   all_values},
    rule{"zero_of_zeros",           nullptr,                   zero_of_zeros},
    rule{"constant_to_the_right",   nullptr,                   constant_to_the_right},
    rule{"identity",                &info_of<identity_op>,      operand_itself},
    rule{"stop_gradient",           &info_of<stop_gradient_op>, operand_itself},
    rule{"plus_zero",               &info_of<add_op>,           plus_zero},
    rule{"joined_parts",            &info_of<add_op>,           joined_parts},
    rule{"plus_negated",            &info_of<add_op>,           plus_negated},
    rule{"negated_plus",            &info_of<add_op>,           negated_plus},
    rule{"minus_zero",              &info_of<sub_op>,           plus_zero},
    rule{"minus_negated",           &info_of<sub_op>,           minus_negated},
    rule{"zero_minus",              &info_of<sub_op>,           zero_minus},
    rule{"times_one",               &info_of<mul_op>,           times_one},
    rule{"times_minus_one",         &info_of<mul_op>,           times_minus_one},
    rule{"times_twice",             &info_of<mul_op>,           times_twice},
    rule{"constant_to_repeated",    &info_of<mul_op>,           constant_to_repeated},
    rule{"negated_times",           &info_of<mul_op>,           negated_times},
    rule{"negated_times_negated",   &info_of<mul_op>,           negated_times_negated},
    rule{"divided_by_one",          &info_of<div_op>,           times_one},
    rule{"divided_by_power_of_two", &info_of<div_op>,           divided_by_power_of_two},
    rule{"twice_negated",           &info_of<neg_op>,           twice_negated},
    rule{"negated_difference",      &info_of<neg_op>,           negated_difference},
    rule{"negated_product",         &info_of<neg_op>,           negated_product},
    rule{"first_power",             &info_of<pow_op>,           first_power},
    rule{"second_power",            &info_of<pow_op>,           second_power},
    rule{"constant_choice",         &info_of<select_op>,        constant_choice},
    rule{"same_choice",             &info_of<select_op>,        same_choice},
    rule{"relu_twice",              &info_of<relu_op>,          relu_twice},
    rule{"broadcast_twice",         &info_of<broadcast_op>,     broadcast_twice},
    rule{"broadcast_added_axes",    &info_of<broadcast_op>,     broadcast_of_added_axes},
    rule{"broadcast_later",         nullptr,                    late_broadcasts::elementwise},
    rule{"broadcast_later",         &info_of<concat_op>,        late_broadcasts::concatenation},
    rule{"broadcast_later",         &info_of<reshape_op>,       late_broadcasts::reshaped},
    rule{"broadcast_later",         &info_of<transpose_op>,     late_broadcasts::transposed},
    rule{"broadcast_later",         &info_of<slice_op>,         late_broadcasts::sliced},
    rule{"outer_product",           &info_of<matmul_op>,        outer_product},
    rule{"broadcast_later",         &info_of<matmul_op>,        late_broadcasts::multiplied},
    rule{"reshape_same",            &info_of<reshape_op>,       same_shape},
    rule{"reshape_twice",           &info_of<reshape_op>,       reshape_twice},
    rule{"transpose_nothing",       &info_of<transpose_op>,     no_permutation},
    rule{"transpose_twice",         &info_of<transpose_op>,     transpose_twice},
    rule{"slice_whole",             &info_of<slice_op>,         whole_slice},
    rule{"slice_twice",             &info_of<slice_op>,         slice_twice},
    rule{"reshaped_values",         &info_of<reshape_op>,       reshaped_values},
    rule{"transposed_values",       &info_of<transpose_op>,     transposed_values},
    rule{"sliced_values",           &info_of<slice_op>,         sliced_values},
    rule{"cast_values",             &info_of<cast_op>,          cast_values},
    rule{"cast_constant",           &info_of<cast_op>,          cast_constant},
    rule{"cast_back",               &info_of<cast_op>,          cast_back},
    rule{"sum_of_constant",         &info_of<sum_op>,           sum_of_constant},
    rule{"sum_of_broadcast",        &info_of<sum_op>,           sum_of_broadcast},
};
// clang-format on
inline constexpr rule_table table(rules);

}  // namespace fold_rules

/// Simplifies by the identities of `fold_rules::rules`. To be run after differentiation: it removes
/// `stop_gradient`. What it makes unused stays until `dce`.
constexpr graph fold(graph g) { return rewrite(std::move(g), fold_rules::table); }

}  // namespace cella
