#include <doctest/doctest.h>

#include <cella/optim/schedules.hpp>
#include <cmath>
#include <limits>

using namespace cella;
using namespace cella::optim;

namespace {
double at(const schedule& s, std::int64_t step, std::int64_t per_epoch = 10) {
  return s(step, per_epoch);
}
}  // namespace

TEST_CASE("a number is a schedule that stays") {
  CHECK(at(0.1, 0) == 0.1);
  CHECK(at(0.1, 99999) == 0.1);
  CHECK(at(optim::constant{0.2}, 7) == 0.2);
}

TEST_CASE("steps and epochs are both lengths") {
  CHECK(at(step_decay{.first = 1, .factor = 0.5, .every = epochs(2)}, 19) == 1);
  CHECK(at(step_decay{.first = 1, .factor = 0.5, .every = epochs(2)}, 20) == 0.5);
  CHECK(at(step_decay{.first = 1, .factor = 0.5, .every = steps(5)}, 20) == 0.0625);
  CHECK(at(exponential{.first = 2, .factor = 0.25, .every = epochs(1)}, 5) == 1);
}

TEST_CASE("cosine and polynomial decay begin with the first rate, end with the last and stay") {
  const cosine c{.first = 1, .last = 0.2, .length = epochs(2)};
  CHECK(at(c, 0) == 1);
  CHECK(at(c, 5) == doctest::Approx(0.2 + 0.8 * (1 + std::sqrt(0.5)) / 2));
  CHECK(at(c, 10) == doctest::Approx(0.6));
  CHECK(at(c, 20) == doctest::Approx(0.2));
  CHECK(at(c, 2000) == doctest::Approx(0.2));
  const polynomial p{.first = 1, .last = 0.5, .length = steps(4), .power = 2};
  CHECK(at(p, 0) == 1);
  CHECK(at(p, 2) == doctest::Approx(0.5 + 0.5 * 0.25));
  CHECK(at(p, 4) == 0.5);
  CHECK(at(p, 40) == 0.5);
}

TEST_CASE("a warm-up rises to the first rate of what follows, which begins where it ends") {
  const schedule s = warmup(steps(4), cosine{.first = 0.8, .length = steps(10)});
  CHECK(at(s, 0) == doctest::Approx(0.2));
  CHECK(at(s, 3) == doctest::Approx(0.8));
  CHECK(at(s, 4) == doctest::Approx(0.8));
  CHECK(at(s, 9) == doctest::Approx(0.4));
  CHECK(at(warmup(epochs(1), 0.5), 4) == doctest::Approx(0.25));
  CHECK(at(warmup(epochs(1), 0.5), 10) == 0.5);
  CHECK(at(warmup(steps(0), 0.5), 0) == 0.5);
  CHECK(at(warmup(steps(2), warmup(steps(2), 1.0)), 1) == 0.5);
}

TEST_CASE("a function of one's own is a schedule") {
  const schedule s = [](std::int64_t step, std::int64_t per_epoch) {
    return 1.0 / double(1 + step / per_epoch);
  };
  CHECK(at(s, 25) == doctest::Approx(1 / 3.0));
}

TEST_CASE("a rate that is negative or no number is refused with its step") {
  const schedule s = [](std::int64_t step, std::int64_t) {
    return step == 3 ? -1.0 : std::nan("");
  };
  CHECK_THROWS_WITH_AS(at(s, 3), doctest::Contains("gives -1.000000 in step 3"), error);
  CHECK_THROWS_AS(at(s, 0), error);
  CHECK_THROWS_AS(at(std::numeric_limits<double>::infinity(), 0), error);
}

TEST_CASE("a length that is negative or no number is refused, and so is repeating one of zero") {
  const auto refused = [](const schedule& s, const char* sentence) {
    CHECK_THROWS_WITH_AS(at(s, 3), doctest::Contains(sentence), error);
  };
  const double no_number = std::nan("");
  refused(
      cosine{.first = 1, .length = steps(-5)},
      "learning rate: the schedule has a length of -5.000000 steps; it has to be 0 or more, and "
      "finite");
  refused(polynomial{.first = 1, .length = epochs(no_number)}, "a length of nan epochs");
  refused(warmup(steps(-3), 0.1), "a length of -3.000000 steps");
  refused(warmup(epochs(std::numeric_limits<double>::infinity()), 0.1), "a length of inf epochs");
  refused(step_decay{.first = 1, .every = epochs(0)}, "what is repeated has to be longer than 0");
  refused(exponential{.first = 1, .every = steps(-1)}, "a length of -1.000000 steps");
  CHECK(at(cosine{.first = 1, .last = 0.5, .length = steps(0)}, 0) == 0.5);
}
