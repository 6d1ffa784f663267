// What a rank of a pipeline runs: one program for the forward pass of a microbatch, one or two for
// its backward pass and one for the update, in the order of the schedule, with messages in between.
#pragma once

#include <array>
#include <cella/parallel/pipeline_graphs.hpp>
#include <cella/parallel/rank_inputs.hpp>
#include <cella/runtime/loaded_program.hpp>
#include <deque>
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
  /// Prints the graphs, the steps and the memory of the programs of each stage.
  void explain(std::ostream& out, std::size_t width = 100) const {
    for (const stage& s : own_stages_)
      for (const phase& one : s.phases)
        if (one.program) one.program->explain(out, width);
  }

 private:
  /// When messages go and come: at the start, with a phase, and at the end.
  static constexpr std::size_t at_the_end = step_phases;
  struct phase {
    std::optional<loaded_program> program;
    list<detail::phase_graph::port> ports;
    ids results;
  };
  struct message {
    node_id value{};
    int other{};  ///< the place of the other rank along the axis
  };
  /// Microbatches' parts of a value, one behind the other.
  struct gathering {
    node_id part{}, whole{};
    int dimension{};
    step_phase made{};
  };
  /// One of the stages that this rank has.
  struct stage {
    std::array<phase, step_phases> phases;
    std::array<std::vector<message>, step_phases + 1> sent, received;
    std::vector<gathering> gatherings;
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
  void send(const stage& s, std::size_t moment, int k) const {
    for (const message& m : s.sent[moment])
      communicator_.send(communicator_.self, stages_, m.other, int(m.value), at(m.value, k));
  }
  void receive(const stage& s, std::size_t moment, int k) const {
    for (const message& m : s.received[moment])
      communicator_.receive(communicator_.self, stages_, m.other, int(m.value), at(m.value, k));
  }
  /// Runs a phase for a microbatch. The programs take `own_part` of the microbatch for that of a
  /// rank.
  void compute(stage& s, step_phase which, int k) {
    phase& one = s.phases[std::size_t(which)];
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

  int place_;  ///< of this rank along the axis
  int microbatches_;
  device_mesh pieces_;
  list<pipeline_task> order_;
  std::vector<communicator> microbatch_;
  std::vector<int> piece_rank_;
  std::vector<layout> cuts_;  ///< of inputs
  ids input_nodes_, results_, sums_;
  std::vector<aligned_buffer> memory_;
  std::vector<place> places_;  ///< by node
  std::deque<stage> own_stages_;
};

// ------------------------------------------------------------------------------------------------

inline pipeline_program::pipeline_program(const graph& g, const pipeline_plan& plan, int rank,
                                          const communicator& c, dtype element,
                                          thread_pool* threads)
    : rank_inputs(plan.mesh, rank, c, plan.axis),
      place_(plan.mesh.coordinate(rank, plan.axis)),
      microbatches_(plan.microbatches()),
      pieces_(plan.pieces),
      order_(tasks_of_place(plan.schedule, place_, plan.mesh[plan.axis].size, plan.chunks,
                            microbatches_)),
      own_stages_(std::size_t(plan.chunks)) {
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
  for (int chunk = 0; chunk < plan.chunks; ++chunk) {
    const int own = chunk * plan.mesh[plan.axis].size + place_;
    for (step_phase which : {step_phase::forward, step_phase::backward, step_phase::weights,
                             step_phase::exchange, step_phase::update}) {
      detail::phase_graph made = detail::phase_writer(p, own, which).run();
      if (made.graph.outputs.empty()) continue;
      phase& one = own_stages_[std::size_t(chunk)].phases[std::size_t(which)];
      one.ports = made.ports;
      one.results = made.results;
      one.program.emplace(live_part(std::move(made.graph)), element, threads);
    }
  }
}

inline void pipeline_program::add_inputs(const graph& g, const pipeline_plan& p) {
  const graph& piece = p.piece.graph;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const node_id n = piece.input(int(i));
    tensor_type t = piece.type(n);
    const int owner = p.owner[i] < 0 ? -1 : p.place_of(p.owner[i]);
    const bool is_elsewhere = owner >= 0 && owner != place_;
    if (is_elsewhere) t.shape = {0};
    add(g, {}, t, owner);
    input_nodes_.push_back(n);
    cuts_.push_back(p.piece.inputs[i]);
    if (is_elsewhere) continue;
    places_[std::size_t(n)].at.push_back(parts_.back().data);
    make_places(n, t, p.piece.inputs[i][stages_] >= 0 ? microbatches_ : 1);
  }
}

inline void pipeline_program::add_values(const pipeline_plan& p) {
  const graph& piece = p.piece.graph;
  const int places = p.mesh[p.axis].size, stages = p.stage_count();
  for (const pipeline_value& v : p.values) {
    const bool joins = detail::joins_pieces(piece.nodes[std::size_t(v.n)], p.axis);
    const auto is_read = [&](int s, std::size_t when) { return v.is_read(s, step_phase(when)); };
    // Results are read at the end, whatever has made them.
    const auto first_read = [&](int s) {
      for (std::size_t when = 1; when < at_the_end; ++when)
        if (is_read(s, when)) return v.made == step_phase::anywhere ? std::size_t(0) : when;
      return is_read(s, 0) ? at_the_end : at_the_end + 1;
    };
    // Of the stages of a rank the one that reads it first: backward passes go through them from
    // the last to the first.
    const auto first_reader = [&](int q) {
      int found = q;
      for (int s = q; s < stages; s += places) {
        const std::size_t when = first_read(s), before = first_read(found);
        const bool is_backward = when == std::size_t(step_phase::backward);
        if (when < before || (when == before && is_backward)) found = s;
      }
      return found;
    };
    const bool is_own = p.place_of(v.stage) == place_;
    const int reader = first_reader(place_);
    const std::size_t when = first_read(reader);
    if (!is_own && when > at_the_end) continue;
    // Kept from the first pass of a microbatch that makes or reads it to the last.
    int first = -1, touched = 0;
    step_phase begin = v.made, end = step_phase::anywhere;
    for (int s = place_; s < stages; s += places) {
      const step_phase last = v.last_pass(s);
      if (last == step_phase::anywhere && s != v.stage) continue;
      if (first < 0) first = s;
      ++touched;
      end = std::max(end, last);
    }
    if (touched > 1) {
      begin = step_phase::forward;
      end = step_phase::backward;
    }
    const bool is_several = is_of_microbatch(v.made) && begin < end;
    make_places(v.n, piece.type(v.n),
                is_several ? most_between(order_, first / places, begin, end) : 1);
    if (!is_own) {
      own_stages_[std::size_t(reader / places)].received[when].push_back(
          {v.n, p.place_of(v.stage)});
      continue;
    }
    const std::size_t made =
        v.made == step_phase::update && !joins ? at_the_end : std::size_t(v.made);
    stage& maker = own_stages_[std::size_t(v.stage / places)];
    for (int q = 0; q < places; ++q)
      if (q != place_ && first_read(first_reader(q)) <= at_the_end)
        maker.sent[made].push_back({v.n, q});
    if (!joins) continue;
    const node_id part = piece.operand(v.n, 0);
    if (is<all_reduce_op>(piece.nodes[std::size_t(v.n)]))
      sums_.push_back(v.n);
    else
      maker.gatherings.push_back(
          {part, v.n, piece.nodes[std::size_t(v.n)].attributes.as<collective_options>().dimension,
           std::max(p.phase[std::size_t(part)], step_phase::forward)});
  }
}

inline void pipeline_program::operator()() {
  // Another program than the one that reads a parameter has updated it.
  for (stage& s : own_stages_)
    for (phase& one : s.phases)
      if (one.program) one.program->prepare_again();
  for (const stage& s : own_stages_) send(s, 0, 0);
  for (const stage& s : own_stages_) receive(s, 0, 0);
  for (node_id n : sums_) std::memset(at(n, 0).data, 0, std::size_t(at(n, 0).type.bytes()));
  for (const pipeline_task& task : order_) {
    stage& own = own_stages_[std::size_t(task.chunk)];
    const step_phase which = task.pass;
    const int k = task.microbatch;
    receive(own, std::size_t(which), k);
    compute(own, which, k);
    for (const gathering& one : own.gatherings) {
      if (one.made != which) continue;
      const tensor_ref part = at(one.part, k);
      const auto first = cella::detail::place_along(one.dimension, k * part.type[one.dimension]);
      cella::detail::copy_box(part, {}, at(one.whole, 0), first, part.type.shape);
    }
    send(own, std::size_t(which), k);
  }
  constexpr auto exchange = step_phase::exchange, update = step_phase::update;
  for (stage& s : own_stages_) compute(s, exchange, 0);
  for (const stage& s : own_stages_) send(s, std::size_t(exchange), 0);
  for (const stage& s : own_stages_) send(s, std::size_t(update), 0);
  for (const stage& s : own_stages_) receive(s, std::size_t(update), 0);
  for (stage& s : own_stages_) compute(s, update, 0);
  for (const stage& s : own_stages_) send(s, at_the_end, 0);
  for (const stage& s : own_stages_) receive(s, at_the_end, 0);
}

}  // namespace cella::parallel
