// What the CPU's kernels work on in its own formats, and the memory that they need besides.
#pragma once

#include <cella/backend/cpu/plan/convolution_cost.hpp>
#include <cella/backend/cpu/plan/sample_slices.hpp>
#include <cella/backend/cpu/plan/winograd.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/plan/operands.hpp>

namespace cella::cpu {

/// `Places` are those of plan/places.hpp.
template <class Places>
class step_operands {
 public:
  constexpr explicit step_operands(Places& where)
      : p(where), c(where.c), g(where.g), size_(std::int64_t(size_of(c.element))) {}

  /// False if the step is a usual one of plain tensors.
  constexpr bool find(const fusion_group& s, plan_step& t) {
    switch (s.kind) {
      case step_kind::convolution:
      case step_kind::convolution_input_gradient:
      case step_kind::convolution_weight_gradient:
        if (s.arrangement == layout::plain) return false;
        t.shape = extents_of_convolution(c, s);
        s.arrangement == layout::lanes ? lanes_convolution(s, t) : blocked_convolution(s, t);
        return true;
      case step_kind::convolution_pool:
      case step_kind::convolution_pool_weight_gradient:
        t.shape = extents_of_convolution(c, s);
        s.arrangement == layout::lanes ? lanes_convolution(s, t) : take(s, t, {}, 2);
        return true;
      case step_kind::product:
        if (s.arrangement == layout::plain) return false;
        lanes_product(s, t);
        return true;
      case step_kind::product_weights:
        take(s, t, layout::lanes, 2);
        t.shape = lanes_weights_step{g.type(s.operands[0])[0], g.type(s.operands[0])[1],
                                     g.type(s.operands[1])[1]};
        return true;
      case step_kind::max_unpool_2x2:
        take(s, t, layout::lanes, 2);
        t.shape = image_step{g.type(s.anchor)[0], g.type(s.anchor)[1], g.type(s.anchor)[2],
                             g.type(s.anchor)[3]};
        return true;
      case step_kind::max_pool:
        take(s, t, layout::blocked, 1);
        t.shape = windows(s.anchor, g.type(s.operands[0]), g.result_type(s.anchor, 0));
        return true;
      case step_kind::max_unpool:
        take(s, t, layout::blocked, 2);
        t.shape = windows(s.anchor, g.type(s.anchor), g.type(s.operands[0]));
        return true;
      default:
        return false;
    }
  }

  /// Scratch of the whole step, and in[3], which keeps what was packed.
  constexpr void scratch(const fusion_group& s, plan_step& t) {
    const bool plain = s.arrangement == layout::plain;
    const int L = c.machine.lanes(c.element);
    switch (s.kind) {
      case step_kind::convolution_pool:
        return plain ? pooled_sample(s, t) : positions(s, t);
      case step_kind::product:
        if (plain) keep_packed(s, t);
        return;
      case step_kind::product_weights: {
        const auto e = t.template as<lanes_weights_step>();
        t.scratch = p.arena.fresh(align_up(e.samples, L) * align_up(e.in_features, L) * size_);
        return;
      }
      case step_kind::batch_norm:
      case step_kind::batch_norm_gradient: {
        const auto e = t.template as<norm_step>();
        const int slices = norm_slices(e.samples, e.channels / (plain ? 1 : L));
        if (slices > 1) t.scratch = p.arena.fresh(std::int64_t{2} * slices * e.channels * size_);
        return;
      }
      case step_kind::cross_entropy:
        if (plain) t.scratch = p.arena.fresh(t.template as<loss_step>().samples * size_);
        return;
      default:
        return;
    }
  }

 private:
  constexpr void take(const fusion_group& s, plan_step& t, layout a, std::size_t count) {
    for (std::size_t k = 0; k < count; ++k) t.in[k] = p.locate(s.operands[k], a);
  }
  constexpr window window_of(const fusion_group& s) const {
    return c.at(s.anchor).attributes.template as<convolution_options>().window;
  }
  constexpr pooling_step windows(node_id n, const tensor_type& image,
                                 const tensor_type& pooled) const {
    const auto o = c.at(n).attributes.template as<pooling_options>();
    const auto& w = o.window;
    return {image[0],    image[1],    image[2],    image[3],    o.kernel[0], o.kernel[1],
            w.stride[0], w.stride[1], w.before[0], w.before[1], pooled[2],   pooled[3]};
  }

  // ---- the batch in the lanes

  constexpr void lanes_convolution(const fusion_group& s, plan_step& t) {
    const window w = window_of(s);
    const bool pooled = s.kind == step_kind::convolution_pool_weight_gradient;
    const bool weights = pooled || s.kind == step_kind::convolution_weight_gradient;
    if (s.kind == step_kind::convolution_input_gradient)
      t.in[0] = p.locate(s.operands[0], layout::lanes);
    else
      t.in[0] = p.locate(s.operands[0], layout::lanes, {w.before[0], w.before[1]});
    t.in[1] = p.locate(s.operands[1], weights ? layout::lanes : layout::plain);
    if (pooled) t.in[2] = p.locate(s.operands[2], layout::lanes);
  }
  constexpr void lanes_product(const fusion_group& s, plan_step& t) {
    const auto o = c.at(s.anchor).attributes.template as<matmul_op::options>();
    const tensor_type w = g.type(s.operands[1]);
    const bool rows_first = o.b[0] == o.result[1];
    t.in[0] = p.locate(s.operands[0], layout::lanes);
    t.in[1] = p.locate(s.operands[1], layout::plain);
    t.shape = lanes_product_step{.samples = g.type(s.anchor)[0],
                                 .rows = g.type(s.anchor)[1],
                                 .inner = rows_first ? w[1] : w[0],
                                 .row_stride = rows_first ? w[1] : 1,
                                 .column_stride = rows_first ? 1 : w[1]};
  }
  /// Where the largest elements were: four masks of 16 bits for each vector of pooled values.
  constexpr void positions(const fusion_group& s, plan_step& t) {
    if (s.pool_argmax < 0) return;
    const std::int64_t vectors =
        p.bytes_of(s.accumulated, layout::lanes) / (c.machine.lanes(c.element) * size_);
    t.pool_argmax = p.arena.fresh(vectors * 8);
    p.remember(s.pool_argmax, layout::lanes, {0, 0}, t.pool_argmax);
  }

  // ---- plain tensors

  /// A padded copy of one image, and the filters with their channels in the lanes.
  constexpr void pooled_sample(const fusion_group& s, plan_step& t) {
    const window w = window_of(s);
    const tensor_type image = g.type(s.operands[0]), filter = g.type(s.operands[1]);
    const std::int64_t channels = align_up(filter[0], c.machine.lanes(c.element));
    const std::int64_t height = image[2] + w.before[0] + w.after[0];
    const std::int64_t width = image[3] + w.before[1] + w.after[1];
    if (height != image[2] || width != image[3])
      t.scratch = p.arena.fresh(image[1] * height * width * size_);
    t.in[3] =
        p.arena.fresh(image[1] * std::int64_t{filter[2]} * filter[3] * channels * size_, true);
  }
  /// The right operand of a product in the kernel's own order, if it is worth packing once for many
  /// calls.
  constexpr void keep_packed(const fusion_group& s, plan_step& t) {
    const product_form f = form_of_product(g, s.anchor);
    if (!worth_packing(f, size_) || !p.keeps_its_value(c.source(s.operands[f.exchanged ? 0 : 1])))
      return;
    const std::int64_t wide = 2 * c.machine.lanes(c.element);
    t.in[3] = p.arena.fresh((f.columns + wide - 1) / wide * wide * f.depth * size_, true);
  }

  // ---- blocks of channels

  /// Packed filters, or sums of weight gradients, are `in[3]`; the padded copy of a plain image of
  /// few channels is the scratch.
  constexpr void blocked_convolution(const fusion_group& s, plan_step& t) {
    auto e = t.template as<convolution_step>();
    const int L = c.machine.lanes(c.element);
    const bool few = e.channels % L != 0;
    const bool weights = s.kind == step_kind::convolution_weight_gradient;
    const bool backward = s.kind == step_kind::convolution_input_gradient;
    t.in[0] = p.locate(s.operands[0], few && !backward ? layout::plain : layout::blocked);
    t.in[1] = p.locate(s.operands[1], weights ? layout::blocked : layout::plain);
    const bool kept = !weights && p.keeps_its_value(c.source(s.operands[1]));
    const window w = window_of(s);
    const auto shape = shape_of_convolution(g, s.anchor, c.element, L);
    const int forced = p.options.algorithm;
    const bool minimal = choose_in_blocks(shape, pass_of(c.at(s.anchor)),
                                          forced < 0 ? convolution_algorithm::modelled
                                                     : convolution_algorithm(forced)) ==
                         convolution_algorithm::minimal;
    e.keeps_filters = kept;
    e.form = few                 ? convolution_form::stem
             : minimal           ? convolution_form::winograd
             : shape.depthwise() ? convolution_form::depthwise
                                 : convolution_form::direct;
    t.shape = e;
    if (kept) t.prepared_operand = 1;
    const int in_blocks = e.channels / L, out_blocks = e.filters / L;
    const tensor_type filter = g.type(weights ? s.anchor : s.operands[1]);
    std::int64_t elements =
        minimal ? winograd::filter_size(in_blocks, out_blocks, L) : filter.size();
    if (minimal && weights) {
      const int tiles =
          winograd::tiles(e.samples, w.positions(e.height, 3, 0), w.positions(e.width, 3, 1));
      const int slices = winograd::gradient_slices(in_blocks, out_blocks, tiles, L, int(size_));
      elements *= slices;
      // With several slices, each thread has tiles of its own.
      if (slices == 1)
        t.scratch =
            p.arena.fresh(winograd::gradient_tiles_size(in_blocks, out_blocks, tiles, L) * size_);
    } else if (weights && !few && !shape.depthwise()) {
      elements *= sample_slices(e.samples, elements * size_);
    }
    t.in[3] = p.arena.fresh(elements * size_, kept);
    if (few) {
      const tensor_type y = g.type(weights ? s.operands[1] : s.anchor);
      const std::int64_t rows = (y[2] - 1) * w.stride[0] + e.kernel_height;
      const std::int64_t columns = (y[3] - 1) * w.stride[1] + e.kernel_width;
      t.scratch = p.arena.fresh((std::int64_t{e.samples} * e.channels * rows * columns +
                                 16 * w.stride[1] + e.kernel_width) *
                                size_);
    }
  }

  Places& p;
  const fusion_groups& c;
  const graph& g;
  std::int64_t size_;
};

}  // namespace cella::cpu
