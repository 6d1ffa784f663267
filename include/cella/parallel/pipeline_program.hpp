// What a rank of a pipeline runs: one program for the forward pass of a microbatch, one for its
// backward pass and one for the update, in the order of the schedule, with messages in between.
#pragma once

#include <array>
#include <cella/parallel/pipeline_graphs.hpp>
#include <cella/parallel/rank_inputs.hpp>
#include <cella/runtime/loaded_program.hpp>
#include <optional>

namespace cella::parallel {

/// The programs of one rank with the memory of its inputs, and of what it keeps of microbatches.
/// Needs `cella::kernels`.
class pipeline_program : public rank_inputs {
 public:
  /// `plan` is one for `g`. `c` reaches the other ranks and outlives this; `threads` may be null.
  pipeline_program(const graph& g, const pipeline_plan& plan, int rank, const communicator& c,
                   dtype element = dtype::f32, thread_pool* threads = nullptr);

  /// Gives input `i` its part of a value that this rank has as a whole; of an argument that is the
  /// part of each microbatch.
  void set(int i, const tensor_ref& whole) {
    const layout& cut = cuts_[std::size_t(i)];
    if (cut == layout{}) return rank_inputs::set(i, whole);
    for (int k = 0; k < microbatches_; ++k)
      copy_part(whole, cut, pieces_, piece_rank_[std::size_t(k)],
                at(input_nodes_[std::size_t(i)], k));
  }
  /// One step; all ranks call it. Inputs that the program updates have their new values then, each
  /// in the stage that has it.
  void operator()();
  /// Result `k` of the last step, which all ranks have as a whole.
  tensor_ref result(int k) const { return at(results_[std::size_t(k)], 0); }
  /// Prints the graphs, the steps and the memory of the three programs.
  void explain(std::ostream& out, std::size_t width = 100) const {
    for (const phase& one : phases_)
      if (one.program) one.program->explain(out, width);
  }

 private:
  /// When messages go and come: at the start, with a phase, and at the end.
  static constexpr std::size_t at_the_end = 4;
  struct phase {
    std::optional<loaded_program> program;
    list<detail::phase_graph::port> ports;
    ids results;
  };
  struct message {
    node_id value{};
    int other{};  ///< the stage
  };
  /// Where a value lies: that of microbatch k at k modulo the number of places.
  struct place {
    tensor_type type;
    std::vector<std::byte*> at;
  };

  tensor_ref at(node_id n, int k) const {
    const place& p = places_[std::size_t(n)];
    return {p.at[std::size_t(k) % p.at.size()], p.type};
  }
  void make_places(node_id n, const tensor_type& t, int count) {
    place& p = places_[std::size_t(n)];
    p.type = t;
    while (int(p.at.size()) < count)
      p.at.push_back(
          memory_.emplace_back(std::size_t(std::max<std::int64_t>(t.bytes(), 1))).data());
  }
  void add_inputs(const graph& g, const pipeline_plan& p);
  void add_values(const pipeline_plan& p);
  void send(std::size_t moment, int k) const {
    for (const message& m : sent_[moment])
      communicator_.send(communicator_.self, stages_, m.other, int(m.value), at(m.value, k));
  }
  void receive(std::size_t moment, int k) const {
    for (const message& m : received_[moment])
      communicator_.receive(communicator_.self, stages_, m.other, int(m.value), at(m.value, k));
  }
  /// Runs a phase for a microbatch. The programs take `own_part` of the microbatch for that of a
  /// rank.
  void compute(step_phase which, int k) {
    phase& one = phases_[std::size_t(which)];
    if (!one.program) return;
    for (const auto& port : one.ports) one.program->bind(port.input, at(port.value, k).data);
    const communicator_scope scope(microbatch_[std::size_t(k)]);
    (*one.program)();
    for (std::size_t r = 0; r < one.results.size(); ++r) {
      const tensor_ref to = at(one.results[r], k);
      if (const std::int64_t bytes = to.type.bytes())
        std::memcpy(to.data, one.program->result(int(r)).data, std::size_t(bytes));
    }
  }

  /// Microbatches' parts of a value, one behind the other.
  struct gathering {
    node_id part{}, whole{};
    int dimension{};
    step_phase made{};
  };

  int own_;  ///< the stage
  int microbatches_;
  device_mesh pieces_;
  list<int> order_;
  std::vector<communicator> microbatch_;
  std::vector<int> piece_rank_;
  std::vector<layout> cuts_;  ///< of inputs
  ids input_nodes_, results_, sums_;
  std::vector<gathering> gatherings_;
  std::vector<aligned_buffer> memory_;
  std::vector<place> places_;  ///< by node
  std::array<phase, 4> phases_;
  std::array<std::vector<message>, 5> sent_, received_;
};

// ------------------------------------------------------------------------------------------------

inline pipeline_program::pipeline_program(const graph& g, const pipeline_plan& plan, int rank,
                                          const communicator& c, dtype element,
                                          thread_pool* threads)
    : rank_inputs(plan.mesh, rank, c, plan.axis),
      own_(plan.mesh.coordinate(rank, plan.axis)),
      microbatches_(plan.microbatches()),
      pieces_(plan.pieces),
      order_(schedule_of_stage(plan.schedule, own_, plan.mesh[plan.axis].size, microbatches_)) {
  for (int k = 0; k < microbatches_; ++k) {
    microbatch_.push_back(c);
    microbatch_.back().groups[std::size_t(stages_)] = {microbatches_, k};
    piece_rank_.push_back(plan.rank_of_piece(rank, k));
  }
  pipeline_plan p = plan;
  p.piece = piece_of(plan, g, rank);  // of this rank's extents
  places_.resize(p.piece.graph.nodes.size());
  add_inputs(g, p);
  add_values(p);
  const graph& piece = p.piece.graph;
  for (std::size_t k = 0; k < piece.outputs.size(); ++k)
    if (piece.outputs[k].updates < 0) results_.push_back(piece.regions[0].outputs[k]);
  for (step_phase which : {step_phase::forward, step_phase::backward, step_phase::update}) {
    detail::phase_graph made = detail::phase_writer(p, own_, which).run();
    if (made.graph.outputs.empty()) continue;
    phase& one = phases_[std::size_t(which)];
    one.ports = made.ports;
    one.results = made.results;
    one.program.emplace(live_part(std::move(made.graph)), element, threads);
  }
}

inline void pipeline_program::add_inputs(const graph& g, const pipeline_plan& p) {
  const graph& piece = p.piece.graph;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const node_id n = piece.input(int(i));
    tensor_type t = piece.type(n);
    const bool is_elsewhere = p.owner[i] >= 0 && p.owner[i] != own_;
    if (is_elsewhere) t.shape = {0};
    add(g, {}, t, p.owner[i]);
    input_nodes_.push_back(n);
    cuts_.push_back(p.piece.inputs[i]);
    if (is_elsewhere) continue;
    places_[std::size_t(n)].at.push_back(parts_.back().data);
    make_places(n, t, p.piece.inputs[i][stages_] >= 0 ? microbatches_ : 1);
  }
}

inline void pipeline_program::add_values(const pipeline_plan& p) {
  const graph& piece = p.piece.graph;
  const int stages = p.mesh[p.axis].size;
  for (const pipeline_value& v : p.values) {
    const bool joins = detail::joins_pieces(piece.nodes[std::size_t(v.n)], p.axis);
    const auto is_read = [&](int stage, std::size_t when) {
      return v.read[std::size_t(stage)][when] != 0;
    };
    // Results are read at the end, whatever has made them.
    const auto first_read = [&](int stage) {
      for (std::size_t when = 1; when < at_the_end; ++when)
        if (is_read(stage, when)) return v.made == step_phase::anywhere ? std::size_t(0) : when;
      return is_read(stage, 0) ? at_the_end : at_the_end + 1;
    };
    const bool is_own = v.stage == own_;
    const std::size_t when = first_read(own_);
    if (!is_own && when > at_the_end) continue;
    const bool is_kept = v.made == step_phase::forward && is_read(own_, 2);
    make_places(v.n, piece.type(v.n), is_kept ? p.stages[std::size_t(own_)].kept : 1);
    if (!is_own) {
      received_[when].push_back({v.n, v.stage});
      continue;
    }
    const std::size_t made =
        v.made == step_phase::update && !joins ? at_the_end : std::size_t(v.made);
    for (int s = 0; s < stages; ++s)
      if (s != own_ && first_read(s) <= at_the_end) sent_[made].push_back({v.n, s});
    if (!joins) continue;
    const node_id part = piece.operand(v.n, 0);
    if (is<all_reduce_op>(piece.nodes[std::size_t(v.n)]))
      sums_.push_back(v.n);
    else
      gatherings_.push_back(
          {part, v.n, piece.nodes[std::size_t(v.n)].attributes.as<collective_options>().dimension,
           p.phase[std::size_t(part)] == step_phase::backward ? step_phase::backward
                                                              : step_phase::forward});
  }
}

inline void pipeline_program::operator()() {
  // Another program than the one that reads a parameter has updated it.
  for (phase& one : phases_)
    if (one.program) one.program->prepare_again();
  send(0, 0);
  receive(0, 0);
  for (node_id n : sums_) std::memset(at(n, 0).data, 0, std::size_t(at(n, 0).type.bytes()));
  for (int task : order_) {
    const step_phase which = task > 0 ? step_phase::forward : step_phase::backward;
    const int k = (task > 0 ? task : -task) - 1;
    receive(std::size_t(which), k);
    compute(which, k);
    for (const gathering& one : gatherings_) {
      if (one.made != which) continue;
      const tensor_ref part = at(one.part, k);
      const auto first = cella::detail::place_along(one.dimension, k * part.type[one.dimension]);
      cella::detail::copy_box(part, {}, at(one.whole, 0), first, part.type.shape);
    }
    send(std::size_t(which), k);
  }
  send(std::size_t(step_phase::update), 0);
  receive(std::size_t(step_phase::update), 0);
  compute(step_phase::update, 0);
  send(at_the_end, 0);
  receive(at_the_end, 0);
}

}  // namespace cella::parallel
