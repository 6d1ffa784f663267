// Which slots the optimizers of a step keep for each parameter.
#pragma once

#include <cella/graph/graph.hpp>

namespace cella {

/// The slots of optimizers by parameter, both by the numbers of their inputs.
class slots_by_parameter {
 public:
  /// The slot of a parameter that has this name; -1: none has.
  constexpr std::int32_t find(const graph& g, std::int32_t parameter, std::string_view name) const {
    if (std::size_t(parameter) >= newest_.size()) return -1;
    for (std::int32_t l = newest_[std::size_t(parameter)]; l >= 0;) {
      const link& x = links_[std::size_t(l)];
      if (g.view(g.inputs[std::size_t(x.slot)].name) == name) return x.slot;
      l = x.before;
    }
    return -1;
  }
  constexpr void add(std::int32_t parameter, std::int32_t slot) {
    while (std::size_t(parameter) >= newest_.size()) newest_.push_back(-1);
    std::int32_t& newest = newest_[std::size_t(parameter)];
    links_.push_back({slot, newest});
    newest = std::int32_t(links_.size()) - 1;
  }

 private:
  struct link {
    std::int32_t slot{}, before{};
  };
  list<std::int32_t> newest_;  ///< in `links_`, of each parameter
  list<link> links_;
};

}  // namespace cella
