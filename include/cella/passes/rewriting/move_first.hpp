// The order of the main region's nodes.
#pragma once

#include <cella/graph/graph.hpp>

namespace cella {

/// Moves the nodes that are `wanted` to the front of the main region, behind the inputs; otherwise
/// the order stays. They may follow from inputs and each other only.
constexpr void move_first(graph& g, const flags& wanted) {
  const region& r = g.regions[0];
  ids order;
  for (int turn = 0; turn < 3; ++turn) {
    for (node_id n : r.nodes) {
      const bool input = g.nodes[std::size_t(n)].op == &input_info_of;
      if (turn == (input ? 0 : wanted[std::size_t(n)] ? 1 : 2)) order.push_back(n);
    }
  }
  g.reorder(0, order);
}

}  // namespace cella
