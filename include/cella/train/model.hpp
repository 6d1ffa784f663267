// The model: a net with a loss and an optimizer that can be trained, measured, asked and saved.
//
//   using lenet = model<models::lenet5, image<1, 28, 28>, cross_entropy_loss{},
//                       optim::sgd{.momentum = 0.9}, model_options{.batch = 32}>;
//   lenet m({.seed = 1});
//   m.fit(train.shuffle(1), {.epochs = 3, .learning_rate = 0.05}, metrics::accuracy{});
//   m.evaluate(test, metrics::accuracy{})["accuracy"];
//   m.predict(images).classes();
//   m.save("lenet5.safetensors");
#pragma once

#include <cella/backend/host/single_caller.hpp>
#include <cella/data/loader.hpp>
#include <cella/graph/name_pattern.hpp>
#include <cella/interop/in_quotes.hpp>
#include <cella/train/average_scope.hpp>
#include <cella/train/checkpoint.hpp>
#include <cella/train/engine.hpp>
#include <cella/train/fit.hpp>
#include <cella/train/metrics.hpp>
#include <cella/train/model_faults.hpp>
#include <cella/train/position.hpp>
#include <cella/train/predictions.hpp>
#include <cella/train/predictor.hpp>
#include <cmath>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>

namespace cella {

/// A net with what it takes to train it. `Loss` and `Optimizer` are values of literal types: an
/// object or a lambda. `Input` is one sample, or a struct of several: see docs/training.md. Runs on
/// the CPU; it stays where it is built, because programs point into it.
///
/// It serves one thread at a time: what is called while another thread uses it throws
/// `concurrency_error` and changes nothing. Callbacks of `fit` may call it. To ask one model in
/// several threads make a `predictor()` for each.
template <class Net, class Input, auto Loss = cross_entropy_loss{}, auto Optimizer = optim::sgd{},
          model_options Options = model_options{}>
class model {
  static constexpr text type_fault = detail::model_fault<Net, Input, Loss, Optimizer, Options>;

 public:
  using engine_type =
      std::conditional_t<type_fault.empty(),
                         engine<Net, detail::possible_input<Input>, Loss, Optimizer, Options>,
                         engine<detail::refused_net<>, detail::possible_input<Input>,
                                squared_error_loss{}, optim::sgd{}, detail::possible(Options)>>;
  using input_pointers = typename engine_type::input_pointers;  ///< of several inputs a tuple
  using target_pointers =
      typename engine_type::target_columns::pointers;         ///< of several labels, too
  using output_places = typename engine_type::output_places;  ///< of several outputs a tuple
  using answer = typename engine_type::answer;  ///< predictions; of several outputs a tuple of them
  using input_element = typename engine_type::input_columns::first;
  using output_element = typename engine_type::output_columns::first;
  static constexpr std::int64_t batch_size = engine_type::batch;
  static constexpr bool is_compiled = Options.compiled;
  /// False after a fault of net, loss or optimizer: to make a model is then the error.
  static constexpr bool accepted = type_fault.empty() && engine_type::trace_result::accepted;
  using refusal = std::conditional_t<type_fault.empty(), typename engine_type::trace_result::fault,
                                     detail::fault_of<type_fault>>;

  explicit model(const run_options& options = {}) requires(accepted) : engine_(options) {}
  /// A net, a loss or an optimizer that the compiler refuses is refused here.
  template <class Why = refusal>
  requires has_words<Why>
  explicit model(const run_options& = {}) = delete;
  /// Where the compiler could not run the net, it says why here: clang evaluates a consteval
  /// constructor, g++ a member of the options, in the line of the call: options are of a literal
  /// type.
#if defined(__clang__)
  template <class Why = refusal>
  requires(!accepted && !has_words<Why>)  //
      consteval explicit model(const run_options& = {},
                               int = engine_type::trace_result::say_where_it_stops())
      : engine_({}) {}
#else
  template <class Why = refusal>
  requires(!accepted && !has_words<Why>)  //
      explicit model(const detail::stopped_options<typename engine_type::trace_result>& = {})
      : engine_({}) {}
  template <std::same_as<run_options> Given>
  requires(!accepted && !has_words<refusal>)  //
      explicit model(const Given&, int = engine_type::trace_result::say_where_it_stops())
      : engine_({}) {}
#endif
  template <class T, class Why = detail::made_of_fault<T>>
  requires(!std::is_convertible_v<T, run_options>)  //
      explicit model(const T&) = delete;
  model(const model&) = delete;
  model& operator=(const model&) = delete;

  /// The cell, whose parameters show their values: `m.net().fc3.weight.values()`. Call
  /// `parameters().touch()` after changing any; `parameters().mutable_values` does so.
  auto& net() {
    engine_.gather();
    return engine_.net();
  }
  parameter_store& parameters() { return engine_.parameters(); }
  execution mode() const { return engine_.mode; }
  /// Goes on in the other mode, on the same parameters and optimizer state.
  void mode(execution m) {
    const auto turn = own_turn();
    detail::check_mode(m, Options.compiled, engine_.mesh() != nullptr);
    engine_.mode = m;
  }
  /// Which of the ranks of a mesh this is; 0 without one.
  int rank() const { return engine_.mesh() ? engine_.mesh()->rank() : 0; }
  /// Training steps made so far, also by those who saved the checkpoint that was loaded.
  std::int64_t steps() const { return progress_[0]; }
  std::int64_t epochs() const { return progress_[1]; }
  /// Forgets optimizer state and counters, not parameters: a new training begins.
  void restart() {
    const auto turn = own_turn();
    check_idle("restart");
    engine_.slots().clear();
    progress_ = {};
    fit_ = {};
  }
  /// Training that stopped in the middle of an epoch is to go on with the next one, not there.
  void leave_epoch() {
    const auto turn = own_turn();
    check_idle("leave_epoch");
    progress_[1] += progress_[2] > 0;
    progress_[2] = 0;
    fit_.epoch = {};
  }

  // ---- training
  /// One training step on at most `batch_size` samples; returns their mean loss before it.
  /// `x` and `y` are row-major: rows of samples, and of labels or targets (null if the loss reads
  /// none; of a struct of labels one for each member). A loss that is NaN or infinite is returned
  /// like any other. Throws `error` for a null address of what the step reads, and for a learning
  /// rate that is negative or NaN.
  template <class Model = model, class Why = detail::training_fault<Model>>
  requires(accepted && !has_words<Why> && !detail::stops_in_training<Model>)  //
      double train_step(const input_pointers& x, const target_pointers& y, std::int64_t rows,
                        double learning_rate) {
    const auto turn = own_turn();
    if constexpr (detail::has_training_step<model>()) {
      const auto inputs = detail::addresses_of(x);
      const auto targets = engine_type::targets_at(y);
      detail::check_addresses("train_step", inputs);
      return advance(inputs, targets, rows, {0, rows}, learning_rate).loss;
    } else {
      return 0;
    }
  }
  /// A training step that the compiler refuses is refused here, and where `fit` is called.
  template <class Model = model, class Why = detail::training_fault<Model>>
  requires has_words<Why>
  double train_step(const input_pointers&, const target_pointers&, std::int64_t, double) = delete;
  /// Of a model that was refused the types are not known.
  template <class... Arguments>
  requires(!accepted)  //
      double train_step(const Arguments&...) {
    return 0;
  }

  /// Trains for `options.epochs` epochs on a loader, or on a data set in its own order (shuffle
  /// it!), and returns a record per epoch. `extras` are metrics, measured on training predictions,
  /// and callbacks, called in their order. A loader makes batches of `batch_size`. Goes on in the
  /// middle of an epoch if training stopped there, whose record tells of all of it. Throws
  /// `train::diverged` for a loss or weight that is not finite, `error` for data without a batch.
  template <class Data, class... Extras>
  requires(!has_words<detail::fit_fault<model, Data, Extras...>> &&
           !detail::stops_in_training<model>)  //
      train::history fit(const Data& data, const train::fit_options& options, Extras&&... extras) {
    if constexpr (detail::has_training_step<model>())
      return train_on(data, options, std::forward<Extras>(extras)...);
    else
      return {};
  }
  /// So are data, metrics and callbacks that are none of this model, and what is no options.
  template <class Data, class... Extras, class Why = detail::fit_fault<model, Data, Extras...>>
  requires has_words<Why>  //
      train::history fit(const Data&, const train::fit_options&, Extras&&...)
  = delete;

  /// Where the compiler could not run the training step, clang says why here, and g++ where it
  /// stops.
  train::history fit(detail::stopped_training<model>, const train::fit_options&,
                     const auto&...) requires detail::stops_in_training<model> {
    return {};
  }
  double train_step(detail::stopped_training<model>,
                    const auto&...) requires detail::stops_in_training<model> {
    return 0;
  }

  template <class Data, class Why = detail::no_options_fault<Data>>
  train::history fit(const Data&) = delete;
  template <class Data, class Why = detail::options_first_fault<Data>>
  train::history fit(const train::fit_options&, const Data&) = delete;
  template <class Data, class T, class... Extras, class Why = detail::fit_options_fault<Data, T>>
  requires(!std::is_convertible_v<T, train::fit_options> && has_words<Why>)  //
      train::history fit(const Data&, const T&, Extras&&...)
  = delete;
  template <class Data, class T, class... Extras, class Why = detail::fit_options_fault<Data, T>>
  requires(!std::is_convertible_v<T, train::fit_options> && has_words<Why>)  //
      train::history fit(const Data&, const T&, const train::fit_options&, Extras&&...)
  = delete;

  // ---- measuring and asking
  /// Scores of all samples of a loader (any batch size) or a data set; without metrics, the loss.
  /// A metric that is passed as a variable keeps what it gathered. Throws `error` for data without
  /// a batch and for labels that are none of the model's classes.
  template <class Data, class... Metrics>
  requires(!has_words<detail::evaluate_fault<model, Data, Metrics...>>)  //
      train::scores evaluate(const Data& data, Metrics&&... measures) {
    if constexpr (accepted)
      return measure_on(data, std::forward<Metrics>(measures)...);
    else
      return {};
  }
  template <class Data, class... Metrics,
            class Why = detail::evaluate_fault<model, Data, Metrics...>>
  requires has_words<Why>  //
      train::scores evaluate(const Data&, Metrics&&...)
  = delete;

  /// The net's outputs for any number of samples: xtensor, vector, span, tensor_view ... Of several
  /// inputs one array for each, in their order. Several outputs are a tuple:
  /// `auto [image, mean] = m.predict(x)`.
  template <array_like... A, class Why = detail::samples_fault<engine_type, A...>>
  requires(!has_words<Why>)  //
      answer predict(const A&... samples) {
    const auto [first, rows] = engine_type::samples_of(samples...);
    return predict(first, rows);
  }
  template <class... A, class Why = detail::samples_fault<engine_type, A...>>
  requires has_words<Why>  //
      answer predict(const A&...)
  = delete;
  /// Of one sample: `m.predict({3, 90, 10})`.
  answer predict(std::initializer_list<input_element> sample) requires(engine_type::input_count ==
                                                                       1) {
    return predict(std::span(sample.begin(), sample.size()));
  }
  /// The same for `rows` samples in memory, row-major. Throws `error` unless 0 <= rows < 2^31.
  answer predict(const input_pointers& samples, std::int64_t rows) {
    detail::check_rows(rows);
    return engine_.make_answer(rows, [&](const auto& out) { predict(samples, rows, out); });
  }
  /// The same into the caller's memory; in graph mode nothing is allocated from the second call on.
  void predict(const input_pointers& samples, std::int64_t rows, const output_places& outputs) {
    const auto turn = own_turn();
    detail::check_rows(rows);
    if (rows > 0) detail::check_addresses("predict", detail::addresses_of(samples));
    engine_.infer(detail::addresses_of(samples), rows, detail::addresses_of(outputs));
  }
  /// What asks this model in another thread, or in many, each with its own: see predictor.hpp.
  cella::predictor<model> predictor() { return cella::predictor<model>(*this); }

  /// The model measures, predicts and saves (without the optimizer's state) with the averages that
  /// `optim::averaged` keeps, as long as what this returns lives; it does not train, or load, then.
  /// Throws `error` if there are none.
  ///
  ///   { const auto averages = m.use_averages(); m.evaluate(test); }
  train::average_scope use_averages() {
    const auto turn = own_turn();
    const parameter_users::change change(users_);
    return {parameters(), engine_.slots(), &on_averages_};
  }

  // ---- files
  /// Writes parameters and states under their paths (`conv1.weight`), with `.optimizer` also
  /// slots (`momentum.conv1.weight`), `cella.progress` (steps, epochs, batches in the epoch),
  /// `cella.random`, and what callbacks and metrics remember (`cella.fit.early_stop.best`).
  /// Replaces the file at once or not at all. Throws `file_error`.
  void save(const std::string& path, const save_options& options = {});
  /// Reads what `save` wrote with the same options. A file with missing, foreign, ill-shaped or
  /// damaged tensors is refused by a `file_error` that names one, and nothing is changed.
  void load(const std::string& path, const save_options& options = {}) {
    const auto turn = own_turn();
    const parameter_users::change change(users_);
    if (options.optimizer) check_idle("load with the optimizer's state");
    check_no_averages("load");
    const auto training = options.optimizer ? training_tensors() : tensors{};
    auto found =
        train::read_checkpoint(path, train::tensors_of(parameters()), training, options.non_finite);
    if (options.optimizer) fit_ = {std::move(found.epoch), std::move(found.states), true, {}};
    parameters().touch();
  }
  /// Reads the parameters and states whose names match a pattern (`{"conv*"}`), to fine-tune a net
  /// that shares them with the file's; returns their names. Throws if a pattern matches nothing, or
  /// if the file lacks one of them, has it in another shape or (unless `non_finite`) with a number
  /// that is not finite; then nothing is changed.
  std::vector<std::string> load_partial(const std::string& path,
                                        const std::vector<std::string>& patterns,
                                        const partial_options& options = {}) {
    const auto turn = own_turn();
    const parameter_users::change change(users_);
    check_no_averages("load_partial");
    tensors chosen = train::matching("load_partial", parameters(), patterns);
    std::vector<std::string> names;
    for (auto& t : chosen) names.push_back(t.name);
    train::rename(chosen, options.names);
    train::read_part(path, chosen, options.non_finite);
    parameters().touch();
    return names;
  }

  /// A copy of all parameters and states, and back.
  std::vector<std::byte> snapshot() {
    const auto turn = own_turn();
    return train::snapshot(parameters());
  }
  /// Throws `error`, and changes nothing, if the snapshot is not as long as this model's.
  void restore(const std::vector<std::byte>& all) {
    const auto turn = own_turn();
    const parameter_users::change change(users_);
    check_no_averages("restore");
    train::restore(all, parameters());
  }
  /// Whether all parameters and states are finite numbers.
  bool finite() {
    const auto turn = own_turn();
    return train::find_not_finite(train::tensors_of(parameters())).empty();
  }

 private:
  friend class cella::predictor<model>;
  using tensors = std::vector<train::checkpoint_tensor>;

  single_caller::turn own_turn() {
    return {caller_,
            "this model is in use by another thread; give each thread a predictor of its own "
            "(model::predictor), or let the threads take turns"};
  }

  // In model_loops.hpp.
  template <class Data, class... Extras>
  train::history train_on(const Data& data, const train::fit_options& options, Extras&&... extras);
  template <class Data, class... Metrics>
  train::scores measure_on(const Data& data, Metrics&&... measures);
  void infer_share(const typename engine_type::inputs& x, std::int64_t own, std::int64_t rows,
                   const typename engine_type::outputs& out);

  auto advance(const typename engine_type::inputs& x, const typename engine_type::targets& y,
               std::int64_t rows, const data::batch_share& share, double learning_rate) {
    if (rows < 1 || rows > batch_size) {
      throw error(text() << "train_step: there are " << rows << " samples, but a step takes 1 to "
                         << batch_size << "; cut them into batches, or give the model another "
                         << "model_options::batch");
    }
    if (!(learning_rate >= 0) || std::isinf(learning_rate)) {
      throw error("train_step: the learning rate is " + std::to_string(learning_rate) +
                  "; it has to be finite and not negative");
    }
    check_no_averages("train_step");
    const parameter_users::change change(users_);
    const auto r = engine_.train(x, y, rows, share, progress_[0] + 1, learning_rate);
    ++progress_[0];
    return r;
  }

  /// What it would write goes with the averages, or with them in place of the parameters.
  void check_no_averages(const char* who) const {
    if (!on_averages_) return;
    throw error(std::string(who) +
                ": the averages are in use; let what use_averages returned go before");
  }
  void check_idle(const char* who) const {
    if (!fit_.refresh) return;
    throw error(std::string(who) +
                ": a callback cannot do this while fit runs; set stop, and do it when fit has "
                "returned");
  }
  tensors training_tensors() {
    return train::tensors_of_training(parameters(), engine_.slots(), progress_.data());
  }
  engine_type engine_;
  single_caller caller_;
  parameter_users users_;
  std::array<std::int64_t, 3> progress_{};  // steps, epochs, batches in the epoch
  train::fit_memory fit_;
  bool on_averages_ = false;
};

}  // namespace cella

#include <cella/train/model_loops.hpp>
#include <vector>
