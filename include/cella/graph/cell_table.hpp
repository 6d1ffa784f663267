// Which nodes and paths belong to the members of the cell that is traced.
#pragma once

#include <cella/graph/graph.hpp>

namespace cella {

/// A cell's parameters and sub-cells, found by their addresses.
class cell_table {
 public:
  /// Declares that the object at `key` is node `id` of the main region.
  constexpr void bind(const void* key, node_id id) { leaves_.push_back({key, id}); }
  /// The node bound to `key`, or no_node.
  constexpr node_id find(const void* key) {
    // Parameters are asked for in the order in which they were bound, more or less; comparing
    // addresses is slow in constant evaluation.
    const std::size_t n = leaves_.size();
    for (std::size_t k = 0, i = next_leaf_; k < n; ++k, ++i) {
      if (i >= n) i = 0;
      if (leaves_[i].key != key) continue;
      next_leaf_ = i + 1;
      return leaves_[i].id;
    }
    return no_node;
  }
  /// Whether anything has been bound.
  constexpr bool binds() const { return !leaves_.empty(); }

  /// Declares the path of the cell of a type (by tag, since a cell and its first member share an
  /// address).
  constexpr void declare(const void* key, const void* tag, name_ref path) {
    cells_.push_back({key, tag, path});
  }
  /// The path of a cell; `otherwise` if none was declared.
  constexpr name_ref path_of(const void* key, const void* tag, name_ref otherwise) const {
    for (const cell_entry& c : cells_) {
      if (c.key == key && c.tag == tag) return c.path;
    }
    return otherwise;
  }

 private:
  struct leaf {
    const void* key;
    node_id id;
  };
  struct cell_entry {
    const void* key;
    const void* tag;
    name_ref path;
  };

  list<leaf> leaves_;
  std::size_t next_leaf_ = 0;
  list<cell_entry> cells_;
};

}  // namespace cella
