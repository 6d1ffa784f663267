// Callbacks that tell how training goes: on the screen, in the record, in a file.
#pragma once

#include <cella/interop/file.hpp>
#include <cella/train/fit.hpp>
#include <cella/train/progress.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace cella::train {

/// A progress bar with the loss, and the epoch's scores at its end. Put it behind `validation` to
/// see what that adds. It counts the epochs of the model's life, and goes on in the middle of one.
struct progress_bar {
  std::ostream* out = &std::cerr;
  data::terminal on = data::detect_terminal(stderr);

  void on_train_begin(const fit_state& s) {
    if (!s.prints) return;
    bar_ = std::make_unique<progress>(s.record.epoch + s.epochs, s.batches, *out, on);
    on_epoch_begin(s);
  }
  void on_epoch_begin(const fit_state& s) {
    if (bar_) bar_->go_on(s.record.epoch + 1, s.batch);
  }
  void on_batch_end(const fit_state& s) {
    if (bar_) bar_->step({{"loss", s.record["loss"]}});
  }
  void on_epoch_end(const fit_state& s) {
    if (!bar_) return;
    std::vector<progress_value> values(s.record.values().begin(), s.record.values().end());
    bar_->end_epoch(values);
  }
  void on_train_end(const fit_state&) { bar_.reset(); }

  std::unique_ptr<progress> bar_{};
};

/// Prints the mean loss of the epoch so far every `every` batches: `epoch 1 batch 100/1875 loss
/// 0.3121`. Epochs are those of the model's life.
struct loss_monitor {
  std::int64_t every = 100;
  std::ostream* out = &std::cerr;

  void on_train_begin(const fit_state&) const {
    if (every < 1)
      throw error("loss_monitor: every is " + std::to_string(every) + "; give at least 1 batch");
  }
  void on_batch_end(const fit_state& s) const {
    if (!s.prints || s.batch % every != 0) return;
    *out << "epoch " << s.record.epoch + 1 << " batch " << s.batch << "/" << s.batches << " loss "
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

/// Writes a table with a row per epoch: epoch, seconds, and the scores of the first epoch as
/// columns. The file is replaced after each epoch, so that it is whole at any time. A training that
/// goes on keeps its earlier rows.
struct csv_log {
  std::filesystem::path path;

  static constexpr std::string_view state_name = "csv_log";
  void state(state_visitor& v) {
    v("text", text_);
    v("columns", columns_);
  }
  void on_train_begin(const fit_state& s) {
    if (s.step == 0) text_.clear();
  }
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
    if (!s.prints) return;
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
