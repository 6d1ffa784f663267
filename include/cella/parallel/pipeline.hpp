// A training step as a pipeline: the ranks along one axis of the mesh have some of the layers each,
// and the batch goes through them in microbatches.
#pragma once

#include <cella/parallel/plan.hpp>

namespace cella::parallel {

enum class pipeline_schedule : std::uint8_t {
  gpipe,                     ///< all microbatches forward, then all backward.  Huang et al. 2019
  one_forward_one_backward,  ///< backward as early as possible, so that fewer activations are
                             ///< kept.  Narayanan et al. 2019 (1F1B)
  zero_bubble  ///< 1F1B with the backward pass in two: first what stages before this one wait for;
               ///< gradients of parameters fill the time in which it would wait, and as many
               ///< microbatches are kept as the first stage of 1F1B has.  Qi et al. 2023 (ZB-H1)
};
inline constexpr int pipeline_schedules = 3;
constexpr std::string_view schedule_name(pipeline_schedule s) {
  constexpr std::array<std::string_view, pipeline_schedules> names{"gpipe", "1f1b", "zero-bubble"};
  return names[std::size_t(s)];
}
/// The schedule of this name. Throws `error`, which lists them, if there is none.
inline pipeline_schedule schedule_called(std::string_view name) {
  for (int s = 0; s < pipeline_schedules; ++s)
    if (schedule_name(pipeline_schedule(s)) == name) return pipeline_schedule(s);
  throw error(text() << "schedule " << name << ": there are gpipe, 1f1b and zero-bubble");
}
/// Whether gradients of parameters are a pass of their own (`step_phase::weights`).
constexpr bool splits_backward(pipeline_schedule s) { return s == pipeline_schedule::zero_bubble; }

struct pipeline_options {
  /// Of the mesh, along which the stages are; empty: `pipe`, else `model`, else the last one.
  std::string_view axis{};
  /// Into which the batch of a rank is divided; 0: as many as divide it, at most two for each
  /// stage, or 1 where something in the net needs all samples at once.
  int microbatches = 0;
  pipeline_schedule schedule = pipeline_schedule::one_forward_one_backward;
  /// How many stages each rank has: with several (the interleaved schedule) it waits for less of
  /// the step, and sends more. Then microbatches are a multiple of the ranks.  Narayanan et al.
  /// 2021
  int chunks = 1;
};

/// When in a step a node is computed.
enum class step_phase : std::uint8_t {
  anywhere,  ///< where it is needed: it depends on what all ranks have, or takes next to nothing
  forward,   ///< for each microbatch
  backward,  ///< for each microbatch: updates alone need it
  weights,   ///< for each microbatch: of the backward pass, what no other stage waits for, where
             ///< the schedule has it apart
  exchange,  ///< once: numbers that updates of other stages need, such as norms of gradients
  update     ///< once: it needs a sum over microbatches, or is one
};
inline constexpr int step_phases = 6;
constexpr bool is_gradient(step_phase s) {
  return s == step_phase::backward || s == step_phase::weights;
}
constexpr bool is_of_microbatch(step_phase s) { return s == step_phase::forward || is_gradient(s); }

/// A value that one stage makes and others, or later phases, read.
struct pipeline_value {
  node_id n{};
  step_phase made{};
  int stage{};  ///< that makes it
  /// Of each stage: in which phases it reads it; `anywhere` stands for results of a step.
  list<std::array<bool, step_phases>> read{};

  constexpr bool is_read(int s, step_phase when) const {
    return read[std::size_t(s)][std::size_t(when)];
  }
  /// The last pass of a microbatch in which a stage reads it; `anywhere`: none.
  constexpr step_phase last_pass(int s) const {
    for (step_phase pass : {step_phase::weights, step_phase::backward, step_phase::forward})
      if (is_read(s, pass)) return pass;
    return step_phase::anywhere;
  }
};

/// What a stage has to do, by the model of costs.
struct pipeline_stage {
  double forward_seconds{}, backward_seconds{}, weights_seconds{};  ///< of a microbatch
  double update_seconds{};
  double forward_bytes{}, backward_bytes{};  ///< that it receives for a microbatch
  double kept_bytes{};       ///< of a microbatch, between its forward and its backward pass
  double weights_bytes{};    ///< between that and the gradients of parameters, if they are apart
  int kept{};                ///< microbatches at most between their first and their last pass
  double most_kept_bytes{};  ///< of all microbatches at most
  double parameter_bytes{};  ///< with the optimizer's state, and sums of gradients
};

/// A step divided into stages.
struct pipeline_plan {
  device_mesh mesh;
  int axis{};      ///< of the mesh, along which the stages are
  int chunks = 1;  ///< how many of them a rank has: one, and each that comes a round later
  pipeline_schedule schedule{};
  device_mesh pieces;        ///< the mesh with microbatches in the place of stages
  assignment choices;        ///< for the whole graph on `pieces`
  partitioned piece;         ///< what is to be done with a microbatch, and the update
  list<step_phase> phase{};  ///< of each node of `piece`
  list<int> cut{};           ///< how many operations of the forward pass each stage has
  list<int> stage{};         ///< of each node of `piece`
  list<step_phase> again{};  ///< of each node the pass that computes it, too; `anywhere`: none
  list<int> owner{};         ///< of each input the stage that has it; -1: all
  list<pipeline_value> values{};
  list<pipeline_stage> stages{};
  bool needs_whole_batch{};  ///< why there is one microbatch
  double seconds{};          ///< of a step, by the model
  double bubble{};           ///< the share of it in which a stage waits, on average
  text fault{};

  constexpr int microbatches() const { return pieces[axis].size; }
  constexpr int stage_count() const { return chunks * mesh[axis].size; }
  /// Where along the axis a stage is.
  constexpr int place_of(int s) const { return s % mesh[axis].size; }
  /// Of the rank that needs most, by the model.
  constexpr double bytes_on_device() const {
    double most = 0;
    for (int place = 0; place < mesh[axis].size; ++place) {
      double sum = 0;
      for (int s = place; s < int(stages.size()); s += mesh[axis].size) {
        const pipeline_stage& one = stages[std::size_t(s)];
        sum += one.parameter_bytes + one.most_kept_bytes;
      }
      most = std::max(most, sum);
    }
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

/// One pass of a microbatch through a stage, by which of the rank's stages it is.
struct pipeline_task {
  step_phase pass{};
  int microbatch{};
  int chunk{};
  friend constexpr bool operator==(const pipeline_task&, const pipeline_task&) = default;
};
/// What a rank does in its order, which stands at `place` of so many along the axis.
constexpr list<pipeline_task> tasks_of_place(pipeline_schedule schedule, int place, int places,
                                             int chunks, int microbatches) {
  list<pipeline_task> tasks;
  const bool gpipe = schedule == pipeline_schedule::gpipe;
  const int p = places, v = chunks, all = microbatches * v;
  if (v == 1) {
    const int ahead = gpipe ? all : std::min(all, p - place);
    const int splits = splits_backward(schedule) ? all : 0;
    int forward = 0, backward = 0, weights = 0;
    while (backward < all || weights < splits) {
      // A stage owes as many gradients of parameters as stages are before it: so many passes it
      // would wait for at the end.
      if (weights < splits && (backward - weights > place || backward == all))
        tasks.push_back({step_phase::weights, weights++, 0});
      else if (forward < all && forward - backward < ahead)
        tasks.push_back({step_phase::forward, forward++, 0});
      else
        tasks.push_back({step_phase::backward, backward++, 0});
    }
    return tasks;
  }
  const auto nth = [&](int k, step_phase pass) -> pipeline_task {
    const int chunk = k % (p * v) / p;
    return {pass, k / (p * v) * p + k % p, pass == step_phase::backward ? v - 1 - chunk : chunk};
  };
  const int ahead = gpipe ? all : std::min((p - place - 1) * 2 + (v - 1) * p, all);
  int forward = 0;
  for (; forward < ahead; ++forward) tasks.push_back(nth(forward, step_phase::forward));
  for (int backward = 0; backward < all; ++backward) {
    if (forward < all) tasks.push_back(nth(forward++, step_phase::forward));
    tasks.push_back(nth(backward, step_phase::backward));
  }
  return tasks;
}
/// How many microbatches a stage has at most between two of their passes, if the rank does these
/// tasks.
constexpr int most_between(const list<pipeline_task>& tasks, int chunk, step_phase from,
                           step_phase to) {
  int now = 0, most = 0;
  for (const pipeline_task& t : tasks) {
    if (t.chunk != chunk) continue;
    if (t.pass == from) most = std::max(most, ++now);
    if (t.pass == to) --now;
  }
  return most;
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
