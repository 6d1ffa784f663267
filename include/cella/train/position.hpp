// Where training stands: what a model remembers of fit, in memory and in checkpoints.
#pragma once

#include <algorithm>
#include <array>
#include <cella/interop/safetensors.hpp>
#include <cella/train/fit.hpp>
#include <cella/train/metrics.hpp>
#include <cella/train/state.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
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

/// Takes the position in an epoch out of what a file tells. Throws `file_error` if its counters
/// cannot be.
inline epoch_progress read_epoch(const interop::safetensors_file& file, state_map& states) {
  const auto refuse = [](std::string_view name, const std::string& what) {
    throw file_error("tensor " + interop::in_quotes(name) + " holds " + what +
                     "; the file is damaged: write it anew");
  };
  std::array<std::int64_t, 3> counts{};
  std::array<std::int64_t, 2> random{};
  file.at("cella.progress").copy_to<std::int64_t>(counts);
  file.at("cella.random").copy_to<std::int64_t>(random);
  const auto check_count = [&](std::string_view name, std::int64_t n) {
    if (n < 0) refuse(name, "the negative count " + std::to_string(n));
    if (n > most_counted) refuse(name, "the count " + std::to_string(n) + ", above 2^53");
  };
  for (const std::int64_t n : counts) check_count("cella.progress", n);
  check_count("cella.random", random[1]);
  const auto [steps, epochs, batch] = counts;
  if (epochs + batch > steps) {
    refuse("cella.progress", std::to_string(epochs) + " epochs and " + std::to_string(batch) +
                                 " batches of another, but only " + std::to_string(steps) +
                                 " steps, which is fewer");
  }
  epoch_progress epoch;
  if (states.lower_bound("epoch.") != states.lower_bound("epoch/")) {
    state_visitor visitor(states, "epoch", true);
    epoch.state(visitor);
    states.erase(states.lower_bound("epoch."), states.lower_bound("epoch/"));
    if (!epoch.consistent(batch))
      refuse("cella.fit.epoch.batches", "another position in the epoch than cella.progress");
  } else if (batch > 0) {  // written by older versions, which tell no more
    epoch.last = event::batch_end;
  }
  epoch.now.record.epoch = epochs - (epoch.last == event::epoch_end);
  return epoch;
}

}  // namespace cella::train
