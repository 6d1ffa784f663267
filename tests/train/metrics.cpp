#include <doctest/doctest.h>

#include <cella/train/metrics.hpp>
#include <cstdint>
#include <limits>
#include <vector>

using namespace cella;

namespace {
template <class T>
data::tensor_view<const T> view(const std::vector<T>& v, shape s) {
  return {v.data(), s};
}
const std::vector<float> scores{0.1f,  0.7f,  0.2f,  //
                                0.5f,  0.5f,  0.0f,  //
                                0.3f,  0.2f,  0.1f,  //
                                -1.0f, -2.0f, -3.0f};
const std::vector<std::int32_t> labels{1, 1, 2, 0};
}  // namespace

TEST_CASE("accuracy counts the largest score, the first of equals") {
  metrics::accuracy a;
  a.update(view(scores, {4, 3}), view(labels, {4}));
  CHECK(a.value() == 0.5);
  a.update(view(scores, {2, 2, 3}), view(labels, {2, 2}));  // labels per position
  CHECK(a.value() == 0.5);
  a.reset();
  CHECK(a.value() == 0);
}

TEST_CASE("top-k counts labels among the k largest; of equals the first is larger") {
  metrics::top_k<1> one;
  metrics::top_k<2> two;
  metrics::top_k<3> three;
  for (int i = 0; i < 2; ++i) {
    one.update(view(scores, {4, 3}), view(labels, {4}));
    two.update(view(scores, {4, 3}), view(labels, {4}));
    three.update(view(scores, {4, 3}), view(labels, {4}));
  }
  CHECK(one.value() == 0.5);
  CHECK(two.value() == 0.75);
  CHECK(three.value() == 1);
  CHECK(two.name() == "top2");
}

TEST_CASE("no score is read for a label outside the classes, and NaN is never right") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> s{1, 2, nan, nan};
  const std::vector<std::int32_t> wild{-1, 7};
  metrics::top_k<2> top;
  metrics::confusion_matrix<2> table;
  metrics::accuracy a;
  top.update(view(s, {2, 2}), view(wild, {2}));
  table.update(view(s, {2, 2}), view(wild, {2}));
  a.update(view(s, {2, 2}), view(wild, {2}));
  CHECK(top.value() == 0);
  CHECK(table.value() == 0);
  CHECK(table.total == 2);
  CHECK(a.value() == 0);
  const std::vector<std::int32_t> second{1, 1};
  top.reset();
  top.update(view(s, {2, 2}), view(second, {2}));
  CHECK(top.value() == 0.5);
  // Nor where it is the first.
  const std::vector<float> none{NAN, NAN};
  const std::vector<std::int32_t> first{0};
  metrics::confusion_matrix<2> counts;
  a.reset();
  a.update(view(none, {1, 2}), view(first, {1}));
  counts.update(view(none, {1, 2}), view(first, {1}));
  CHECK(a.value() == 0);
  CHECK(counts.value() == 0);
  // One that is NaN makes no answer of the others, in whichever place.
  const std::vector<float> some{0, 3, NAN, NAN, 3, 0, 0, NAN, 3};
  const std::vector<std::int32_t> largest{1, 1, 2};
  a.reset();
  top.reset();
  a.update(view(some, {3, 3}), view(largest, {3}));
  CHECK(a.value() == 0);
  metrics::top_k<1> one;
  one.update(view(some, {3, 3}), view(largest, {3}));
  top.update(view(some, {3, 3}), view(largest, {3}));
  CHECK(one.value() == 0);
  CHECK(top.value() == 1);
}

TEST_CASE("the loss is weighted by samples") {
  metrics::loss l;
  l.update(1.0, 30);
  l.update(4.0, 10);
  CHECK(l.value() == 1.75);
}

TEST_CASE("a confusion matrix has a row per truth and a column per answer") {
  metrics::confusion_matrix<3> m;
  m.update(view(scores, {4, 3}), view(labels, {4}));
  CHECK(m(1, 1) == 1);
  CHECK(m(1, 0) == 1);
  CHECK(m(2, 0) == 1);
  CHECK(m(0, 0) == 1);
  CHECK(m(2, 2) == 0);
  CHECK(m.value() == 0.5);
}

TEST_CASE("the mean absolute error is over all elements") {
  metrics::mean_absolute_error e;
  const std::vector<double> p{1, 2, 3, 4}, t{1, 1, 5, 4};
  e.update(view(p, {2, 2}), view(t, {2, 2}));
  CHECK(e.value() == 0.75);
  CHECK_THROWS_WITH_AS(e.update(view(p, {2, 2}), view(t, {2})),
                       doctest::Contains("mean_absolute_error: predictions [2,2] and targets [2]"),
                       error);
}

TEST_CASE("predictions and labels that do not match are refused") {
  metrics::accuracy a;
  CHECK_THROWS_WITH_AS(a.update(view(scores, {4, 3}), view(labels, {3})),
                       doctest::Contains("predictions [4,3] and labels [3] do not match"), error);
}
