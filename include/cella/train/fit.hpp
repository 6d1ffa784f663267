// What training is told and what it tells: options, scores per epoch, the state that callbacks see.
#pragma once

#include <cella/graph/error.hpp>
#include <cella/graph/once.hpp>
#include <cella/optim/schedules.hpp>
#include <cella/train/no_fit_option.hpp>
#include <cella/train/state.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cella::train {

/// Named numbers in the order in which they were added.
class scores {
 public:
  /// Adds a number or replaces the one of that name.
  void set(std::string_view name, double value);
  bool contains(std::string_view name) const;
  /// Throws `error`, which lists the names, if there is none like it.
  double operator[](std::string_view name) const;
  /// No place among them: 0 would be the address of a text.
  __attribute__((unavailable("scores have names: scores[\"loss\"]")))  //
  double
  operator[](int) const {
    return 0;
  }
  const std::vector<std::pair<std::string, double>>& values() const { return values_; }

 private:
  std::vector<std::pair<std::string, double>> values_;
};

/// One epoch of training: "loss" (mean over the samples), training metrics, and what callbacks
/// added, such as "val_accuracy".
struct epoch_record : scores {
  std::int64_t epoch{};  ///< of the model, from 0
  std::int64_t samples{};
  double seconds{};  ///< of training alone, without callbacks at the epoch's end
};
/// What `fit` returns: a record for each epoch that it ended.
using history = std::vector<epoch_record>;

/// Training left the finite numbers: the loss of a step, or a parameter at the end of an epoch.
struct diverged : error {
  diverged(const std::string& message, std::int64_t at, double l, double rate)
      : error(message), step(at), loss(l), learning_rate(rate) {}
  std::int64_t step;  ///< of the model's life, from 1
  double loss;        ///< of that step
  double learning_rate;
};

/// The exception of a training that left the finite numbers; `what` names the number.
diverged divergence(const std::string& what, std::int64_t step, double loss, double rate);

namespace detail {
/// Names of parameters, in which `*` stands for any characters. One alone needs no braces.
struct name_patterns : std::vector<std::string> {
  using std::vector<std::string>::vector;
  name_patterns(std::vector<std::string> all) : vector(std::move(all)) {}
  name_patterns(const char* one) : vector{one} {}
  name_patterns(std::string one) : vector{std::move(one)} {}
};
}  // namespace detail

/// What `model::fit` is told.
struct fit_options {
  /// How many epochs to end now. A model whose training stopped in the middle of an epoch (`stop`,
  /// an exception, a checkpoint from there) goes on with the next sample, and the rest of that
  /// epoch counts as the first. So a training of 20 epochs is resumed, wherever it stopped, with
  /// `20 - m.epochs()`. With 0 nothing is trained.
  std::int64_t epochs = 1;
  /// A number or a schedule. Schedules see the number of steps that the model has made in its life
  /// (see `model::restart`), so that a resumed training goes on where it stopped.
  optim::schedule learning_rate = 0.01;
  /// Parameters and states that stay as they are, by name; `*` stands for any characters:
  /// `{"conv1.*"}`, or one such text. The compiled step is the same: what it wrote to them is put
  /// back after each step, bit for bit, their optimizer state included, so nothing has to be
  /// compiled again. (To save the work as well, declare such a parameter not trainable in the
  /// cell.)
  detail::name_patterns freeze{};
  /// A loss, or at the end of an epoch a parameter, that is NaN or infinite ends training with
  /// `train::diverged`. False: training goes on.
  bool check_finite = true;

  // No options of fit: see no_fit_option.hpp.
  [[no_unique_address]] detail::no_epochs epoch{}, num_epochs{};
  [[no_unique_address]] detail::no_batch_size batch_size{};
  [[no_unique_address]] detail::no_rate lr{};
  [[no_unique_address]] detail::no_verbose verbose{};
  [[no_unique_address]] detail::no_part loss{}, optimizer{};
  [[no_unique_address]] detail::no_shuffle shuffle{};
  [[no_unique_address]] detail::no_extras metrics{}, callbacks{};
  [[no_unique_address]] detail::no_validation validation_data{}, validation_split{};
};

/// What callbacks may read. `record` is complete in on_epoch_end, and they may add to it there.
struct fit_state {
  std::int64_t epoch{};    ///< of this call of fit, from 0
  std::int64_t epochs{};   ///< of this call
  std::int64_t batch{};    ///< in the epoch: how many are done
  std::int64_t batches{};  ///< per epoch
  std::int64_t step{};     ///< how many steps the model has made in its life
  double learning_rate{};  ///< of the last step
  double loss{};           ///< of the last batch
  epoch_record record;     ///< of the epoch; its "loss" is up to date after each batch
  /// Set it to end training after this batch or epoch. In the middle of an epoch there is no
  /// on_epoch_end: the model stands there, and the next call of fit goes on.
  bool stop{};
  /// False on all ranks of a mesh but the first: print nothing there, and write no files.
  bool prints = true;
  /// In on_train_end: training stopped in the middle of an epoch.
  bool unfinished{};
};

/// The same with the model, for callbacks that save or evaluate it.
template <class Model>
struct fit_context : fit_state {
  Model& model;
  explicit fit_context(Model& m) : model(m) {}
};

/// A callback has at least one of these members, taking `fit_state&`, `fit_context<Model>&` or
/// `auto&`. on_train_begin and on_train_end belong to a call of fit. Each of the other events
/// reaches a callback once, in however many calls of fit, and programs, an epoch is trained. One
/// that remembers something between them (see state.hpp) is given it back after on_train_begin when
/// fit goes on from a checkpoint with the optimizer's state, or in the middle of an epoch; to the
/// others such a call sends on_epoch_begin again, with `batch` above 0.
///
/// What not every model can use says why not, in `template <class Model> static constexpr text
/// fault()`: `validation` does so.
template <class C, class Model>
concept callback = requires(C& c, fit_context<Model>& x) {
  c.on_train_begin(x);
}
|| requires(C& c, fit_context<Model>& x) { c.on_epoch_begin(x); }
|| requires(C& c, fit_context<Model>& x) { c.on_batch_end(x); }
|| requires(C& c, fit_context<Model>& x) { c.on_epoch_end(x); }
|| requires(C& c, fit_context<Model>& x) { c.on_train_end(x); };

}  // namespace cella::train

#if CELLA_HAS_BODIES
#include <cella/train/fit_body.hpp>
#endif
