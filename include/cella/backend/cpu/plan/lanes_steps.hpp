// Steps whose operands have the batch in the SIMD lanes.
#pragma once

#include <cella/backend/cpu/plan/step_rule.hpp>

namespace cella::cpu {

/// A convolution, a gradient of one, or a convolution with 2x2 pooling.
struct lanes_convolution_rule : own_operands {
  static constexpr bool matches(const fusion_group& s) {
    const bool convolves =
        s.kind == step_kind::convolution || s.kind == step_kind::convolution_input_gradient ||
        s.kind == step_kind::convolution_weight_gradient || s.kind == step_kind::convolution_pool ||
        s.kind == step_kind::convolution_pool_weight_gradient;
    return convolves && s.arrangement == layout::lanes;
  }
  static constexpr void operands(auto& p, const fusion_group& s, plan_step& t) {
    const window w = window_of(p.c, s);
    const bool pooled = s.kind == step_kind::convolution_pool_weight_gradient;
    const bool weights = pooled || s.kind == step_kind::convolution_weight_gradient;
    t.shape = extents_of_convolution(p.c, s);
    if (s.kind == step_kind::convolution_input_gradient)
      t.in[0] = p.locate(s.operands[0], layout::lanes);
    else
      t.in[0] = p.locate(s.operands[0], layout::lanes, {w.before[0], w.before[1]});
    t.in[1] = p.locate(s.operands[1], weights ? layout::lanes : layout::plain);
    if (pooled) t.in[2] = p.locate(s.operands[2], layout::lanes);
  }
  /// Where the largest elements were: four masks of 16 bits for each vector of pooled values.
  static constexpr void scratch(auto& p, const fusion_group& s, plan_step& t) {
    if (s.pool_argmax < 0) return;
    const std::int64_t vectors = p.bytes_of(s.accumulated, layout::lanes) /
                                 (p.c.machine.lanes(p.c.element) * number_size(p.c));
    t.pool_argmax = p.arena.fresh(vectors * 8);
    p.remember(s.pool_argmax, layout::lanes, t.pool_argmax);
  }
};

/// Features times weights.
struct lanes_product_rule : own_operands {
  static constexpr bool matches(const fusion_group& s) {
    return s.kind == step_kind::product && s.arrangement == layout::lanes;
  }
  static constexpr void operands(auto& p, const fusion_group& s, plan_step& t) {
    const auto o = p.c.at(s.anchor).attributes.template as<matmul_op::options>();
    const tensor_type w = p.g.type(s.operands[1]);
    const bool rows_first = o.b[0] == o.result[1];
    t.in[0] = p.locate(s.operands[0], layout::lanes);
    t.in[1] = p.locate(s.operands[1], layout::plain);
    t.shape = lanes_product_step{.samples = p.g.type(s.anchor)[0],
                                 .rows = p.g.type(s.anchor)[1],
                                 .inner = rows_first ? w[1] : w[0],
                                 .row_stride = rows_first ? w[1] : 1,
                                 .column_stride = rows_first ? 1 : w[1]};
  }
};

/// The gradient of such weights.
struct lanes_weights_rule : own_operands {
  static constexpr bool matches(const fusion_group& s) {
    return s.kind == step_kind::product_weights;
  }
  static constexpr void operands(auto& p, const fusion_group& s, plan_step& t) {
    take_operands(p, s, t, layout::lanes, 2);
    t.shape = lanes_weights_step{p.g.type(s.operands[0])[0], p.g.type(s.operands[0])[1],
                                 p.g.type(s.operands[1])[1]};
  }
  static constexpr void scratch(auto& p, const fusion_group&, plan_step& t) {
    const auto e = t.as<lanes_weights_step>();
    const int L = p.c.machine.lanes(p.c.element);
    t.scratch =
        p.arena.fresh(align_up(e.samples, L) * align_up(e.in_features, L) * number_size(p.c));
  }
};

struct lanes_unpool_rule : own_operands {
  static constexpr bool matches(const fusion_group& s) {
    return s.kind == step_kind::max_unpool_2x2;
  }
  static constexpr void operands(auto& p, const fusion_group& s, plan_step& t) {
    take_operands(p, s, t, layout::lanes, 2);
    const tensor_type y = p.g.type(s.anchor);
    t.shape = image_step{y[0], y[1], y[2], y[3]};
  }
};

}  // namespace cella::cpu
