// Steps whose operands are images in blocks of channels.
#pragma once

#include <cella/backend/cpu/plan/sample_slices.hpp>
#include <cella/backend/cpu/plan/step_rule.hpp>
#include <cella/backend/cpu/plan/winograd.hpp>
#include <cella/ops/pooling.hpp>

namespace cella::cpu {

/// A convolution or a gradient of one. Packed filters, or sums of weight gradients, are `in[3]`;
/// the padded copy of a plain image of few channels is the scratch.
struct blocked_convolution_rule : own_operands {
  static constexpr bool matches(const fusion_group& s) {
    const bool convolves = s.kind == step_kind::convolution ||
                           s.kind == step_kind::convolution_input_gradient ||
                           s.kind == step_kind::convolution_weight_gradient;
    return convolves && s.arrangement == layout::blocked;
  }
  static constexpr void operands(auto& p, const fusion_group& s, plan_step& t) {
    convolution_step e = extents_of_convolution(p.c, s);
    const bool weights = s.kind == step_kind::convolution_weight_gradient;
    const bool backward = s.kind == step_kind::convolution_input_gradient;
    e.keeps_filters = !weights && p.keeps_its_value(p.c.source(s.operands[1]));
    e.form = form_of(p, s, e);
    const bool stem = e.form == convolution_form::stem;
    t.in[0] = p.locate(s.operands[0], stem && !backward ? layout::plain : layout::blocked);
    t.in[1] = p.locate(s.operands[1], weights ? layout::blocked : layout::plain);
    if (e.keeps_filters) t.prepared_operand = 1;
    e.filter = {std::int32_t(p.g.type(s.operands[1]).element)};
    t.shape = e;
  }
  static constexpr void scratch(auto& p, const fusion_group& s, plan_step& t) {
    const auto e = t.as<convolution_step>();
    const window w = window_of(p.c, s);
    const int L = p.c.machine.lanes(p.c.element);
    const std::int64_t size = number_size(p.c);
    const bool weights = s.kind == step_kind::convolution_weight_gradient;
    const int in_blocks = e.channels / L, out_blocks = e.filters / L;
    const bool minimal = e.form == convolution_form::winograd;
    std::int64_t elements = minimal ? winograd::filter_size(in_blocks, out_blocks, L)
                                    : p.g.type(weights ? s.anchor : s.operands[1]).size();
    if (e.form == convolution_form::pairs && !weights) {
      elements /= 2;
    } else if (minimal && weights) {
      const int tiles =
          winograd::tiles(e.samples, w.positions(e.height, 3, 0), w.positions(e.width, 3, 1));
      const int slices = winograd::gradient_slices(in_blocks, out_blocks, tiles, L, int(size));
      elements *= slices;
      // With several slices, each thread has tiles of its own.
      if (slices == 1)
        t.scratch =
            p.arena.fresh(winograd::gradient_tiles_size(in_blocks, out_blocks, tiles, L) * size);
    } else if (weights && e.form != convolution_form::stem &&
               e.form != convolution_form::depthwise) {
      elements *= sample_slices(e.samples, elements * size);
    }
    t.in[3] = p.arena.fresh(elements * size, e.keeps_filters);
    const bool as_it_is = shape_of_convolution(p.g, s.anchor, p.c.element, L).plain_source();
    if (e.form != convolution_form::stem || (as_it_is && !weights)) return;
    const tensor_type y = p.g.type(weights ? s.operands[1] : s.anchor);
    const std::int64_t rows = (y[2] - 1) * w.stride[0] + e.kernel_height;
    const std::int64_t columns = (y[3] - 1) * w.stride[1] + e.kernel_width;
    t.scratch = p.arena.fresh((std::int64_t{e.samples} * e.channels * rows * columns +
                               16 * w.stride[1] + e.kernel_width) *
                              size);
  }

 private:
  static constexpr convolution_form form_of(auto& p, const fusion_group& s,
                                            const convolution_step& e) {
    if (p.c.as_stored(s.anchor)) return convolution_form::pairs;
    const int L = p.c.machine.lanes(p.c.element);
    if (e.channels % L != 0) return convolution_form::stem;
    convolution_shape shape = shape_of_convolution(p.g, s.anchor, p.c.element, L);
    shape.keeps_filters = e.keeps_filters != 0;
    const auto chosen = choose_in_blocks(shape, pass_of(p.c.at(s.anchor)), algorithm_of(p.options));
    return chosen == convolution_algorithm::minimal ? convolution_form::winograd
           : shape.depthwise()                      ? convolution_form::depthwise
                                                    : convolution_form::direct;
  }
};

/// Max pooling and its gradient.
struct blocked_pooling_rule : own_operands {
  static constexpr bool matches(const fusion_group& s) {
    return s.kind == step_kind::max_pool || s.kind == step_kind::max_unpool;
  }
  static constexpr void operands(auto& p, const fusion_group& s, plan_step& t) {
    const bool forward = s.kind == step_kind::max_pool;
    take_operands(p, s, t, layout::blocked, forward ? 1 : 2);
    const tensor_type image = p.g.type(forward ? s.operands[0] : s.anchor);
    const tensor_type pooled = forward ? p.g.result_type(s.anchor, 0) : p.g.type(s.operands[0]);
    const auto o = p.c.at(s.anchor).attributes.template as<pooling_options>();
    const window& w = o.window;
    t.shape =
        pooling_step{image[0],    image[1],    image[2],    image[3],    o.kernel[0], o.kernel[1],
                     w.stride[0], w.stride[1], w.before[0], w.before[1], pooled[2],   pooled[3]};
  }
};

}  // namespace cella::cpu
