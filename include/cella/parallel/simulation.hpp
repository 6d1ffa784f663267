// How long a step takes and what memory it needs, on ranks that need not be there: each rank's line
// of work is followed through the step.
#pragma once

#include <cella/parallel/simulated_step.hpp>

namespace cella::parallel {

/// A rank that computes so many times slower.
struct straggler {
  int rank{};
  double factor = 1;
};

struct simulation_options {
  list<straggler> stragglers{};
  /// What one device was measured to take, as a multiple of what the model of costs says.
  double compute_factor = 1;
  int drawn_ranks = 0;  ///< of so many ranks events are kept
};

/// A stretch of time of a rank.
struct step_event {
  int rank{};
  item_kind kind{};
  step_phase phase{};
  int microbatch = -1;
  double begin{}, seconds{};
  std::string_view label{};
};

struct simulation {
  double seconds{};          ///< of the step: of the rank that ends last
  double bytes_on_device{};  ///< of the rank that needs most
  double bubble{};           ///< the share of the step in which a rank waits for other stages
  double exposed_seconds{};  ///< in which a rank does not compute for a collective operation
  list<step_event> events{};
};

/// Predicts a step. A collective operation begins when all its ranks have come, and takes what a
/// ring takes (`cost_of`); messages between stages take their latency and bandwidth. Without
/// stragglers the ranks of a stage are one, so that thousands cost no more than one. Throws `error`
/// if the step has not as many layers as stages and chunks, or no whole groups of microbatches.
constexpr simulation simulate(const simulated_step& step, const simulation_options& o = {});
/// The same of a plan.
constexpr simulation simulate(const parallel_plan& p, const simulation_options& o = {}) {
  return simulate(step_of(p), o);
}
constexpr simulation simulate(const pipeline_plan& p, const simulation_options& o = {}) {
  return simulate(step_of(p), o);
}

// ------------------------------------------------------------------------------------------------

namespace detail {

class step_simulator {
 public:
  constexpr step_simulator(const simulated_step& step, const simulation_options& o)
      : step_(step), o_(o), followed_(step.mesh) {
    for (int a = 0; a < followed_.axis_count && o.stragglers.empty(); ++a)
      if (a != step.axis) followed_.axes[std::size_t(a)].size = 1;
    ranks_.assign(std::size_t(followed_.ranks()), {});
    for (int r = 0; r < followed_.ranks(); ++r) {
      rank& one = ranks_[std::size_t(r)];
      for (const straggler& s : o.stragglers)
        if (s.rank == r) one.factor *= s.factor;
      one.stage = step.axis < 0 ? 0 : followed_.coordinate(r, step.axis);
      for (int a = 0; a < followed_.axis_count; ++a)
        one.number += followed_.coordinate(r, a) * step.mesh.stride(a);
    }
  }

  constexpr simulation run() {
    const int p = step_.stage_count();
    const std::size_t passes = std::size_t(p * step_.chunks * step_.microbatches);
    done_.assign(2 * passes * std::size_t(per_stage()), -1.0);
    list<list<pipeline_task>> order;
    for (int s = 0; s < p; ++s) order.push_back(tasks_of_stage(step_, s));
    list<std::size_t> next(std::size_t(p), std::size_t(0));
    list<stage_memory> memory(std::size_t(p), stage_memory{});
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 0; s < p; ++s) {
        std::size_t& k = next[std::size_t(s)];
        for (; k < order[std::size_t(s)].size() && is_ready(s, order[std::size_t(s)][k]); ++k) {
          const pipeline_task& t = order[std::size_t(s)][k];
          pass(s, t);
          memory[std::size_t(s)].add(layers(s, t.chunk).kept_after(t.pass));
          moved = true;
        }
      }
    }
    for (int s = 0; s < p; ++s)
      for (int c = 0; c < step_.chunks; ++c) {
        run_items(s, layers(s, c).update, step_phase::update, -1);
        memory[std::size_t(s)].always += layers(s, c).parameter_bytes;
      }
    for (const stage_memory& m : memory)
      out_.bytes_on_device = std::max(out_.bytes_on_device, m.always + m.most);
    double waited = 0, exposed = 0;
    for (const rank& r : ranks_) out_.seconds = std::max(out_.seconds, r.now);
    for (const rank& r : ranks_) {
      waited += r.waited + out_.seconds - r.now;
      exposed += r.exposed;
    }
    out_.exposed_seconds = exposed / double(ranks_.size());
    if (out_.seconds > 0) out_.bubble = waited / double(ranks_.size()) / out_.seconds;
    return std::move(out_);
  }

 private:
  struct rank {
    int number{};  ///< on the whole mesh
    int stage{};
    double factor = 1;
    double now{}, waited{}, exposed{};
    sums_under_way sums{};
  };
  struct stage_memory {
    double always{}, now{}, most{};
    constexpr void add(double bytes) {
      now += bytes;
      most = std::max(most, now);
    }
  };

  constexpr const simulated_stage& layers(int stage, int chunk) const {
    return step_.stages[std::size_t(chunk * step_.stage_count() + stage)];
  }
  constexpr int per_stage() const { return followed_.ranks() / step_.stage_count(); }
  /// The rank with number k among those of a stage.
  constexpr int rank_of(int stage, int k) const {
    if (step_.axis < 0) return k;
    const int stride = followed_.stride(step_.axis);
    return k / stride * stride * step_.stage_count() + stage * stride + k % stride;
  }
  /// When rank k of a stage has ended a pass; -1: not yet.
  constexpr double& done(int stage, const pipeline_task& t, int k) {
    const int layer = t.chunk * step_.stage_count() + stage;
    const bool is_backward = t.pass == step_phase::backward;
    const int pass = (layer * step_.microbatches + t.microbatch) * 2 + is_backward;
    return done_[std::size_t(pass * per_stage() + k)];
  }
  /// The pass that a pass needs the result of, and the stage that does it; false: none.
  constexpr bool source(int stage, pipeline_task t, pipeline_task& of, int& from) const {
    const int p = step_.stage_count(), last = p * step_.chunks - 1;
    const int layer = t.chunk * p + stage;
    const bool is_backward = t.pass == step_phase::backward;
    // Gradients of parameters follow the backward pass of their own stage.
    if (t.pass == step_phase::weights || (!is_backward && layer == 0)) return false;
    const bool turns = is_backward && layer == last;
    const int source = turns ? layer : is_backward ? layer + 1 : layer - 1;
    of = {turns ? step_phase::forward : t.pass, t.microbatch, source / p};
    from = source % p;
    return true;
  }
  constexpr bool is_ready(int stage, const pipeline_task& t) {
    pipeline_task of;
    int from = 0;
    return !source(stage, t, of, from) || done(from, of, 0) >= 0;
  }
  constexpr void pass(int stage, const pipeline_task& t) {
    pipeline_task of;
    int from = 0;
    const simulated_stage& own = layers(stage, t.chunk);
    if (source(stage, t, of, from)) {
      const bool is_backward = t.pass == step_phase::backward;
      const double bytes = is_backward ? own.backward_bytes : own.forward_bytes;
      double message = 0;
      if (from != stage && bytes > 0) {
        const mesh_axis& link = step_.mesh[step_.axis];
        message = link.latency + bytes / link.bytes_per_second;
      }
      for (int k = 0; k < per_stage(); ++k) {
        rank& r = ranks_[std::size_t(rank_of(stage, k))];
        const double ready = done(from, of, k) + message;
        if (ready <= r.now) continue;
        draw(r, item_kind::wait, t, ready - r.now, "wait");
        r.waited += ready - r.now;
        r.now = ready;
      }
    }
    run_items(stage, own.*items_in(t.pass), t.pass, t.microbatch);
    if (t.pass == step_phase::weights) return;
    for (int k = 0; k < per_stage(); ++k)
      done(stage, t, k) = ranks_[std::size_t(rank_of(stage, k))].now;
  }

  constexpr void run_items(int stage, const list<step_item>& items, step_phase phase,
                           int microbatch) {
    const pipeline_task t{phase, microbatch, 0};
    phase_ = phase;
    for (const step_item& item : items) {
      if (item.kind == item_kind::move || item.kind == item_kind::start) gather(stage, item);
      for (int k = 0; k < per_stage(); ++k) {
        rank& r = ranks_[std::size_t(rank_of(stage, k))];
        double seconds = 0;
        switch (item.kind) {
          case item_kind::compute:
            seconds = item.seconds * r.factor * o_.compute_factor;
            break;
          case item_kind::start:
            r.sums.start(item, together_[std::size_t(k)]);
            break;
          case item_kind::finish:
            seconds = r.sums.finish(item, r.now) - r.now;
            break;
          default:
            seconds = together_[std::size_t(k)] + item.seconds - r.now;
        }
        if (seconds <= 0) continue;
        draw(r, item.kind, t, seconds, item.label);
        r.now += seconds;
        if (item.kind != item_kind::compute) r.exposed += seconds;
      }
    }
  }
  /// When all ranks have come with which each exchanges along the axis of the item.
  constexpr void gather(int stage, const step_item& item) {
    together_.assign(std::size_t(per_stage()), 0.0);
    const int a = item.mesh_axis;
    const int size = a < 0 ? 1 : followed_[a].size, stride = a < 0 ? 1 : followed_.stride(a);
    latest_.assign(ranks_.size(), 0.0);
    for (int k = 0; k < per_stage(); ++k) {
      const int r = rank_of(stage, k);
      double& latest = latest_[std::size_t(r - r / stride % size * stride)];
      latest = std::max(latest, ranks_[std::size_t(r)].now);
    }
    for (int k = 0; k < per_stage(); ++k) {
      const int r = rank_of(stage, k);
      together_[std::size_t(k)] = latest_[std::size_t(r - r / stride % size * stride)];
    }
  }
  /// Consecutive work of one cell is one event.
  constexpr void draw(const rank& r, item_kind kind, const pipeline_task& t, double seconds,
                      std::string_view label) {
    if (int(&r - &ranks_[0]) >= o_.drawn_ranks) return;
    const step_phase phase = kind == item_kind::wait ? step_phase::anywhere : phase_;
    const std::size_t i = std::size_t(&r - &ranks_[0]);
    if (last_.size() <= i) last_.resize(i + 1, std::size_t(-1));
    if (last_[i] < out_.events.size()) {
      step_event& e = out_.events[last_[i]];
      if (e.kind == kind && kind == item_kind::compute && e.label == label &&
          e.microbatch == t.microbatch && e.phase == phase) {
        e.seconds += seconds;
        return;
      }
    }
    last_[i] = out_.events.size();
    out_.events.push_back({r.number, kind, phase, t.microbatch, r.now, seconds, label});
  }

  const simulated_step& step_;
  const simulation_options& o_;
  device_mesh followed_;  ///< of the ranks that are followed
  list<rank> ranks_;
  list<double> done_;
  list<double> together_, latest_;
  list<std::size_t> last_;  ///< event of each drawn rank
  step_phase phase_{};
  simulation out_;
};

}  // namespace detail

constexpr simulation simulate(const simulated_step& step, const simulation_options& o) {
  const int stages = step.stage_count();
  if (int(step.stages.size()) != stages * step.chunks)
    throw error(text() << "simulate: " << stages << " stages of " << step.chunks
                       << " chunks need as many pieces of the net as both together, not "
                       << step.stages.size());
  if (step.chunks > 1 && splits_backward(step.schedule))
    throw error(text() << "simulate: in the schedule " << schedule_name(step.schedule)
                       << " a stage has one chunk, not " << step.chunks);
  if (step.chunks > 1 && step.microbatches % stages)
    throw error(text() << "simulate: with chunks, " << stages
                       << " stages take as many microbatches at a time, and " << step.microbatches
                       << " is no multiple of that");
  return detail::step_simulator(step, o).run();
}

}  // namespace cella::parallel
