// Bias gradients that a kernel of the lanes yields beside its own result.
#pragma once

#include <cella/ops/reduction.hpp>
#include <cella/plan/order.hpp>

namespace cella::cpu {

/// A sum of pooled gradients over samples and pixels is yielded by the kernel that un-pools them,
/// if all that becomes of it is written in place.
class side_sums {
 public:
  constexpr side_sums(const fusion_groups& groups, group_order& order)
      : c_(groups), g(groups.g), order_(order) {}

  constexpr void carry() {
    for (std::size_t r = 0; r < c_.groups.size(); ++r) {
      const fusion_group& s = c_.groups[r];
      if (s.kind != step_kind::reduce || s.arrangement != layout::lanes) continue;
      const node_id x = s.operands[0];
      const bool bias =
          g.type(x).rank() == 4 && c_.at(s.anchor).attributes.as<axes_options>().axes == 0b1101u;
      if (!bias || c_.member(s, x) || !writes_in_place(s)) continue;
      for (std::size_t h = 0; h < c_.groups.size(); ++h) {
        const fusion_group& host = c_.groups[h];
        const bool unpools = host.kind == step_kind::convolution_pool_weight_gradient;
        const node_id pooled = unpools ? host.operands[1] : host.operands[0];
        if ((!unpools && host.kind != step_kind::max_unpool_2x2) || order_.side[h] >= 0) continue;
        if (c_.source(pooled) != c_.source(x)) continue;
        order_.carry(int(r), int(h));
        break;
      }
    }
  }

 private:
  /// Every value of the group that is read outside it replaces an input.
  constexpr bool writes_in_place(const fusion_group& s) const {
    for (node_id m : s.members) {
      if (read_outside(c_, s, m) && order_.replaces[std::size_t(m)] < 0) return false;
      for (node_id o : g.operands(m)) {
        const node_id from = c_.source(c_.is_view(o) ? g.operand(o, 0) : o);
        if (m != s.anchor && !c_.member(s, o) && !c_.is_constant(o) && !c_.is_input(from))
          return false;
      }
    }
    return true;
  }

  const fusion_groups& c_;
  const graph& g;
  group_order& order_;
};

}  // namespace cella::cpu
