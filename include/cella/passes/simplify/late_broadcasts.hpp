// Broadcasts moved behind what follows from them, f(broadcast(x)) = broadcast(f(x)), so that a
// value that is the same along an axis is computed once and not for each place along it. Forward
// mode in many directions at once makes such values of everything that is not differentiated.
#pragma once

#include <bit>
#include <cella/ops/broadcast.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/passes/rewriting/rewrite.hpp>

namespace cella {

/// Rules of the table in fold.hpp.
namespace late_broadcasts {

constexpr unsigned all_axes(const shape& s) { return (1u << s.rank) - 1; }

/// The axes along which node `n` is known to vary, as bits.
constexpr unsigned varying_axes(const rewriter& r, node_id n) {
  if (r.is_constant(n)) return 0;
  if (!r.is<broadcast_op>(n)) return all_axes(r.shape_of(n));
  unsigned own = 0;
  for (std::int8_t a : r.as<broadcast_op::options>(n).axes) {
    if (a >= 0) own |= 1u << a;
  }
  return own;
}
constexpr shape only(const shape& s, unsigned axes) {
  shape kept;
  for (int d = 0; d < s.rank; ++d) {
    if (axes >> d & 1) kept.push_back(s[d]);
  }
  return kept;
}
/// Which of the kept axes `axis` is.
constexpr std::int8_t place_among(unsigned axes, int axis) {
  return std::int8_t(std::popcount(axes & ((1u << axis) - 1)));
}

/// Node `n`, which varies along no other axes than these, without the others.
constexpr node_id narrowed(rewriter& r, node_id n, unsigned axes) {
  const shape s = only(r.shape_of(n), axes);
  if (s == r.shape_of(n)) return n;
  if (r.is_constant(n)) return r.constant(r.value(n), {r.type(n).element, s});
  const node_id x = r.operand(n, 0);
  if (r.shape_of(x) == s) return x;
  auto o = r.as<broadcast_op::options>(n);
  o.shape = s;
  for (std::int8_t& a : o.axes) {
    if (a >= 0) a = place_among(axes, a);
  }
  return r.emit<broadcast_op>({x}, o);
}
/// `x`, which has these axes of shape `s`, repeated along the others.
constexpr node_id widened(rewriter& r, node_id x, const shape& s, unsigned axes) {
  if (r.shape_of(x) == s) return x;
  broadcast_op::options o{s, iteration_space::no_axes};
  for (int d = 0; d < s.rank; ++d) {
    if (axes >> d & 1) o.axes[std::size_t(place_among(axes, d))] = std::int8_t(d);
  }
  return r.emit<broadcast_op>({x}, o);
}

/// The axes along which an operand of `n` varies, if all operands are broadcasts or constants that
/// repeat along the same axis; all axes otherwise.
constexpr unsigned joint_axes(const rewriter& r, node_id n) {
  unsigned joint = 0;
  bool repeats = false;
  for (int k = 0; k < r.operand_count(n); ++k) {
    const node_id x = r.operand(n, k);
    repeats |= r.is<broadcast_op>(x);
    joint |= varying_axes(r, x);
  }
  return repeats ? joint : all_axes(r.shape_of(n));
}
/// `n` without all but these axes, repeated along them. The options come by value: nodes move when
/// others are made.
constexpr node_id applied_to_narrow(rewriter& r, node_id n, unsigned axes, attributes options) {
  const shape s = r.shape_of(n);
  std::array<node_id, 8> in{};
  const int count = r.operand_count(n);
  if (count > int(in.size()) || only(s, axes).size() == s.size()) return no_node;
  for (int k = 0; k < count; ++k) in[std::size_t(k)] = narrowed(r, r.operand(n, k), axes);
  return widened(r, r.emit(r.op(n), span<const node_id>(in.data(), std::size_t(count)), options), s,
                 axes);
}

/// f(broadcast(x), broadcast(y), c) = broadcast(f(x, y, c)), elementwise. Not where truth values
/// are involved: those are never read from memory by fused loops.
constexpr node_id elementwise(rewriter& r, node_id n) {
  if (!r.op(n).pointwise || r.operand_count(n) == 0) return no_node;
  if (!r.is<broadcast_op>(r.operand(n, 0)) && !r.is_constant(r.operand(n, 0))) return no_node;
  if (r.type(n).element == dtype::boolean) return no_node;
  for (int k = 0; k < r.operand_count(n); ++k) {
    if (r.type(r.operand(n, k)).element == dtype::boolean) return no_node;
  }
  return applied_to_narrow(r, n, joint_axes(r, n), r.g().nodes[std::size_t(n)].attributes);
}
constexpr node_id concatenation(rewriter& r, node_id n) {
  auto o = r.as<concat_op::options>(n);
  const unsigned axes = joint_axes(r, n) | 1u << o.axis;
  o.axis = place_among(axes, o.axis);
  return applied_to_narrow(r, n, axes, o);
}
/// reshape(broadcast(x)) = broadcast(reshape(x)), if it joins no repeated axis with another.
constexpr node_id reshaped(rewriter& r, node_id n) {
  const node_id b = r.operand_if<broadcast_op>(n, 0);
  if (b < 0) return no_node;
  const shape from = r.shape_of(b);
  const shape to = r.shape_of(n);
  const unsigned own = varying_axes(r, b);
  unsigned kept = 0;
  for (int i = 0, j = 0; i < from.rank || j < to.rank;) {
    // The next axes of both that have as many elements.
    const int first = i;
    const int to_first = j;
    std::int64_t here = i < from.rank ? from[i++] : 1;
    std::int64_t there = j < to.rank ? to[j++] : 1;
    while (here != there) (here < there ? here *= from[i++] : there *= to[j++]);
    bool varies = false;
    bool repeats = false;
    for (int d = first; d < i; ++d) {
      if (from[d] > 1) (own >> d & 1 ? varies : repeats) = true;
    }
    if (varies && repeats) return no_node;
    for (int d = to_first; varies && d < j; ++d) kept |= 1u << d;
  }
  const node_id x = r.emit<reshape_op>({r.operand(b, 0)}, reshape_op::options{only(to, kept)});
  return widened(r, x, to, kept);
}
/// transpose(broadcast(x)) = broadcast(transpose(x))
constexpr node_id transposed(rewriter& r, node_id n) {
  const node_id b = r.operand_if<broadcast_op>(n, 0);
  if (b < 0) return no_node;
  const auto permutation = r.as<transpose_op::options>(n).permutation;
  const unsigned own = varying_axes(r, b);
  const shape s = r.shape_of(n);
  transpose_op::options o;
  unsigned kept = 0;
  std::size_t rank = 0;
  for (int d = 0; d < s.rank; ++d) {
    const int from = permutation[std::size_t(d)];
    if (!(own >> from & 1)) continue;
    kept |= 1u << d;
    o.permutation[rank++] = place_among(own, from);
  }
  const node_id x = r.operand(b, 0);
  return widened(r, rank ? r.emit<transpose_op>({x}, o) : x, s, kept);
}
/// slice(broadcast(x)) = broadcast(slice(x))
constexpr node_id sliced(rewriter& r, node_id n) {
  const node_id b = r.operand_if<broadcast_op>(n, 0);
  if (b < 0) return no_node;
  const auto whole = r.as<slice_op::options>(n);
  const unsigned own = varying_axes(r, b);
  slice_op::options o;
  o.shape = only(whole.shape, own);
  for (int d = 0; d < whole.shape.rank; ++d) {
    if (!(own >> d & 1)) continue;
    const auto at = std::size_t(place_among(own, d));
    o.start[at] = whole.start[std::size_t(d)];
    o.step[at] = whole.step[std::size_t(d)];
  }
  const node_id x = r.operand(b, 0);
  return widened(r, o.shape.rank ? r.emit<slice_op>({x}, o) : x, whole.shape, own);
}

/// Where a tensor walks along factor `f`; -1 if it does not.
constexpr int dimension_of(const iteration_space::axes& walk, int f) {
  for (std::size_t d = 0; d < walk.size(); ++d) {
    if (walk[d] == f) return int(d);
  }
  return -1;
}
/// Takes the dimensions that are not kept out of a walk.
constexpr iteration_space::axes kept_walk(const iteration_space::axes& walk, unsigned kept) {
  iteration_space::axes w = iteration_space::no_axes;
  std::size_t rank = 0;
  for (std::size_t d = 0; d < walk.size(); ++d) {
    if (walk[d] >= 0 && (kept >> d & 1)) w[rank++] = walk[d];
  }
  return w;
}
/// A product whose factor f is repeated in every operand that has it is computed without f, and the
/// result repeated.
constexpr node_id multiplied(rewriter& r, node_id n) {
  const std::array in{r.operand(n, 0), r.operand(n, 1)};
  if (!r.is<broadcast_op>(in[0]) && !r.is<broadcast_op>(in[1])) return no_node;
  auto o = r.as<matmul_op::options>(n);
  const shape s = r.shape_of(n);
  std::array<unsigned, 2> kept{all_axes(r.shape_of(in[0])), all_axes(r.shape_of(in[1]))};
  unsigned kept_in_result = all_axes(s);
  for (int d = 0; d < s.rank; ++d) {
    const int f = o.result[std::size_t(d)];
    const std::array at{dimension_of(o.a, f), dimension_of(o.b, f)};
    bool repeats = true;
    for (std::size_t k = 0; k < 2; ++k) {
      if (at[k] >= 0 && (varying_axes(r, in[k]) >> at[k] & 1)) repeats = false;
    }
    if (!repeats) continue;
    for (std::size_t k = 0; k < 2; ++k) {
      if (at[k] >= 0) kept[k] &= ~(1u << at[k]);
    }
    kept_in_result &= ~(1u << d);
  }
  if (kept_in_result == all_axes(s)) return no_node;
  o.a = kept_walk(o.a, kept[0]);
  o.b = kept_walk(o.b, kept[1]);
  o.result = kept_walk(o.result, kept_in_result);
  // Factors are counted from zero without gaps.
  std::array<std::int8_t, 24> renamed{};
  std::int8_t factors = 0;
  for (std::int8_t f = 0; f < std::int8_t(renamed.size()); ++f) {
    if (dimension_of(o.a, f) >= 0 || dimension_of(o.b, f) >= 0) renamed[std::size_t(f)] = factors++;
  }
  for (auto* walk : {&o.a, &o.b, &o.result}) {
    for (std::int8_t& f : *walk) {
      if (f >= 0) f = renamed[std::size_t(f)];
    }
  }
  const node_id a = narrowed(r, in[0], kept[0]);
  const node_id b = narrowed(r, in[1], kept[1]);
  return widened(r, r.emit<matmul_op>({a, b}, o), s, kept_in_result);
}

}  // namespace late_broadcasts

}  // namespace cella
