#include <algorithm>
#include <cella/ops/random_choice.hpp>
#include <cella/ops/random_distributions.hpp>
#include <cella/ops/sorting.hpp>
#include <cella/ops/statistics.hpp>
#include <cella/transform/gradient.hpp>
#include <functional>
#include <thread>

#include "support/gradient_check.hpp"
#include "support/planned.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr int count = 20'000;
using draw = var (*)(var);

/// Numbers drawn in eager mode, each from an element `parameter`.
reals eager(draw f, double parameter, double seed = 7, double step = 3) {
  eager_session s;
  s.bind(s.b.bodies.random_key(), i64({2}, {seed, step}));
  return s.value(f(s(f64({count}, reals(std::size_t(count), parameter))))).values;
}
/// And by a plan, with so many threads.
reals planned(draw f, double parameter, int threads) {
  traced_function g([f](const vars& x) { return vars{f(x[0])}; }, {{dtype::f64, {count}}});
  REQUIRE(can_be_planned(g.b.g));
  std::vector<valued_tensor> in{f64({count}, reals(std::size_t(count), parameter))};
  in.push_back(i64({2}, {7, 3}));
  return run_planned(g.b.g, in, threads)[0].values;
}

/// Kolmogorov's and Smirnov's distance between numbers and a distribution, times sqrt(count).
double ks(reals x, const std::function<double(double)>& distribution) {
  std::sort(x.begin(), x.end());
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double f = distribution(x[i]), n = double(x.size());
    most = std::max({most, std::abs(f - double(i) / n), std::abs(double(i + 1) / n - f)});
  }
  return most * std::sqrt(double(x.size()));
}
/// Above it lies one sample in a thousand.
constexpr double most_ks = 1.95;

double normal_below(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }
/// The regularized incomplete gamma function, by its series.
double gamma_below(double alpha, double x) {
  double term = std::exp(alpha * std::log(x) - x - std::lgamma(alpha + 1)), sum = 0;
  for (int k = 1; term > 1e-17 * sum; ++k) sum += term, term *= x / (alpha + k);
  return sum;
}
/// Pearson's statistic, of counts whose probabilities are these.
double chi_square(const reals& x, const reals& probabilities) {
  reals found(probabilities.size(), 0.0);
  double rest = 1;
  for (double v : x)
    if (v >= 0 && v < double(found.size())) found[std::size_t(v)] += 1;
  double sum = 0, counted = 0;
  for (std::size_t k = 0; k < found.size(); ++k) {
    const double expected = probabilities[k] * double(x.size());
    sum += (found[k] - expected) * (found[k] - expected) / expected;
    rest -= probabilities[k];
    counted += found[k];
  }
  const double expected = rest * double(x.size());
  if (expected > 1) sum += std::pow(double(x.size()) - counted - expected, 2) / expected;
  return sum;
}

}  // namespace

TEST_CASE("continuous distributions are those that they are named for") {
  CHECK(ks(eager([](var x) { return random_normal(x); }, 0), normal_below) < most_ks);
  CHECK(ks(eager([](var x) { return random_exponential(x); }, 0),
           [](double x) { return -std::expm1(-x); }) < most_ks);
  const double low = normal_below(-1), high = normal_below(2.5);
  const auto truncated = eager([](var x) { return random_truncated_normal(x, -1, 2.5); }, 0);
  CHECK(ks(truncated, [=](double x) { return (normal_below(x) - low) / (high - low); }) < most_ks);
  CHECK(*std::min_element(truncated.begin(), truncated.end()) >= -1);
  CHECK(*std::max_element(truncated.begin(), truncated.end()) <= 2.5);
  for (double alpha : {0.3, 1.0, 4.5, 60.0}) {
    CAPTURE(alpha);
    CHECK(ks(eager([](var x) { return random_gamma(x); }, alpha),
             [=](double x) { return gamma_below(alpha, x); }) < most_ks);
  }
  // Of beta(2, 3) the distribution is a polynomial.
  CHECK(ks(eager([](var x) { return random_beta(x, x + 1); }, 2),
           [](double x) { return x * x * (6 - 8 * x + 3 * x * x); }) < most_ks);
}

TEST_CASE("Poisson's distribution has its probabilities, for small rates and large ones") {
  for (double rate : {0.5, 4.0, 25.0, 300.0}) {
    CAPTURE(rate);
    // Numbers round the rate as far as five are expected of each, from `first` on.
    const int first = std::max(0, int(rate - 3 * std::sqrt(rate)));
    const int last = int(rate + 3 * std::sqrt(rate) + 2);
    reals probabilities, x = eager([](var v) { return random_poisson(v); }, rate);
    for (int k = first; k <= last; ++k)
      probabilities.push_back(std::exp(k * std::log(rate) - rate - std::lgamma(k + 1.0)));
    for (double& v : x) v -= first;
    const double freedom = double(probabilities.size());
    CHECK(chi_square(x, probabilities) < freedom + 3.3 * std::sqrt(2 * freedom) + 8);
  }
}

TEST_CASE("categories and coins have their probabilities, and permutations are even") {
  const auto category = eager(
      [](var x) {
        return random_categorical(broadcast_to(constant(x, {0.0, 1.0, -1.0}), {count, 3}));
      },
      0);
  const double e = std::exp(1), all = 1 + e + 1 / e;
  CHECK(chi_square(category, {1 / all, e / all, 1 / e / all}) <
        13.8);  // 2 degrees, one in a thousand
  CHECK(chi_square(eager([](var x) { return random_bernoulli(x); }, 0.3), {0.7, 0.3}) < 10.8);
  auto order = eager([](var x) { return random_permutation(x, count); }, 0);
  CHECK(order != eager([](var x) { return random_permutation(x, count); }, 0, 8));
  // Where the first half of them lie.
  reals halves;
  for (int i = 0; i < count / 2; ++i) halves.push_back(order[std::size_t(i)] / count);
  CHECK(ks(halves, [](double x) { return x; }) < most_ks);
  std::sort(order.begin(), order.end());
  for (int i = 0; i < count; ++i) REQUIRE(order[std::size_t(i)] == i);
  auto mixed = eager([](var x) { return random_shuffle(cumsum(x, 0)); }, 1);
  CHECK(mixed[0] != 1);
  std::sort(mixed.begin(), mixed.end());
  for (int i = 0; i < count; ++i) REQUIRE(mixed[std::size_t(i)] == i + 1);
}

TEST_CASE("numbers are the same in eager mode and in plans, with any number of threads") {
  const auto check = [](draw f, double parameter) {
    const reals wanted = eager(f, parameter);
    for (int threads : {1, 3}) check_close(planned(f, parameter, threads), wanted, 1e-14);
    CHECK(eager(f, parameter, 7, 4) != wanted);
  };
  check([](var x) { return random_normal(x); }, 0);
  check([](var x) { return random_truncated_normal(x); }, 0);
  check([](var x) { return random_gamma(x); }, 0.7);
  check([](var x) { return random_poisson(x); }, 20);
  check([](var x) { return random_permutation(x, 1000); }, 0);
  check([](var x) { return random_integers(x, -3, 1'000'000'007); }, 0);
}

TEST_CASE("whole numbers are drawn alike, both ends as they are told") {
  const reals dice = eager([](var x) { return random_integers(x, 1, 7) - 1; }, 0);
  CHECK(chi_square(dice, reals(6, 1.0 / 6)) < 20.5);  // 5 degrees, one in a thousand
  CHECK(*std::ranges::min_element(dice) == 0);
  CHECK(*std::ranges::max_element(dice) == 5);
  CHECK(eager([](var x) { return random_integers(x, -4, -3); }, 0) == reals(count, -4.0));
  const reals wide = eager([](var x) { return random_integers(x, 0, std::int64_t{1} << 32); }, 0);
  reals parts;
  for (double v : wide) parts.push_back(v / 4294967296.0);
  CHECK(ks(parts, [](double x) { return x; }) < most_ks);
  // The last digit, too.
  reals last;
  for (double v : wide) last.push_back(std::fmod(v, 2));
  CHECK(chi_square(last, {0.5, 0.5}) < 10.8);
  const auto said = [](auto draw) {
    return fault([draw](const vars& v) { return draw(v[0]); }, {{dtype::f64, {3}}});
  };
  CHECK(said([](var x) { return random_integers(x, 3, 3); }) ==
        "random_integers: needs from 1 to 2^32 numbers of an integer type: from 3 up to, without, "
        "3 as i64");
  CHECK(said([](var x) { return random_integers(x, 0, 257, dtype::u8); }) ==
        "random_integers: needs from 1 to 2^32 numbers of an integer type: from 0 up to, without, "
        "257 as u8");
}

TEST_CASE("a number of the gamma distribution moves with alpha as its quantile does") {
  for (double alpha : {0.2, 0.9, 3.0, 40.0, 900.0, 2e4}) {
    CAPTURE(alpha);
    eager_session s;
    s.bind(s.b.bodies.random_key(), i64({2}, {7, 3}));
    const var x = s(f64({20}, reals(20, alpha)));
    const var y = random_gamma(x);
    const reals slope = s.value(gradients(sum(y), std::array{x})[0]).values;
    const reals at = s.value(y).values;
    for (std::size_t i = 0; i < at.size(); ++i) {
      // The x of the same part below it, by Newton's method from where it was.
      const auto quantile = [&](double a) {
        const double part = gamma_below(alpha, at[i]);
        double q = at[i];
        for (int step = 0; step < 50; ++step)
          q -= (gamma_below(a, q) - part) / std::exp((a - 1) * std::log(q) - q - std::lgamma(a));
        return q;
      };
      const double step = 1e-5 * alpha;
      const double wanted = (quantile(alpha + step) - quantile(alpha - step)) / (2 * step);
      // Of large alpha it is an approximation.
      CHECK(slope[i] == doctest::Approx(wanted).epsilon(alpha > 1e4 ? 1e-4 : 1e-5));
    }
  }
}

TEST_CASE("places are drawn where a mask is true, each once and all alike") {
  constexpr int rounds = 4000;
  const auto f = [](const vars& v) {
    const auto c = random_choice(v[0] > 0, 3);
    return vars{c.places, c.there};
  };
  const valued_tensor x = f64({6}, {1, 0, 1, 1, 0, 1});
  std::array<int, 6> drawn{};
  for (int round = 0; round < rounds; ++round) {
    eager_session s;
    s.bind(s.b.bodies.random_key(), i64({2}, {7, double(round)}));
    const vars y = f({s(x)});
    const reals places = s.value(y[0]).values;
    CHECK(s.value(y[1]).values == reals{1, 1, 1});
    CHECK((places[0] != places[1] && places[0] != places[2] && places[1] != places[2]));
    for (double p : places) ++drawn[std::size_t(p)];
  }
  // Three of four places each time: five deviations are allowed for.
  for (std::size_t k = 0; k < 6; ++k)
    CHECK(std::abs(drawn[k] - 0.75 * rounds * x.values[k]) < 5 * std::sqrt(rounds * 0.1875));
  // With fewer places than are asked for, the rest is none.
  eager_session s;
  s.bind(s.b.bodies.random_key(), i64({2}, {7, 1}));
  const vars y = f({s(f64({6}, {0, 0, 0, 0, 1, 0}))});
  CHECK(s.value(y[1]).values == reals{1, 0, 0});
  CHECK(s.value(y[0]).values[0] == 4);
}

TEST_CASE("what has no distribution is NaN, and no derivative is made up") {
  CHECK(std::isnan(eager([](var x) { return random_gamma(x); }, -1)[0]));
  CHECK(std::isnan(eager([](var x) { return random_poisson(x); }, -1)[0]));
  CHECK(eager([](var x) { return random_poisson(x); }, 0)[0] == 0);
  CHECK_THROWS_WITH_AS(
      eager([](var x) { return grad([](var t) { return sum(random_poisson(t)); })(x); }, 1),
      doctest::Contains("random_poisson"), model_error);
}
