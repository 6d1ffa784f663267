// What training is told and what it tells: options, scores per epoch, the state that callbacks see.
#pragma once

#include <cella/graph/error.hpp>
#include <cella/optim/schedules.hpp>
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
  void set(std::string_view name, double value) {
    for (auto& [key, old] : values_) {
      if (key == name) return void(old = value);
    }
    values_.emplace_back(name, value);
  }
  bool contains(std::string_view name) const {
    for (const auto& v : values_) {
      if (v.first == name) return true;
    }
    return false;
  }
  /// Throws `error`, which lists the names, if there is none like it.
  double operator[](std::string_view name) const {
    std::string known;
    for (const auto& [key, value] : values_) {
      if (key == name) return value;
      known += (known.empty() ? "" : ", ") + key;
    }
    throw error("there is no score \"" + std::string(name) + "\" among [" + known +
                "]; hand the metric over, or name one of these");
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
using history = std::vector<epoch_record>;

struct fit_options {
  /// How many epochs to train now.
  std::int64_t epochs = 1;
  /// A number or a schedule. Schedules see the number of steps that the model has made in its life
  /// (see `model::restart`), so that a resumed training goes on where it stopped.
  optim::schedule learning_rate = 0.01;
  /// Parameters and states that stay as they are, by name; `*` stands for any characters:
  /// `{"conv1.*"}`. The compiled step is the same: what it wrote to them is put back after each
  /// step, bit for bit, their optimizer state included, so nothing has to be compiled again. (To
  /// save the work as well, declare such a parameter not trainable in the cell.)
  std::vector<std::string> freeze{};
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
  /// Set it to end training after this batch or epoch.
  bool stop{};
};

/// The same with the model, for callbacks that save or evaluate it.
template <class Model>
struct fit_context : fit_state {
  Model& model;
  explicit fit_context(Model& m) : model(m) {}
};

/// A callback has at least one of these members, taking `fit_state&`, `fit_context<Model>&` or
/// `auto&`.
template <class C, class Model>
concept callback = requires(C& c, fit_context<Model>& x) {
  c.on_train_begin(x);
}
|| requires(C& c, fit_context<Model>& x) { c.on_epoch_begin(x); }
|| requires(C& c, fit_context<Model>& x) { c.on_batch_end(x); }
|| requires(C& c, fit_context<Model>& x) { c.on_epoch_end(x); }
|| requires(C& c, fit_context<Model>& x) { c.on_train_end(x); };

}  // namespace cella::train
