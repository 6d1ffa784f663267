#include <algorithm>
#include <cella/ops/random.hpp>

#include "support/gradient_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// An eager builder with its random state bound.
struct seeded {
  eager_session s;
  seeded(double seed, double step) {
    s.b.training = true;
    s.bind(s.b.bodies.random_key(), i64({2}, {seed, step}));
  }
  valued_tensor uniform(int n) {
    return s.value(random_uniform(s(f64({n}, reals(std::size_t(n), 0.0)))));
  }
};

}  // namespace

TEST_CASE("numbers are uniform in [0, 1), and the same for the same seed, step and stream") {
  seeded a(1, 2), b(1, 2);
  const auto x = a.uniform(10000).values;
  CHECK(x == b.uniform(10000).values);
  CHECK(*std::min_element(x.begin(), x.end()) >= 0);
  CHECK(*std::max_element(x.begin(), x.end()) < 1);
  double sum = 0, squares = 0;
  for (double v : x) sum += v, squares += v * v;
  // Standard deviations of the two means: 0.0029 and 0.0030; five of them.
  CHECK(sum / 1e4 == doctest::Approx(0.5).epsilon(0.03));
  CHECK(squares / 1e4 == doctest::Approx(1 / 3.0).epsilon(0.045));
}

TEST_CASE("numbers of 16 bits are below 1, too, and those of a distribution made of them finite") {
  for (dtype t : {dtype::f16, dtype::bf16}) {
    CAPTURE(int(t));
    seeded a(1, 2), same(1, 2);
    const int n = 40000;  // as many that one in 4096 of f16 would be rounded to 1
    const var like = a.s({{t, {n}}, reals(std::size_t(n), 0.0)});
    const auto x = a.s.value(random_uniform(like)).values;
    const auto exact =
        same.s.value(random_uniform(same.s({{dtype::f32, {n}}, reals(std::size_t(n), 0.0)})))
            .values;
    CHECK(*std::max_element(x.begin(), x.end()) < 1);
    const double digit = t == dtype::f16 ? 0x1p-10 : 0x1p-7;
    for (std::size_t i = 0; i < x.size(); ++i) {
      REQUIRE(x[i] <= exact[i]);
      REQUIRE(x[i] >= exact[i] * (1 - digit));
    }
  }
}

TEST_CASE("numbers of double precision have all of its digits") {
  seeded a(1, 2);
  int beyond_single = 0, odd = 0;
  for (double v : a.uniform(1000).values) {
    CHECK(v * 0x1p53 == std::floor(v * 0x1p53));
    odd += std::fmod(v * 0x1p53, 2) == 1;
    beyond_single += v != double(float(v));
  }
  CHECK(beyond_single > 990);
  CHECK(odd > 420);  // 500 with a standard deviation of 16
  CHECK(odd < 580);
}

TEST_CASE("seed, step and draw each change the numbers") {
  seeded a(1, 2), other_seed(2, 2), other_step(1, 3);
  const auto x = a.uniform(8).values;
  CHECK(x != other_seed.uniform(8).values);
  CHECK(x != other_step.uniform(8).values);
  CHECK(x != a.uniform(8).values);
}

TEST_CASE("dropout zeroes its share, scales the rest, and its derivative has the same mask") {
  seeded a(5, 0);
  const var x = a.s(f64({10000}, reals(10000, 3.0)));
  const var y = dropout(x, 0.25);
  const auto values = a.s.value(y).values;
  CHECK(std::all_of(values.begin(), values.end(), [](double v) { return v == 0 || v == 4; }));
  const auto zeros = std::count(values.begin(), values.end(), 0.0);
  CHECK(zeros > 2300);  // 2,500 with a standard deviation of 43
  CHECK(zeros < 2700);
  const var loss = sum_axes(y, 1, std::source_location::current());
  const auto dx = a.s.value(gradients(loss, std::array{x})[0]).values;
  for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(dx[i] == values[i] / 3);
}

TEST_CASE("dropout passes its operand through in inference and at rate 0") {
  seeded a(5, 0);
  const var x = a.s(f64({3}, {1, 2, 3}));
  CHECK(dropout(x, 0).id == x.id);
  a.s.b.training = false;
  CHECK(dropout(x, 0.5).id == x.id);
}

TEST_CASE("a dropout rate outside [0, 1) is refused") {
  for (double rate : {-0.1, 1.0, not_a_number}) {
    CHECK(fault([rate](const vars& v) { return dropout(v[0], rate); }, {{dtype::f64, {2}}}) ==
          "dropout: the rate must lie in [0, 1)");
  }
}
