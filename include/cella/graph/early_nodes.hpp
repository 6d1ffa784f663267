// Nodes that belong in front of a region that has been filled.
#pragma once

#include <cella/graph/graph.hpp>

namespace cella {

/// Nodes without operands that will stand in front of their regions, so that a node that is
/// overwritten can use them. They are moved at the end, since sweeps go by positions meanwhile.
class early_nodes {
 public:
  constexpr void add(node_id n) { nodes_.push_back(n); }

  /// Moves those of region `r` to its front, in the order in which they were added.
  constexpr void settle(graph& g, int r) {
    ids order;
    ids elsewhere;
    for (node_id n : nodes_) (g.nodes[std::size_t(n)].region == r ? order : elsewhere).push_back(n);
    if (order.empty()) return;
    flags moved(g.regions[std::size_t(r)].nodes.size(), 0);
    for (node_id n : order) moved[std::size_t(g.nodes[std::size_t(n)].position)] = 1;
    for (std::size_t i = 0; i < moved.size(); ++i) {
      if (!moved[i]) order.push_back(g.regions[std::size_t(r)].nodes[i]);
    }
    g.reorder(r, order);
    nodes_ = elsewhere;
  }

 private:
  ids nodes_;
};

}  // namespace cella
