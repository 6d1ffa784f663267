#include <doctest/doctest.h>

#include <cella/nn/initializers.hpp>
#include <cella/runtime/parameters.hpp>
#include <vector>

using namespace cella;

namespace {

struct net {
  parameter<6, 4> tall{initializers::orthogonal(2)};
  parameter<3, 2, 2, 2> wide{initializers::orthogonal()};
  parameter<3, 4> unit{initializers::identity()};
  parameter<4, 2, 3, 3> passing{initializers::dirac(2)};
  parameter<200, 5> thin{initializers::sparse(0.3, 2)};
  parameter<64, 8, 3, 3> filters{initializers::he_fan_out_normal()};
  parameter<64, 8, 3, 3> even{initializers::he_fan_out_uniform()};
  parameter<2> bounded{initializers::identity(initializers::gain_tanh)};
  parameter<2> selfish{initializers::identity(initializers::gain_selu)};
  parameter<50, 400> small{initializers::lecun_normal()};
  parameter<50, 400> small_even{initializers::lecun_uniform()};
  /// One of its own: counts up.
  parameter<3> counted{initializer::custom(
      [](std::span<double> v, const shape&, std::uint64_t, double a, double) {
        for (std::size_t i = 0; i < v.size(); ++i) v[i] = a + double(i);
      },
      5)};
};
double dot(std::span<const double> v, std::size_t a, std::size_t b, std::size_t step,
           std::size_t count) {
  double sum = 0;
  for (std::size_t k = 0; k < count; ++k) sum += v[a + k * step] * v[b + k * step];
  return sum;
}
double deviation(std::span<const double> v) {
  double square = 0;
  for (const double x : v) square += x * x;
  return std::sqrt(square / double(v.size()));
}

}  // namespace

TEST_CASE("first values: orthogonal, identities, sparse, variances by fan") {
  net n;
  const parameter_store store(n, 7, dtype::f64);
  const auto tall = store.values<double>("tall"), wide = store.values<double>("wide");
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < 4; ++j)
      CHECK(dot(tall, i, j, 4, 6) == doctest::Approx(i == j ? 4 : 0).scale(1).epsilon(1e-14));
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      CHECK(dot(wide, i * 8, j * 8, 1, 8) == doctest::Approx(i == j).scale(1).epsilon(1e-14));
  const auto unit = store.values<double>("unit");
  CHECK(std::vector(unit.begin(), unit.end()) ==
        std::vector<double>{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0});
  const auto passing = store.values<double>("passing");
  for (std::size_t o = 0; o < 4; ++o)
    for (std::size_t i = 0; i < 18; ++i) CHECK(passing[o * 18 + i] == (i == o % 2 * 9 + 4));
  const auto thin = store.values<double>("thin");
  for (std::size_t c = 0; c < 5; ++c) {
    int zeros = 0;
    for (std::size_t r = 0; r < 200; ++r) zeros += thin[r * 5 + c] == 0;
    CHECK(zeros == 60);
  }
  CHECK(deviation(thin) == doctest::Approx(2 * std::sqrt(0.7)).epsilon(0.1));
  CHECK(deviation(store.values<double>("filters")) ==
        doctest::Approx(std::sqrt(2 / (64 * 9.0))).epsilon(0.05));
  CHECK(deviation(store.values<double>("even")) ==
        doctest::Approx(std::sqrt(2 / (64 * 9.0))).epsilon(0.05));
  CHECK(deviation(store.values<double>("small")) == doctest::Approx(0.05).epsilon(0.03));
  CHECK(deviation(store.values<double>("small_even")) == doctest::Approx(0.05).epsilon(0.03));
  CHECK(store.values<double>("bounded")[0] == 5.0 / 3);
  CHECK(store.values<double>("selfish")[0] == 0.75);
  const auto counted = store.values<double>("counted");
  CHECK(std::vector(counted.begin(), counted.end()) == std::vector<double>{5, 6, 7});
}
