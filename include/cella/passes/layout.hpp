// Which values carry the batch along their first axis, and whether the batch goes into the lanes.
#pragma once

#include <cella/ops/convolution.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/passes/blocked.hpp>
#include <cella/passes/plan.hpp>
#include <cella/passes/product_form.hpp>

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

/// Whether `n` keeps samples apart along its first axis, given that for its operands.
constexpr bool keeps_samples(const graph& g, node_id n, const flags& batched) {
  const node& x = g.nodes[std::size_t(n)];
  auto is_batched = [&](int i) { return batched[std::size_t(g.operand(n, i))] != 0; };
  const attributes& o = x.attributes;
  if (x.op == &get_info_of) return is_batched(0);
  if (x.op->pointwise) {
    bool any = false;
    for (int i = 0; i < x.operand_count; ++i) {
      const node& operand = g.nodes[std::size_t(g.operand(n, i))];
      if (is_batched(i))
        any = true;
      else if (is<constant_op>(operand))
        continue;
      else if (!is<broadcast_op>(operand) ||
               operand.attributes.as<broadcast_op::options>().axes[0] == 0)
        return false;
    }
    return any;
  }
  if (x.operand_count == 0 || !is_batched(0)) {
    // The weight gradient and dy W have their batched operand first; x W^T with a batched right
    // operand does not occur in the lanes.
    return false;
  }
  if (is<broadcast_op>(x)) return o.as<broadcast_op::options>().axes[0] == 0;
  if (is<sum_op>(x) || is<max_op>(x) || is<prod_op>(x)) return (o.as<axes_options>().axes & 1) == 0;
  if (is<matmul_op>(x)) {
    const auto m = o.as<matmul_op::options>();
    return m.result[0] == m.a[0] && (!is_batched(1) || m.b[0] == m.a[0]);
  }
  if (is<convolution_op>(x) || is<convolution_input_gradient_op>(x)) return !is_batched(1);
  if (is<convolution_weight_gradient_op>(x)) return false;
  if (is<transpose_op>(x)) return o.as<transpose_op::options>().permutation[0] == 0;
  if (is<softmax_op>(x) || is<log_softmax_op>(x)) return o.as<axis_options>().axis != 0;
  if (is<argmax_op>(x)) return o.as<argmax_op::options>().axis != 0;
  if (is<cumsum_op>(x)) return o.as<cumsum_op::options>().axis != 0;
  if (is<concat_op>(x)) return o.as<concat_op::options>().axis != 0;
  return true;  // reshape, slices, pooling, cross_entropy, one_hot, cast: checked by the extent
                // below
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

/// Whether the batch goes into the lanes. Then nothing is packed, no edge is ragged and pooling is
/// lane-wise, but weights are read once per L samples and lanes without a sample are wasted: right
/// for narrow layers and enough samples, wrong for wide layers, whose weights want to be reused
/// from registers. Regions of control nodes, parts of tensors and numbers of 16 bits are plain.
/// `lanes` is the number of lanes of the program's element type. Without a product, a convolution
/// or pooling nothing gains by it, and packing would be paid for nothing. Convolutions of whole
/// blocks of channels want those side by side: their weights are reused from registers, and there
/// are fewer products (Winograd).
constexpr layout choose_layout(const graph& g, int lanes) {
  if (wants_blocks(g, lanes)) return layout::blocked;
  const int n = batch_of(g);
  if (n * 2 < lanes) return layout::plain;
  std::int64_t widest = 0;
  bool gains = false;
  for (node_id id : g.regions[0].nodes) {
    const node& x = g.nodes[std::size_t(id)];
    if (is_storage_only(x.type.element)) return layout::plain;
    const bool takes_apart = is<slice_op>(x) || is<concat_op>(x) || is<embed_op>(x);
    if (x.op->kind == op_kind::control || takes_apart) return layout::plain;
    gains |= is<convolution_op>(x) || is<matmul_op>(x) || is<max_pool_op>(x);
    if (is<convolution_op>(x)) widest = std::max(widest, std::int64_t{x.type[1]} * 8);
    if (!is<matmul_op>(x)) continue;
    // Kernels of the lanes know one vector for each sample; sequences stay as they are.
    if (x.type.rank() > 2) return layout::plain;
    // A weight that is wide in both directions; a weight gradient's depth is the batch.
    const product_form f = form_of_product(g, id);
    if (f.fits) widest = std::max(widest, std::min(f.columns, f.depth));
  }
  return gains && widest <= 512 ? layout::lanes : layout::plain;
}

/// Whether a step only moves a value into another layout or place.
constexpr bool is_conversion(step_kind k) {
  return k == step_kind::pack || k == step_kind::unpack || k == step_kind::border ||
         k == step_kind::pack_blocks || k == step_kind::unpack_blocks || k == step_kind::copy;
}
/// Whether output k of a step has the batch in the lanes, given which values carry the batch.
constexpr bool writes_lanes(const flags& batched, const plan_step& s, int k) {
  if (s.arrangement != layout::lanes || s.kind == step_kind::generic) return false;
  if (is_conversion(s.kind)) return true;
  if (s.kind == step_kind::cross_entropy) return k > 0;
  return batched[std::size_t(s.accumulated >= 0 ? s.accumulated : s.anchor)] != 0;
}

}  // namespace cella
