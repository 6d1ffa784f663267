// From the graph of a training step to a pipeline, and what it costs by the model.
#pragma once

#include <cella/parallel/pipeline_stages.hpp>
#include <cella/parallel/pipeline_values.hpp>
#include <cella/parallel/simulation.hpp>

namespace cella::parallel {

/// Divides `g`, which has been through the passes, along one axis of the mesh into stages and,
/// where the mesh has an axis `data`, the samples along that. The numbers are those of one device.
/// Throws `model_error`, which says why that is impossible.
inline pipeline_plan make_pipeline(const graph& g, const device_mesh& m,
                                   const pipeline_options& o = {});

// ------------------------------------------------------------------------------------------------

namespace detail {

/// What is searched for when a pipeline is made, and what a saved plan has.
struct pipeline_decisions {
  assignment choices{};  ///< for the whole graph, on the mesh with microbatches
  list<int> cut{};       ///< see pipeline_plan
};

class pipeline_maker {
 public:
  /// Without `decided` it searches.
  pipeline_maker(const graph& g, const device_mesh& m, const pipeline_options& o,
                 const pipeline_decisions* decided = nullptr)
      : g_(g), o_(o), decided_(decided) {
    p_.mesh = m;
    p_.schedule = o.schedule;
    p_.chunks = o.chunks;
    if (o.chunks < 1)
      throw model_error(text() << "mode pipeline: each rank has " << o.chunks
                               << " stages; give 1 or more");
    if (o.chunks > 1 && splits_backward(o.schedule))
      throw model_error(text() << "mode pipeline: in the schedule " << schedule_name(o.schedule)
                               << " each rank has one stage, not " << o.chunks
                               << "; take one, or 1f1b");
  }

  pipeline_plan run() {
    find_axes();
    const int places = p_.mesh[p_.axis].size;
    text fault;
    for (int n = o_.microbatches ? o_.microbatches : 2 * places; n >= 1; --n) {
      fault = text();
      if (p_.chunks > 1 && n % places != 0)
        fault << "with " << p_.chunks << " stages on each of " << places
              << " ranks microbatches are a multiple of the ranks, not " << n;
      if (fault.empty() && divides(n, fault)) make(n, fault);
      if (fault.empty()) return std::move(p_);
      if (o_.microbatches) break;
      if (p_.needs_whole_batch) n = n / 2 + 1;
    }
    throw model_error(text() << "mode pipeline: " << fault);
  }

 private:
  void find_axes() {
    const device_mesh& m = p_.mesh;
    p_.axis = m.find(o_.axis.empty() ? "pipe" : o_.axis);
    if (o_.axis.empty() && p_.axis < 0) p_.axis = m.find("model");
    if (o_.axis.empty() && p_.axis < 0) p_.axis = m.axis_count - 1;
    if (p_.axis < 0)
      throw model_error(text() << "mode pipeline: the mesh " << mesh_text(m)
                               << " has no axis called " << o_.axis);
    data_ = m.find("data") == p_.axis ? -1 : m.find("data");
    for (int a = 0; a < m.axis_count; ++a)
      if (a != p_.axis && a != data_ && m[a].size > 1)
        throw model_error(text() << "mode pipeline: stages are along the axis "
                                 << m[p_.axis].name.view() << " of the mesh " << mesh_text(m)
                                 << ", and samples along data; nothing is along "
                                 << m[a].name.view());
  }
  /// Whether all microbatches of a rank have as many samples.
  bool divides(int microbatches, text& fault) const {
    const int ranks = data_ < 0 ? 1 : p_.mesh[data_].size;
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) {
      const tensor_type t = g_.type(g_.input(int(i)));
      if (g_.inputs[i].role != input_role::argument || t.rank() == 0) continue;
      if (t[0] % microbatches == 0 && t[0] / microbatches >= ranks &&
          (microbatches == 1 || t[0] % (microbatches * ranks) == 0))
        continue;
      fault << "the argument " << g_.view(g_.inputs[i].name) << " " << t
            << " is not divided evenly by " << microbatches << " microbatches";
      if (ranks > 1) fault << " on " << ranks << " ranks of the axis data";
      return false;
    }
    return true;
  }
  void make(int microbatches, text& fault) {
    p_.pieces = p_.mesh;
    p_.pieces.axes[std::size_t(p_.axis)].name = axis_name("microbatch");
    p_.pieces.axes[std::size_t(p_.axis)].size = microbatches;
    p_.pieces.axes[std::size_t(p_.axis)].whole_sums = true;
    if (decided_) {
      p_.choices = decided_->choices;
      p_.cut = decided_->cut;
    } else {
      choose(fault);
      p_.cut.clear();
    }
    if (!fault.empty()) return;
    p_.piece = piece_of(p_, g_, 0);
    fault = p_.piece.fault;
    if (!fault.empty()) return;
    p_.phase = phase_finder(p_.piece, p_.axis).run(fault);
    if (microbatches > 1) p_.needs_whole_batch = !fault.empty();
    if (!fault.empty()) {
      fault << ", so that the batch is not divided into microbatches; take one, or another mode";
      return;
    }
    stage_finder stages(p_);
    stages.run();
    if (p_.fault.empty()) {
      if (splits_backward(p_.schedule)) split_backward(p_);
      p_.again = computed_again(p_.piece.graph, p_.phase);
      value_finder(p_).run();
    }
    fault = p_.fault;
    if (fault.empty()) measure(stages);
  }
  /// How each node lies, with its samples in microbatches.
  void choose(text& fault) {
    strategy s{mode::semi_automatic};
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) {
      if (g_.inputs[i].role != input_role::argument || !g_.type(g_.input(int(i))).rank()) continue;
      const std::string_view label = g_.view(g_.inputs[i].name);
      s.tensors.push_back({label, "microbatch", 0});
      if (data_ >= 0) s.tensors.push_back({label, "data", 0});
    }
    stated_space stated = space_of(g_, p_.pieces, s);
    fault = stated.fault;
    if (!fault.empty()) return;
    for (list<node_choice>& only : stated.space.only)
      if (only.size() > 1) only.resize(1);  // sums are made whole
    p_.choices = search(g_, p_.pieces, stated.space).choices;
  }

  void measure(const stage_finder& stages) {
    const graph& g = p_.piece.graph;
    const int count = p_.stage_count();
    p_.stages.assign(std::size_t(count), {});
    for (node_id n : g.regions[0].nodes) {
      pipeline_stage& s = p_.stages[std::size_t(p_.stage[std::size_t(n)])];
      const step_phase at = p_.phase[std::size_t(n)];
      if (at == step_phase::anywhere) continue;
      const auto add_to = [&](step_phase pass) {
        (pass == step_phase::forward    ? s.forward_seconds
         : pass == step_phase::backward ? s.backward_seconds
         : pass == step_phase::weights  ? s.weights_seconds
                                        : s.update_seconds) += stages.seconds_of(n);
      };
      add_to(at);
      if (const step_phase pass = p_.again[std::size_t(n)]; is_gradient(pass)) add_to(pass);
      if (joins_pieces(g.nodes[std::size_t(n)], p_.axis))
        s.parameter_bytes += double(g.type(n).bytes());
    }
    for (std::size_t i = 0; i < g.inputs.size(); ++i) {
      const auto bytes = double(g.type(g.input(int(i))).bytes());
      for (int s = 0; s < count; ++s)
        if (p_.owner[i] < 0 || p_.owner[i] == s) p_.stages[std::size_t(s)].parameter_bytes += bytes;
    }
    const int places = p_.mesh[p_.axis].size;
    const bool splits = splits_backward(p_.schedule);
    for (int s = 0; s < count; ++s) {
      pipeline_stage& one = p_.stages[std::size_t(s)];
      const auto tasks =
          tasks_of_place(p_.schedule, p_.place_of(s), places, p_.chunks, p_.microbatches());
      const auto most = [&](step_phase from, step_phase to) {
        return most_between(tasks, s / places, from, to);
      };
      one.kept = most(step_phase::forward, splits ? step_phase::weights : step_phase::backward);
      for (const pipeline_value& v : p_.values) {
        const auto bytes = double(g.type(v.n).bytes());
        const step_phase last = v.last_pass(s);
        const bool forward = v.is_read(s, step_phase::forward), backward = is_gradient(last);
        if (is_of_microbatch(v.made) && v.made < last) {
          if (v.made == step_phase::forward) one.kept_bytes += bytes;
          if (last == step_phase::weights) one.weights_bytes += bytes;
          one.most_kept_bytes += bytes * most(v.made, last);
        }
        if (p_.place_of(s) == p_.place_of(v.stage)) continue;
        if (v.made == step_phase::anywhere) one.parameter_bytes += bytes;
        if (v.made == step_phase::forward && forward) one.forward_bytes += bytes;
        if (backward && (is_gradient(v.made) || !forward)) one.backward_bytes += bytes;
      }
    }
    const simulation predicted = simulate(p_);
    p_.seconds = predicted.seconds;
    p_.bubble = predicted.bubble;
  }

  const graph& g_;
  const pipeline_options& o_;
  const pipeline_decisions* decided_;
  int data_ = -1;  ///< the axis of the mesh along which samples are divided
  pipeline_plan p_;
};

}  // namespace detail

inline pipeline_plan make_pipeline(const graph& g, const device_mesh& m,
                                   const pipeline_options& o) {
  return detail::pipeline_maker(g, m, o).run();
}

}  // namespace cella::parallel
