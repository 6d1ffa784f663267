// How attention walks its operands and results, which may be parts of larger tensors.
#pragma once

#include <cella/ops/slicing.hpp>

namespace cella {

/// How a kernel walks a tensor of heads: elements from the start of the value, and between
/// neighbouring samples, heads and places. The last factor is contiguous.
struct heads_walk {
  node_id value = no_node;  ///< the node whose memory is walked: behind slices and reshapes
  std::int64_t offset{}, batch{}, head{}, place{};

  /// How many samples, heads, places and contiguous elements the walk visits.
  struct extents {
    int batch, heads, places, width;
  };
  /// From the strides of a slice along the last axis, `part`, to those of the whole; false if the
  /// whole cannot be walked so.
  constexpr bool widen(const shape& whole, const shape& part, const slice_op::options& o,
                       const extents& e) {
    const int last = whole.rank - 1;
    for (int d = 0; d <= last; ++d) {
      if (o.step[std::size_t(d)] != 1 || (d < last && whole[d] != part[d])) return false;
    }
    auto map = [&](std::int64_t& stride, std::int64_t count) {
      if (stride % part[last] == 0)
        stride = stride / part[last] * whole[last];
      else
        return stride * (count - 1) + e.width <= part[last];
      return true;
    };
    offset = o.start[std::size_t(last)];
    return map(batch, e.batch) && map(head, e.heads) && map(place, e.places);
  }
};

}  // namespace cella
