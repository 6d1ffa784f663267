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
/// The schedule of this name. Throws `error`, which lists them, if there is none.
inline pipeline_schedule schedule_called(std::string_view name) {
  for (auto s : {pipeline_schedule::gpipe, pipeline_schedule::one_forward_one_backward})
    if (schedule_name(s) == name) return s;
  throw error(text() << "schedule " << name << ": there are gpipe and 1f1b");
}

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
  exchange,  ///< once: numbers that updates of other stages need, such as norms of gradients
  update     ///< once: it needs a sum over microbatches, or is one
};
inline constexpr int step_phases = 5;

/// A value that one stage makes and others, or later phases, read.
struct pipeline_value {
  node_id n{};
  step_phase made{};
  int stage{};  ///< that makes it
  /// Of each stage: in which phases it reads it; `anywhere` stands for results of a step.
  list<std::array<bool, step_phases>> read{};
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
  int axis{};      ///< of the mesh, along which the stages are
  int chunks = 1;  ///< how many of them a rank has: one, and each that comes a round later
  pipeline_schedule schedule{};
  device_mesh pieces;        ///< the mesh with microbatches in the place of stages
  assignment choices;        ///< for the whole graph on `pieces`
  partitioned piece;         ///< what is to be done with a microbatch, and the update
  list<step_phase> phase{};  ///< of each node of `piece`
  list<int> cut{};           ///< how many operations of the forward pass each stage has
  list<int> stage{};         ///< of each node of `piece`
  flags again{};             ///< of each node: the backward pass computes it, too
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
        sum += one.parameter_bytes + one.kept_bytes * one.kept;
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

/// One pass of a microbatch through a stage, by which of the rank's stages it is.
struct pipeline_task {
  bool backward{};
  int microbatch{};
  int chunk{};
  friend constexpr bool operator==(const pipeline_task&, const pipeline_task&) = default;
};
/// What a rank does in its order, which stands at `place` of so many along the axis.
constexpr list<pipeline_task> tasks_of_place(pipeline_schedule schedule, int place, int places,
                                             int chunks, int microbatches) {
  list<pipeline_task> tasks;
  const int p = places, v = chunks, all = microbatches * v;
  if (v == 1) {
    for (int task : schedule_of_stage(schedule, place, p, microbatches))
      tasks.push_back({task < 0, (task < 0 ? -task : task) - 1, 0});
    return tasks;
  }
  const auto nth = [&](int k, bool backward) -> pipeline_task {
    const int chunk = k % (p * v) / p;
    return {backward, k / (p * v) * p + k % p, backward ? v - 1 - chunk : chunk};
  };
  const bool gpipe = schedule == pipeline_schedule::gpipe;
  const int ahead = gpipe ? all : std::min((p - place - 1) * 2 + (v - 1) * p, all);
  int forward = 0;
  for (; forward < ahead; ++forward) tasks.push_back(nth(forward, false));
  for (int backward = 0; backward < all; ++backward) {
    if (forward < all) tasks.push_back(nth(forward++, false));
    tasks.push_back(nth(backward, true));
  }
  return tasks;
}
/// How many microbatches a stage has at most between their passes, if the rank does these tasks.
constexpr int most_between(const list<pipeline_task>& tasks, int chunk) {
  int now = 0, most = 0;
  for (const pipeline_task& t : tasks) {
    if (t.chunk != chunk) continue;
    now += t.backward ? -1 : 1;
    most = std::max(most, now);
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
