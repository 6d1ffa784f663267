// What planning must know of the steps of one kernel, beside which groups there are: a rule is a
// struct with
//
//   static constexpr bool matches(const fusion_group&);
//   static constexpr void operands(Places&, const fusion_group&, plan_step&);  // where they differ
//   static constexpr void scratch(Places&, const fusion_group&, plan_step&);   // if it needs some
//
// `Places` are those of plan/places.hpp. planning.hpp lists the rules.
#pragma once

#include <cella/backend/cpu/plan/convolution_cost.hpp>
#include <cella/plan/operands.hpp>

namespace cella::cpu {

/// Operands are plain tensors, and no memory is needed besides.
struct step_rule {
  static constexpr bool usual_operands = true;
  static constexpr void operands(auto&, const fusion_group&, plan_step&) {}
  static constexpr void scratch(auto&, const fusion_group&, plan_step&) {}
};
/// Operands are those that the rule says.
struct own_operands : step_rule {
  static constexpr bool usual_operands = false;
};

/// Rules, of which the first that matches a step says how it is planned.
template <class... Rules>
struct step_rules {
  /// False if the step's operands are the usual ones.
  static constexpr bool operands(auto& p, const fusion_group& s, plan_step& t) {
    bool own = false;
    static_cast<void>(
        ((Rules::matches(s) && (own = !Rules::usual_operands, Rules::operands(p, s, t), true)) ||
         ...));
    return own;
  }
  static constexpr void scratch(auto& p, const fusion_group& s, plan_step& t) {
    static_cast<void>(((Rules::matches(s) && (Rules::scratch(p, s, t), true)) || ...));
  }
};

/// Puts the first `count` operands of a group into a step, in one format.
constexpr void take_operands(auto& p, const fusion_group& s, plan_step& t, layout a,
                             std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) t.in[k] = p.locate(s.operands[k], a);
}
constexpr window window_of(const fusion_groups& c, const fusion_group& s) {
  return c.at(s.anchor).attributes.as<convolution_options>().window;
}
/// Bytes of a number of the program's type.
constexpr std::int64_t number_size(const fusion_groups& c) {
  return std::int64_t(size_of(c.element));
}

}  // namespace cella::cpu
