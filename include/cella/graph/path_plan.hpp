// How a function with native branches on tensor values is run once per path.
#pragma once

#include <cella/graph/graph.hpp>

namespace cella {

/// The run of one path: what decisions to take, and those that were taken. Decisions beyond the
/// planned ones are taken to hold.
struct path_plan {
  /// What follows a decision goes into a region of its own.
  struct decision {
    node_id condition = no_node;
    bool taken{};
    int region{};            ///< what follows
    node_id first_behind{};  ///< nodes from here on are made behind the decision
  };
  /// Decisions on one path, and paths through one function.
  static constexpr int max_paths = 64;

  flags planned;
  list<decision> made;
};

}  // namespace cella
