// What batch rules are made of: an operation does for many samples what it does for one (see
// transform/batch.hpp).
#pragma once

#include <cella/ops/broadcast.hpp>

namespace cella::detail {

/// `x` repeated `size` times along a new leading axis.
constexpr var repeat_leading(var x, int size) {
  tensor_type t = x.type();
  if (t.rank() == max_rank) {
    x.b->fail(text() << "vmap: " << x.b->describe(x.id) << " is " << t
                     << ", which has no room for one more axis");
    return x;
  }
  t.shape.insert(0, size);
  const node& n = x.b->g.nodes[std::size_t(x.id)];
  if (is<constant_op>(n)) return constant(*x.b, n.attributes.as<constant_op::options>().value, t);
  broadcast_op::options o{t.shape, iteration_space::no_axes};
  for (int i = 0; i < x.rank(); ++i) o.axes[std::size_t(i)] = std::int8_t(i + 1);
  return emit<broadcast_op>(o, std::source_location::current(), x);
}
/// Exchanges the first two axes.
constexpr var swap_leading(var x) {
  transpose_op::options o;
  for (std::size_t i = 0; i < o.permutation.size(); ++i) {
    if (int(i) < x.rank()) o.permutation[i] = std::int8_t(i);
  }
  std::swap(o.permutation[0], o.permutation[1]);
  return emit<transpose_op>(o, std::source_location::current(), x);
}
/// [B,N,...] -> [B N,...]
constexpr var merge_leading(var x) {
  shape s = x.shape();
  s[1] *= s[0];
  s.erase(0);
  return reshape(x, s);
}
/// [B N,...] -> [B,N,...]
constexpr var split_leading(var x, int size) {
  shape s = x.shape();
  s[0] /= size;
  s.insert(0, size);
  return reshape(x, s);
}

/// The number of samples.
constexpr int batch_size(span<const var> in, unsigned batched) {
  for (std::size_t k = 0; k < in.size(); ++k) {
    if (batched >> k & 1) return in[k].extent(0);
  }
  return 0;
}
/// Operand `k` with a leading axis in any case.
constexpr var batched_operand(span<const var> in, unsigned batched, std::size_t k) {
  return batched >> k & 1 ? in[k] : repeat_leading(in[k], batch_size(in, batched));
}

/// Batch rule of operations whose first axis is a batch already: the two are merged.
template <class Op>
struct merges_batches {
  static constexpr void batch(node_ref n, span<const var> in, unsigned batched, span<var> out) {
    builder& b = *n.b;
    ids merged;
    for (std::size_t k = 0; k < in.size(); ++k)
      merged.push_back(merge_leading(batched_operand(in, batched, k)).id);
    const node_id y = b.emit(bound<Op>(), merged, b.g.nodes[std::size_t(n.id)].attributes);
    for (std::size_t k = 0; k < out.size(); ++k)
      out[k] = split_leading({&b, b.get(y, int(k))}, batch_size(in, batched));
  }
};

/// Operations that work along one axis, given by options that have it as `axis`.
template <class Op>
struct moves_axis {
  static bool fits(const op_application& a) {
    return is_axis(a.as<typename Op::options>().axis, a.rank());
  }
  static constexpr attributes batch_options(node_ref n, int, unsigned) {
    auto o = n.as<typename Op::options>();
    ++o.axis;
    return o;
  }
};
/// Batch rule of operations that fold a set of axes.
struct moves_axes {
  static constexpr attributes batch_options(node_ref n, int, unsigned) {
    return axes_options{n.as<axes_options>().axes << 1};
  }
};
/// Batch rule of operations whose options do not depend on the extents.
struct keeps_options {
  static constexpr attributes batch_options(node_ref n, int, unsigned) {
    return n.b->g.nodes[std::size_t(n.id)].attributes;
  }
};

}  // namespace cella::detail
