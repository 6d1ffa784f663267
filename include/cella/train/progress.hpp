// A progress bar for training: redrawn in place on a terminal, one line per epoch elsewhere.
#pragma once

#include <algorithm>
#include <cella/data/terminal.hpp>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <iostream>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace cella::train {

/// Something to show beside the bar: a loss, a metric.
using progress_value = std::pair<std::string_view, double>;

/// Shows `epoch 2/10 [=====>   ] 412/938  loss 0.0713  1204 step/s  ETA 0:07`.
/// On a terminal at most 20 times a second; else one line for each epoch. The cursor is never
/// hidden, so that an interrupted program leaves a good terminal. The stream must outlive it.
class progress {
 public:
  using clock = std::chrono::steady_clock;

  /// `steps` per epoch. `on` says what `out` leads to.
  progress(std::int64_t epochs, std::int64_t steps, std::ostream& out = std::cerr,
           const data::terminal& on = data::detect_terminal(stderr))
      : epochs_(epochs), steps_(steps), out_(out), on_(on) {}
  progress(const progress&) = delete;
  progress& operator=(const progress&) = delete;
  /// Leaves an unfinished line standing.
  ~progress() {
    if (drawn_) out_ << '\n' << std::flush;
  }

  /// Begins the next epoch.
  void begin_epoch(clock::time_point now = clock::now()) { go_on(epoch_ + 1, 0, now); }
  /// Goes on in this epoch, from 1, of which so many steps were done before.
  void go_on(std::int64_t epoch, std::int64_t done, clock::time_point now = clock::now()) {
    epoch_ = epoch;
    done_ = before_ = done;
    began_ = now;
    next_draw_ = now;
  }

  /// One step is done.
  void step(std::initializer_list<progress_value> values = {},
            clock::time_point now = clock::now()) {
    ++done_;
    if (!on_.interactive || now < next_draw_) return;
    next_draw_ = now + std::chrono::milliseconds(50);
    draw({values.begin(), values.size()}, now);
  }

  /// Ends the epoch; its line stays.
  void end_epoch(std::initializer_list<progress_value> values = {},
                 clock::time_point now = clock::now()) {
    end_epoch(std::span(values.begin(), values.size()), now);
  }
  void end_epoch(std::span<const progress_value> values, clock::time_point now = clock::now()) {
    draw(values, now);
    out_ << '\n' << std::flush;
    drawn_ = false;
  }

  /// `0:07`, `12:34`, `1:02:03`
  static std::string duration(double seconds) {
    if (!(seconds < 360000)) return "--:--";
    const auto s = static_cast<int>(seconds + .5);
    char text[32];
    const int n = s >= 3600 ? std::snprintf(text, sizeof text, "%d:%02d:", s / 3600, s / 60 % 60)
                            : std::snprintf(text, sizeof text, "%d:", s / 60);
    std::snprintf(text + n, sizeof text - static_cast<std::size_t>(n), "%02d", s % 60);
    return text;
  }

 private:
  void draw(std::span<const progress_value> values, clock::time_point now) {
    const double seconds = std::max(std::chrono::duration<double>(now - began_).count(), 1e-9);
    const double rate = static_cast<double>(done_ - before_) / seconds;
    char number[32];
    std::string head = "epoch " + std::to_string(epoch_) + "/" + std::to_string(epochs_) + " ";
    std::string tail = " " + std::to_string(done_) + "/" + std::to_string(steps_);
    for (const auto& [name, value] : values) {
      std::snprintf(number, sizeof number, " %.4g", value);
      tail += "  " + std::string(name) + number;
    }
    std::snprintf(number, sizeof number, "  %.*f step/s  ", rate < 10 ? 2 : 0, rate);
    tail += number;
    const double left = static_cast<double>(steps_ - done_) / rate;
    tail += done_ >= steps_ ? duration(seconds) : "ETA " + duration(left);
    if (!on_.interactive) {
      out_ << head << tail.substr(1);
      return;
    }
    // The last column stays free: some terminals wrap as soon as it is written.
    const int room = std::max(on_.width - 1, 0);
    const int bar = std::min(room - static_cast<int>(head.size() + tail.size()) - 2, 30);
    std::string line = head + (bar < 4 ? tail.substr(1) : bar_of(bar) + tail);
    line.resize(std::min(line.size(), static_cast<std::size_t>(room)));
    out_ << '\r' << line << "\x1b[K" << std::flush;
    drawn_ = true;
  }

  std::string bar_of(int width) const {
    const auto full = std::min<std::int64_t>(steps_ > 0 ? width * done_ / steps_ : width, width);
    std::string bar(static_cast<std::size_t>(full), '=');
    if (full < width) bar += '>';
    bar.resize(static_cast<std::size_t>(width), ' ');
    return "[" + bar + "]";
  }

  std::int64_t epochs_, steps_;
  std::ostream& out_;
  data::terminal on_;
  std::int64_t epoch_{}, done_{}, before_{};
  clock::time_point began_{}, next_draw_{};
  bool drawn_{};
};

}  // namespace cella::train
