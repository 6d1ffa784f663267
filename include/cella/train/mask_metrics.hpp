// Metrics of masks: how well they overlap, and how far their points are apart.
#pragma once

#include <cella/train/class_metrics.hpp>
#include <limits>

namespace cella::metrics {

/// 2 |A and B| / (|A| + |B|), the mean over the samples: predictions, taken as true above
/// `threshold`, and targets, 0 or 1, [N,...]. Two empty masks overlap fully.  Dice 1945
struct dice {
  double threshold = 0.5;

  static std::string name() { return "dice"; }
  void reset() { mean_ = {}; }
  template <class P, class T>
  void update(data::tensor_view<const P> prediction, data::tensor_view<const T> target) {
    detail::check_alike("dice", prediction, target);
    const std::int64_t samples = target.extents().rank ? target.extents()[0] : 1;
    const std::size_t each = samples ? target.size() / std::size_t(samples) : 0;
    for (std::size_t n = 0; n < std::size_t(samples); ++n) {
      double both = 0, size = 0;
      for (std::size_t i = n * each; i < (n + 1) * each; ++i) {
        const bool a = double(prediction[i]) > threshold, b = double(target[i]) > 0.5;
        both += a && b;
        size += double(a) + double(b);
      }
      mean_.sum += size > 0 ? 2 * both / size : 1;
      ++mean_.count;
    }
  }
  double value() const { return mean_.value(); }
  void state(auto& visitor) { mean_.state(visitor); }

  detail::mean_of mean_{};
};

/// The Hausdorff distance of two masks [N,H,W], in pixels: how far a point of one of them may be
/// from the other; the mean over the samples. Where one mask alone is empty it is infinite.
struct hausdorff_distance {
  double threshold = 0.5;

  static std::string name() { return "hausdorff"; }
  void reset() { mean_ = {}; }
  template <class P, class T>
  void update(data::tensor_view<const P> prediction, data::tensor_view<const T> target) {
    detail::check_alike("hausdorff_distance", prediction, target);
    const shape& e = target.extents();
    if (e.rank < 3) {
      throw error(text("metrics: hausdorff_distance: the masks are ")
                  << e << "; it needs images [N,H,W]");
    }
    const std::int64_t width = e[e.rank - 1], each = e[e.rank - 2] * width;
    const std::int64_t samples = each ? e.size() / each : 0;
    for (std::int64_t n = 0; n < samples; ++n) {
      points found, wanted;
      for (std::int64_t i = 0; i < each; ++i) {
        const auto at = std::size_t(n * each + i);
        const std::pair place{double(i / width), double(i % width)};
        if (double(prediction[at]) > threshold) found.push_back(place);
        if (double(target[at]) > 0.5) wanted.push_back(place);
      }
      mean_.sum += std::sqrt(std::max(farthest(found, wanted), farthest(wanted, found)));
      ++mean_.count;
    }
  }
  double value() const { return mean_.value(); }
  void state(auto& visitor) { mean_.state(visitor); }

  detail::mean_of mean_{};

 private:
  using points = std::vector<std::pair<double, double>>;
  /// The largest squared distance of a point of `from` to the nearest of `to`.
  static double farthest(const points& from, const points& to) {
    double most = 0;
    for (const auto& [y, x] : from) {
      double nearest = std::numeric_limits<double>::infinity();
      for (const auto& [v, u] : to)
        nearest = std::min(nearest, (y - v) * (y - v) + (x - u) * (x - u));
      most = std::max(most, nearest);
    }
    return most;
  }
};

}  // namespace cella::metrics
