// Runs a model's training steps and its inference: compiled programs, eager mode, and graphs traced
// at run time for batches that nothing was compiled for; all on the same memory.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/host/threads.hpp>
#include <cella/graph/once.hpp>
#include <cella/runtime/program_names.hpp>
#include <cella/train/columns.hpp>
#include <cella/train/kept_tensors.hpp>
#include <cella/train/lazy.hpp>
#include <cella/train/mesh_trainer.hpp>
#include <cella/train/model_options.hpp>
#include <cella/train/optimizer_graph.hpp>
#include <cella/train/step.hpp>
#include <cella/train/traced_net.hpp>
#include <cella/train/traced_steps.hpp>
#include <cstring>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#if !defined(CELLA_DEVELOPMENT)  // where nothing is compiled
#include <cella/runtime/executable.hpp>
#endif

namespace cella {

namespace detail {
/// A cell with its members' values. Of a large net these are thousands of stores in a row, on which
/// an optimizer would spend a tenth of its time.
template <class Cell>
CELLA_UNOPTIMIZED Cell made() {
  return Cell{};
}
}  // namespace detail

template <class Net, model_inputs Input, auto Loss, auto Optimizer, model_options Options>
class engine {
 public:
  static constexpr std::int64_t batch = Options.batch;
  static constexpr dtype precision = Options.precision;
  using number = element<precision>;
  using input_type = Input;
  using specs = detail::specs_of<Input>;
  using given = detail::traced_inputs<Input>;  ///< to the net and the loss
  /// The net as a cell that takes one var for each input.
  using net_cell = detail::net_cell<Net, given>;
  using trace_result =
      detail::traced_net<net_cell, precision, Options.batch, specs, Options.compiled>;
  using step_cell = detail::step_of<Net, Input, Loss, Optimizer, Options.compute>;
  using loss_call = typename step_cell::loss_call;

  static constexpr auto input_types = specs::template types<precision, Options.batch>;
  static constexpr auto output_count =
      std::size_t(detail::var_count<typename step_cell::outputs>());
  static constexpr std::array<tensor_type, output_count> traced_outputs = trace_result::outputs();
  using labels = typename loss_call::labels;  ///< a var, or a struct
  static constexpr auto traced_targets =
      detail::targets_of<Loss, labels, precision, Options.batch>(traced_outputs[0]);
  static constexpr std::size_t input_count = input_types.size();
  static constexpr std::size_t target_count = loss_call::targets;  ///< 0: the loss takes none
  static constexpr bool ignores_labels = requires { Loss.ignores(std::int64_t{}); };

  using input_columns = detail::columns_of<input_types>;
  using output_columns = detail::columns_of<traced_outputs>;
  using target_columns = detail::columns_of<traced_targets>;
  using inputs = std::array<std::byte*, input_count>;    ///< addresses that are only read
  using targets = std::array<std::byte*, target_count>;  ///< the same
  using outputs = std::array<std::byte*, output_count>;  ///< and of memory for results
  /// The compiled training step, and inference for `Rows` samples.
  using training =
      detail::training_program<training_step<typename trace_result::accepted_net, fixed<Loss>,
                                             fixed<Optimizer>, given, Options.compute>,
                               precision, Options.batch, specs, labels, traced_targets[0],
                               target_count>;
  template <int Rows>
  using inference =
      typename specs::template program<typename trace_result::accepted_net, false, precision, Rows>;

  /// What inference runs on. `shared`: others predict on the same parameters at the same time.
  struct inference_setting {
    execution mode;
    net_cell& net;
    parameter_store& store;
    const std::array<tensor_type, output_count>& output_types;
    thread_pool* threads{};
    bool shared{};
  };
  /// Inference for one caller at a time: programs with arenas of their own, made on first use.
  class inference_path {
   public:
    /// Predictions of any number of samples, written to `out`. Samples do not see each other in
    /// inference, so that programs can be padded: rows that fill up a last batch are zero and their
    /// results are dropped.
    void run(const inference_setting& on, inputs x, std::int64_t rows, outputs out) {
      const auto next = [&] {
        x = detail::behind(x, input_types, batch, batch);
        out = detail::behind(out, on.output_types, batch, batch);
        rows -= batch;
      };
      if (on.mode == execution::eager) {
        if (rows > 0) run_here(on, x, rows, out);
        return;
      }
      if (on.mode == execution::runtime) {
        for (; rows > 0; next()) run_here(on, x, std::min(rows, batch), out);
        return;
      }
      if constexpr (Options.compiled) {
        for (; rows >= batch; next()) run_batch<int(batch)>(many_, on, x, batch, out);
        if (rows == 1) {
          run_batch<1>(one_, on, x, 1, out);
        } else if (rows > 0) {
          inputs padded{};
          for (std::size_t k = 0; k < input_count; ++k) {
            padded_[k].assign(std::size_t(input_types[k].bytes()), std::byte{});
            std::copy_n(x[k], input_types[k].bytes() / batch * rows, padded_[k].begin());
            padded[k] = padded_[k].data();
          }
          run_batch<int(batch)>(many_, on, padded, rows, out);
        }
      }
    }

    /// Whether predictions change states, or draw random numbers: asked of the net as it is traced.
    bool changes_states(const inference_setting& on) {
      const auto types = for_rows(input_types, batch);
      const auto trace = [&](builder& b) { trace_into(b, on.net, types); };
      return traced_.get(batch, trace, {false, precision}, on.threads).changes_inputs();
    }

   private:
    /// Without a program: eagerly, or by a graph that is traced for so many samples.
    void run_here(const inference_setting& on, const inputs& x, std::int64_t rows,
                  const outputs& out) {
      const auto types = for_rows(input_types, rows);
      const auto arguments = detail::memory_of(x, types);
      runtime_path run({&on.store, nullptr, arguments, {}, on.shared},
                       detail::compute_alone<number>());
      const trace_options options{false, precision};
      const auto trace = [&](builder& b) { trace_into(b, on.net, types); };
      if (on.mode == execution::eager)
        run.run_eagerly(trace, options);
      else
        traced_.get(rows, trace, options, on.threads).run(run);
      for (std::size_t k = 0; k < output_count; ++k) {
        const tensor_ref& y = run.result(int(k));
        std::memcpy(out[k], y.data, std::size_t(y.type.bytes()));
      }
    }
    template <int Rows>
    static void run_batch(detail::lazy<executable<inference<Rows>>>& compiled,
                          const inference_setting& on, const inputs& x, std::int64_t valid,
                          const outputs& out) {
      auto& program = compiled.get(on.store, on.threads);
      std::apply([&](const auto*... column) { program.call_unchecked(column...); }, x);
      [&]<std::size_t... K>(std::index_sequence<K...>) {
        (std::memcpy(out[K], program.template result<int(K)>().data(),
                     std::size_t(on.output_types[K].bytes() / batch * valid)),
         ...);
      }
      (std::make_index_sequence<output_count>{});
    }

    detail::lazy<executable<inference<int(batch)>>> many_;
    detail::lazy<executable<inference<1>>> one_;
    detail::traced_steps traced_;
    std::array<std::vector<std::byte>, input_count> padded_;
  };
  /// Whether the compiled net gives its states or its random state new values when it predicts.
  static constexpr bool inference_changes_states() {
    bool changes = false;
    if constexpr (Options.compiled) {
      for (const output_info& o : inference<int(batch)>::graph.outputs) changes |= o.updates >= 0;
    }
    return changes;
  }

  /// Of threads there is one where neither the option nor CELLA_THREADS is set.
  explicit engine(const run_options& o)
      : mode(o.mode ? *o.mode : detail::mode_of_environment(Options.compiled, o.on_mesh())),
        store_(net(), o.seed, precision) {
    detail::check_mode(mode, Options.compiled, o.on_mesh());
    const int count = thread_count(o.threads, 1);
    if (count > 1 && (Options.compiled || has_compiled_kernels))
      threads_ = std::make_unique<thread_pool>(count);
    if (!Options.compiled) ask_output_types();
    if (!o.on_mesh()) return;
    const auto trace = [this](std::int64_t rows) {
      return cella::trace(step_, step_types(rows), {true, precision});
    };
    mesh_ = (*o.mesh)({trace, batch, precision, &store_,
                       [this]() -> slot_store& { return own_slots(); }, threads_.get()});
  }

  execution mode;

  Net& net() {
    if constexpr (std::is_same_v<net_cell, Net>)
      return step_.net;
    else
      return step_.net.net;
  }
  net_cell& cell() { return step_.net; }
  parameter_store& parameters() {
    gather();
    return store_;
  }
  slot_store& slots() {
    gather();
    return own_slots();
  }
  /// The ranks that train the model together, or null.
  train::mesh_trainer* mesh() const { return mesh_.get(); }
  /// What ranks have in parts comes into the stores.
  void gather() {
    if (mesh_) mesh_->gather();
  }
  /// What the net yields for a batch, and what the loss compares it with.
  const std::array<tensor_type, output_count>& output_types() const { return output_types_; }
  const auto& target_types() const { return target_types_; }

  /// One or all of the types above for another number of samples.
  static constexpr auto for_rows(const auto& types, std::int64_t rows) {
    return detail::for_rows(types, batch, rows);
  }

  using input_pointers = typename input_columns::pointers;
  using output_places = typename output_columns::places;
  using answer = typename output_columns::answer;
  /// The first elements of arrays of samples, one for each input, and the number of samples.
  template <array_like... A>
  static std::pair<input_pointers, std::int64_t> samples_of(const A&... arrays) {
    return detail::samples_of_all<Input, input_columns>(arrays...);
  }
  static targets targets_at([[maybe_unused]] const typename target_columns::pointers& y) {
    if constexpr (target_count > 0)
      return detail::addresses_of(y);
    else
      return {};
  }
  /// Predictions for `rows` samples, which `write(output_places)` makes.
  template <class Write>
  answer make_answer(std::int64_t rows, Write write) const {
    auto all = output_columns::make_predictions(for_rows(output_types_, rows));
    std::apply([&](auto&... p) { write(output_places(p.data()...)); }, all);
    return output_columns::answer_of(std::move(all));
  }

  struct step_result {
    double loss{};
    /// Valid until the next step.
    std::array<tensor_ref, output_count> prediction;
  };
  /// One step on `rows` samples. A full batch runs the program. A last, smaller batch counts
  /// exactly: the same training step is traced for its size at run time, kept, and run on the same
  /// parameters and optimizer state, which is right for batch norm, too. Linked with
  /// `cella::kernels` it is planned and runs on the kernels; else it is interpreted, slower.
  /// On a mesh x and y are this rank's share of the samples.
  step_result train(const inputs& x, const targets& y, std::int64_t rows,
                    const data::batch_share& share, std::int64_t step, double learning_rate) {
    if (!mesh_) check_addresses(y);
    check_labels(y, share.count, share.first);
    own_slots();
    step_result r;
    if constexpr (Options.compiled) {
      if (mode == execution::graph && rows == batch) {
        auto& program = trainer_.get(store_, threads_.get(), slots_->data());
        constexpr int rate = training::scalar("learning_rate"), count = training::scalar("step");
        if (rate >= 0) program.scalar(rate, learning_rate);
        if (count >= 0) program.scalar(count, double(step));
        std::apply([&](const auto*... column) { program.call_unchecked(column...); },
                   step_arguments(x, y));
        frozen_tensors.put_back();
        r.loss = double(program.template result<0>()[0]);
        [&]<std::size_t... K>(std::index_sequence<K...>) {
          ((r.prediction[K] = {detail::byte_address(program.template result<int(K) + 1>().data()),
                               output_types_[K]}),
           ...);
        }
        (std::make_index_sequence<output_count>{});
        return r;
      }
    }
    const auto types = step_types(share.count);
    const auto arguments = detail::memory_of(step_arguments(x, y), types);
    const std::array<named_scalar, 2> scalars{
        {{"learning_rate", learning_rate}, {"step", double(step)}}};
    if (mesh_) {
      mesh_->step(rows, share, arguments, scalars);
      if (!frozen_tensors.empty()) mesh_->gather();
      frozen_tensors.put_back();
      r.loss = read_element(mesh_->result(0), 0);
      for (std::size_t k = 0; k < output_count; ++k) r.prediction[k] = mesh_->result(int(k) + 1);
      return r;
    }
    run_.emplace(input_memory{&store_, &*slots_, arguments, scalars},
                 detail::compute_alone<number>());
    const trace_options options{true, precision};
    const auto trace = [&](builder& b) { trace_into(b, step_, types); };
    if (mode == execution::eager)
      run_->run_eagerly(trace, options);
    else
      steps_.get(rows, trace, options, threads_.get()).run(*run_);
    frozen_tensors.put_back();
    store_.touch();
    r.loss = read_element(run_->result(0), 0);
    for (std::size_t k = 0; k < output_count; ++k) r.prediction[k] = run_->result(int(k) + 1);
    return r;
  }

  /// The engine's own inference: see `inference_path::run`.
  void infer(const inputs& x, std::int64_t rows, const outputs& out) {
    gather();
    inference_.run({mode, step_.net, store_, output_types_, threads_.get()}, x, rows, out);
  }
  /// Whether the ranks of a mesh predict some of the samples each: not if that changes states, or
  /// draws random numbers, which all ranks have in common.
  bool divides_inference() {
    return mesh_ &&
           !inference_.changes_states({mode, step_.net, store_, output_types_, threads_.get()});
  }

  // In engine_checks.hpp.
  /// The mean loss of predictions that were made for `rows` samples.
  double loss(const outputs& predictions, const inputs& x, const targets& y, std::int64_t rows);
  /// Throws `error` if one of the labels of `rows` samples, the first of which is number `first` of
  /// its batch, is none of the model's classes.
  void check_labels(const targets& y, std::int64_t rows, std::int64_t first = 0) const;
  /// How many of `rows` samples the mean loss is of: all but those that it ignores.
  std::int64_t counted(const targets& y, std::int64_t rows) const;

  /// Throws `error` if targets that the compiled step reads are nowhere. (Without one
  /// `runtime_path` sees it.)
  static void check_addresses(const targets& y);

  /// Tensors that keep their values through all steps.
  detail::kept_tensors frozen_tensors;

 private:
  using arguments_of_step = std::array<std::byte*, input_count + target_count>;
  std::array<tensor_type, input_count + target_count> step_types(std::int64_t rows) const {
    std::array<tensor_type, input_count + target_count> all;
    const auto end = std::ranges::copy(for_rows(input_types, rows), all.begin()).out;
    std::ranges::copy_n(for_rows(target_types_, rows).begin(), target_count, end);
    return all;
  }
  static arguments_of_step step_arguments(const inputs& x, const targets& y) {
    arguments_of_step all;
    std::ranges::copy(y, std::ranges::copy(x, all.begin()).out);
    return all;
  }
  /// From the net's graph; in eager mode, where it may have none, by running the net on zeros,
  /// after which random numbers that it drew are put back.
  void ask_output_types();
  /// Made on first use: a model that only predicts has no optimizer state.
  slot_store& own_slots() {
    if (slots_) return *slots_;
    if constexpr (optim::reads_graph<std::remove_cvref_t<decltype(Optimizer)>>())
      slots_.emplace(cella::trace(step_, step_types(batch), {true, precision}));
    else
      slots_.emplace(detail::optimizer_graph<Optimizer>(step_.net, precision));
    return *slots_;
  }

  step_cell step_ = detail::made<step_cell>();
  detail::loss_cell<fixed<Loss>, typename step_cell::outputs, given> loss_{};
  parameter_store store_;
  std::array<tensor_type, output_count> output_types_ = traced_outputs;
  std::array<tensor_type, traced_targets.size()> target_types_ = traced_targets;
  std::optional<slot_store> slots_;
  std::unique_ptr<thread_pool> threads_;
  detail::lazy<executable<training>> trainer_;
  inference_path inference_;
  std::optional<runtime_path> run_;
  detail::traced_steps steps_, losses_;
  std::unique_ptr<train::mesh_trainer> mesh_;
};

}  // namespace cella

#include <cella/train/engine_checks.hpp>
