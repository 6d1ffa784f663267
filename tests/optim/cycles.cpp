// Schedules that rise and fall, and sequences of them: beside PyTorch's values (OneCycleLR,
// CosineAnnealingWarmRestarts, CyclicLR) or the formula.
#include <doctest/doctest.h>

#include <cella/optim/cycles.hpp>
#include <cella/optim/decays.hpp>
#include <cmath>

using namespace cella;
using namespace cella::optim;

namespace {
double at(const schedule& s, std::int64_t step, std::int64_t per_epoch = 10) {
  return s(step, per_epoch);
}
void follow(const schedule& s, std::initializer_list<double> rates) {
  std::int64_t step = 0;
  for (const double r : rates) {
    INFO("step ", step);
    CHECK(at(s, step++) == doctest::Approx(r).epsilon(1e-12));
  }
}
}  // namespace

TEST_CASE("one cycle rises and falls as PyTorch's does, and stays at its last rate") {
  const one_cycle s{.most = 0.5, .length = epochs(2)};
  follow(s, {0.02,
             0.0658359213500126,
             0.185835921350013,
             0.334164078649987,
             0.454164078649987,
             0.5,
             0.493732003117544,
             0.475242316006737,
             0.445458088785525,
             0.405872826974882,
             0.35847150089565,
             0.305631010968145,
             0.250001,
             0.194370989031855,
             0.14153049910435,
             0.0941291730251185,
             0.054543911214475,
             0.0247596839932631,
             0.00626999688245628,
             2e-06});
  CHECK(at(s, 400) == at(s, 19));
}
TEST_CASE("cosines begin again, each longer than the one before") {
  follow(cosine_restarts{.first = 1, .last = 0.1, .length = steps(4), .growth = 2},
         {1, 0.868198051533946, 0.55, 0.231801948466054, 1, 0.965745789630079, 0.868198051533946,
          0.72220754456429, 0.55, 0.37779245543571, 0.231801948466054, 0.134254210369921, 1});
  const cosine_restarts even{.first = 1, .length = steps(4)};
  CHECK(at(even, 4 * 1000000 + 1) == doctest::Approx((1 + std::sqrt(0.5)) / 2));
}
TEST_CASE("triangles shrink from cycle to cycle") {
  follow(triangular{.least = 0.1, .most = 0.5, .up = steps(4), .down = steps(2), .shrink = 0.5},
         {0.1, 0.2, 0.3, 0.4, 0.5, 0.3, 0.1, 0.15, 0.2, 0.25, 0.3, 0.2, 0.1, 0.125});
}
TEST_CASE("further decays have their formulas") {
  CHECK(at(natural_exponential{.first = 2, .rate = 0.5, .every = epochs(2)}, 30) ==
        doctest::Approx(2 * std::exp(-0.75)));
  CHECK(at(inverse_time{.first = 2, .rate = 0.5, .every = steps(3)}, 12) ==
        doctest::Approx(2 / 3.0));
  const inverse_root r{.most = 0.1, .rise = steps(100)};
  CHECK(at(r, 0) == doctest::Approx(0.001));
  CHECK(at(r, 99) == doctest::Approx(0.1));
  CHECK(at(r, 399) == doctest::Approx(0.05));
}
TEST_CASE("rates by stretches, and schedules one after another") {
  const piecewise p{{0.1, 0.01, 0.001}, {epochs(1), steps(25)}};
  CHECK(at(p, 9) == 0.1);
  CHECK(at(p, 10) == 0.01);
  CHECK(at(p, 25) == 0.001);
  CHECK_THROWS_WITH_AS(at(piecewise{{0.1, 0.2}, {}}, 0),
                       "learning rate: piecewise has 2 rates and 0 ends; give one more rate than "
                       "ends",
                       error);
  CHECK_THROWS_WITH_AS(at(piecewise{{3, 2, 1}, {epochs(6), epochs(3)}}, 0),
                       doctest::Contains("60.000000 steps and then 30.000000; they have to grow"),
                       error);
  const schedule s = then(optim::constant{0.3}, epochs(2), exponential{.first = 1, .factor = 0.5});
  CHECK(at(s, 19) == 0.3);
  CHECK(at(s, 20) == 1);
  CHECK(at(s, 30) == 0.5);
}

TEST_CASE("cycles of no length, and waves that shrink, are refused") {
  CHECK_THROWS_WITH_AS(at(cosine_restarts{.first = 1, .length = epochs(0)}, 0),
                       doctest::Contains("has to be longer than 0"), error);
  CHECK_THROWS_WITH_AS(at(cosine_restarts{.first = 1, .growth = 0.5}, 0),
                       doctest::Contains("a growth of 0.5"), error);
  CHECK_THROWS_WITH_AS(at(one_cycle{.most = 1, .rising = 30}, 0),
                       doctest::Contains("rises is 30.000000; it has to lie between 0 and 1"),
                       error);
  CHECK_THROWS_WITH_AS(at(triangular{.least = 0, .most = 1, .up = steps(0), .down = steps(0)}, 0),
                       doctest::Contains("has to be longer than 0"), error);
}
