// What position.hpp declares.
#pragma once

#include <algorithm>
#include <cella/train/position.hpp>

namespace cella::train {

CELLA_BODY void epoch_progress::state(state_visitor& v) {
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

CELLA_BODY bool epoch_progress::consistent(std::int64_t batch) const {
  const auto counts = {now.batches, now.record.samples, mean.mean_.count};
  for (const std::int64_t n : counts) {
    if (n < 0 || n > most_counted) return false;
  }
  if (!(now.record.seconds >= 0)) return false;
  return last == event::batch_end ? 0 < batch && batch <= now.batches
                                  : batch == 0 && event::none <= last && last <= event::epoch_end;
}

CELLA_BODY state_map fit_memory::write() {
  if (refresh) refresh();
  state_map all = states;
  state_visitor v(all, "epoch", false);
  if (epoch.last != event::none) epoch.state(v);
  return all;
}

}  // namespace cella::train
