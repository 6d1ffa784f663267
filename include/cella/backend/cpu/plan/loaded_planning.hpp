// What the planner must know of the CPU for graphs that exist at run time only: plain tensors and
// images in blocks, and kernels whose extents are known when the plan is made.
#pragma once

#include <cella/backend/cpu/plan/planning.hpp>

namespace cella::cpu {

struct loaded_planning : planning {
  using rules = step_rules<blocked_convolution_rule, blocked_pooling_rule, packed_product_rule,
                           norm_rule, plain_loss_rule>;

  /// As `default_kernel`, for the types of rows and indices that kernels are compiled for.
  static constexpr step_kind kernel_alone(const graph& g, node_id n, dtype element) {
    const step_kind k = default_kernel(g, n, element);
    if (k != step_kind::gather && k != step_kind::scatter) return k;
    const dtype index = g.type(g.operand(n, 1)).element;
    const bool fits = g.nodes[std::size_t(n)].type.element == element &&
                      (index == dtype::i32 || index == dtype::i64);
    return fits ? k : step_kind::generic;
  }
  static constexpr plan_target machine = [] {
    plan_target t = planning::machine;
    t.kernel_alone = kernel_alone;
    return t;
  }();

  static constexpr value_formats choose_formats(const graph& g, const plan_options& o,
                                                const plan_target& t) {
    value_formats f(g);
    const int lanes = t.lanes(o.element);
    constexpr auto modelled = convolution_algorithm::modelled;
    f.program = choose_layout(g, o.element, lanes, modelled, false);
    if (f.program == layout::blocked) f.keep(blocked_values(g, lanes));
    return f;
  }
  template <class Fuser>
  static constexpr bool match(Fuser& f, node_id n) {
    return patterns<Fuser>(f).match_image(n);
  }
  static constexpr layout loss_format(const fusion_groups&, node_id) { return layout::plain; }
  static constexpr void carry_sums(const fusion_groups&, group_order&) {}

  static constexpr bool operands(auto& p, const fusion_group& s, plan_step& t) {
    return rules::operands(p, s, t);
  }
  static constexpr void scratch(auto& p, const fusion_group& s, plan_step& t) {
    rules::scratch(p, s, t);
  }
};

}  // namespace cella::cpu
