// Runs a model's training steps and its inference: compiled programs, eager mode, and graphs traced
// at run time for batches that nothing was compiled for; all on the same memory.
#pragma once

#include <cella/runtime/executable.hpp>
#include <cella/train/input.hpp>
#include <cella/train/lazy.hpp>
#include <cella/train/step.hpp>
#include <cella/train/traced_steps.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

namespace cella {

/// How a model runs.
enum class execution : std::uint8_t {
  graph,   ///< by programs that are compiled with it
  eager,   ///< node by node, with values that can be read
  runtime  ///< traced and planned when it is first used, on the kernels of cella::kernels
};

/// What a model's type is made for.
struct model_options {
  int batch = 32;  ///< samples per training step
  dtype precision = dtype::f32;
  /// False: no programs are compiled, which takes most of the compiler's time, and the model runs
  /// in the other two modes: eagerly, where cells may branch on values, or planned at run time.
  bool compiled = !in_development;
};

namespace detail {

/// Takes the place of a refused net in programs, so that the net's fault remains the only error.
struct refused_net {
  constexpr var operator()(var x) const {
    return constant(*x.b, 0, {x.b->precision, {x.extent(0), 2}});
  }
};
/// What the compiler finds when it traces a net for inference.
template <class Net, dtype Precision, class Input, bool Compiled>
struct traced_net {
  using make = make_graph<Net, false, Precision, Input>;
  static constexpr bool accepted = is_made<make>;
  using fault = graph_fault_of<make>;
  using accepted_net = std::conditional_t<accepted, Net, refused_net>;
  static constexpr tensor_type output() {
    if constexpr (accepted) return frozen<make>.type(frozen<make>.region_outputs(0)[0]);
    return {Precision, {Input::type[0], 2}};
  }
};
/// Without programs only the element type of the output counts: the rest is known at run time.
template <class Net, dtype Precision, class Input>
struct traced_net<Net, Precision, Input, false> {
  static constexpr bool accepted = true;
  using fault = wrong_model<>;
  using accepted_net = Net;
  static constexpr tensor_type output() { return {Precision, {Input::type[0], 1}}; }
};
template <auto Loss>
constexpr tensor_type target_of(const tensor_type& prediction) {
  if constexpr (requires { Loss.target(prediction); })
    return Loss.target(prediction);
  else
    return prediction;
}
template <auto Loss>
struct loss_cell {
  constexpr var operator()(var prediction, var target) const { return Loss(prediction, target); }
};
/// `type`, which is for `batch` samples, for another number of them.
constexpr tensor_type for_rows(tensor_type type, std::int64_t batch, std::int64_t rows) {
  if (type.rank()) type.shape[0] = int(type.shape[0] / batch * rows);
  return type;
}

}  // namespace detail

template <class Net, sample_spec Input, auto Loss, auto Optimizer, model_options Options>
class engine {
  static_assert(Options.batch > 0, "a model needs a batch of at least 1");
  static_assert(is_floating(Options.precision), "a model's parameters are floating-point numbers");

 public:
  static constexpr std::int64_t batch = Options.batch;
  static constexpr dtype precision = Options.precision;
  using number = element<precision>;
  using input_tensor = typename Input::template batch<precision, Options.batch>;
  static constexpr tensor_type input_type = input_tensor::type;
  using trace_result = detail::traced_net<Net, precision, input_tensor, Options.compiled>;
  static constexpr tensor_type traced_output = trace_result::output();
  static constexpr tensor_type target_tensor = detail::target_of<Loss>(traced_output);
  using input_element = element<input_type.element>;
  using output_element = element<traced_output.element>;
  using target_element = element<target_tensor.element>;
  using step_cell = training_step<Net, fixed<Loss>, fixed<Optimizer>>;
  /// The compiled training step, and inference for `Rows` samples.
  using training =
      program<training_step<typename trace_result::accepted_net, fixed<Loss>, fixed<Optimizer>>,
              true, precision, input_tensor, typename detail::tensor_of<target_tensor>::type>;
  template <int Rows>
  using inference = program<typename trace_result::accepted_net, false, precision,
                            typename Input::template batch<precision, Rows>>;

  /// What inference runs on. `shared`: others predict on the same parameters at the same time.
  struct inference_setting {
    execution mode;
    Net& net;
    parameter_store& store;
    const tensor_type& output_type;
    thread_pool* threads{};
    bool shared{};
  };
  /// Inference for one caller at a time: programs with arenas of their own, made on first use.
  class inference_path {
   public:
    /// Predictions of any number of samples, written to `out`. Samples do not see each other in
    /// inference, so that programs can be padded: rows that fill up a last batch are zero and their
    /// results are dropped.
    void run(const inference_setting& on, const input_element* x, std::int64_t rows,
             output_element* out) {
      const std::int64_t in = input_type.size() / batch;
      const std::int64_t each = on.output_type.size() / batch;
      if (on.mode == execution::eager) {
        if (rows > 0) run_here(on, x, rows, out);
        return;
      }
      if (on.mode == execution::runtime) {
        for (; rows > 0; rows -= batch, x += batch * in, out += batch * each)
          run_here(on, x, std::min(rows, batch), out);
        return;
      }
      if constexpr (Options.compiled) {
        for (; rows >= batch; rows -= batch, x += batch * in, out += batch * each) {
          run_batch<int(batch)>(many_, on, x, batch, out);
        }
        if (rows == 1) {
          run_batch<1>(one_, on, x, 1, out);
        } else if (rows > 0) {
          padded_.assign(std::size_t(input_type.size()), input_element{});
          std::copy(x, x + rows * in, padded_.begin());
          run_batch<int(batch)>(many_, on, padded_.data(), rows, out);
        }
      }
    }

   private:
    /// Without a program: eagerly, or by a graph that is traced for so many samples.
    void run_here(const inference_setting& on, const input_element* x, std::int64_t rows,
                  output_element* out) {
      const std::array types{for_rows(input_type, rows)};
      const std::array arguments{tensor_ref{bytes_of(x), types[0]}};
      runtime_path run({&on.store, nullptr, arguments, {}, on.shared},
                       detail::compute_alone<number>());
      const trace_options options{false, precision};
      if (on.mode == execution::eager)
        run.run_eagerly(on.net, types, options);
      else
        traced_.get(rows, on.net, types, options, on.threads).run(run);
      std::memcpy(out, run.result(0).data, std::size_t(run.result(0).type.bytes()));
    }
    template <int Rows>
    static void run_batch(lazy<executable<inference<Rows>>>& compiled, const inference_setting& on,
                          const input_element* x, std::int64_t valid, output_element* out) {
      auto& program = compiled.get(on.store, on.threads);
      program(x);
      const auto y = program.template result<0>();
      std::copy(y.begin(), y.begin() + std::ptrdiff_t(on.output_type.size() / batch * valid), out);
    }

    lazy<executable<inference<int(batch)>>> many_;
    lazy<executable<inference<1>>> one_;
    detail::traced_steps traced_;
    std::vector<input_element> padded_;
  };
  /// Whether the compiled net gives its states or its random state new values when it predicts.
  static constexpr bool inference_changes_states() {
    bool changes = false;
    if constexpr (Options.compiled) {
      for (const output_info& o : inference<int(batch)>::graph.outputs) changes |= o.updates >= 0;
    }
    return changes;
  }

  /// `threads`: as for `thread_pool`, but one where neither it nor CELLA_THREADS is set.
  engine(std::uint64_t seed, execution how, std::optional<int> threads)
      : mode(how), store_(step_.net, seed, precision) {
    check_mode(mode);
    const int count = thread_count(threads, 1);
    if (count > 1 && (Options.compiled || has_compiled_kernels))
      threads_ = std::make_unique<thread_pool>(count);
    if (!Options.compiled) ask_output_type();
  }

  execution mode;
  /// Throws unless the model can run so.
  static void check_mode(execution mode) {
    if (mode == execution::graph && !Options.compiled)
      throw error(
          "this model has nothing compiled (model_options::compiled is false); run it with "
          "execution::eager or execution::runtime");
    if (mode == execution::runtime && !has_compiled_kernels)
      throw error(
          "execution::runtime needs the kernels that are compiled once; link cella::kernels, or "
          "run the model with execution::graph or execution::eager");
  }

  Net& net() { return step_.net; }
  parameter_store& parameters() { return store_; }
  const parameter_store& parameters() const { return store_; }
  /// Made on first use: a model that only predicts has no optimizer state.
  slot_store& slots() {
    if (!slots_) slots_.emplace(optimizer_graph());
    return *slots_;
  }
  /// What the net yields for a batch, and what the loss compares it with.
  const tensor_type& output_type() const { return output_type_; }
  const tensor_type& target_type() const { return target_type_; }

  /// One of the types above for another number of samples.
  static constexpr tensor_type for_rows(const tensor_type& type, std::int64_t rows) {
    return detail::for_rows(type, batch, rows);
  }

  struct step_result {
    double loss{};
    /// Valid until the next step.
    data::tensor_view<const output_element> prediction;
  };
  /// One step on `rows` samples. A full batch runs the program. A last, smaller batch counts
  /// exactly: the same training step is traced for its size at run time, kept, and run on the same
  /// parameters and optimizer state, which is right for batch norm, too. Linked with
  /// `cella::kernels` it is planned and runs on the kernels; else it is interpreted, slower.
  step_result train(const input_element* x, const target_element* y, std::int64_t rows,
                    std::int64_t step, double learning_rate) {
    check_labels(y, rows);
    slots();
    if constexpr (Options.compiled) {
      if (mode == execution::graph && rows == batch) {
        auto& program = trainer_.get(store_, threads_.get(), slots_->data());
        constexpr int rate = training::scalar("learning_rate"), count = training::scalar("step");
        if (rate >= 0) program.scalar(rate, learning_rate);
        if (count >= 0) program.scalar(count, double(step));
        program(x, y);
        keep_frozen();
        return {double(program.template result<0>()[0]),
                {program.template result<1>().data(), output_type_.shape}};
      }
    }
    const auto types = step_types(rows);
    const std::array arguments{tensor_ref{bytes_of(x), types[0]},
                               tensor_ref{bytes_of(y), types[1]}};
    const std::array<named_scalar, 2> scalars{
        {{"learning_rate", learning_rate}, {"step", double(step)}}};
    run_.emplace(input_memory{&store_, &*slots_, arguments, scalars},
                 detail::compute_alone<number>());
    if (mode == execution::eager)
      run_->run_eagerly(step_, types, {true, precision});
    else
      steps_.get(rows, step_, types, {true, precision}, threads_.get()).run(*run_);
    keep_frozen();
    store_.touch();
    return {read_element(run_->result(0), 0), view<output_element>(run_->result(1))};
  }

  /// The engine's own inference: see `inference_path::run`.
  void infer(const input_element* x, std::int64_t rows, output_element* out) {
    inference_.run({mode, step_.net, store_, output_type_, threads_.get()}, x, rows, out);
  }

  /// The mean loss of predictions that were made for `rows` samples.
  double loss(const output_element* prediction, const target_element* y, std::int64_t rows) {
    check_labels(y, rows);
    const std::array types{for_rows(output_type_, rows), for_rows(target_type_, rows)};
    const std::array arguments{tensor_ref{bytes_of(prediction), types[0]},
                               tensor_ref{bytes_of(y), types[1]}};
    runtime_path run({&store_, nullptr, arguments, {}}, detail::compute_alone<number>());
    losses_.get(rows, loss_, types, {false, precision}, threads_.get()).run(run);
    return read_element(run.result(0), 0);
  }

  /// Throws `error` if one of the labels of `rows` samples is none of the model's classes.
  void check_labels([[maybe_unused]] const target_element* y, [[maybe_unused]] std::int64_t rows) {
    if constexpr (requires { Loss.classes(output_type_); }) {
      const std::int64_t classes = Loss.classes(output_type_);
      for (std::int64_t i = 0; i < for_rows(target_type_, rows).size(); ++i) {
        if (std::int64_t(y[i]) >= 0 && std::int64_t(y[i]) < classes) continue;
        throw error(text() << "label " << std::int64_t(y[i]) << " of sample " << i
                           << " of a batch is outside the model's " << classes
                           << " classes, which count from 0; mend the data or the model");
      }
    }
  }

  /// Keeps these tensors as they are now, through all steps to come.
  void freeze(const std::vector<tensor_ref>& tensors) {
    for (const tensor_ref& t : tensors) {
      frozen_.push_back({t, {t.data, t.data + t.type.bytes()}});
    }
  }
  void thaw_all() { frozen_.clear(); }

 private:
  struct frozen_tensor {
    tensor_ref tensor;
    std::vector<std::byte> value;
  };

  std::array<tensor_type, 2> step_types(std::int64_t rows) const {
    return {for_rows(input_type, rows), for_rows(target_type_, rows)};
  }
  static std::byte* bytes_of(const void* p) {
    return const_cast<std::byte*>(static_cast<const std::byte*>(p));
  }
  template <class T>
  static data::tensor_view<const T> view(const tensor_ref& t) {
    return {reinterpret_cast<const T*>(t.data), t.type.shape};
  }
  /// The optimizer's rule for each parameter: its inputs are those of the training step, without
  /// the net, which may not be traceable.
  graph optimizer_graph() {
    builder b;
    b.precision = precision;
    bind_cell(b, step_.net);
    const std::size_t owned = b.g.inputs.size();
    optim::gradient_list g{&b};
    for (std::size_t i = 0; i < owned; ++i) {
      const input_info& in = b.g.inputs[i];
      if (in.role != input_role::parameter || !optim::takes(Optimizer, b.g.view(in.name))) continue;
      const tensor_type t = b.g.type(b.g.input(int(i)));
      g.all.push_back({std::int32_t(i), {&b, b.input(t, input_role::argument, "gradient")}});
    }
    optim::update(Optimizer, g);
    return std::move(b.g);
  }
  /// From the net's graph; in eager mode, where it may have none, by running the net on zeros,
  /// after which random numbers that it drew are put back.
  void ask_output_type() {
    if (mode == execution::runtime) {
      const graph g = trace(step_.net, std::array{input_type}, {false, precision});
      output_type_ = g.type(g.regions[0].outputs[0]);
      target_type_ = detail::target_of<Loss>(output_type_);
      return;
    }
    const std::array random{store_.random_state()[0], store_.random_state()[1]};
    const std::vector<input_element> zeros(std::size_t(input_type.size()));
    const std::array arguments{tensor_ref{bytes_of(zeros.data()), input_type}};
    runtime_path run({&store_, nullptr, arguments, {}}, detail::compute_alone<number>());
    run.run_eagerly(step_.net, std::array{input_type}, {false, precision});
    output_type_ = run.result(0).type;
    target_type_ = detail::target_of<Loss>(output_type_);
    std::copy(random.begin(), random.end(), store_.random_state());
  }

  void keep_frozen() {
    for (const auto& f : frozen_) {
      if (!f.value.empty()) std::memcpy(f.tensor.data, f.value.data(), f.value.size());
    }
  }

  step_cell step_{};
  detail::loss_cell<Loss> loss_{};
  parameter_store store_;
  tensor_type output_type_ = traced_output;
  tensor_type target_type_ = target_tensor;
  std::optional<slot_store> slots_;
  std::unique_ptr<thread_pool> threads_;
  lazy<executable<training>> trainer_;
  inference_path inference_;
  std::optional<runtime_path> run_;
  detail::traced_steps steps_, losses_;
  std::vector<frozen_tensor> frozen_;
};

}  // namespace cella
