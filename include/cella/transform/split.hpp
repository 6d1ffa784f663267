// Cuts a region in two: what computes its outputs, and what pulls cotangents back through it. All
// of reverse mode for cond, scan, while_loop and call, and rematerialization, are made of this.
#pragma once

#include <cella/ops/slicing.hpp>
#include <cella/transform/pullback.hpp>

namespace cella::detail {

class region_splitter {
 public:
  /// `needed` marks inputs, `given` the outputs that have cotangents. With `recompute` nothing is
  /// stored but inputs; otherwise primal values that are not cheap to compute again.
  constexpr region_splitter(builder& b, int r, const flags& needed, const flags& given,
                            bool recompute)
      : b_(b), recompute_(recompute) {
    scratch_ = b.begin(types_of(b, inputs_of(b, r)));
    inputs_ = own_inputs(b);
    outputs_ = inline_region(b, r, inputs_);
    first_of_sweep_ = node_id(b.g.nodes.size());
    ids ys;
    ids wrt;
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      if (!given[k]) continue;
      ys.push_back(outputs_[k]);
      cotangents_.push_back(b.input(b.g.type(outputs_[k])));
    }
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      if (needed[k]) wrt.push_back(inputs_[k]);
    }
    results_ = pullback(b, ys, cotangents_, wrt);
    for (std::size_t k = 0; k < wrt.size(); ++k)
      results_[k] = or_zeros(b, results_[k], b.g.type(wrt[k]));
    b.end(results_);
    nodes_ = b.g.regions[std::size_t(scratch_)].nodes;
  }

  constexpr halves run() {
    halves h;
    if (b_.failed()) return h;
    classify();
    ids kept_inputs;
    ids kept;
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      if (!keep_[place(inputs_[k])]) continue;
      h.from_inputs.push_back(int(k));
      kept_inputs.push_back(inputs_[k]);
    }
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!keep_[i] || is_input_[i]) continue;
      kept.push_back(nodes_[i]);
      h.stored.push_back(b_.g.type(nodes_[i]));
    }
    h.backward = build(join_ids({kept_inputs, kept, cotangents_}), live_, results_);
    const ids forward_outputs = join_ids({outputs_, kept});
    h.forward = build(inputs_, needed_for(forward_outputs), forward_outputs);
    b_.discard(scratch_);
    return h;
  }

 private:
  constexpr std::size_t place(node_id n) const {
    return std::size_t(b_.g.nodes[std::size_t(n)].position);
  }

  /// Marks what the backward half computes (`live_`: it depends on a cotangent, or is computed
  /// again) and what is handed over (`keep_`).
  constexpr void classify() {
    dependent_.assign(nodes_.size(), 0);
    live_ = keep_ = is_input_ = dependent_;
    for (node_id n : cotangents_) dependent_[place(n)] = 1;
    for (node_id n : inputs_) is_input_[place(n)] = 1;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (node_id o : b_.g.operands(nodes_[i])) dependent_[i] |= dependent_[place(o)];
    }
    for (node_id n : results_) want(n);
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      if (!live_[i]) continue;
      for (node_id o : b_.g.operands(nodes_[i])) want(o);
    }
  }
  constexpr void want(node_id n) {
    const std::size_t p = place(n);
    (dependent_[p] || (!is_input_[p] && is_computed_again(n)) ? live_ : keep_)[p] = 1;
  }
  /// Constants, what is cheap, and what the sweep itself computed element by element (partial
  /// derivatives) from values that are stored anyway.
  constexpr bool is_computed_again(node_id n) const {
    const op_info& op = *b_.g.nodes[std::size_t(n)].op;
    if (recompute_) return true;
    if (&op == &get_info_of) return false;
    return op.kind == op_kind::leaf || op.cheap || (op.pointwise && n >= first_of_sweep_) ||
           is_part_of_input(n);
  }
  /// A part of an input need not be stored: the input is handed over. (Of a large input that might
  /// be a carry, which is stored then, it must be a good part.)
  constexpr bool is_part_of_input(node_id n) const {
    const node& x = b_.g.nodes[std::size_t(n)];
    if (!is<slice_op>(x)) return false;
    node_id from = b_.g.operand(n, 0);
    while (is<slice_op>(b_.g.nodes[std::size_t(from)]) ||
           is<reshape_op>(b_.g.nodes[std::size_t(from)]))
      from = b_.g.operand(from, 0);
    const std::int64_t whole = b_.g.type(from).size();
    return is_input_[place(from)] && (whole <= 64 || whole <= 2 * x.type.size());
  }
  constexpr flags needed_for(const ids& outputs) const {
    flags m(nodes_.size(), 0);
    for (node_id n : outputs) m[place(n)] = 1;
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      if (!m[i]) continue;
      for (node_id o : b_.g.operands(nodes_[i])) m[place(o)] = 1;
    }
    return m;
  }
  /// A region of the nodes that are marked.
  constexpr int build(const ids& inputs, const flags& marked, const ids& outputs) {
    const int q = b_.begin(types_of(b_, inputs));
    ids map(nodes_.size(), no_node);
    for (std::size_t k = 0; k < inputs.size(); ++k) map[place(inputs[k])] = own_inputs(b_)[k];
    ids in;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!marked[i] || map[i] >= 0) continue;
      in.clear();
      for (node_id o : b_.g.operands(nodes_[i])) in.push_back(map[place(o)]);
      map[i] = copy_node(b_, nodes_[i], in);
    }
    ids out;
    for (node_id n : outputs) out.push_back(map[place(n)]);
    b_.end(out);
    return q;
  }

  builder& b_;
  bool recompute_;
  int scratch_{};
  node_id first_of_sweep_{};
  ids inputs_, outputs_, cotangents_, results_, nodes_;
  flags dependent_, live_, keep_, is_input_;
};

constexpr halves split(builder& b, int r, const flags& needed, const flags& given, bool recompute) {
  return region_splitter(b, r, needed, given, recompute).run();
}

}  // namespace cella::detail
