// Nodes that a trace asks for again and again, such as the numbers of a step that every parameter's
// update reads: made once, so that no pass has to find out that they are equal.
#pragma once

#include <cella/graph/graph.hpp>

namespace cella {

/// Ids of nodes by what they are. A node serves the region that it was made in.
class shared_nodes {
 public:
  /// `what`, which outlives the trace, with the numbers that it depends on.
  struct key {
    std::string_view what{};
    double option{}, rate = 1, batches = 1;
    int region{};
    node_id left_out = no_node;

    bool operator==(const key&) const = default;
  };

  /// no_node: it was not made yet.
  constexpr node_id find(const key& k) const {
    for (const entry& e : made_) {
      // Numbers first: they tell most apart.
      if (e.by.option == k.option && e.by == k) return e.id;
    }
    return no_node;
  }
  constexpr node_id add(const key& k, node_id id) {
    made_.push_back({k, id});
    return id;
  }
  /// For what traces a function again: each run makes its own.
  constexpr void forget() { made_.clear(); }

 private:
  struct entry {
    key by{};
    node_id id{};
  };
  list<entry> made_;
};

}  // namespace cella
