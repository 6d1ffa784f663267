// Where training stands: what a model remembers of fit, in memory and in checkpoints.
#pragma once

#include <algorithm>
#include <cella/train/fit.hpp>
#include <cella/train/metrics.hpp>
#include <cella/train/state.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cella::train {

/// The largest count of steps, epochs or samples: a double holds it exactly.
inline constexpr std::int64_t most_counted = std::int64_t{1} << 53;

enum class event : std::int64_t { none, epoch_begin, batch_end, epoch_end };

/// How far an epoch has come, beyond the counters of the model.
struct epoch_progress {
  event last = event::none;      ///< what callbacks were told last; `none` between two epochs
  std::vector<std::string> due;  ///< names of the callbacks that were not told yet
  fit_state now;                 ///< after the last batch
  metrics::loss mean;            ///< of the batches behind

  void state(state_visitor& v) {
    auto number = std::int64_t(last);
    v("event", number);
    last = event(number);
    v("due", due);
    v("batches", now.batches);
    v("loss", now.loss);
    v("learning_rate", now.learning_rate);
    v("loss_sum", mean.mean_.sum);
    v("loss_count", mean.mean_.count);
    v("samples", now.record.samples);
    v("seconds", now.record.seconds);
    std::vector<std::string> names;
    std::vector<double> scores;
    for (const auto& [name, value] : now.record.values()) {
      names.push_back(name);
      scores.push_back(value);
    }
    v("score_names", names);
    v("scores", scores);
    for (std::size_t i = 0; i < std::min(names.size(), scores.size()); ++i)
      now.record.set(names[i], scores[i]);
  }
  /// Whether a file may say this of a model that stands after `batch` batches of an epoch.
  bool consistent(std::int64_t batch) const {
    const auto counts = {now.batches, now.record.samples, mean.mean_.count};
    for (const std::int64_t n : counts) {
      if (n < 0 || n > most_counted) return false;
    }
    if (!(now.record.seconds >= 0)) return false;
    return last == event::batch_end ? 0 < batch && batch <= now.batches
                                    : batch == 0 && event::none <= last && last <= event::epoch_end;
  }
};

/// What a model remembers of fit.
struct fit_memory {
  epoch_progress epoch;
  state_map states;               ///< of callbacks and metrics
  bool goes_on = false;           ///< the next call of fit hands `states` to them
  std::function<void()> refresh;  ///< while fit runs: brings `epoch` and `states` up to date

  state_map write() {
    if (refresh) refresh();
    state_map all = states;
    state_visitor v(all, "epoch", false);
    if (epoch.last != event::none) epoch.state(v);
    return all;
  }
};

}  // namespace cella::train
