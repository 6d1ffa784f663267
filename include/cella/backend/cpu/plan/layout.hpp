// Which values carry the batch along their first axis, and in which layout a program works.
#pragma once

#include <cella/backend/cpu/plan/blocked.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/product_form.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/plan/step_kind.hpp>

namespace cella {

/// The batch of a graph: the first extent of its first argument; 0 if it has none.
constexpr int batch_of(const graph& g) {
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    if (g.inputs[i].role != input_role::argument) continue;
    const tensor_type t = g.type(g.input(int(i)));
    return t.rank() ? t[0] : 0;
  }
  return 0;
}

namespace detail {

/// Whether all samples have the same value: a constant, or what is repeated along the first axis
/// and has no samples itself. (Numbers of samples along another axis lie in lanes of their own.)
constexpr bool same_for_samples(const graph& g, node_id n, const flags& batched) {
  const node& x = g.nodes[std::size_t(n)];
  if (is<constant_op>(x)) return true;
  if (!is<broadcast_op>(x) || batched[std::size_t(g.operand(n, 0))]) return false;
  const iteration_space loops = loops_of(g, n);
  return !loops.walks_along(0, loops.factor_along(loops.result(), 0));
}

/// Whether `n` keeps samples apart along its first axis, given that for its operands: one loop
/// walks along the samples of the result and of all operands that have them.
constexpr bool keeps_samples(const graph& g, node_id n, const flags& batched) {
  const node& x = g.nodes[std::size_t(n)];
  auto is_batched = [&](int i) { return batched[std::size_t(g.operand(n, i))] != 0; };
  if (x.op == &get_info_of) return is_batched(0);
  if (!x.op->space || x.operand_count == 0) return false;
  // The weight gradient and dy W have their batched operand first; x W^T with a batched right
  // operand does not occur in the lanes.
  if (!x.op->pointwise && !is_batched(0)) return false;
  const iteration_space loops = loops_of(g, n);
  const int sample = loops.factor_along(loops.result(), 0);
  if (sample < 0) return false;
  // The samples of batch norm meet in its statistics; its kernels know lanes all the same.
  const bool norm = is<batch_norm_op>(x) || is<batch_norm_gradient_op>(x);
  if (loops.factors[std::size_t(sample)].whole && !norm) return false;
  bool any = false;
  for (int k = 0; k < x.operand_count; ++k) {
    const bool same =
        !loops.walks_along(k, sample) || same_for_samples(g, g.operand(n, k), batched);
    if (is_batched(k) ? loops.factor_along(k, 0) != sample : !same) return false;
    any |= is_batched(k);
  }
  return any;
}

}  // namespace detail

/// For each node: whether its first axis is the batch, sample by sample.
constexpr flags batched_values(const graph& g) {
  flags batched(g.nodes.size(), 0);
  const int n = batch_of(g);
  if (n == 0) return batched;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const tensor_type t = g.type(g.input(int(i)));
    batched[std::size_t(g.input(int(i)))] =
        g.inputs[i].role == input_role::argument && t.rank() && t[0] == n;
  }
  for (node_id id : g.regions[0].nodes) {
    const node& x = g.nodes[std::size_t(id)];
    if (x.op == &input_info_of || !detail::keeps_samples(g, id, batched)) continue;
    const tensor_type t = x.result_count ? g.result_type(id, 0) : x.type;
    batched[std::size_t(id)] = t.rank() > 0 && t[0] == n;
  }
  return batched;
}

namespace detail {

/// Whether a node takes samples apart, or joins them. Parts of weights and of their gradients, as
/// ranks send them to each other, are no matter of layout.
constexpr bool parts_samples(const graph& g, node_id n, const flags& batched) {
  bool any = batched[std::size_t(n)] != 0;
  for (node_id in : g.operands(n)) any |= batched[std::size_t(in)] != 0;
  return any;
}
/// Whether `n` is a number of 16 bits that no memory holds: what is rounded to such a number, to go
/// on as one of single precision.
constexpr bool is_rounding(const graph& g, node_id n) {
  const node& x = g.nodes[std::size_t(n)];
  return is<cast_op>(x) && !is_storage_only(g.type(g.operand(n, 0)).element);
}
/// Whether kernels of the lanes compute everything: they know one vector for each sample, so that
/// sequences stay as they are; regions of control nodes, parts of samples and numbers of 16 bits
/// are plain. Without a product, a convolution or pooling nothing gains by it, and packing would be
/// paid for nothing.
constexpr bool fits_lanes(const graph& g) {
  bool gains = false, rounds = false;
  flags batched;
  for (node_id id : g.regions[0].nodes) {
    const node& x = g.nodes[std::size_t(id)];
    if (x.op->kind == op_kind::control) return false;
    if (is_storage_only(x.type.element)) {
      if (!is_rounding(g, id)) return false;
      rounds = true;
    } else if (rounds && !(is<cast_op>(x) && x.type.element == dtype::f32)) {
      for (node_id o : g.operands(id))
        if (is_storage_only(g.type(o).element)) return false;
    }
    if (is<slice_op>(x) || is<concat_op>(x) || is<scatter_slice_op>(x)) {
      if (batched.empty()) batched = batched_values(g);
      if (parts_samples(g, id, batched)) return false;
    }
    if (is<matmul_op>(x) && x.type.rank() > 2) return false;
    gains |= is<convolution_op>(x) || is<matmul_op>(x) || is<max_pool_op>(x);
  }
  return gains && batch_of(g) > 0;
}
/// Whether products are narrow and samples enough: in the lanes weights are read once for each
/// vector of samples, and lanes without a sample are wasted.
constexpr bool wants_lanes(const graph& g, int lanes) {
  if (batch_of(g) * 2 < lanes) return false;
  for (node_id id : g.regions[0].nodes) {
    if (!is<matmul_op>(g.nodes[std::size_t(id)])) continue;
    // A weight that is wide in both directions; a weight gradient's depth is the batch.
    const product_form f = form_of_product(g, id);
    if (f.fits && std::min(f.columns, f.depth) > 512) return false;
  }
  return true;
}
/// What the convolutions of a program cost if its layout is `a`: each by the fastest kernel there,
/// or by the plain one if it has none.
constexpr double cost_of_convolutions(const graph& g, layout a, dtype element, int lanes) {
  using algorithm = convolution_algorithm;
  double sum = 0;
  for (node_id id : g.regions[0].nodes) {
    const node& x = g.nodes[std::size_t(id)];
    if (!is_convolution(x) || x.type.element != element) continue;
    const convolution_shape s = shape_of_convolution(g, id, element, lanes);
    const convolution_pass p = pass_of(x);
    if (a == layout::blocked && has_kernel(algorithm::direct, s, p))
      sum += convolution_cost(choose_in_blocks(s, p, algorithm::modelled), s, p);
    else if (a == layout::lanes && has_kernel(algorithm::lanes, s, p))
      sum += convolution_cost(algorithm::lanes, s, p);
    else
      sum += convolution_cost(algorithm::plain, s, p);
    // To a plain kernel and back.
    if (a == layout::blocked && !has_kernel(algorithm::direct, s, p))
      sum += 2 * (s.image_size() + s.result_size()) * double(size_of(element)) /
             tuning::machine.copies;
  }
  return sum;
}
constexpr bool pools(const graph& g) {
  for (node_id id : g.regions[0].nodes) {
    if (is<max_pool_op>(g.nodes[std::size_t(id)])) return true;
  }
  return false;
}

}  // namespace detail

/// The layout of a program: of those that have kernels for it, the one in which its convolutions
/// are fastest (convolution_cost.hpp), or that of `forced` if it can be. `lanes` is the number of
/// lanes of the program's element type.
constexpr layout choose_layout(const graph& g, dtype element, int lanes,
                               convolution_algorithm forced = convolution_algorithm::modelled) {
  using algorithm = convolution_algorithm;
  const bool blocks = wants_blocks(g, lanes), fits = detail::fits_lanes(g);
  if (forced == algorithm::plain) return layout::plain;
  if (forced == algorithm::lanes && fits) return layout::lanes;
  if ((forced == algorithm::direct || forced == algorithm::minimal) && blocks)
    return layout::blocked;
  const bool narrow = fits && detail::wants_lanes(g, lanes);
  // Pooling in the registers of a convolution is a kernel of the lanes.
  layout best = narrow && detail::pools(g) ? layout::lanes : layout::plain;
  double least = detail::cost_of_convolutions(g, best, element, lanes);
  // Without convolutions all cost nothing: then narrow products go into the lanes.
  for (const layout a : {layout::lanes, layout::blocked}) {
    if (a == best || !(a == layout::lanes ? narrow : blocks)) continue;
    const double cost = detail::cost_of_convolutions(g, a, element, lanes);
    if (cost <= least) best = a, least = cost;
  }
  return best;
}

}  // namespace cella
