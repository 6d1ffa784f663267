// Which nodes of a microbatch's graph are computed when: forward, backward, or once behind all.
#pragma once

#include <cella/ops/matmul.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/parallel/pipeline.hpp>

namespace cella::parallel::detail {

/// Whether a node brings together what the microbatches have.
constexpr bool joins_pieces(const node& x, int axis) {
  return is_collective(x.op) && !is<own_part_op>(x) &&
         x.attributes.as<collective_options>().mesh_axis == axis;
}

/// The index of an input by its node; -1 for other nodes.
constexpr list<int> input_indices(const graph& g) {
  list<int> index(g.nodes.size(), -1);
  for (std::size_t i = 0; i < g.inputs.size(); ++i) index[std::size_t(g.input(int(i)))] = int(i);
  return index;
}

/// Whether a value is made again by those that read it, rather than kept or sent.
constexpr bool is_made_again(const graph& g, node_id n) {
  const node& x = g.nodes[std::size_t(n)];
  if (x.op->traits.alias || is<broadcast_op>(x) || is<constant_op>(x)) return true;
  // Parts of a value that has to be there anyway, or its elements in another order.
  return x.op->computes == compute_class::movement && x.operand_count == 1 &&
         !is_collective(x.op) && 4 * x.type.bytes() >= g.type(g.operand(n, 0)).bytes();
}

/// Whether a node's result is one number; of several results none is.
constexpr bool is_one_number(const node& x) { return x.result_count == 0 && x.type.size() == 1; }

/// Takes the backward pass apart: what no other stage needs of it, nor what others need follows
/// from, is done later. Where others need a new value of an input, that stage has all of it at
/// once: what is done later would read the new value in the place of the old one.
inline void split_backward(pipeline_plan& p) {
  const graph& g = p.piece.graph;
  const ids& nodes = g.regions[0].nodes;
  const auto is_backward = [&](node_id n) {
    return p.phase[std::size_t(n)] == step_phase::backward;
  };
  flags needed(g.nodes.size(), 0), is_whole(std::size_t(p.stage_count()), 0);
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const node_id n = nodes[i];
    if (!is_backward(n)) continue;
    for (node_id o : g.operands(n))
      if (is_backward(o) &&
          (needed[std::size_t(n)] || p.stage[std::size_t(o)] != p.stage[std::size_t(n)]))
        needed[std::size_t(o)] = 1;
  }
  for (std::size_t k = 0; k < g.outputs.size(); ++k) {
    const node_id v = g.regions[0].outputs[k];
    if (g.outputs[k].updates >= 0 && is_backward(v) && needed[std::size_t(v)])
      is_whole[std::size_t(p.stage[std::size_t(v)])] = 1;
  }
  for (node_id n : nodes) {
    const auto k = std::size_t(n);
    if (!is_backward(n)) continue;
    // Results of one node are there together.
    if (g.nodes[k].op == &get_info_of)
      p.phase[k] = p.phase[std::size_t(g.operand(n, 0))];
    else if (!needed[k] && !is_whole[std::size_t(p.stage[k])])
      p.phase[k] = step_phase::weights;
  }
}

/// Forward nodes that the pass with their gradients computes again in their stage: attention, from
/// the product of queries and keys to that with the values. Its weights are as many as pairs of
/// places, and one kernel makes them again while it makes the gradients.  Korthikanti et al. 2022
/// (selective activation recomputation)
inline list<step_phase> computed_again(const graph& g, const list<step_phase>& phase) {
  list<step_phase> again(g.nodes.size(), step_phase::anywhere);
  const auto is_forward = [&](node_id n) { return phase[std::size_t(n)] == step_phase::forward; };
  const auto reads = [&](node_id m, node_id n) {
    for (node_id o : g.operands(m))
      if (o == n) return true;
    return false;
  };
  const auto is_read_in = [&](node_id n, step_phase pass) {
    for (node_id m : g.regions[0].nodes)
      if (phase[std::size_t(m)] == pass && reads(m, n)) return true;
    return false;
  };
  for (node_id n : g.regions[0].nodes) {
    if (!is<softmax_op>(g.nodes[std::size_t(n)]) || !is_forward(n)) continue;
    ids chain{n};
    node_id at = n;
    while (at >= 0 && !is<matmul_op>(g.nodes[std::size_t(at)])) {
      node_id next = no_node;
      for (node_id o : g.operands(at))
        if (is_forward(o) && next < 0) next = o;
      if (at != n && !g.nodes[std::size_t(at)].op->pointwise) next = no_node;
      if (next >= 0) chain.push_back(next);
      at = next;
    }
    ids products;
    for (node_id m : g.regions[0].nodes)
      if (is<matmul_op>(g.nodes[std::size_t(m)]) && is_forward(m) && reads(m, n))
        products.push_back(m);
    if (at < 0 || products.empty()) continue;
    const bool is_late = is_read_in(n, step_phase::weights) && !is_read_in(n, step_phase::backward);
    const step_phase pass = is_late ? step_phase::weights : step_phase::backward;
    for (node_id m : chain) again[std::size_t(m)] = pass;
    for (node_id m : products) again[std::size_t(m)] = pass;
  }
  return again;
}

/// The phase of each node. The fault says what needs all samples at once.
class phase_finder {
 public:
  phase_finder(const partitioned& p, int axis)
      : p_(p),
        g_(p.graph),
        axis_(axis),
        phase_(g_.nodes.size(), step_phase::anywhere),
        same_(g_.nodes.size(), 1),
        light_(g_.nodes.size(), 1) {}

  list<step_phase> run(text& fault) {
    const list<int> index = input_indices(g_);
    const flags updates = only_updates(g_);
    for (node_id n : g_.regions[0].nodes) {
      const auto k = std::size_t(n);
      const node& x = g_.nodes[k];
      if (index[k] >= 0) {
        const auto i = std::size_t(index[k]);
        same_[k] = p_.inputs[i][axis_] < 0;
        light_[k] = g_.inputs[i].role == input_role::argument;
        continue;
      }
      bool is_late = joins_pieces(x, axis_), is_free = !is_late;
      const bool is_part =
          is<own_part_op>(x) && x.attributes.as<collective_options>().mesh_axis == axis_;
      bool has_late = false, has_early = false;
      for (node_id o : g_.operands(n)) {
        const auto j = std::size_t(o);
        same_[k] &= same_[j];
        light_[k] &= light_[j];
        is_free &= phase_[j] == step_phase::anywhere;
        has_late |= phase_[j] == step_phase::update;
        has_early |= phase_[j] != step_phase::update && !same_[j];
      }
      if (is_part) same_[k] = 0;
      if (has_late && !is_late && !updates[k] && !whole_.size) whole_ = x.cell;
      const bool sums = is<all_reduce_op>(x) || is<all_gather_op>(x);
      if ((is_late && !sums) || (has_late && (is_late || is_part || has_early))) {
        const name_ref cell = whole_.size ? whole_ : x.cell;
        fault = text() << (cell.size ? g_.view(cell) : std::string_view("the step"))
                       << " needs all samples at once";
        return {};
      }
      is_free &= same_[k] || is_part || (light_[k] && runs_with_readers(x));
      if (is_late) same_[k] = 1;
      if (is_late || has_late)
        phase_[k] = step_phase::update;
      else if (!is_free)
        phase_[k] = updates[k] ? step_phase::backward : step_phase::forward;
      // Results of one node are there together.
      if (x.op == &get_info_of) phase_[k] = phase_[std::size_t(g_.operand(n, 0))];
    }
    return phase_;
  }

 private:
  const partitioned& p_;
  const graph& g_;
  const int axis_;
  list<step_phase> phase_;
  flags same_;        ///< for all microbatches
  name_ref whole_{};  ///< the first cell that reads what all microbatches have together
  flags light_;       ///< it follows from arguments alone
};

}  // namespace cella::parallel::detail
