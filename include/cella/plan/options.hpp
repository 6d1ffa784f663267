// What a plan is made for, besides a target, and where the inputs of a graph lie.
#pragma once

#include <cella/graph/graph.hpp>
#include <cella/graph/list.hpp>
#include <cella/plan/memory.hpp>
#include <initializer_list>

namespace cella {

struct plan_options {
  dtype element = dtype::f32;
  /// Results are written to the spaces behind those of the arguments, one for each, instead of into
  /// the arena.
  bool results_bound{};
  /// The plan of a region, which the kernel of a control node runs: nothing is prepared before.
  bool region{};
  /// Inputs from this index on keep their values from call to call: the constants of a loop.
  int first_constant = no_constants;
  /// Each input has a space of its own, the first behind `first_argument`, whatever its role.
  bool inputs_apart{};
  /// An algorithm that the back end uses wherever it can, by a number of its own; -1: it chooses.
  int algorithm = -1;

  static constexpr int no_constants = 1 << 30;
  /// Whether what follows from constants alone can be made before the steps run.
  constexpr bool is_prepared() const { return !region || first_constant != no_constants; }
};

/// Byte offsets of inputs of some roles in the memory that they share, in the order of the graph's
/// inputs; other inputs get -1. `total` is the size.
struct input_offsets {
  list<std::int64_t> offset;
  std::int64_t total{};
};
template <class Graph>
constexpr input_offsets offsets_of(const Graph& g, std::initializer_list<input_role> roles) {
  input_offsets r;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    bool wanted = false;
    for (input_role role : roles) wanted |= g.inputs[i].role == role;
    r.offset.push_back(wanted ? r.total : -1);
    if (wanted) r.total += align_up(g.type(g.input(int(i))).bytes());
  }
  return r;
}

}  // namespace cella
