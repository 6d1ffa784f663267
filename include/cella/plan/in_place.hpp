// Results that lie where an operand lay that nobody reads any more.
#pragma once

#include <cella/graph/graph.hpp>
#include <cella/plan/arena.hpp>

namespace cella {

/// Gives results of operations that say that they may (`in_place_of_last_operand`) the place of
/// that operand, where they are the last to read it: less memory, and less of it that goes through
/// the caches. Elementwise steps could do the same, but it saved no memory where it was tried: the
/// longer lives of fewer buffers are harder to place.
constexpr void compute_in_place(const graph& g, const growing_plan& p, arena_buffers& arena) {
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const plan_step& s = p.steps[i];
    if (s.kind != step_kind::generic || s.link_count || s.constant) continue;
    const node& x = g.nodes[std::size_t(s.anchor)];
    if (x.op->traits.in_place_of_last_operand)
      arena.take_place(int(i), s.in[std::size_t(x.operand_count - 1)], s.outputs[0].at);
  }
}

}  // namespace cella
