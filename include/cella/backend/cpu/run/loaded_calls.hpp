// A plan that was made at run time as kernel calls, without the memory that they run on: of a whole
// graph, or of a region that control nodes run.
#pragma once

#include <cassert>
#include <cella/backend/cpu/backend.hpp>
#include <cella/backend/cpu/lower/loaded_step.hpp>
#include <cella/backend/cpu/plan/loaded_planning.hpp>
#include <cella/backend/cpu/run/kernel_calls.hpp>
#include <cella/backend/cpu/run/loaded_control.hpp>
#include <cella/backend/cpu/run/watch.hpp>
#include <deque>
#include <optional>

namespace cella::cpu {

/// The records of kernels that run tensors of any extents.
using loaded_records = join_records<
    record_list<elementwise_record, reduce_record, rows_record, product_record,
                attention_record<step_kind::attention>,
                attention_record<step_kind::attention_gradient>, convolution_record,
                convolution_input_gradient_record, convolution_weight_gradient_record,
                batch_norm_record<step_kind::batch_norm>,
                batch_norm_record<step_kind::batch_norm_gradient>, softmax_record,
                cross_entropy_record, best_position_record, fold_record, max_pool_plain_record,
                unpool_record, pool_gather_record, average_pool_record, average_spread_record>,
    movement_records, lanes_records, block_records, element_records, line_records, integer_records,
    special_records, matrix_records, records_of_operations>::type;

/// A planned graph of element type T. Runs change nothing in it, so that a function may call
/// itself.
template <class T>
class loaded_calls {
 public:
  struct call {
    void (*run)(const loaded_step<T>&, const memory&, work_range, std::byte*){};
    int units{};
    const loaded_step<T>* step{};
  };

  /// Plans the main region of `main`, a graph of the nodes of `g`, which outlives this. `bodies`
  /// get the regions of control nodes, which are planned later. `watched`: runs look for NaN.
  loaded_calls(const graph& g, const graph& main, const plan_options& options,
               loaded_bodies<T>& bodies, bool watched)
      : graph_(g), plan_(plan_of(cella::detail::with_stored_records(main), options)) {
    for (plan_step& s : plan_.steps) in_elements(s, lanes<T>);
    for (const plan_step& s : plan_.steps) lines_.push_back(lines_of_step<T>(graph_, s));
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) add_calls(int(i), bodies);
    if (watched) watch_.emplace(table_of(main));
  }
  loaded_calls(const loaded_calls&) = delete;
  loaded_calls& operator=(const loaded_calls&) = delete;

  const growing_plan& plan() const { return plan_; }
  const std::deque<loaded_control<T>>& control_steps() const { return control_; }
  std::int64_t scratch_bytes() const { return scratch_bytes_; }  ///< of each thread

  /// What is the same in all runs.
  void prepare(const memory& m, std::byte* scratch) const {
    for (const call& c : preparation_) run(c, m, scratch);
  }
  void run_all(const memory& m, std::byte* scratch) const {
    if (watch_) [[unlikely]]
      return run_watched(m, scratch);
    for (const call& c : calls_) run(c, m, scratch);
  }
  /// The calls of a run behind its preparation, one by one, and the step that each belongs to.
  std::size_t count() const { return calls_.size(); }
  void run(std::size_t k, const memory& m, std::byte* scratch) const { run(calls_[k], m, scratch); }
  int step_of(std::size_t k) const { return int(&calls_[k].step->s - plan_.steps.data()); }

 private:
  /// A group may come to read or write more than the fuser counted. Then groups are kept smaller.
  static growing_plan plan_of(const graph& main, const plan_options& options) {
    for (plan_target machine = loaded_planning::machine;;) {
      const planner<loaded_planning> made(main, options, machine);
      if (made.fault().empty()) return made.result();
      if (machine.most_reads == 1) throw error(made.fault());
      machine.most_reads /= 2;
      machine.most_writes = std::max(machine.most_writes / 2, 1);
    }
  }
  void add_calls(int i, loaded_bodies<T>& bodies) {
    const plan_step& s = plan_.steps[std::size_t(i)];
    if (s.carried) return;
    const std::size_t found = loaded_records::find(s);
    if (found == loaded_records::size)
      throw error(text() << "this graph cannot be planned at run time: there is no kernel for a "
                         << name(s.kind));
    steps_.push_back({graph_, plan_, s, lines_[std::size_t(i)]});
    if (s.kind == step_kind::control)
      steps_.back().control = &control_.emplace_back(graph_, plan_, s, bodies);
    [&]<std::size_t... K>(std::index_sequence<K...>) {
      ((found == K ? add_calls_of<loaded_records::at<K>>(steps_.back()) : void()), ...);
    }
    (std::make_index_sequence<loaded_records::size>{});
  }
  template <class Record>
  void add_calls_of(loaded_step<T>& step) {
    step.kernel_bytes = align_up(Record::scratch_bytes(step));
    scratch_bytes_ = std::max(scratch_bytes_, step.kernel_bytes + align_up(step.line_scratch()));
    const int phases = Record::phases(step);
    assert(phases <= Record::most_phases);
    [&]<int... Phase>(std::integer_sequence<int, Phase...>) {
      const auto add = [&]<int K>(std::integral_constant<int, K>) {
        if (K >= phases) return;
        const bool prepares = step.s.constant || (K == 0 && Record::prepares(step));
        (prepares ? preparation_ : calls_)
            .push_back({&run_phase<Record, K>, Record::units(step, K), &step});
      };
      (add(std::integral_constant<int, Phase>{}), ...);
    }
    (std::make_integer_sequence<int, Record::most_phases>{});
  }
  template <class Record, int Phase>
  static void run_phase(const loaded_step<T>& step, const memory& m, work_range units,
                        std::byte* scratch) {
    Record::template run<Phase>(step, m, units, scratch);
  }
  void run(const call& c, const memory& m, std::byte* scratch) const {
    share_units(c.units, m.context->threads, scratch, scratch_bytes_,
                [&](work_range units, std::byte* own) { c.run(*c.step, m, units, own); });
  }

  // ---- CELLA_DEBUG=nan

  /// What each step writes. Each input has a memory space of its own, whatever its role.
  growing_watch table_of(const graph& main) const {
    list<placed_input> inputs;
    for (node_id n : main.regions[0].inputs)
      inputs.push_back({n, {first_argument + int(inputs.size()), 0}});
    return detail::watch_maker(main, inputs, plan_.steps, plan_.links).table;
  }
  [[gnu::cold]] void run_watched(const memory& m, std::byte* scratch) const {
    flags& infinite = m.context->watch->infinite;
    infinite.resize(graph_.nodes.size());
    look_at_inputs<lanes<T>>(view_of(*watch_, graph_.characters), m, infinite);
    for (std::size_t k = 0; k < calls_.size(); ++k) {
      run(k, m, scratch);
      if (k + 1 == calls_.size() || step_of(k + 1) != step_of(k))
        look_at_step<lanes<T>>(view_of(*watch_, graph_.characters), m, infinite, step_of(k));
    }
  }

  const graph& graph_;
  growing_plan plan_;  // steps and calls refer to its steps
  std::deque<step_lines<T>> lines_;
  std::deque<loaded_control<T>> control_;
  std::deque<loaded_step<T>> steps_;  // calls refer to them
  list<call> preparation_, calls_;
  std::int64_t scratch_bytes_ = 0;
  std::optional<growing_watch> watch_;
};

}  // namespace cella::cpu
