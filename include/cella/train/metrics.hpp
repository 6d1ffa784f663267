// Metrics: what a model's predictions are worth, gathered batch by batch.
//
// A metric has a `name()`, `reset()`, `value()` and either
//   update(prediction, target)  with two `data::tensor_view`s, whose first axis counts samples, or
//   update(loss, rows)          with the mean loss of so many samples.
// Where a model has several outputs or labels, it is given tuples of views: see `of`.
// With a `state(visitor&)` (see state.hpp) it goes on where training was stopped in the middle of
// an epoch; without, it then counts from there.
#pragma once

#include <algorithm>
#include <array>
#include <cella/data/tensor.hpp>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace cella::metrics {

/// What every metric has; see the head of this file for `update`.
template <class M>
concept metric = requires(std::remove_cvref_t<M>& m) {
  { m.name() } -> std::convertible_to<std::string>;
  { m.value() } -> std::convertible_to<double>;
  m.reset();
};
/// Asks for the loss rather than for predictions.
template <class M>
concept loss_metric = metric<M> && requires(M& m) {
  m.update(double{}, std::int64_t{});
};

/// What a metric compares classes with; of other targets it is refused where the model is asked.
template <class T>
concept class_label = std::is_integral_v<T>;

namespace detail {

/// A mean, exactly weighted.
struct mean_of {
  double sum{};
  std::int64_t count{};
  double value() const { return count ? sum / double(count) : 0; }
  void state(auto& visitor) {
    visitor("sum", sum);
    visitor("count", count);
  }
};

/// Calls f(scores, label) for each label: scores of all classes along the last axis.
template <class P, class_label T, class F>
void for_each_label(data::tensor_view<const P> prediction, data::tensor_view<const T> labels, F f) {
  const shape& e = prediction.extents();
  const std::int64_t classes = e.rank ? e[e.rank - 1] : 1;
  if (std::int64_t(prediction.size()) != std::int64_t(labels.size()) * classes) {
    throw error(text("metrics: predictions ")
                << e << " and labels " << labels.extents()
                << " do not match; a label belongs to each row of the last axis");
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    f(std::span<const P>(prediction.data() + std::int64_t(i) * classes, std::size_t(classes)),
      std::int64_t(labels[i]));
  }
}

/// Throws unless predictions and targets have as many elements.
template <class P, class T>
void check_alike(const char* who, data::tensor_view<const P> prediction,
                 data::tensor_view<const T> target) {
  if (prediction.size() == target.size()) return;
  throw error(text("metrics: ") << who << ": predictions " << prediction.extents()
                                << " and targets " << target.extents()
                                << " do not match; an element belongs to each");
}

}  // namespace detail

/// The index of the largest score; the first of equals.
template <class P>
std::int64_t argmax(std::span<const P> scores) {
  return std::max_element(scores.begin(), scores.end()) - scores.begin();
}

namespace detail {
/// The class that scores answer; -1 where one of them is NaN, wherever it stands: that is never
/// right.
template <class P>
std::int64_t answer_of(std::span<const P> scores) {
  const bool has_nan = std::any_of(scores.begin(), scores.end(), [](P s) { return s != s; });
  return has_nan || scores.empty() ? -1 : argmax(scores);
}
}  // namespace detail

/// The mean loss, each sample counted once, however samples fall into batches.
struct loss {
  static std::string name() { return "loss"; }
  void reset() { mean_ = {}; }
  void update(double mean, std::int64_t rows) {
    mean_.sum += mean * double(rows);
    mean_.count += rows;
  }
  double value() const { return mean_.value(); }
  void state(auto& visitor) { mean_.state(visitor); }

  detail::mean_of mean_{};
};

/// The fraction of labels that have the largest score. Scores [N, ..., C], labels [N, ...].
struct accuracy {
  static std::string name() { return "accuracy"; }
  void reset() { mean_ = {}; }
  template <class P, class_label T>
  void update(data::tensor_view<const P> prediction, data::tensor_view<const T> labels) {
    detail::for_each_label(prediction, labels, [&](std::span<const P> scores, std::int64_t label) {
      mean_.sum += label >= 0 && detail::answer_of(scores) == label;
      ++mean_.count;
    });
  }
  double value() const { return mean_.value(); }
  void state(auto& visitor) { mean_.state(visitor); }

  detail::mean_of mean_{};
};

/// The fraction of labels that are among the K largest scores; of equal scores the first counts as
/// larger, and NaN as larger than all.
template <int K>
struct top_k {
  static_assert(K > 0);
  static std::string name() { return "top" + std::to_string(K); }
  void reset() { mean_ = {}; }
  template <class P, class_label T>
  void update(data::tensor_view<const P> prediction, data::tensor_view<const T> labels) {
    detail::for_each_label(prediction, labels, [&](std::span<const P> scores, std::int64_t label) {
      ++mean_.count;
      if (label < 0 || label >= std::int64_t(scores.size())) return;
      const P own = scores[std::size_t(label)];
      if (own != own) return;
      int better = 0;
      for (std::size_t c = 0; c < scores.size(); ++c) {
        better += !(scores[c] <= own) || (scores[c] == own && std::int64_t(c) < label);
      }
      mean_.sum += better < K;
    });
  }
  double value() const { return mean_.value(); }
  void state(auto& visitor) { mean_.state(visitor); }

  detail::mean_of mean_{};
};

/// How often class `row` was taken for class `column`; `value()` is the accuracy. Pass it as a
/// variable to read it afterwards. Labels outside the classes count as wrong, in no cell.
template <int Classes>
struct confusion_matrix {
  static std::string name() { return "confusion"; }
  void reset() { *this = {}; }
  template <class P, class_label T>
  void update(data::tensor_view<const P> prediction, data::tensor_view<const T> labels) {
    detail::for_each_label(prediction, labels, [&](std::span<const P> scores, std::int64_t label) {
      ++total;
      const std::int64_t found = detail::answer_of(scores);
      if (label >= 0 && label < Classes && found >= 0 && found < Classes)
        ++counts[std::size_t(label)][std::size_t(found)];
    });
  }
  std::int64_t operator()(int truth, int found) const {
    return counts[std::size_t(truth)][std::size_t(found)];
  }
  double value() const {
    std::int64_t right = 0;
    for (std::size_t c = 0; c < std::size_t(Classes); ++c) right += counts[c][c];
    return total ? double(right) / double(total) : 0;
  }
  void state(auto& visitor) {
    visitor("total", total);
    for (std::size_t c = 0; c < std::size_t(Classes); ++c)
      visitor("row" + std::to_string(c), counts[c]);
  }

  std::array<std::array<std::int64_t, std::size_t(Classes)>, std::size_t(Classes)> counts{};
  std::int64_t total{};
};

/// Mean of |prediction - target| over all elements.
struct mean_absolute_error {
  static std::string name() { return "mae"; }
  void reset() { mean_ = {}; }
  template <class P, class T>
  void update(data::tensor_view<const P> prediction, data::tensor_view<const T> target) {
    detail::check_alike("mean_absolute_error", prediction, target);
    for (std::size_t i = 0; i < target.size(); ++i) {
      mean_.sum += std::abs(double(prediction[i]) - double(target[i]));
      ++mean_.count;
    }
  }
  double value() const { return mean_.value(); }
  void state(auto& visitor) { mean_.state(visitor); }

  detail::mean_of mean_{};
};

namespace detail {
template <int K, class T>
const auto& part_of(const T& all) {
  if constexpr (requires { std::tuple_size<T>::value; })
    return std::get<std::size_t(K)>(all);
  else
    return all;
}
}  // namespace detail

/// A metric that sees one of several outputs and one of several labels: see `of`.
template <int Output, int Label, metric M>
struct metric_of {
  M measure;
  std::string title;

  std::string name() const { return title; }
  void reset() { measure.reset(); }
  template <class P, class T>
  requires requires(M& m, const P& p, const T& t) {
    m.update(detail::part_of<Output>(p), detail::part_of<Label>(t));
  }
  void update(const P& predictions, const T& labels) {
    measure.update(detail::part_of<Output>(predictions), detail::part_of<Label>(labels));
  }
  double value() const { return measure.value(); }
  void state(auto& visitor) requires requires { measure.state(visitor); }
  { measure.state(visitor); }
};
/// The metric of output `Output` and label `Label`, counted from 0 in the order of their structs,
/// for nets with several heads: `metrics::of<1>(metrics::mean_absolute_error{}, "price_mae")`. With
/// no name it is called "1.mae".
template <int Output, int Label = Output, metric M>
metric_of<Output, Label, M> of(M measure, std::string name = {}) {
  if (name.empty()) name = std::to_string(Output) + "." + std::string(measure.name());
  return {std::move(measure), std::move(name)};
}

}  // namespace cella::metrics
