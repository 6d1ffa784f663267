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
  /// A comparison of sizes, unless loops compute it with what follows from it, reads the numbers.
  template <class Fuser>
  static constexpr bool match_truths(Fuser& f, node_id n) {
    fusion_groups& c = f.groups();
    const node& x = c.at(n);
    if (x.operand_count != 2 || c.kernel_alone(n) != step_kind::typed) return false;
    const node_id size = c.g.operand(n, 0);
    if (!is<abs_op>(c.at(size)) || c.only_user(size) != n || c.g.operand(n, 1) == size ||
        !is_floating(c.g.type(size).element))
      return false;
    for (node_id u : c.users(n)) {
      if (c.pointwise(u)) return false;
    }
    fusion_group& s = c.start(step_kind::typed, n, n, layout::plain);
    c.claim(s, size);
    s.operands[0] = c.g.operand(size, 0);
    return true;
  }
  /// Repeated numbers need no memory where kernels make them of their nodes: see typed_record, and
  /// scatter_record for what is counted.
  static constexpr bool operands(auto& p, const fusion_group& s, plan_step& t) {
    const bool counts = s.kind == step_kind::scatter && p.g.type(s.anchor).element != p.c.element;
    if (s.kind != step_kind::typed && !counts) return planning::operands(p, s, t);
    std::size_t k = 0;
    for (node_id o : p.g.operands(s.anchor)) {
      const bool made = is<constant_op>(p.c.at(o)) && (k == 0 || !counts);
      const bool of_size = k == 0 && s.operands[0] >= 0;
      if (of_size) t.shape = typed_step{1};
      if (!made) t.in[k] = p.locate(of_size ? s.operands[0] : o, layout::plain);
      ++k;
    }
    return true;
  }
  /// Each sum is a step of its own: a kernel has one line.
  static constexpr void carry_sums(const fusion_groups&, group_order&) {}
};

}  // namespace cella::cpu
