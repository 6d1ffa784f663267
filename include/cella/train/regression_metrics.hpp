// Metrics of numbers: squared errors and the share of the variance that is explained.
#pragma once

#include <cella/train/class_metrics.hpp>

namespace cella::metrics {

/// Mean of (prediction - target)^2 over all elements.
struct mean_squared_error {
  static std::string name() { return "mse"; }
  void reset() { mean_ = {}; }
  template <class P, class T>
  void update(data::tensor_view<const P> prediction, data::tensor_view<const T> target) {
    detail::check_alike("mean_squared_error", prediction, target);
    for (std::size_t i = 0; i < target.size(); ++i) {
      const double d = double(prediction[i]) - double(target[i]);
      mean_.sum += d * d;
      ++mean_.count;
    }
  }
  double value() const { return mean_.value(); }
  void state(auto& visitor) { mean_.state(visitor); }

  detail::mean_of mean_{};
};

/// Its root.
struct root_mean_squared_error : mean_squared_error {
  static std::string name() { return "rmse"; }
  double value() const { return std::sqrt(mean_.value()); }
};

/// 1 - sum of (target - prediction)^2 / sum of (target - mean target)^2: 1 is perfect, 0 as good as
/// the mean. 0 where all targets are alike.
struct r2_score {
  static std::string name() { return "r2"; }
  void reset() { *this = {}; }
  template <class P, class T>
  void update(data::tensor_view<const P> prediction, data::tensor_view<const T> target) {
    detail::check_alike("r2_score", prediction, target);
    for (std::size_t i = 0; i < target.size(); ++i) {
      // Welford's mean and sum of squared deviations.
      const double t = double(target[i]), d = t - double(prediction[i]), from = t - mean_;
      ++count_;
      mean_ += from / double(count_);
      spread_ += from * (t - mean_);
      error_ += d * d;
    }
  }
  double value() const { return spread_ > 0 ? 1 - error_ / spread_ : 0; }
  void state(auto& visitor) {
    visitor("count", count_);
    visitor("mean", mean_);
    visitor("spread", spread_);
    visitor("error", error_);
  }

  std::int64_t count_{};
  double mean_{}, spread_{}, error_{};
};

}  // namespace cella::metrics
