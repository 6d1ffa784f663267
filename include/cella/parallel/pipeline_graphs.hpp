// The graphs that a stage of a pipeline runs: of the forward pass and of the backward pass of a
// microbatch, which may be in two, and of the update.
#pragma once

#include <cella/ops/arithmetic.hpp>
#include <cella/parallel/make_pipeline.hpp>

namespace cella::parallel::detail {

/// The part of a microbatch: own_part, but another one each time that the program runs, so that it
/// is not made once for all beforehand, where its operand stays the same.
struct own_piece_op : cella::detail::collective<own_piece_op>, impure {
  static constexpr std::string_view name = "own_piece";
  static constexpr std::string_view formula = "y = this microbatch's part of x";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return own_part_op::infer(in, o);
  }
  static constexpr var transpose(node_ref n, int k, var dy) {
    return own_part_op::transpose(n, k, dy);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    own_part_op::compute(o, in, out);
  }
};

/// The graph of one phase in one stage.
struct phase_graph {
  struct port {
    int input{};
    node_id value{};  ///< of the plan's graph of a microbatch
  };
  cella::graph graph;
  list<port> ports;  ///< one for each input
  ids results;       ///< the values that it makes for others
};

class phase_writer {
 public:
  phase_writer(const pipeline_plan& p, int stage, step_phase at)
      : p_(p),
        g_(p.piece.graph),
        stage_(stage),
        at_(at),
        index_(input_indices(g_)),
        importer_(b_, g_),
        here_(g_.nodes.size(), no_node),
        exchanged_(g_.nodes.size(), 0) {
    for (const pipeline_value& v : p.values)
      exchanged_[std::size_t(v.n)] = v.made == step_phase::exchange &&
                                     (v.stage == stage || v.is_read(stage, step_phase::update));
  }

  phase_graph run() {
    for (node_id n : g_.regions[0].nodes)
      if (is_own(n)) value(n);
    for (const pipeline_value& v : p_.values)
      if (v.made == at_ && v.stage == stage_ && !joins(v.n)) {
        out_.results.push_back(v.n);
        write(value(v.n), -1);
      }
    for (node_id n : g_.regions[0].nodes) add_up(n);
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      const int i = g_.outputs[k].updates;
      const node_id v = g_.regions[0].outputs[k];
      if (i < 0) continue;
      const step_phase made = p_.phase[std::size_t(v)];
      const int own = p_.owner[std::size_t(i)];
      if (is_gradient(made) ? at_ == made && p_.stage[std::size_t(v)] == stage_
                            : at_ == step_phase::update && (own < 0 || own == stage_)) {
        value(g_.input(i));
        for (const phase_graph::port& one : out_.ports)
          if (one.value == g_.input(i)) write(value(v), one.input);
      }
    }
    b_.end(outputs_);
    if (b_.failed()) throw model_error(b_.fault());
    out_.graph = bucket_gradients(b_.g, strategy{}.bucket_bytes);
    return std::move(out_);
  }

 private:
  const node& at(node_id n) const { return g_.nodes[std::size_t(n)]; }
  bool joins(node_id n) const { return joins_pieces(at(n), p_.axis); }
  bool is_own_piece(node_id n) const {
    return is<own_part_op>(at(n)) && at(n).attributes.as<collective_options>().mesh_axis == p_.axis;
  }
  /// Whether this graph computes a node for its own sake.
  bool is_own(node_id n) const {
    return index_[std::size_t(n)] < 0 && p_.phase[std::size_t(n)] == at_ &&
           p_.stage[std::size_t(n)] == stage_ && !joins(n) && !exchanged_[std::size_t(n)];
  }
  /// Whether it is made once for each stage that needs it: what updates have in common.
  bool is_of_update(node_id n) const {
    if (p_.phase[std::size_t(n)] != step_phase::update) return false;
    return at_ == step_phase::exchange ||
           (at_ == step_phase::update && !exchanged_[std::size_t(n)]);
  }
  bool is_again(node_id n) const {
    return p_.again[std::size_t(n)] == at_ && p_.stage[std::size_t(n)] == stage_;
  }
  node_id value(node_id n) {
    if (here_[std::size_t(n)] >= 0) return here_[std::size_t(n)];
    const int i = index_[std::size_t(n)];
    node_id made = no_node;
    if (i >= 0) {
      made = input(n, g_.inputs[std::size_t(i)].role);
    } else if (!joins(n) && (is_own(n) || is_of_update(n) || is_again(n) || is_made_again(g_, n) ||
                             p_.phase[std::size_t(n)] == step_phase::anywhere)) {
      ids in;
      for (node_id o : g_.operands(n)) in.push_back(value(o));
      made = is_own_piece(n) ? b_.emit(bound<own_piece_op>(), in, at(n).attributes)
                             : importer_.copy(n, in);
    } else {
      made = input(n, input_role::argument);
    }
    return here_[std::size_t(n)] = made;
  }
  node_id input(node_id n, input_role role) {
    out_.ports.push_back({int(b_.g.inputs.size()), n});
    const std::string_view label =
        index_[std::size_t(n)] >= 0 ? g_.view(g_.inputs[std::size_t(index_[std::size_t(n)])].name)
                                    : std::string_view();
    return b_.input(g_.type(n), role, label);
  }
  void write(node_id n, int updated) {
    outputs_.push_back(n);
    b_.g.outputs.push_back({updated, {}});
  }
  /// Adds to a sum over microbatches what is made here for it.
  void add_up(node_id n) {
    if (!joins(n) || !is<all_reduce_op>(at(n)) || p_.stage[std::size_t(n)] != stage_) return;
    const node_id o = g_.operand(n, 0);
    const step_phase of = p_.phase[std::size_t(o)];
    if ((of == step_phase::anywhere ? step_phase::forward : of) != at_) return;
    const node_id sum = input(n, input_role::slot);
    const int place = out_.ports[out_.ports.size() - 1].input;
    write(b_.emit(bound<add_op>(), {sum, value(o)}), place);
  }

  const pipeline_plan& p_;
  const graph& g_;
  const int stage_;
  const step_phase at_;
  list<int> index_;
  builder b_;
  graph_importer importer_;
  ids here_;         ///< by node of the plan's graph
  flags exchanged_;  ///< likewise: made before the update, and there
  ids outputs_;
  phase_graph out_;
};

}  // namespace cella::parallel::detail
