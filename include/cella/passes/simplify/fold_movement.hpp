// Rules of the table in fold.hpp for operations that only move elements: those that change nothing,
// two in a row, and parts that are put side by side.
#pragma once

#include <algorithm>
#include <array>
#include <cella/ops/broadcast.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/passes/rewriting/rewrite.hpp>

namespace cella {

namespace fold_rules {

/// reshape(x) = x, to its own shape
constexpr node_id same_shape(rewriter& r, node_id n) {
  return r.shape_of(r.operand(n, 0)) == r.shape_of(n) ? r.operand(n, 0) : no_node;
}
/// reshape(reshape(x)) = reshape(x)
constexpr node_id reshape_twice(rewriter& r, node_id n) {
  const node_id x = r.operand_if<reshape_op>(n, 0);
  return x < 0 ? no_node : r.emit<reshape_op>({r.operand(x, 0)}, r.as<reshape_op::options>(n));
}
/// transpose(x) = x, for the permutation that changes nothing
constexpr node_id no_permutation(rewriter& r, node_id n) {
  const auto p = r.as<transpose_op::options>(n).permutation;
  for (int i = 0; i < r.shape_of(n).rank; ++i) {
    if (p[std::size_t(i)] != i) return no_node;
  }
  return r.operand(n, 0);
}
/// transpose(transpose(x)) = transpose(x)
constexpr node_id transpose_twice(rewriter& r, node_id n) {
  const node_id x = r.operand_if<transpose_op>(n, 0);
  if (x < 0) return no_node;
  const auto inner = r.as<transpose_op::options>(x).permutation;
  auto o = r.as<transpose_op::options>(n);
  for (int i = 0; i < r.shape_of(n).rank; ++i) {
    std::int8_t& p = o.permutation[std::size_t(i)];
    p = inner[std::size_t(p)];
  }
  return r.emit<transpose_op>({r.operand(x, 0)}, o);
}
/// broadcast(broadcast(x)) = broadcast(x)
constexpr node_id broadcast_twice(rewriter& r, node_id n) {
  const node_id x = r.operand_if<broadcast_op>(n, 0);
  if (x < 0) return no_node;
  auto inner = r.as<broadcast_op::options>(x);
  const auto outer = r.as<broadcast_op::options>(n);
  for (std::int8_t& a : inner.axes) {
    if (a >= 0) a = outer.axes[std::size_t(a)];
  }
  inner.shape = outer.shape;
  return r.emit<broadcast_op>({r.operand(x, 0)}, inner);
}
/// broadcast(reshape(x)) = broadcast(x), where the reshape only adds axes of one element
constexpr node_id broadcast_of_added_axes(rewriter& r, node_id n) {
  const node_id x = r.operand_if<reshape_op>(n, 0);
  if (x < 0) return no_node;
  const shape own = r.shape_of(r.operand(x, 0)), more = r.shape_of(x);
  auto o = r.as<broadcast_op::options>(n);
  const auto axes = o.axes;
  o.axes = iteration_space::no_axes;
  int found = 0;
  for (int d = 0; d < more.rank; ++d) {
    if (found < own.rank && own[found] == more[d])
      o.axes[std::size_t(found++)] = axes[std::size_t(d)];
    else if (more[d] != 1)
      return no_node;
  }
  return found == own.rank ? r.emit<broadcast_op>({r.operand(x, 0)}, o) : no_node;
}
/// slice(x) = x, of everything
constexpr node_id whole_slice(rewriter& r, node_id n) {
  if (r.shape_of(r.operand(n, 0)) != r.shape_of(n)) return no_node;
  for (std::int32_t s : r.as<slice_op::options>(n).start) {
    if (s != 0) return no_node;
  }
  return r.operand(n, 0);
}
/// slice(slice(x)) = slice(x)
constexpr node_id slice_twice(rewriter& r, node_id n) {
  const node_id x = r.operand_if<slice_op>(n, 0);
  if (x < 0) return no_node;
  const auto inner = r.as<slice_op::options>(x);
  auto o = r.as<slice_op::options>(n);
  for (std::size_t i = 0; i < std::size_t(o.shape.rank); ++i) {
    o.start[i] = inner.start[i] + o.start[i] * inner.step[i];
    o.step[i] = o.shape[int(i)] > 1 ? o.step[i] * inner.step[i] : 1;
  }
  return r.emit<slice_op>({r.operand(x, 0)}, o);
}

/// embed(a) + embed(b) + ... = concat(a, b, ...) for parts that lie side by side and fill the
/// result: what the gradient of a split is.
struct side_by_side {
  std::array<node_id, 8> parts{};  ///< the embeddings
  int count{};

  /// Collects the terms of a sum; false if one is not an embedding or there are too many.
  constexpr bool collect(const rewriter& r, node_id n) {
    if (r.is<add_op>(n)) return collect(r, r.operand(n, 1)) && collect(r, r.operand(n, 0));
    if (!r.is<scatter_slice_op>(n) || count == int(parts.size())) return false;
    parts[std::size_t(count++)] = n;
    return true;
  }
  /// The axis that the parts divide; -1 if they do not. Sorts them along it.
  constexpr int axis(const rewriter& r) {
    const shape whole = r.shape_of(parts[0]);
    const shape first = r.shape_of(r.operand(parts[0], 0));
    int a = 0;
    while (a < whole.rank && first[a] == whole[a]) ++a;
    if (a == whole.rank) return -1;
    auto start = [&](node_id n) {
      return r.as<scatter_slice_op::options>(n).start[std::size_t(a)];
    };
    std::sort(parts.begin(), parts.begin() + count,
              [&](node_id x, node_id y) { return start(x) < start(y); });
    int end = 0;
    for (int k = 0; k < count; ++k) {
      const node_id n = parts[std::size_t(k)];
      const shape part = r.shape_of(r.operand(n, 0));
      const auto o = r.as<scatter_slice_op::options>(n);
      for (int d = 0; d < whole.rank; ++d) {
        const bool fills = d == a || part[d] == whole[d];
        if (!fills || o.step[std::size_t(d)] != 1) return -1;
      }
      if (start(n) != end) return -1;
      end += part[a];
    }
    return end == whole[a] ? a : -1;
  }
};
constexpr node_id joined_parts(rewriter& r, node_id n) {
  if (!r.is<scatter_slice_op>(r.operand(n, 1))) return no_node;
  side_by_side sum;
  if (!sum.collect(r, n)) return no_node;
  const int a = sum.axis(r);
  if (a < 0) return no_node;
  std::array<node_id, 8> in{};
  for (int k = 0; k < sum.count; ++k) in[std::size_t(k)] = r.operand(sum.parts[std::size_t(k)], 0);
  return r.emit(bound<concat_op>(), span<const node_id>(in.data(), std::size_t(sum.count)),
                concat_op::options{a});
}

}  // namespace fold_rules

}  // namespace cella
