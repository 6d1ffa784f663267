// A step as the simulator takes it: what the ranks of each stage do with a microbatch, and the
// order in which they do it. It comes from a plan, or is written down by hand.
#pragma once

#include <cella/parallel/pipeline_phases.hpp>

namespace cella::parallel {

/// Some layers: a stage of a pipeline, or one of several chunks of a stage.
struct simulated_stage {
  list<step_item> forward{}, backward{};  ///< of a microbatch
  list<step_item> weights{};              ///< of a microbatch, where the schedule has it apart
  list<step_item> update{};               ///< once
  double forward_bytes{};                 ///< that it receives from the layers before it
  double backward_bytes{};                ///< and from those behind it
  double kept_bytes{};                    ///< of a microbatch between these two passes
  double weights_bytes{};                 ///< and between the backward pass and `weights`
  double parameter_bytes{};               ///< and all else that it always has

  /// What a pass adds to the bytes that are kept.
  constexpr double kept_after(step_phase at) const {
    return at == step_phase::forward    ? kept_bytes
           : at == step_phase::backward ? weights_bytes - kept_bytes
                                        : -weights_bytes;
  }
};
/// What stages do in a phase: `stage.*items_in(phase)`.
constexpr list<step_item> simulated_stage::*items_in(step_phase at) {
  return at == step_phase::forward    ? &simulated_stage::forward
         : at == step_phase::backward ? &simulated_stage::backward
         : at == step_phase::weights  ? &simulated_stage::weights
                                      : &simulated_stage::update;
}

/// A step on all ranks of a mesh. Along `axis` they are stages, whose layers stand in `stages` in
/// their order; all other ranks do the same. With several chunks stage s of p has the layers s,
/// s + p, s + 2 p ..., and takes p microbatches through one chunk after the other: the interleaved
/// schedule of Narayanan et al. 2021.
struct simulated_step {
  device_mesh mesh{};
  int axis = -1;  ///< -1: there is one stage
  pipeline_schedule schedule = pipeline_schedule::one_forward_one_backward;
  int microbatches = 1;
  int chunks = 1;
  list<simulated_stage> stages{};

  constexpr int stage_count() const { return axis < 0 ? 1 : mesh[axis].size; }
};

/// What stage s does in its order.
constexpr list<pipeline_task> tasks_of_stage(const simulated_step& step, int s) {
  return tasks_of_place(step.schedule, s, step.stage_count(), step.chunks, step.microbatches);
}

/// The time in which a rank computes, by the model of costs: what it would take without others.
constexpr double computing_seconds(const simulated_step& step, int rank) {
  const int p = step.stage_count();
  const int own = step.axis < 0 ? 0 : step.mesh.coordinate(rank, step.axis);
  double sum = 0;
  const auto add = [&](const list<step_item>& items, int times) {
    for (const step_item& s : items)
      if (s.kind == item_kind::compute) sum += times * s.seconds;
  };
  for (int c = 0; c < step.chunks; ++c) {
    const simulated_stage& one = step.stages[std::size_t(c * p + own)];
    add(one.forward, step.microbatches);
    add(one.backward, step.microbatches);
    add(one.weights, step.microbatches);
    add(one.update, 1);
  }
  return sum;
}

/// A step of a plan without stages.
constexpr simulated_step step_of(const parallel_plan& p) {
  simulated_step s;
  s.mesh = p.mesh;
  s.stages.push_back({});
  s.stages[0].update = items_of(p.rank.graph, p.mesh);
  s.stages[0].parameter_bytes = p.bytes_on_device;
  return s;
}

/// A step of a pipeline.
constexpr simulated_step step_of(const pipeline_plan& p) {
  simulated_step s;
  s.mesh = p.mesh;
  s.axis = p.axis;
  s.schedule = p.schedule;
  s.microbatches = p.microbatches();
  s.chunks = p.chunks;
  for (const pipeline_stage& one : p.stages)
    s.stages.push_back({.forward_bytes = one.forward_bytes,
                        .backward_bytes = one.backward_bytes,
                        .kept_bytes = one.kept_bytes,
                        .weights_bytes = one.weights_bytes,
                        .parameter_bytes = one.parameter_bytes});
  const graph& g = p.piece.graph;
  for (node_id n : g.regions[0].nodes) {
    const node& x = g.nodes[std::size_t(n)];
    const step_phase at = p.phase[std::size_t(n)];
    if (at == step_phase::anywhere || x.op == &input_info_of || x.op == &get_info_of ||
        detail::joins_pieces(x, p.axis))
      continue;
    const step_item item = detail::item_of(g, n, p.mesh);
    simulated_stage& one = s.stages[std::size_t(p.stage[std::size_t(n)])];
    (one.*items_in(at)).push_back(item);
    if (const step_phase pass = p.again[std::size_t(n)]; is_gradient(pass))
      (one.*items_in(pass)).push_back(item);
  }
  return s;
}

}  // namespace cella::parallel
