// Callbacks for model::fit. Your own is any struct with at least one of the members
//   on_train_begin, on_epoch_begin, on_batch_end, on_epoch_end, on_train_end
// taking `train::fit_state&`, or `auto&` to reach the model.
#pragma once

#include <cella/interop/file.hpp>
#include <cella/train/fit.hpp>
#include <cella/train/progress.hpp>
#include <cmath>
#include <deque>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cella::train {

/// A progress bar with the loss, and the epoch's scores at its end. Put it behind `validation` to
/// see what that adds.
struct progress_bar {
  std::ostream* out = &std::cerr;
  data::terminal on = data::detect_terminal(stderr);

  void on_train_begin(const fit_state& s) {
    bar_ = std::make_unique<progress>(s.epochs, s.batches, *out, on);
  }
  void on_epoch_begin(const fit_state&) { bar_->begin_epoch(); }
  void on_batch_end(const fit_state& s) { bar_->step({{"loss", s.record["loss"]}}); }
  void on_epoch_end(const fit_state& s) {
    std::vector<progress_value> values(s.record.values().begin(), s.record.values().end());
    bar_->end_epoch(values);
  }
  void on_train_end(const fit_state&) { bar_.reset(); }

  std::unique_ptr<progress> bar_{};
};

/// Prints the mean loss of the epoch so far every `every` batches: `epoch 1 batch 100/1875 loss
/// 0.3121`.
struct loss_monitor {
  std::int64_t every = 100;
  std::ostream* out = &std::cerr;

  void on_batch_end(const fit_state& s) const {
    if (every < 1 || s.batch % every != 0) return;
    *out << "epoch " << s.epoch + 1 << " batch " << s.batch << "/" << s.batches << " loss "
         << s.record["loss"] << '\n';
  }
};

/// Adds "samples_per_second" to the record of each epoch.
struct time_monitor {
  void on_epoch_end(fit_state& s) const {
    const double seconds = s.record.seconds;
    s.record.set("samples_per_second", seconds > 0 ? double(s.record.samples) / seconds : 0);
  }
};

/// Evaluates the model on other data after each epoch and adds "val_loss", "val_accuracy" ... to
/// the record. Put it before callbacks that read these.
template <class Data, class... Metrics>
class validation {
 public:
  explicit validation(Data data, Metrics... measures)
      : data_(std::move(data)), metrics_(std::move(measures)...) {}

  void on_epoch_end(auto& context) {
    const scores found =
        std::apply([&](auto&... m) { return context.model.evaluate(data_, m...); }, metrics_);
    for (const auto& [name, value] : found.values()) context.record.set("val_" + name, value);
  }

 private:
  Data data_;
  std::tuple<Metrics...> metrics_;
};

/// Which way a score gets better. `by_name`: "loss", "mae" and names that end so fall, others rise.
enum class better { by_name, lower, higher };

namespace detail {
inline bool improves(double now, double best, std::string_view name, better which,
                     double least = 0) {
  const bool falls = which == better::lower || (which == better::by_name &&
                                                (name.ends_with("loss") || name.ends_with("mae")));
  return falls ? now < best - least : now > best + least;
}
}  // namespace detail

/// Saves the model after every `every` epochs as `directory/prefix-<epoch>.safetensors`, with all
/// that training needs to go on; keeps the last `keep_max` of the files that it wrote. With `best`
/// ("val_accuracy") it saves only when that score is the best so far.
struct checkpoint {
  std::filesystem::path directory = ".";
  std::string prefix = "checkpoint";
  std::int64_t every = 1;
  std::size_t keep_max = 5;
  std::string best{};
  better which = better::by_name;
  bool optimizer = true;

  void on_train_begin(const fit_state&) {
    if (every < 1 || keep_max < 1) {
      throw error("checkpoint: every is " + std::to_string(every) + " and keep_max " +
                  std::to_string(keep_max) + "; both have to be at least 1");
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
    if (best.empty() ? (context.epoch + 1) % every != 0 : !improves(context.record[best])) return;
    const auto path =
        directory / (prefix + "-" + std::to_string(context.record.epoch + 1) + ".safetensors");
    context.model.save(path, {.optimizer = optimizer});
    std::erase(written_, path);
    written_.push_back(path);
    while (written_.size() > keep_max) {
      std::error_code ignored;  // somebody else removed it: that is what was wanted
      std::filesystem::remove(written_.front(), ignored);
      written_.pop_front();
    }
  }
  /// The files that are kept, oldest first.
  const std::deque<std::filesystem::path>& files() const { return written_; }

  bool improves(double now) {
    if (best_ && !detail::improves(now, *best_, best, which)) return false;
    best_ = now;
    return true;
  }
  std::deque<std::filesystem::path> written_{};
  std::optional<double> best_{};
};

/// Ends training when a score has not improved by more than `minimum_change` for `patience` epochs,
/// and then, or at the end, puts back the parameters of the best epoch.
struct early_stop {
  std::string monitor = "val_loss";
  std::int64_t patience = 3;
  double minimum_change = 0;
  better which = better::by_name;
  bool restore_best = true;

  void on_train_begin(const fit_state&) {
    best_.reset();
    waited_ = 0;
  }
  void on_epoch_end(auto& context) {
    const double now = context.record[monitor];
    if (!best_ || std::isnan(*best_) ||
        detail::improves(now, *best_, monitor, which, minimum_change)) {
      best_ = now;
      best_epoch = context.record.epoch;
      waited_ = 0;
      if (restore_best) kept_ = context.model.snapshot();
    } else if (++waited_ >= patience) {
      context.stop = true;
    }
  }
  void on_train_end(auto& context) {
    if (!kept_.empty()) context.model.restore(std::exchange(kept_, {}));
  }

  std::int64_t best_epoch = -1;  ///< of the model, from 0: readable after training
  std::optional<double> best_{};
  std::int64_t waited_{};
  std::vector<std::byte> kept_{};
};

/// Writes a table with a row per epoch: epoch, seconds, and the scores of the first epoch as
/// columns. The file is replaced after each epoch, so that it is whole at any time.
struct csv_log {
  std::filesystem::path path;

  void on_train_begin(const fit_state&) { text_.clear(); }
  void on_epoch_end(const fit_state& s) {
    if (text_.empty()) {
      text_ = "epoch,seconds";
      columns_.clear();
      for (const auto& [name, value] : s.record.values()) {
        columns_.push_back(name);
        text_ += "," + name;
      }
      text_ += "\n";
    }
    text_ += std::to_string(s.record.epoch) + "," + number(s.record.seconds);
    for (const auto& name : columns_) {
      text_ += "," + (s.record.contains(name) ? number(s.record[name]) : std::string());
    }
    text_ += "\n";
    interop::write_atomically(path, [&](interop::output_file& file) { file.write(text_); });
  }

  /// Nine digits give a float back as it was.
  static std::string number(double v) {
    char digits[32];
    std::snprintf(digits, sizeof digits, "%.9g", v);
    return digits;
  }
  std::string text_{};
  std::vector<std::string> columns_{};
};

}  // namespace cella::train
