// Which inputs the optimizers of a step have asked for.
#pragma once

#include <cella/graph/graph.hpp>

namespace cella {

/// Slots by parameter and numbers of the step by name; all by their place among the inputs.
class optimizer_inputs {
 public:
  static constexpr std::int32_t none = -1;

  /// The slot of a parameter that has this name.
  constexpr std::int32_t find_slot(const graph& g, std::int32_t parameter,
                                   std::string_view name) const {
    if (std::size_t(parameter) >= newest_.size()) return none;
    for (std::int32_t l = newest_[std::size_t(parameter)]; l >= 0;) {
      const link& x = links_[std::size_t(l)];
      if (g.view(g.inputs[std::size_t(x.slot)].name) == name) return x.slot;
      l = x.before;
    }
    return none;
  }
  constexpr void add_slot(std::int32_t parameter, std::int32_t slot) {
    while (std::size_t(parameter) >= newest_.size()) newest_.push_back(-1);
    std::int32_t& newest = newest_[std::size_t(parameter)];
    links_.push_back({slot, newest});
    newest = std::int32_t(links_.size()) - 1;
  }

  /// The number of this name, whoever made it.
  constexpr std::int32_t find_scalar(const graph& g, std::string_view name) {
    for (std::int32_t i : scalars_) {
      if (g.view(g.inputs[std::size_t(i)].name) == name) return i;
    }
    for (std::int32_t i = std::int32_t(g.inputs.size()); i-- > 0;) {
      const input_info& in = g.inputs[std::size_t(i)];
      if (in.role == input_role::scalar && g.view(in.name) == name) return add_scalar(i);
    }
    return none;
  }
  constexpr std::int32_t add_scalar(std::int32_t input) {
    scalars_.push_back(input);
    return input;
  }

 private:
  struct link {
    std::int32_t slot{}, before{};
  };
  list<std::int32_t> newest_;  ///< in `links_`, of each parameter
  list<link> links_;
  list<std::int32_t> scalars_;  ///< that were asked for
};

}  // namespace cella
