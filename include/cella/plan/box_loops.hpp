// A box of elements that is moved from one tensor into another, as loops.
#pragma once

#include <array>
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

/// The same as loops, outermost first; axes that move together are one loop.
struct box_loops {
  node_id from = no_node;
  int loops{};
  bool fits = true;  ///< there are no more loops than a step has
  std::array<std::int64_t, max_loops> size{};
  std::int64_t first_read{}, first_written{};
  std::array<std::int64_t, max_loops> read{}, written{};  ///< elements to step

  constexpr box_loops() = default;
  /// `whole`: the shape of the tensor that the box is a part of.
  constexpr box_loops(const moved_box& b, const shape& whole) : from(b.from), first_read(b.origin) {
    const auto to = row_major_strides(whole);
    for (int d = 0; d < whole.rank; ++d) {
      const auto k = std::size_t(d);
      first_written += b.start[k] * to[k];
      if (b.extent[d] > 1) add(b.extent[d], b.step[k], to[k]);
    }
    if (loops == 0) add(1, 0, 0);
  }

 private:
  constexpr void add(int extent, std::int64_t reads, std::int64_t writes) {
    if (loops > 0) {
      const auto last = std::size_t(loops - 1);
      if (read[last] == extent * reads && written[last] == extent * writes) {
        size[last] *= extent;
        read[last] = reads;
        written[last] = writes;
        return;
      }
    }
    fits = fits && loops < max_loops;
    if (!fits) return;
    const auto next = std::size_t(loops++);
    size[next] = extent;
    read[next] = reads;
    written[next] = writes;
  }
};

}  // namespace cella
