// In which format each value of a program is kept.
#pragma once

#include <cella/graph/graph.hpp>
#include <cella/graph/list.hpp>
#include <cella/plan/step_kind.hpp>

namespace cella {

/// What a back end has decided before anything is fused. A value in the program's format is packed
/// where a step wants it so and has it plain.
struct value_formats {
  layout program{};
  list<layout> of_value;  ///< by node

  constexpr explicit value_formats(const graph& g) : of_value(g.nodes.size(), layout::plain) {}
  /// Keeps the values that are marked, by node, in the program's format.
  constexpr void keep(const flags& marked) {
    for (std::size_t n = 0; n < marked.size(); ++n) {
      if (marked[n]) of_value[n] = program;
    }
  }
  constexpr layout of(node_id n) const { return of_value[std::size_t(n)]; }
};

}  // namespace cella
