// A learning rate that falls when a score no longer improves.
#pragma once

#include <cella/train/callbacks.hpp>
#include <memory>

namespace cella::train {

/// A callback whose `rate()` is a schedule: `first`, multiplied by `factor` whenever the score has
/// not improved by more than `minimum_change` for more than `patience` epochs, but not below
/// `least`.
///
///   train::reduce_on_plateau plateau{.first = 0.1, .monitor = "val_loss"};
///   m.fit(data, {.epochs = 30, .learning_rate = plateau.rate()}, plateau);
struct reduce_on_plateau {
  double first = 0.01;
  std::string monitor = "val_loss";
  double factor = 0.1;
  std::int64_t patience = 10;
  double minimum_change = 0;
  double least = 0;
  better which = better::by_name;

  /// Copies of this object share what they have found.
  auto rate() const {
    return [now = now_, begin = first](std::int64_t, std::int64_t) {
      return now->scale * begin < now->least ? now->least : now->scale * begin;
    };
  }

  static constexpr std::string_view state_name = "reduce_on_plateau";
  void state(state_visitor& v) {
    v("best", best_);
    v("waited", waited_);
    v("scale", now_->scale);
  }
  void on_train_begin(const fit_state& s) {
    if (!(factor > 0 && factor < 1))
      throw error("reduce_on_plateau: factor is " + std::to_string(factor) +
                  "; it must lie between 0 and 1");
    if (patience < 0)
      throw error("reduce_on_plateau: patience is " + std::to_string(patience) +
                  "; give 0 epochs or more");
    now_->least = least;
    if (s.step > 0) return;
    best_.reset();
    waited_ = 0;
    now_->scale = 1;
  }
  void on_epoch_end(auto& context) {
    if (detail::improves(context.record[monitor], best_, monitor, which, minimum_change)) {
      best_ = context.record[monitor];
      waited_ = 0;
    } else if (++waited_ > patience) {
      waited_ = 0;
      now_->scale *= factor;
    }
  }

  struct progress {
    double scale = 1, least = 0;
  };
  std::shared_ptr<progress> now_ = std::make_shared<progress>();
  std::optional<double> best_{};
  std::int64_t waited_{};
};

}  // namespace cella::train
