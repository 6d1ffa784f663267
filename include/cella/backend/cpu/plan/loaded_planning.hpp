// What the planner must know of the CPU for graphs that exist at run time only, where that is not
// what it knows for programs.
#pragma once

#include <cella/backend/cpu/plan/planning.hpp>

namespace cella::cpu {

struct loaded_planning : planning {
  /// As `default_kernel`, for the types of rows and indices that kernels are compiled for.
  static constexpr step_kind kernel_alone(const graph& g, node_id n, dtype element) {
    const step_kind k = default_kernel(g, n, element);
    if (k != step_kind::gather && k != step_kind::scatter && k != step_kind::put_rows) return k;
    const dtype index = g.type(g.operand(n, 1)).element;
    const bool fits =
        (g.nodes[std::size_t(n)].type.element == element || k == step_kind::scatter) &&
        is_word(index);
    return fits ? k : step_kind::generic;
  }
  static constexpr plan_target machine = [] {
    plan_target t = planning::machine;
    t.kernel_alone = kernel_alone;
    return t;
  }();

  template <class Fuser>
  static constexpr bool match(Fuser& f, node_id n) {
    return patterns<Fuser>(f).match_loaded(n);
  }
  /// Each sum is a step of its own: a kernel has one line.
  static constexpr void carry_sums(const fusion_groups&, group_order&) {}
};

}  // namespace cella::cpu
