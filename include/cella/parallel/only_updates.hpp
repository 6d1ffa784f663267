// Which nodes of a training step belong to its updates alone.
#pragma once

#include <cella/graph/graph.hpp>

namespace cella::parallel {

/// For each node of the main region whether all that follows from it are new values of inputs: it
/// belongs to the update, not to the results.
constexpr flags only_updates(const graph& g) {
  flags updates(g.nodes.size(), 1);
  const region& main = g.regions[0];
  for (std::size_t k = 0; k < g.outputs.size(); ++k)
    if (g.outputs[k].updates < 0) updates[std::size_t(main.outputs[k])] = 0;
  for (std::size_t i = main.nodes.size(); i-- > 0;)
    for (node_id o : g.operands(main.nodes[i]))
      updates[std::size_t(o)] &= updates[std::size_t(main.nodes[i])];
  return updates;
}

}  // namespace cella::parallel
