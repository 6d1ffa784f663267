// Steps of plain tensors that need memory of their own.
#pragma once

#include <cella/backend/cpu/plan/sample_slices.hpp>
#include <cella/backend/cpu/plan/step_rule.hpp>
#include <cella/ops/product_form.hpp>

namespace cella::cpu {

/// Convolution and pooling of one sample: a padded copy of the image, and the filters with their
/// channels in the lanes.
struct pooled_sample_rule : own_operands {
  static constexpr bool matches(const fusion_group& s) {
    return s.kind == step_kind::convolution_pool && s.arrangement == layout::plain;
  }
  static constexpr void operands(auto& p, const fusion_group& s, plan_step& t) {
    take_operands(p, s, t, layout::plain, 2);
    t.shape = extents_of_convolution(p.c, s);
  }
  static constexpr void scratch(auto& p, const fusion_group& s, plan_step& t) {
    const window w = window_of(p.c, s);
    const auto e = t.as<convolution_step>();
    const std::int64_t size = number_size(p.c);
    const std::int64_t height = e.height + w.before[0] + w.after[0];
    const std::int64_t width = e.width + w.before[1] + w.after[1];
    if (height != e.height || width != e.width)
      t.scratch = p.arena.fresh(e.channels * height * width * size);
    const std::int64_t taps = std::int64_t{e.channels} * e.kernel_height * e.kernel_width;
    t.in[3] =
        p.arena.fresh(taps * align_up(e.filters, p.c.machine.lanes(p.c.element)) * size, true);
  }
};

/// A matrix product: the right operand in the kernel's own order, if it is worth packing once for
/// many calls.
struct packed_product_rule : step_rule {
  static constexpr bool matches(const fusion_group& s) {
    return s.kind == step_kind::product && s.arrangement == layout::plain;
  }
  static constexpr void scratch(auto& p, const fusion_group& s, plan_step& t) {
    const product_form f = form_of_product(p.g, s.anchor);
    const std::int64_t size = number_size(p.c);
    if (!worth_packing(f, size) || !p.keeps_its_value(p.c.source(s.operands[f.exchanged ? 0 : 1])))
      return;
    const std::int64_t wide = 2 * p.c.machine.lanes(p.c.element);
    t.in[3] = p.arena.fresh((f.columns + wide - 1) / wide * wide * f.depth * size, true);
  }
};

/// Batch norm and its gradient, in blocks or plain: sums of slices of the samples.
struct norm_rule : step_rule {
  static constexpr bool matches(const fusion_group& s) {
    return s.kind == step_kind::batch_norm || s.kind == step_kind::batch_norm_gradient;
  }
  static constexpr void scratch(auto& p, const fusion_group& s, plan_step& t) {
    const auto e = t.as<norm_step>();
    const int lanes = s.arrangement == layout::plain ? 1 : p.c.machine.lanes(p.c.element);
    const int slices = norm_slices(e.samples, e.channels / lanes);
    if (slices > 1)
      t.scratch = p.arena.fresh(std::int64_t{2} * slices * e.channels * number_size(p.c));
  }
};

/// The loss of plain logits: one number for each sample.
struct plain_loss_rule : step_rule {
  static constexpr bool matches(const fusion_group& s) {
    return s.kind == step_kind::cross_entropy && s.arrangement == layout::plain;
  }
  static constexpr void scratch(auto& p, const fusion_group&, plan_step& t) {
    t.scratch = p.arena.fresh(t.as<loss_step>().samples * number_size(p.c));
  }
};

}  // namespace cella::cpu
