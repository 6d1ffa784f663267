// Results that lie where an operand lay that nobody reads any more.
#pragma once

#include <cella/plan/arena.hpp>

namespace cella {

/// Gives results of steps the places of operands of which they are the last readers, where a step
/// reads each element before it writes the one in its place: less memory, and less of it that goes
/// through the caches. Of elementwise steps with one result, and of operations that say that they
/// may (`in_place_of_last_operand`).
constexpr void compute_in_place(const graph& g, const growing_plan& p, arena_buffers& arena);

// ------------------------------------------------------------------------------------------------

namespace detail {

/// Whether a loop nest reads each element where it writes one: its results are dense.
constexpr bool reads_where_it_writes(const plan_step& s, const operand_read& r) {
  if (r.how == access::same) return true;
  if (r.how != access::moving || r.factor >= 0 || r.first != 0) return false;
  std::int64_t stride = 1;
  for (std::size_t d = std::size_t(s.loops); d-- > 0; stride *= s.loop[d])
    if (r.strides[d] != stride) return false;
  return true;
}

/// Whether step `s` uses the memory that it reads as `r` for nothing else.
constexpr bool is_read_alone(const plan_step& s, const operand_read& r,
                             const arena_buffers& arena) {
  for (const buffer_ref& in : s.in)
    if (arena.share(in, r.at)) return false;
  for (int k = 0; k < s.read_count; ++k) {
    const operand_read& other = s.reads[std::size_t(k)];
    const bool same = other.at == r.at && reads_where_it_writes(s, other);
    if (!same && arena.share(other.at, r.at)) return false;
  }
  return true;
}

}  // namespace detail

constexpr void compute_in_place(const graph& g, const growing_plan& p, arena_buffers& arena) {
  for (std::size_t i = 0; i < p.steps.size(); ++i) {
    const plan_step& s = p.steps[i];
    const step_output& out = s.outputs[0];
    if (s.output_count != 1 || s.side >= 0 || s.carried || s.constant || out.part) continue;
    if (s.kind == step_kind::elementwise) {
      for (int k = 0; k < s.read_count; ++k) {
        const operand_read& r = s.reads[std::size_t(k)];
        if (detail::reads_where_it_writes(s, r) && detail::is_read_alone(s, r, arena))
          arena.take_place(int(i), r.at, out.at);
      }
    } else if (s.kind == step_kind::generic && s.link_count == 0) {
      const node& x = g.nodes[std::size_t(s.anchor)];
      if (x.op->traits.in_place_of_last_operand)
        arena.take_place(int(i), s.in[std::size_t(x.operand_count - 1)], out.at);
    }
  }
}

}  // namespace cella
