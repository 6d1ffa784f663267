// Loop nests with as few loops as possible.
#pragma once

#include <cella/plan/plan.hpp>

namespace cella {

/// Joins neighbouring loops through which every operand steps evenly, drops those of one turn.
constexpr void collapse_loops(plan_step& t) {
  int n = 0;
  std::array<std::int64_t, max_loops> size{};
  std::array<std::array<std::int64_t, max_loops>, 17> stride{};
  std::array<std::array<std::int64_t, max_loops>, 10> out{};
  unsigned folded = 0;
  for (int d = 0; d < t.loops; ++d) {
    const auto i = std::size_t(d);
    if (t.loop[i] == 1 && !(d == t.loops - 1 && n == 0)) continue;
    const bool fold = t.folded >> d & 1;
    bool join = n > 0 && (folded >> (n - 1) & 1) == unsigned(fold);
    // In the lanes the outermost loop counts blocks of samples, whose fold differs from the rest.
    if (t.arrangement == layout::lanes && t.kind == step_kind::reduce && n == 1) join = false;
    for (int k = 0; join && k < t.read_count; ++k) {
      join = stride[std::size_t(k)][std::size_t(n - 1)] ==
             t.reads[std::size_t(k)].strides[i] * t.loop[i];
    }
    for (int k = 0; join && k < t.output_count; ++k) {
      join = out[std::size_t(k)][std::size_t(n - 1)] ==
             t.outputs[std::size_t(k)].strides[i] * t.loop[i];
    }
    const auto at = std::size_t(join ? n - 1 : n);
    size[at] = join ? size[at] * t.loop[i] : t.loop[i];
    for (int k = 0; k < t.read_count; ++k)
      stride[std::size_t(k)][at] = t.reads[std::size_t(k)].strides[i];
    for (int k = 0; k < t.output_count; ++k)
      out[std::size_t(k)][at] = t.outputs[std::size_t(k)].strides[i];
    if (!join) {
      if (fold) folded |= 1u << n;
      ++n;
    }
  }
  if (t.arrangement == layout::lanes && t.kind == step_kind::reduce && n == 1 && t.loop[0] > 1) {
    // The blocks of samples are never the innermost loop of a sum.
    size[1] = 1;
    folded |= folded << 1;
    n = 2;
  }
  t.loops = n;
  t.loop = size;
  t.folded = folded;
  for (int k = 0; k < t.output_count; ++k) t.outputs[std::size_t(k)].strides = out[std::size_t(k)];
  for (int k = 0; k < t.read_count; ++k) {
    operand_read& l = t.reads[std::size_t(k)];
    l.strides = stride[std::size_t(k)];
    if (l.how == access::moving && t.arrangement == layout::plain) {
      const std::int64_t by = l.strides[std::size_t(n - 1)];
      l.how = by == 0 ? access::fixed : by == 1 ? access::moving : access::strided;
    }
  }
}

}  // namespace cella
