// Metrics of classes beside accuracy: precision, recall, F-scores, overlaps, correlation, the area
// under the ROC curve, several labels at once.
#pragma once

#include <cella/train/metrics.hpp>
#include <string_view>
#include <vector>

namespace cella::metrics {

/// How scores of classes become one number.
enum class averaging : std::uint8_t {
  macro,     ///< the mean over the classes that occur
  micro,     ///< of all classes together
  weighted,  ///< the mean over the classes, by how many samples have them
  positive   ///< that of class 1
};

namespace detail {

/// Calls f(answer, label) for each label, where the answer is the class of the largest score along
/// `axis` of the prediction, -1 if one of them is NaN; its other extents are those of the labels.
template <class P, class_label T, class F>
void for_each_answer(data::tensor_view<const P> prediction, data::tensor_view<const T> labels,
                     int axis, F f) {
  const shape& e = prediction.extents();
  const int a = axis < 0 ? axis + e.rank : axis;
  const std::int64_t classes = a >= 0 && a < e.rank ? e[a] : 0;
  if (classes < 1 || std::int64_t(prediction.size()) != std::int64_t(labels.size()) * classes) {
    throw error(text("metrics: predictions ")
                << e << " with classes along axis " << axis << " and labels " << labels.extents()
                << " do not match; a label belongs to each place of the other axes");
  }
  const std::int64_t inner = e.size(a + 1, e.rank);
  for (std::int64_t i = 0; i < std::int64_t(labels.size()); ++i) {
    const P* const first = prediction.data() + i / inner * classes * inner + i % inner;
    std::int64_t best = 0;
    bool has_nan = false;
    for (std::int64_t c = 0; c < classes; ++c) {
      has_nan |= first[c * inner] != first[c * inner];
      if (first[c * inner] > first[best * inner]) best = c;
    }
    f(has_nan ? -1 : best, std::int64_t(labels[std::size_t(i)]));
  }
}

/// How often each class was the answer, was the truth, and was both.
template <int Classes>
struct class_counts {
  std::array<std::int64_t, std::size_t(Classes)> answers{}, truths{}, hits{};

  template <class P, class T>
  void add(data::tensor_view<const P> prediction, data::tensor_view<const T> labels, int axis) {
    const auto is_class = [](std::int64_t c) { return c >= 0 && c < Classes; };
    for_each_answer(prediction, labels, axis, [&](std::int64_t found, std::int64_t label) {
      if (!is_class(label)) return;
      ++truths[std::size_t(label)];
      if (is_class(found)) ++answers[std::size_t(found)];
      if (found == label) ++hits[std::size_t(label)];
    });
  }
  /// The average of score(hits, answers, truths) of a class.
  template <class F>
  double average(averaging how, F score) const {
    double total = 0, weight = 0, all_hits = 0, all_answers = 0, all_truths = 0;
    for (std::size_t c = 0; c < std::size_t(Classes); ++c) {
      const auto h = double(hits[c]), a = double(answers[c]), t = double(truths[c]);
      if (how == averaging::positive && c == 1) return score(h, a, t);
      all_hits += h;
      all_answers += a;
      all_truths += t;
      if (a + t == 0) continue;
      const double w = how == averaging::weighted ? t : 1;
      total += w * score(h, a, t);
      weight += w;
    }
    if (how == averaging::micro) return score(all_hits, all_answers, all_truths);
    return weight > 0 ? total / weight : 0;
  }
  void state(auto& visitor) {
    visitor("answers", answers);
    visitor("truths", truths);
    visitor("hits", hits);
  }
};

inline double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace detail

/// A score of hits, answers and truths of each class, and how those of all classes become one: see
/// `precision`, `recall`, `f_score`, `mean_iou`. Scores [N,...,C], labels [N,...]; labels outside
/// of the classes do not count. A score is a struct with a name, the usual axis of classes, and
/// `double operator()(double hits, double answers, double truths) const`.
template <int Classes, class Score>
struct class_metric {
  Score score{};
  averaging average = averaging::macro;
  int class_axis = Score::class_axis;  ///< of the predictions; 1 for images [N,C,H,W]

  static std::string name() { return std::string(Score::name); }
  void reset() { counts_ = {}; }
  template <class P, class_label T>
  void update(data::tensor_view<const P> prediction, data::tensor_view<const T> labels) {
    counts_.add(prediction, labels, class_axis);
  }
  double value() const { return counts_.average(average, score); }
  void state(auto& visitor) { counts_.state(visitor); }

  detail::class_counts<Classes> counts_{};
};

/// hits / answers
struct precision_score {
  static constexpr std::string_view name = "precision";
  static constexpr int class_axis = -1;
  double operator()(double hits, double answers, double) const {
    return detail::share(hits, answers);
  }
};
/// hits / truths
struct recall_score {
  static constexpr std::string_view name = "recall";
  static constexpr int class_axis = -1;
  double operator()(double hits, double, double truths) const {
    return detail::share(hits, truths);
  }
};
/// (1 + beta^2) precision recall / (beta^2 precision + recall): beta 1 is F1, their harmonic mean;
/// a larger one weighs recall more.  van Rijsbergen 1979
struct f_beta_score {
  static constexpr std::string_view name = "f_score";
  static constexpr int class_axis = -1;
  double beta = 1;
  double operator()(double hits, double answers, double truths) const {
    return detail::share((1 + beta * beta) * hits, beta * beta * truths + answers);
  }
};
/// hits / places where answer or truth have the class
struct overlap_score {
  static constexpr std::string_view name = "mean_iou";
  static constexpr int class_axis = 1;
  double operator()(double hits, double answers, double truths) const {
    return detail::share(hits, answers + truths - hits);
  }
};

/// Of the answers of a class those that are right.
template <int Classes>
using precision = class_metric<Classes, precision_score>;
/// Of the samples of a class those that are found.
template <int Classes>
using recall = class_metric<Classes, recall_score>;
/// F1, or another F-score: `f_score<3>{.score = {.beta = 2}}`.
template <int Classes>
using f_score = class_metric<Classes, f_beta_score>;
/// Intersection over union, for images [N,C,...] if `class_axis` does not say otherwise.
template <int Classes>
using mean_iou = class_metric<Classes, overlap_score>;

/// The correlation of answers and truths, -1 to 1; 0 where all answers or all truths are alike.
/// Matthews 1975; several classes: Gorodkin 2004
template <int Classes>
struct matthews_correlation {
  int class_axis = -1;

  static std::string name() { return "matthews"; }
  void reset() { counts_ = {}; }
  template <class P, class_label T>
  void update(data::tensor_view<const P> prediction, data::tensor_view<const T> labels) {
    counts_.add(prediction, labels, class_axis);
  }
  double value() const {
    double n = 0, right = 0, both = 0, answers = 0, truths = 0;
    for (std::size_t c = 0; c < std::size_t(Classes); ++c) {
      const auto a = double(counts_.answers[c]), t = double(counts_.truths[c]);
      n += t;
      right += double(counts_.hits[c]);
      both += a * t;
      answers += a * a;
      truths += t * t;
    }
    return detail::share(right * n - both, std::sqrt((n * n - answers) * (n * n - truths)));
  }
  void state(auto& visitor) { counts_.state(visitor); }

  detail::class_counts<Classes> counts_{};
};

/// The area under the ROC curve: how likely a sample with label 1 has a larger score than one with
/// label 0, equal scores counting half. Scores [N] or [N,1], or of two classes [N,2], whose
/// difference it takes; labels [N], 0 or 1. It keeps all scores; NaN among them makes it NaN.
struct auc {
  static std::string name() { return "auc"; }
  void reset() { *this = {}; }
  template <class P, class T>
  void update(data::tensor_view<const P> prediction, data::tensor_view<const T> labels) {
    const std::size_t n = labels.size(), each = n ? prediction.size() / n : 1;
    if (prediction.size() != n * each || each < 1 || each > 2) {
      throw error(text("metrics: auc: predictions ")
                  << prediction.extents() << " and labels " << labels.extents()
                  << " do not match; it takes one score for each label, or two");
    }
    for (std::size_t i = 0; i < n; ++i) {
      const auto last = double(prediction[i * each + each - 1]);
      scores_.push_back(each == 2 ? last - double(prediction[i * each]) : last);
      labels_.push_back(double(labels[i]) > 0.5 ? 1 : 0);
    }
  }
  double value() const {
    std::vector<std::pair<double, double>> all;
    for (std::size_t i = 0; i < scores_.size(); ++i) {
      if (std::isnan(scores_[i])) return scores_[i];  // it has no place in any order
      all.emplace_back(scores_[i], labels_[i]);
    }
    std::sort(all.begin(), all.end());
    double below = 0, ordered = 0, positive = 0;
    for (std::size_t i = 0; i < all.size();) {
      double here[2] = {0, 0};
      const double score = all[i].first;
      for (; i < all.size() && all[i].first == score; ++i) ++here[all[i].second > 0];
      ordered += here[1] * (below + here[0] / 2);
      below += here[0];
      positive += here[1];
    }
    return detail::share(ordered, below * positive);
  }
  void state(auto& visitor) {
    visitor("scores", scores_);
    visitor("labels", labels_);
  }

  std::vector<double> scores_{}, labels_{};
};

/// The fraction of elements that lie on their target's side of `threshold`: predictions and
/// targets, 0 or 1, of the same extents.
struct binary_accuracy {
  double threshold = 0.5;

  static std::string name() { return "binary_accuracy"; }
  void reset() { mean_ = {}; }
  template <class P, class T>
  void update(data::tensor_view<const P> prediction, data::tensor_view<const T> target) {
    detail::check_alike("binary_accuracy", prediction, target);
    for (std::size_t i = 0; i < target.size(); ++i) {
      mean_.sum += (double(prediction[i]) > threshold) == (double(target[i]) > 0.5);
      ++mean_.count;
    }
  }
  double value() const { return mean_.value(); }
  void state(auto& visitor) { mean_.state(visitor); }

  detail::mean_of mean_{};
};

/// The fraction of samples all of whose labels are right: predictions and targets, 0 or 1, [N,...].
struct multilabel_accuracy {
  double threshold = 0.5;

  static std::string name() { return "multilabel_accuracy"; }
  void reset() { mean_ = {}; }
  template <class P, class T>
  void update(data::tensor_view<const P> prediction, data::tensor_view<const T> target) {
    detail::check_alike("multilabel_accuracy", prediction, target);
    const std::int64_t samples = target.extents().rank ? target.extents()[0] : 1;
    const std::size_t each = samples ? target.size() / std::size_t(samples) : 0;
    for (std::size_t n = 0; n < std::size_t(samples); ++n) {
      bool right = true;
      for (std::size_t i = n * each; i < (n + 1) * each; ++i)
        right &= (double(prediction[i]) > threshold) == (double(target[i]) > 0.5);
      mean_.sum += right;
      ++mean_.count;
    }
  }
  double value() const { return mean_.value(); }
  void state(auto& visitor) { mean_.state(visitor); }

  detail::mean_of mean_{};
};

}  // namespace cella::metrics
