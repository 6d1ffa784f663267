// Metrics of classes, numbers, masks and texts beside scikit-learn, SciPy and NLTK.
#include <doctest/doctest.h>

#include <cella/train/class_metrics.hpp>
#include <cella/train/mask_metrics.hpp>
#include <cella/train/regression_metrics.hpp>
#include <cella/train/text_metrics.hpp>
#include <cmath>
#include <vector>

using namespace cella;
using namespace cella::metrics;

namespace {
template <class T>
data::tensor_view<const T> view(const std::vector<T>& v, shape s) {
  return {v.data(), s};
}
using labels = std::vector<std::int32_t>;
const std::vector<float> scores{0.09f, 0.24f, 0.8f,  0.58f, 0.09f, 0.43f, 0.48f, 0.16f, 0.73f,
                                0.11f, 0.39f, 0.52f, 0.43f, 0.59f, 0.74f, 0.96f, 0.28f, 0.65f,
                                0.7f,  0.29f, 0.0f,  0.97f, 0.3f,  0.31f, 0.89f, 0.59f, 0.47f,
                                0.77f, 0.03f, 0.71f, 0.37f, 0.09f, 0.66f, 0.93f, 0.21f, 0.63f};
const labels truth{2, 0, 1, 2, 0, 0, 1, 0, 1, 0, 2, 1};

/// In two batches.
template <class M>
double measured(M m) {
  m.update(view(scores, {7, 3}), view(truth, {7}));
  m.update(data::tensor_view<const float>{scores.data() + 21, {5, 3}},
           data::tensor_view<const std::int32_t>{truth.data() + 7, {5}});
  return m.value();
}
template <class M, class P, class T>
double of(M m, const std::vector<P>& p, const shape& of_p, const std::vector<T>& t,
          const shape& of_t) {
  m.update(view(p, of_p), view(t, of_t));
  return m.value();
}
}  // namespace

TEST_CASE("precision, recall, F-scores, overlaps and correlation are scikit-learn's") {
  const auto check = [](averaging a, double p, double r, double f, double j) {
    CHECK(measured(precision<3>{.average = a}) == doctest::Approx(p));
    CHECK(measured(recall<3>{.average = a}) == doctest::Approx(r));
    CHECK(measured(f_score<3>{.score = {.beta = 2}, .average = a}) == doctest::Approx(f));
    CHECK(measured(mean_iou<3>{.average = a, .class_axis = -1}) == doctest::Approx(j));
  };
  check(averaging::macro, 0.39047619047619, 0.6, 0.541031227305737, 0.366666666666667);
  check(averaging::micro, 0.583333333333333, 0.583333333333333, 0.583333333333333,
        0.411764705882353);
  check(averaging::weighted, 0.388095238095238, 0.583333333333333, 0.52923021060276,
        0.358333333333333);
  CHECK(measured(matthews_correlation<3>{}) == doctest::Approx(0.419146621813307));
}

TEST_CASE("a score of one's own is a struct") {
  struct rarity : metrics::recall_score {
    double operator()(double, double, double truths) const { return 1 / truths; }
  };
  const double micro = measured(class_metric<3, rarity>{.average = averaging::micro});
  CHECK(micro == doctest::Approx(1 / 12.0));
  CHECK(precision_score{}(1, 2, 3) == 0.5);
  CHECK(f_beta_score{.beta = 1}(1, 2, 2) == 0.5);
  CHECK(overlap_score{}(1, 2, 2) == doctest::Approx(1 / 3.0));
}

TEST_CASE("of two classes the second one counts") {
  std::vector<float> two;
  labels y;
  for (std::size_t i = 0; i < 12; ++i) {
    two.push_back(scores[3 * i]);
    two.push_back(scores[3 * i + 1]);
    y.push_back(std::array{0, 0, 1, 2, 0, 2, 1, 0, 1, 2, 2, 1}[i] > 0);
  }
  const auto check = [&](auto m) { return of(m, two, {12, 2}, y, {12}); };
  CHECK(check(precision<2>{.average = averaging::positive}) == doctest::Approx(1 / 3.0));
  CHECK(check(recall<2>{.average = averaging::positive}) == doctest::Approx(0.125));
  CHECK(check(f_score<2>{.average = averaging::positive}) == doctest::Approx(0.181818181818182));
  CHECK(check(auc{}) == doctest::Approx(0.375));
  std::vector<float> coarse;
  for (std::size_t i = 0; i < 12; ++i)
    coarse.push_back(std::round(scores[3 * i + 1] * 10));  // some are equal
  CHECK(of(auc{}, coarse, {12}, y, {12}) == doctest::Approx(0.46875));
  // A score that is no number has no place among the others.
  coarse[3] = NAN;
  CHECK(std::isnan(of(auc{}, coarse, {12}, y, {12})));
  std::fill(two.begin(), two.end(), NAN);
  CHECK(check(recall<2>{.average = averaging::positive}) == 0);
  CHECK(check(precision<2>{.average = averaging::macro}) == 0);
}

TEST_CASE("classes of images lie along the second axis") {
  // Two classes, 1 x 3 pixels: answers 1 0 1, truths 1 1 1.
  const std::vector<float> p{0, 1, 0, 1, 0, 1};
  const labels t{1, 1, 1};
  CHECK(of(metrics::mean_iou<2>{}, p, {1, 2, 1, 3}, t, {1, 1, 3}) ==
        doctest::Approx((0 + 2 / 3.0) / 2));
  CHECK_THROWS_WITH_AS(of(metrics::mean_iou<2>{}, p, {1, 2, 1, 3}, t, {2}),
                       doctest::Contains("do not match"), error);
}

TEST_CASE("squared errors and the explained share of the variance") {
  const std::vector<double> t{0.7, -0.44, -1.08, 0.03, -0.05, 1.41},
      p{1.07, -0.34, -0.52, -0.07, -0.51, 1.7};
  CHECK(of(metrics::mean_squared_error{}, p, {6}, t, {6}) == doctest::Approx(0.1277));
  CHECK(of(metrics::root_mean_squared_error{}, p, {6}, t, {6}) ==
        doctest::Approx(std::sqrt(0.1277)));
  CHECK(of(metrics::r2_score{}, p, {6}, t, {6}) == doctest::Approx(0.797694958216167));
  CHECK_THROWS_WITH_AS(
      of(metrics::r2_score{}, p, {6}, std::vector<double>{1, 2}, {2}),
      "metrics: r2_score: predictions [6] and targets [2] do not match; an element belongs to each",
      error);
}

TEST_CASE("several labels at once: each of them, or all of a sample") {
  const std::vector<float> p{0.9f, 0.2f, 0.6f, 0.4f};
  const labels t{1, 0, 1, 1};
  CHECK(of(metrics::binary_accuracy{}, p, {2, 2}, t, {2, 2}) == 0.75);
  CHECK(of(metrics::multilabel_accuracy{}, p, {2, 2}, t, {2, 2}) == 0.5);
}

TEST_CASE("masks: overlap and Hausdorff distance") {
  std::vector<float> a(30), b(30);
  for (std::size_t y = 1; y < 3; ++y) {
    for (std::size_t x = 1; x < 4; ++x) a[y * 6 + x] = 1, b[y * 6 + x] = x > 1;
  }
  b[4 * 6 + 5] = 1;
  CHECK(of(metrics::dice{}, a, {1, 5, 6}, b, {1, 5, 6}) == doctest::Approx(0.7272727272727273));
  CHECK(of(metrics::hausdorff_distance{}, a, {1, 5, 6}, b, {1, 5, 6}) ==
        doctest::Approx(std::sqrt(8.0)));
  const std::vector<float> none(30);
  CHECK(of(metrics::hausdorff_distance{}, none, {1, 5, 6}, none, {1, 5, 6}) == 0);
  CHECK(of(metrics::dice{}, none, {1, 5, 6}, none, {1, 5, 6}) == 1);
  CHECK(std::isinf(of(metrics::hausdorff_distance{}, a, {1, 5, 6}, none, {1, 5, 6})));
}

TEST_CASE("BLEU is NLTK's; perplexity is e to the mean loss") {
  const labels target{1, 2, 3, 4, 5, 6, 7, 0, 3, 1, 4, 1, 5, 9, 0, 0};
  const labels found{1, 2, 3, 4, 5, 8, 7, 0, 3, 1, 4, 1, 5, 0, 3, 3};
  CHECK(of(metrics::bleu<4>{.end = 0}, found, {2, 8}, target, {2, 8}) ==
        doctest::Approx(0.71594003856498));
  CHECK(of(metrics::bleu<2>{.end = 0}, found, {2, 8}, target, {2, 8}) ==
        doctest::Approx(0.787878965907698));
  std::vector<float> s(16 * 10);
  for (std::size_t i = 0; i < 16; ++i) s[i * 10 + std::size_t(found[i])] = 1;
  CHECK(of(metrics::bleu<2>{.end = 0}, s, {2, 8, 10}, target, {2, 8}) ==
        doctest::Approx(0.787878965907698));
  metrics::perplexity p;
  p.update(1, 3);
  p.update(2, 1);
  CHECK(p.value() == doctest::Approx(std::exp(1.25)));
}
