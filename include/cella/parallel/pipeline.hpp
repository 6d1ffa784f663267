// A training step as a pipeline: the ranks along one axis of the mesh have some of the layers each,
// and the batch goes through them in microbatches.
#pragma once

#include <cella/parallel/plan.hpp>

namespace cella::parallel {

enum class pipeline_schedule : std::uint8_t {
  gpipe,                    ///< all microbatches forward, then all backward.  Huang et al. 2019
  one_forward_one_backward  ///< backward as early as possible, so that fewer activations are kept.
                            ///< Narayanan et al. 2019 (1F1B)
};
constexpr std::string_view schedule_name(pipeline_schedule s) {
  return s == pipeline_schedule::gpipe ? "gpipe" : "1f1b";
}

struct pipeline_options {
  /// Of the mesh, along which the stages are; empty: `pipe`, else `model`, else the last one.
  std::string_view axis{};
  /// Into which the batch of a rank is divided; 0: as many as divide it, at most two for each
  /// stage, or 1 where something in the net needs all samples at once.
  int microbatches = 0;
  pipeline_schedule schedule = pipeline_schedule::one_forward_one_backward;
};

/// When in a step a node is computed.
enum class step_phase : std::uint8_t {
  anywhere,  ///< where it is needed: it depends on what all ranks have, or takes next to nothing
  forward,   ///< for each microbatch
  backward,  ///< for each microbatch: updates alone need it
  update     ///< once: it needs a sum over microbatches, or is one
};

/// A value that one stage makes and others, or later phases, read.
struct pipeline_value {
  node_id n{};
  step_phase made{};
  int stage{};  ///< that makes it
  /// Of each stage: in which phases it reads it; `anywhere` stands for results of a step.
  list<std::array<bool, 4>> read{};
};

/// What a stage has to do, by the model of costs.
struct pipeline_stage {
  double forward_seconds{}, backward_seconds{};  ///< of a microbatch
  double update_seconds{};
  double forward_bytes{}, backward_bytes{};  ///< that it receives for a microbatch
  double kept_bytes{};       ///< of a microbatch, between its forward and its backward pass
  int kept{};                ///< microbatches at most between their passes
  double parameter_bytes{};  ///< with the optimizer's state, and sums of gradients
};

/// A step divided into stages.
struct pipeline_plan {
  device_mesh mesh;
  int axis{};  ///< of the mesh, along which the stages are
  pipeline_schedule schedule{};
  device_mesh pieces;        ///< the mesh with microbatches in the place of stages
  assignment choices;        ///< for the whole graph on `pieces`
  partitioned piece;         ///< what is to be done with a microbatch, and the update
  list<step_phase> phase{};  ///< of each node of `piece`
  list<int> stage{};         ///< likewise
  flags again{};             ///< of each node: the backward pass computes it, too
  list<int> owner{};         ///< of each input the stage that has it; -1: all
  list<pipeline_value> values{};
  list<pipeline_stage> stages{};
  bool needs_whole_batch{};  ///< why there is one microbatch
  double seconds{};          ///< of a step, by the model
  double bubble{};           ///< the share of it in which a stage waits, on average
  text fault{};

  constexpr int microbatches() const { return pieces[axis].size; }
  /// Of the stage that needs most, by the model.
  constexpr double bytes_on_device() const {
    double most = 0;
    for (const pipeline_stage& s : stages)
      most = std::max(most, s.parameter_bytes + s.kept_bytes * s.kept);
    return most;
  }
  /// The place of a rank's microbatch `k` on the mesh `pieces`.
  constexpr int rank_of_piece(int rank, int k) const {
    int r = 0;
    for (int a = 0; a < mesh.axis_count; ++a)
      r += (a == axis ? k : mesh.coordinate(rank, a)) * pieces.stride(a);
    return r;
  }
};

/// How many microbatches a stage has at most between their forward and their backward pass.
constexpr int microbatches_between(pipeline_schedule s, int stage, int stages, int microbatches) {
  return s == pipeline_schedule::gpipe ? microbatches : std::min(microbatches, stages - stage);
}
/// The microbatches in the order in which a stage computes them: k + 1 forward, -(k + 1) backward.
constexpr list<int> schedule_of_stage(pipeline_schedule s, int stage, int stages,
                                      int microbatches) {
  list<int> order;
  const int ahead = microbatches_between(s, stage, stages, microbatches);
  int forward = 0, backward = 0;
  while (backward < microbatches) {
    if (forward < microbatches && forward - backward < ahead)
      order.push_back(++forward);
    else
      order.push_back(-++backward);
  }
  return order;
}

namespace detail {

/// Sums over microbatches come before those over ranks, which then are made once in a step.
inline void sum_microbatches_first(graph& g, int axis) {
  list<int> readers(g.nodes.size(), 0);
  for (node_id n : g.regions[0].nodes)
    for (node_id o : g.operands(n)) ++readers[std::size_t(o)];
  for (node_id n : g.regions[0].outputs) ++readers[std::size_t(n)];
  for (node_id n : g.regions[0].nodes) {
    node& x = g.nodes[std::size_t(n)];
    if (!is<all_reduce_op>(x) || x.attributes.as<collective_options>().mesh_axis != axis) continue;
    node& before = g.nodes[std::size_t(g.operand(n, 0))];
    if (is<all_reduce_op>(before) && readers[std::size_t(g.operand(n, 0))] == 1)
      std::swap(x.attributes, before.attributes);
  }
}

}  // namespace detail

/// What a rank computes for a microbatch of the graph that the plan was made for. Its nodes are
/// those of `p.piece`, with the extents of the rank's own samples.
inline partitioned piece_of(const pipeline_plan& p, const graph& g, int rank) {
  partitioned part = partition(g, p.pieces, p.choices, p.rank_of_piece(rank, 0));
  if (!part.fault.empty()) return part;
  detail::sum_microbatches_first(part.graph, p.axis);
  part.graph = live_part(std::move(part.graph));
  return part;
}

}  // namespace cella::parallel
