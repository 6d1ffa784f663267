// A box of elements that is moved from one tensor into another.
#pragma once

#include <cella/ops/strided.hpp>
#include <cella/plan/step.hpp>

namespace cella {

/// Elements `start + i` of a tensor, i < extent along each axis: what value `from` has at element
/// `origin + sum_d step[d] i[d]`; zeros if there is no such value.
struct moved_box {
  node_id from = no_node;
  std::int64_t origin{};
  shape extent{};
  stride_list start{}, step{};
};

/// The same as loops.
struct box_loops {
  node_id from = no_node;
  std::int64_t first_read{}, first_written{};
  detail::movement loops;

  constexpr box_loops() = default;
  /// `whole`: the shape of the tensor that the box is a part of.
  constexpr box_loops(const moved_box& b, const shape& whole) : from(b.from), first_read(b.origin) {
    const auto to = row_major_strides(whole);
    loops = detail::movement_of(b.extent, b.step, to);
    for (std::size_t d = 0; d < std::size_t(whole.rank); ++d) first_written += b.start[d] * to[d];
  }
  /// Whether a step has as many loops.
  constexpr bool fits() const { return loops.rank <= max_loops; }
};

}  // namespace cella
