// Callbacks for model::fit. Your own is any struct with at least one of the members
//   on_train_begin, on_epoch_begin, on_batch_end, on_epoch_end, on_train_end
// taking `train::fit_state&`, or `auto&` to reach the model. What it remembers from one call of fit
// to the next, and in checkpoints, is what its `state(train::state_visitor&)` shows: see state.hpp.
// Those of the library forget when a model at step 0 is trained.
#pragma once

#include <cella/interop/file.hpp>
#include <cella/train/fit.hpp>
#include <cella/train/interrupt.hpp>
#include <cella/train/model_faults.hpp>
#include <cella/train/monitors.hpp>
#include <cmath>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cella::train {

/// Evaluates the model on other data after each epoch and adds "val_loss", "val_accuracy" ... to
/// the record. Put it before callbacks that read these.
template <class Data, class... Metrics>
class validation {
 public:
  explicit validation(Data data, Metrics... measures)
      : data_(std::move(data)), metrics_(std::move(measures)...) {}

  /// Why a model of this type cannot be measured on the data.
  template <class Model>
  static constexpr text fault() {
    return cella::detail::evaluate_arguments_fault<Model, Data, Metrics...>;
  }
  void on_epoch_end(auto& context) {
    const scores found =
        std::apply([&](auto&... m) { return context.model.evaluate(data_, m...); }, metrics_);
    for (const auto& [name, value] : found.values()) context.record.set("val_" + name, value);
  }

 private:
  Data data_;
  std::tuple<Metrics...> metrics_;
};

/// Which way a score gets better. `by_name`: "loss", "mae", "mse", "rmse", "perplexity",
/// "hausdorff" and names that end so fall, others rise.
enum class better { by_name, lower, higher };

namespace detail {
/// Nothing improves to a number that is not finite.
inline bool improves(double now, const std::optional<double>& before, std::string_view name,
                     better which, double least = 0) {
  if (!std::isfinite(now) || !before) return std::isfinite(now);
  const double best = *before;
  bool falls = which == better::lower;
  if (which == better::by_name) {
    for (const std::string_view end : {"loss", "mae", "mse", "perplexity", "hausdorff"})
      falls |= name.ends_with(end);
  }
  return falls ? now < best - least : now > best + least;
}
}  // namespace detail

/// Saves the model after every `every` epochs of its life as
/// `directory/prefix-<epoch>.safetensors`, with all that training needs to go on; keeps the last
/// `keep_max` of the files that it wrote. With `best` ("val_accuracy") it saves then only when that
/// score is the best so far of these epochs, which NaN never is. Parameters that are not finite,
/// which only `fit_options::check_finite = false` lets come here, are not saved.
struct checkpoint {
  std::filesystem::path directory = ".";
  std::string prefix = "checkpoint";
  std::int64_t every = 1;
  std::size_t keep_max = 5;
  std::string best{};
  better which = better::by_name;
  bool optimizer = true;

  static constexpr std::string_view state_name = "checkpoint";
  void state(state_visitor& v) {
    v("best", best_);
    v("files", written_);
  }
  void on_train_begin(const fit_state& s) {
    if (every < 1 || keep_max < 1) {
      throw error("checkpoint: every is " + std::to_string(every) + " and keep_max " +
                  std::to_string(keep_max) + "; both have to be at least 1");
    }
    if (s.step == 0) {
      best_.reset();
      written_.clear();
    }
    std::error_code fault;
    std::filesystem::create_directories(directory, fault);
    if (fault) {
      throw file_error("checkpoint: the directory " + interop::in_quotes(directory.native(), 4096) +
                       " cannot be made: " + fault.message() +
                       "; check the path and its permissions");
    }
  }
  void on_epoch_end(auto& context) {
    const std::int64_t epoch = context.record.epoch + 1;
    if (epoch % every != 0) return;
    const std::optional<double> score =
        best.empty() ? std::nullopt : std::optional(context.record[best]);
    if (score && !detail::improves(*score, best_, best, which)) return;
    if (!context.model.finite()) return;
    const auto path = directory / (prefix + "-" + std::to_string(epoch) + ".safetensors");
    // The file holds what is remembered after it is written; old files go when it is.
    const checkpoint before = *this;
    if (score) best_ = score;
    std::erase(written_, path);
    written_.push_back(path);
    std::vector<std::filesystem::path> old;
    for (; written_.size() > keep_max; written_.pop_front()) old.push_back(written_.front());
    try {
      context.model.save(path, {.optimizer = optimizer});
    } catch (...) {
      *this = before;
      throw;
    }
    std::error_code ignored;  // somebody else removed it: that is what was wanted
    for (const auto& file : old) std::filesystem::remove(file, ignored);
  }
  /// The files that are kept, oldest first.
  const std::deque<std::filesystem::path>& files() const { return written_; }

  std::deque<std::filesystem::path> written_{};
  std::optional<double> best_{};
};

/// Ends training when a score has not improved by more than `minimum_change` for `patience` epochs,
/// and then, or at the end, puts back the parameters of the best epoch. A score that is NaN or
/// infinite is no improvement.
struct early_stop {
  std::string monitor = "val_loss";
  std::int64_t patience = 3;
  double minimum_change = 0;
  better which = better::by_name;
  bool restore_best = true;

  static constexpr std::string_view state_name = "early_stop";
  void state(state_visitor& v) {
    v("best", best_);
    v("best_epoch", best_epoch);
    v("waited", waited_);
    v("parameters", kept_);
  }
  void on_train_begin(const fit_state& s) {
    if (patience < 1)
      throw error("early_stop: patience is " + std::to_string(patience) +
                  "; give at least 1 epoch");
    if (!(minimum_change >= 0)) {
      throw error("early_stop: minimum_change is " + std::to_string(minimum_change) +
                  "; give 0 or more");
    }
    if (s.step > 0) return;
    best_.reset();
    best_epoch = -1;
    waited_ = 0;
    kept_.clear();
  }
  void on_epoch_end(auto& context) {
    const double now = context.record[monitor];
    if (detail::improves(now, best_, monitor, which, minimum_change)) {
      best_ = now;
      best_epoch = context.record.epoch;
      waited_ = 0;
      if (restore_best) kept_ = context.model.snapshot();
    } else if (++waited_ >= patience) {
      context.stop = true;
    }
  }
  /// A training that stopped in the middle of an epoch is not at its end.
  void on_train_end(auto& context) {
    if (!context.unfinished && !kept_.empty()) context.model.restore(kept_);
  }

  std::int64_t best_epoch = -1;  ///< of the model, from 0: readable after training; -1: none
  std::optional<double> best_{};
  std::int64_t waited_{};
  std::vector<std::byte> kept_{};
};

}  // namespace cella::train
