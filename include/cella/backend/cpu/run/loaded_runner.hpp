// Runs graphs that exist at run time only on the kernels of compiled programs: planned when they
// are loaded, fused lines as data.
#pragma once

#include <cassert>
#include <cella/backend/cpu/backend.hpp>
#include <cella/backend/cpu/lower/loaded_step.hpp>
#include <cella/backend/cpu/plan/loaded_planning.hpp>
#include <cella/backend/cpu/run/kernel_calls.hpp>
#include <cella/plan/make_plan.hpp>
#include <deque>
#include <span>

namespace cella::cpu {

/// The records of kernels that run plain tensors and images in blocks of any extents.
using loaded_records = join_records<
    record_list<
        elementwise_record, reduce_record, rows_record, product_record,
        attention_record<step_kind::attention>, attention_record<step_kind::attention_gradient>,
        convolution_record, convolution_input_gradient_record, convolution_weight_gradient_record,
        batch_norm_record<step_kind::batch_norm>, batch_norm_record<step_kind::batch_norm_gradient>,
        softmax_record, cross_entropy_record, best_position_record, copy_record, permute_record,
        gather_record, scatter_record, max_pool_plain_record, unpool_record, pool_gather_record,
        average_pool_record, average_spread_record, random_stream_record, random_uniform_record>,
    block_records, record_list<default_record>>::type;

/// A planned graph of element type T on the CPU. Calls allocate nothing.
template <class T>
class loaded_runner {
 public:
  /// Why this tier cannot run `g`; empty if it can. Control flow runs in compiled programs and in
  /// the interpreter.
  static text refusal(const graph& g) {
    for (node_id n : g.regions[0].nodes) {
      const node& x = g.nodes[std::size_t(n)];
      if (x.op->form != control_form::none || x.type.element == dtype::record)
        return text() << x.op->name << " is control flow";
      if (x.op->pointwise && !find_opcode<T>(x.op, truths_of(g, n)))
        return text() << "there is no kernel for " << x.op->name << " on these types";
    }
    return {};
  }

  /// `g` has been through the passes, and `refusal` has nothing to say of it.
  explicit loaded_runner(graph g, thread_pool* threads = nullptr)
      : graph_(cella::detail::with_stored_records(std::move(g))) {
    const planner<loaded_planning> made(graph_, {.element = dtype_of<T>, .inputs_apart = true});
    if (!made.fault().empty()) throw error(made.fault());
    plan_ = made.result();
    for (plan_step& s : plan_.steps) in_elements(s, lanes<T>);
    for (const plan_step& s : plan_.steps) lines_.push_back(lines_of_step<T>(graph_, s));
    for (std::size_t i = 0; i < plan_.steps.size(); ++i) add_calls(int(i));
    context_.threads = threads;
    arena_ = aligned_buffer(std::size_t(plan_.arena_bytes));
    scratch_ = aligned_buffer(std::size_t(scratch_bytes_ * (threads ? threads->capacity() : 1)));
    spaces_.assign(std::size_t(first_argument) + graph_.inputs.size(), nullptr);
    spaces_[arena_space] = arena_.data();
    spaces_[constant_space] = reinterpret_cast<std::byte*>(graph_.constants.words.data());
    memory_ = {spaces_.data(), &context_};
  }
  loaded_runner(const loaded_runner&) = delete;
  loaded_runner& operator=(const loaded_runner&) = delete;

  const graph& source() const { return graph_; }
  const growing_plan& plan() const { return plan_; }

  /// Where the main region's input `i` lies from now on, row-major.
  void bind(std::size_t i, std::byte* at) {
    std::byte*& space = spaces_[std::size_t(first_argument) + i];
    if (space != at && owned_by_cell(graph_.inputs[i].role)) prepared_ = false;
    space = at;
  }
  /// Parameters have other values than in the last call.
  void prepare_again() { prepared_ = false; }
  /// Runs the graph. Inputs that it updates have their new values then.
  void run() {
    prepare();
    for (const call& c : calls_) run(c);
  }
  /// Makes what is the same in all runs, unless that is done.
  void prepare() {
    if (prepared_) return;
    for (const call& c : preparation_) run(c);
    prepared_ = true;
  }
  /// The calls of a run behind its preparation, one by one, and the step that each belongs to.
  std::size_t call_count() const { return calls_.size(); }
  void run_call(std::size_t k) { run(calls_[k]); }
  int step_of(std::size_t k) const { return int(&calls_[k].step->s - plan_.steps.data()); }
  const memory& addresses() const { return memory_; }
  int thread_count() const { return context_.threads ? context_.threads->size() : 1; }
  /// Result `k` of the last run, valid until the next.
  tensor_ref result(int k) const {
    const plan_value& r = plan_.results[std::size_t(k)];
    return {memory_.at<std::byte>(r.at), graph_.type(r.value)};
  }

 private:
  struct call {
    void (*run)(const loaded_step<T>&, const memory&, work_range, std::byte*){};
    int units{};
    const loaded_step<T>* step{};
  };

  void add_calls(int i) {
    const plan_step& s = plan_.steps[std::size_t(i)];
    if (s.carried) return;
    const std::size_t found = loaded_records::find(s);
    if (found == loaded_records::size)
      throw error(text() << "this graph cannot be planned at run time: there is no kernel for a "
                         << name(s.kind));
    steps_.push_back({graph_, plan_, s, lines_[std::size_t(i)]});
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
  void run(const call& c) {
    share_units(c.units, context_.threads, scratch_.data(), scratch_bytes_,
                [&](work_range units, std::byte* own) { c.run(*c.step, memory_, units, own); });
  }

  graph graph_;
  growing_plan plan_;
  std::deque<step_lines<T>> lines_;
  std::deque<loaded_step<T>> steps_;  // calls refer to them
  list<call> preparation_, calls_;
  bool prepared_ = false;
  std::int64_t scratch_bytes_ = 0;
  aligned_buffer arena_, scratch_;
  list<std::byte*> spaces_;
  run_context context_;
  memory memory_;
};

}  // namespace cella::cpu
