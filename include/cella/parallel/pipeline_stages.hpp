// Where a pipeline is cut: the stages of forward nodes, and what follows for all others.
#pragma once

#include <cella/parallel/pipeline_phases.hpp>

namespace cella::parallel::detail {

/// Divides the forward nodes, in their order, into stages, so that the slowest one takes least time
/// and, of almost equal ways, fewest bytes go from stage to stage. A gradient is computed where it
/// arrives, or further back where what it needs is; a parameter and the optimizer's state of it lie
/// where it is updated.
class stage_finder {
 public:
  /// `p` has pieces, its graph and phases.
  explicit stage_finder(pipeline_plan& p)
      : p_(p), g_(p.piece.graph), index_(input_indices(g_)), updates_(only_updates(g_)) {}

  void run() {
    for (node_id n : g_.regions[0].nodes)
      if (phase(n) == step_phase::forward && g_.nodes[std::size_t(n)].op != &get_info_of)
        forward_.push_back(n);
    const int stages = p_.stage_count();
    if (int(forward_.size()) < stages) {
      p_.fault = text() << stages << " stages, but " << int(forward_.size())
                        << " operations; take fewer ranks along " << p_.mesh[p_.axis].name.view();
      return;
    }
    p_.stage.assign(g_.nodes.size(), 0);
    if (p_.cut.empty()) {
      // As if each node were a stage: so it is known what the backward pass adds to it.
      for (std::size_t i = 0; i < forward_.size(); ++i) stage(forward_[i]) = int(i);
      place_others(int(forward_.size()));
      p_.cut = cut_forward(stages);
    } else if (!is_cut_of_forward()) {
      p_.fault = text() << "the cut into stages is that of another graph: this one has "
                        << int(forward_.size()) << " operations of the forward pass and " << stages
                        << " stages, each of which has one or more";
      return;
    }
    std::size_t next = 0;
    for (std::size_t s = 0; s < p_.cut.size(); ++s)
      for (int k = 0; k < p_.cut[s] && next < forward_.size(); ++k)
        stage(forward_[next++]) = int(s);
    place_others(stages);
  }
  /// The time of a node, of which the sums over microbatches take none.
  double seconds_of(node_id n) const {
    const node& x = g_.nodes[std::size_t(n)];
    if (joins_pieces(x, p_.axis)) return 0;
    if (is_collective(x.op)) return cost_of_collective(g_, n, p_.mesh).seconds;
    return seconds_of_node(g_, n, p_.mesh.each);
  }

 private:
  bool is_cut_of_forward() const {
    std::int64_t sum = 0;
    for (int size : p_.cut) sum += size > 0 ? size : std::int64_t(forward_.size()) + 1;
    return int(p_.cut.size()) == p_.stage_count() && sum == std::int64_t(forward_.size());
  }
  step_phase phase(node_id n) const { return p_.phase[std::size_t(n)]; }
  int& stage(node_id n) { return p_.stage[std::size_t(n)]; }
  int& first(node_id n) { return first_[std::size_t(n)]; }
  int& last(node_id n) { return last_[std::size_t(n)]; }

  /// Stages of all but the forward nodes, and owners of inputs.
  void place_others(int stages) {
    first_.assign(g_.nodes.size(), 0);
    last_.assign(g_.nodes.size(), stages - 1);
    p_.owner.assign(g_.inputs.size(), -1);
    find_readers(stages);
    own_slots();
    find_cells();
    for (node_id n : g_.regions[0].nodes) {
      const node& x = g_.nodes[std::size_t(n)];
      if (index_[std::size_t(n)] >= 0) continue;
      if (x.op == &get_info_of) {
        const node_id o = g_.operand(n, 0);
        stage(n) = stage(o);
        if (phase(n) == step_phase::anywhere) {
          first(n) = first(o);
          last(n) = last(o);
        }
      } else if (phase(n) == step_phase::anywhere) {
        for (node_id o : g_.operands(n)) {
          first(n) = std::max(first(n), first(o));
          last(n) = std::min(last(n), last(o));
        }
      } else if (phase(n) != step_phase::forward) {
        place(n, x, stages);
      }
    }
    // An input lies where its new value is made.
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      if (g_.outputs[k].updates < 0) continue;
      int& own = p_.owner[std::size_t(g_.outputs[k].updates)];
      const node_id v = g_.regions[0].outputs[k];
      if (phase(v) != step_phase::anywhere) own = stage(v);
    }
    for (std::size_t i = 0; i < g_.inputs.size(); ++i)
      if (p_.owner[i] < 0 && (owned_by_cell(g_.inputs[i].role) || is_slot(int(i))))
        p_.owner[i] = std::min(std::max(first(g_.input(int(i))), 0), stages - 1);
  }
  bool is_slot(int i) const { return g_.inputs[std::size_t(i)].role == input_role::slot; }
  /// From where to where forward nodes read a value; of parameters that is where they may lie.
  void find_readers(int stages) {
    list<int> low(g_.nodes.size(), stages), high(g_.nodes.size(), -1);
    const ids& nodes = g_.regions[0].nodes;
    for (std::size_t i = nodes.size(); i-- > 0;) {
      const node_id n = nodes[i];
      const auto k = std::size_t(n);
      int from = stages, to = -1;
      if (phase(n) == step_phase::forward) {
        const node& x = g_.nodes[k];
        if (x.op == &get_info_of) stage(n) = stage(g_.operand(n, 0));
        from = to = stage(n);
        first(n) = stage(n);
        last(n) = std::max(stage(n), high[k]);
        if (is_made_again(g_, n)) {
          from = std::min(from, low[k]);
          to = std::max(to, high[k]);
        }
      } else if (phase(n) == step_phase::anywhere) {
        from = low[k];
        to = high[k];
      } else {
        continue;
      }
      for (node_id o : g_.operands(n)) {
        low[std::size_t(o)] = std::min(low[std::size_t(o)], from);
        high[std::size_t(o)] = std::max(high[std::size_t(o)], to);
      }
    }
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) {
      const node_id n = g_.input(int(i));
      if (!owned_by_cell(g_.inputs[i].role) || high[std::size_t(n)] < 0) continue;
      first(n) = p_.owner[i] = low[std::size_t(n)];
      last(n) = high[std::size_t(n)];
    }
  }
  /// The optimizer's state lies with the parameter whose new value needs it.
  void own_slots() {
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      const int p = g_.outputs[k].updates;
      if (p < 0 || g_.inputs[std::size_t(p)].role != input_role::parameter) continue;
      const node_id at = g_.input(p);
      flags seen(g_.nodes.size(), 0);
      ids open{g_.regions[0].outputs[k]};
      while (!open.empty()) {
        const node_id n = open[open.size() - 1];
        open.resize(open.size() - 1);
        if (seen[std::size_t(n)]) continue;
        seen[std::size_t(n)] = 1;
        const int i = index_[std::size_t(n)];
        if (i >= 0 && is_slot(i) && p_.owner[std::size_t(i)] < 0) {
          p_.owner[std::size_t(i)] = p_.owner[std::size_t(p)];
          first(n) = first(at);
          last(n) = last(at);
        }
        if (updates_[std::size_t(n)] || phase(n) == step_phase::update)
          for (node_id o : g_.operands(n)) open.push_back(o);
      }
    }
  }
  struct cell_stage {
    name_ref cell;
    int stage{};
  };
  /// The last stage in which a cell has forward nodes: its gradients go no further than there.
  void find_cells() {
    cells_.clear();
    for (node_id n : forward_) {
      const node& x = g_.nodes[std::size_t(n)];
      if (!x.cell.size) continue;
      if (cell_stage* const c = find(x.cell))
        c->stage = std::max(c->stage, stage(n));
      else
        cells_.push_back({x.cell, stage(n)});
    }
  }
  cell_stage* find(name_ref cell) {
    for (cell_stage& c : cells_)
      if (g_.view(c.cell) == g_.view(cell)) return &c;
    return nullptr;
  }
  /// A node of the backward pass or of the update.
  void place(node_id n, const node& x, int stages) {
    if (joins_pieces(x, p_.axis)) {
      const node_id o = g_.operand(n, 0);
      stage(n) = phase(o) == step_phase::anywhere ? 0 : stage(o);
      first(n) = last(n) = stage(n);
      return;
    }
    int arrives = stages - 1, low = 0, high = stages - 1;
    bool all_numbers = true;
    for (node_id o : g_.operands(n)) all_numbers &= is_number(o);
    for (node_id o : g_.operands(n)) {
      if (!all_numbers && is_number(o)) continue;  // numbers go to where the gradients are
      if (phase(o) == step_phase::backward || phase(o) == step_phase::update) {
        arrives = std::min(arrives, stage(o));
      } else {
        low = std::max(low, first(o));
        high = std::min(high, last(o));
      }
    }
    int s = std::min(arrives, high);
    if (x.cell.size)
      if (const cell_stage* const c = find(x.cell)) s = std::min(s, c->stage);
    stage(n) = std::min(std::max(s, low), arrives);
  }

  /// Whether it is one number of the update, maybe repeated.
  bool is_number(node_id n) const {
    const node& x = g_.nodes[std::size_t(n)];
    return phase(n) == step_phase::update &&
           (is_one_number(x) || (is<broadcast_op>(x) && is_number(g_.operand(n, 0))));
  }

  /// How many of the forward nodes, in their order, each stage has.
  list<int> cut_forward(int stages) {
    const std::size_t count = forward_.size();
    // Sums of times, and the time of messages at each cut: there and, for gradients, back.
    list<double> before(count + 1, 0.0), crossing(count + 1, 0.0);
    for (node_id n : g_.regions[0].nodes)
      if (phase(n) == step_phase::forward || phase(n) == step_phase::backward)
        before[std::size_t(stage(n)) + 1] += seconds_of(n);
    for (std::size_t i = 0; i < count; ++i) before[i + 1] += before[i];
    const mesh_axis& link = p_.mesh[p_.axis];
    for (node_id n : g_.regions[0].nodes) {
      const node& x = g_.nodes[std::size_t(n)];
      if (phase(n) != step_phase::forward || x.result_count || is_made_again(g_, n)) continue;
      const double seconds = link.latency + double(x.type.bytes()) / link.bytes_per_second;
      for (int c = stage(n) + 1; c <= last(n); ++c) crossing[std::size_t(c)] += 2 * seconds;
    }
    const auto time_of = [&](std::size_t from, std::size_t to) {
      return before[to] - before[from] + crossing[from] + (to < count ? crossing[to] : 0);
    };
    // The slowest stage first; then the messages.
    double limit = 0;
    list<list<std::size_t>> begin;
    for (int pass = 0; pass < 2; ++pass) {
      const double none = 1e300;
      list<double> best(count + 1, none);
      best[0] = 0;
      begin.clear();
      for (int s = 0; s < stages; ++s) {
        list<double> next(count + 1, none);
        list<std::size_t> from(count + 1, std::size_t(0));
        for (std::size_t to = std::size_t(s) + 1; to <= count; ++to) {
          for (std::size_t i = std::size_t(s); i < to; ++i) {
            if (best[i] == none) continue;
            const double own = time_of(i, to);
            if (pass && own > limit) continue;
            const double all = pass ? best[i] + crossing[i] : std::max(best[i], own);
            if (all >= next[to]) continue;
            next[to] = all;
            from[to] = i;
          }
        }
        best = next;
        begin.push_back(from);
      }
      limit = 1.02 * best[count];
    }
    list<int> sizes(std::size_t(stages), 0);
    std::size_t to = count;
    for (std::size_t s = sizes.size(); s-- > 0;) {
      const std::size_t from = begin[s][to];
      sizes[s] = int(to - from);
      to = from;
    }
    return sizes;
  }

  pipeline_plan& p_;
  const graph& g_;
  list<int> index_;
  flags updates_;
  ids forward_;
  list<int> first_, last_;  ///< of each node: the stages where a value is, without further messages
  list<cell_stage> cells_;
};

}  // namespace cella::parallel::detail
