// Which values stages send each other, or keep for a later phase of a step.
#pragma once

#include <cella/parallel/pipeline_phases.hpp>

namespace cella::parallel::detail {

/// The phase whose program computes a node; what is made anywhere is made in the update where it is
/// a result.
constexpr step_phase program_of(const pipeline_plan& p, node_id n) {
  const step_phase s = p.phase[std::size_t(n)];
  return s == step_phase::anywhere ? step_phase::update : s;
}

/// Lists the values of a plan that has phases, stages and owners.
class value_finder {
 public:
  explicit value_finder(pipeline_plan& p)
      : p_(p),
        g_(p.piece.graph),
        index_(input_indices(g_)),
        known_(g_.nodes.size(), -1),
        again_(g_.nodes.size() * std::size_t(p.stage_count()), 0) {}

  void run() {
    for (node_id n : g_.regions[0].nodes) {
      const step_phase at = p_.phase[std::size_t(n)];
      if (at == step_phase::anywhere) continue;
      const node_id o = g_.operands(n).empty() ? no_node : g_.operand(n, 0);
      if (joins_pieces(g_.nodes[std::size_t(n)], p_.axis)) {
        // Added up, or put together, where the operand is made.
        const step_phase of = p_.phase[std::size_t(o)];
        const step_phase made = of == step_phase::anywhere ? step_phase::forward : of;
        if (is<all_gather_op>(g_.nodes[std::size_t(n)]))
          value(o, made).read[std::size_t(stage(n))][std::size_t(step_phase::update)] = true;
        else
          read(o, made, stage(n));
        continue;
      }
      for (node_id i : g_.operands(n)) read(i, at, stage(n));
    }
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      const node_id v = g_.regions[0].outputs[k];
      const int i = g_.outputs[k].updates;
      if (i < 0) {
        for (int s = 0; s < p_.stage_count(); ++s)
          value(v).read[std::size_t(s)][std::size_t(step_phase::anywhere)] = true;
      } else if (!is_gradient(p_.phase[std::size_t(v)])) {
        const int own = p_.owner[std::size_t(i)];
        read(v, step_phase::update, own < 0 ? 0 : own);
      }
    }
  }

 private:
  int stage(node_id n) const { return p_.stage[std::size_t(n)]; }
  /// A stage reads a value in a phase: what it cannot make again it needs.
  void read(node_id n, step_phase at, int s) {
    const auto k = std::size_t(n);
    const node& x = g_.nodes[k];
    if (index_[k] >= 0) {
      const int own = p_.owner[std::size_t(index_[k])];
      if (own >= 0 && own != s) value(n).read[std::size_t(s)][std::size_t(at)] = true;
      return;
    }
    const bool sums = joins_pieces(x, p_.axis);
    if (!sums && p_.phase[k] == at && stage(n) == s) return;
    const bool again = p_.again[k] == at && stage(n) == s;
    if (!sums && (p_.phase[k] == step_phase::anywhere || again || is_made_again(g_, n))) {
      for (node_id o : g_.operands(n)) read(o, at, s);
      return;
    }
    if (!sums && p_.phase[k] == step_phase::update) {
      if (is_one_number(x)) return read_number(n, s);
      // Made again of the sums that it follows from.
      char& is_known = again_[k * std::size_t(p_.stage_count()) + std::size_t(s)];
      if (is_known) return;
      is_known = 1;
      for (node_id o : g_.operands(n)) read(o, at, s);
      return;
    }
    value(n).read[std::size_t(s)][std::size_t(at)] = true;
  }
  /// The update of a stage reads a number of the update of another: what that one makes of its own
  /// gradients it sends before (their norm), and what follows from such numbers each stage
  /// computes.
  void read_number(node_id n, int s) {
    if (!is_local(n)) {
      for (node_id o : g_.operands(n)) read(o, step_phase::update, s);
      return;
    }
    keep_sums(n);
    pipeline_value& v = value(n, step_phase::exchange);
    v.made = step_phase::exchange;
    v.read[std::size_t(s)][std::size_t(step_phase::update)] = true;
  }
  /// Whether a node of an update needs nothing that another stage has.
  bool is_local(node_id n) const {
    for (node_id o : g_.operands(n)) {
      const auto k = std::size_t(o);
      if (p_.phase[k] == step_phase::anywhere) continue;
      if (p_.phase[k] != step_phase::update || stage(o) != stage(n)) return false;
      if (!joins_pieces(g_.nodes[k], p_.axis) && !is_local(o)) return false;
    }
    return true;
  }
  /// Sums over ranks that such a number needs are made once, and the update has them, too.
  void keep_sums(node_id n) {
    for (node_id o : g_.operands(n)) {
      const auto k = std::size_t(o);
      if (p_.phase[k] != step_phase::update || joins_pieces(g_.nodes[k], p_.axis)) continue;
      if (is_collective(g_.nodes[k].op)) {
        pipeline_value& v = value(o, step_phase::exchange);
        v.made = step_phase::exchange;
        v.read[std::size_t(stage(o))][std::size_t(step_phase::update)] = true;
      } else {
        keep_sums(o);
      }
    }
  }
  pipeline_value& value(node_id n) { return value(n, program_of(p_, n)); }
  pipeline_value& value(node_id n, step_phase made) {
    int& k = known_[std::size_t(n)];
    if (k >= 0) return p_.values[std::size_t(k)];
    k = int(p_.values.size());
    const int i = index_[std::size_t(n)];
    const int own = i < 0 ? -1 : p_.owner[std::size_t(i)];
    const list<std::array<bool, step_phases>> nobody(std::size_t(p_.stage_count()), {});
    if (own >= 0)
      p_.values.push_back({n, step_phase::anywhere, own, nobody});
    else
      p_.values.push_back({n, made, stage(n), nobody});
    return p_.values[std::size_t(k)];
  }

  pipeline_plan& p_;
  const graph& g_;
  list<int> index_;
  list<int> known_;  ///< of each node, its place in the list
  flags again_;      ///< of each node and stage: the update of the stage makes it again
};

}  // namespace cella::parallel::detail
