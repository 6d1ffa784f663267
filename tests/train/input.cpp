#include <doctest/doctest.h>

#include <cella/data/xtensor.hpp>
#include <cmath>
#include <vector>

#include "digits.hpp"

using namespace cella;
using namespace cella::test;

struct line {
  nn::dense<2, 1> fit{};
  constexpr var operator()(var x) const { return fit(x); }
};

namespace {

/// y = 3 a - 2 b + 1, in f32 columns.
auto points(int n) {
  std::vector<float> x, y;
  for (int i = 0; i < n; ++i) {
    const float a = normal<float>(1, std::uint64_t(2 * i)),
                b = normal<float>(1, std::uint64_t(2 * i + 1));
    x.insert(x.end(), {a, b});
    y.push_back(3 * a - 2 * b + 1);
  }
  return data::tensor_dataset(data::column<float>({n, 2}, x), data::column<float>({n, 1}, y));
}
constexpr auto absolute = [](var prediction, var target) { return mean(abs(prediction - target)); };
constexpr model_options double_precision{.batch = 4, .precision = dtype::f64};

}  // namespace

TEST_CASE("a regression in f64 finds its line; data in f32 are converted") {
  for (execution how : {execution::graph, execution::eager}) {
    model<line, features<2>, squared_error_loss{}, optim::sgd{}, double_precision> m(
        {.seed = 1, .mode = how});
    m.fit(points(22), {.epochs = 40, .learning_rate = 0.1});
    const auto w = m.net().fit.weight.values<double>();
    CHECK(w[0] == doctest::Approx(3).epsilon(1e-5));
    CHECK(w[1] == doctest::Approx(-2).epsilon(1e-5));
    CHECK(m.net().fit.bias.values<double>()[0] == doctest::Approx(1).epsilon(1e-5));
    CHECK(m.evaluate(points(9), metrics::mean_absolute_error{})["mae"] < 1e-4);
    CHECK(m.predict(std::vector<double>{1, 1})[0] == doctest::Approx(2).epsilon(1e-5));
  }
}

TEST_CASE("a loss may be a lambda, and is measured as it was trained") {
  model<line, features<2>, absolute, optim::adam{}, model_options{.batch = 4}> m({.seed = 1});
  const auto data = points(10);
  const double before = m.evaluate(data)["loss"];
  CHECK(before == doctest::Approx(m.evaluate(data, metrics::mean_absolute_error{})["mae"]));
  m.fit(data, {.epochs = 20, .learning_rate = 0.05});
  CHECK(m.evaluate(data)["loss"] < before);
}

TEST_CASE("xtensor's arrays are predicted from their own memory; other orders are refused") {
  model<line, features<2>, squared_error_loss{}, optim::sgd{}, model_options{.batch = 4}> m(
      {.seed = 2});
  const xt::xtensor<float, 2> x{{1, 2}, {3, 4}, {5, 6}};
  const auto y = m.predict(x);
  REQUIRE(y.shape() == shape{3, 1});
  CHECK(y[2] == m.predict(std::vector<float>{5, 6})[0]);
  CHECK(m.predict(xt::xarray<float>{1, 2})[0] == y[0]);
  const xt::xtensor<float, 2, xt::layout_type::column_major> turned = x;
  CHECK_THROWS_WITH_AS(m.predict(turned), doctest::Contains("not dense and row-major"), error);
  const xt::xtensor<float, 2> wide{{1, 2, 3}};
  CHECK_THROWS_WITH_AS(m.predict(wide),
                       doctest::Contains("the array is [1,3], but the model takes samples [2]"),
                       error);
}

TEST_CASE("threads change nothing") {
  using plain = model<plain_net, features<6>, cross_entropy_loss{}, optim::sgd{.momentum = 0.9},
                      model_options{.batch = 8}>;
  plain one({.seed = 1, .mode = execution::graph}),
      two({.seed = 1, .mode = execution::graph, .threads = 2});
  one.fit(three_classes(20), {.epochs = 3});
  two.fit(three_classes(20), {.epochs = 3});
  CHECK(one.snapshot() == two.snapshot());
}
