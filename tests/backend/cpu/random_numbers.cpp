#include <doctest/doctest.h>

#include <cella/backend/cpu/simd/drawn_numbers.hpp>
#include <cella/backend/cpu/simd/permuted_numbers.hpp>
#include <cella/backend/cpu/simd/random_numbers.hpp>
#include <cella/ops/random_distributions.hpp>
#include <cmath>
#include <span>
#include <vector>

using namespace cella;
using namespace cella::cpu;

TEST_CASE("many uniform numbers are those of the generator, to the bit") {
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{7}, fold_in(3, 9)}) {
    for (const std::int64_t n : {0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 1001}) {
      INFO(key, ", ", n);
      generator numbers(key);
      std::int64_t next = 0;
      for_uniform(key, n, [&](std::int64_t first, std::span<const double> chunk) {
        REQUIRE(first == next);
        for (const double u : chunk) REQUIRE(u == numbers.uniform<double>());
        next += std::int64_t(chunk.size());
      });
      CHECK(next == n);
    }
  }
}

TEST_CASE("many normal numbers are those of the generator, to rounding") {
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{7}, fold_in(3, 9)}) {
    for (const std::int64_t n : {0, 1, 7, 8, 31, 32, 33, 100003}) {
      INFO(key, ", ", n);
      generator numbers(key);
      std::int64_t next = 0;
      double worst = 0, sum = 0, squares = 0;
      for_normal(key, n, [&](std::int64_t first, std::span<const double> chunk) {
        REQUIRE(first == next);
        next += std::int64_t(chunk.size());
        for (const double z : chunk) {
          const double expected = numbers.normal<double>();
          worst = std::max(worst, std::abs(z - expected) / std::abs(expected));
          sum += z;
          squares += z * z;
        }
      });
      CHECK(next == n);
      CHECK(worst < 1e-14);  // near a zero of the cosine the angle's rounding shows
      if (n > 1000) {
        CHECK(std::abs(sum / double(n)) < 0.02);
        CHECK(std::abs(squares / double(n) - 1) < 0.02);
      }
    }
  }
}

TEST_CASE("random permutations are those of single numbers, to the bit") {
  for (const std::uint64_t key : {std::uint64_t{0}, ~std::uint64_t{0}, fold_in(5, 1)}) {
    for (const std::int64_t count :
         {1, 2, 63, 64, 65, 66, 127, 128, 129, 1000, 4097, 8192, 8193, 16400, 65536, 70001}) {
      INFO(key, ", ", count);
      std::vector<std::int64_t> y(std::size_t(count), -1);
      // Units in another order than that of the numbers.
      for (int unit = permuted_units(count); unit-- > 0;)
        permuted_numbers({unit, unit + 1}, count, key, y.data());
      for (std::int64_t i = 0; i < count; ++i)
        REQUIRE(y[std::size_t(i)] == permuted(i, count, key));
    }
  }
}

TEST_CASE("the end of the longest random permutation is that of single numbers") {
  const std::int64_t count = (std::int64_t{1} << 31) - 1;
  const int units = permuted_units(count);
  std::vector<std::int64_t> y(std::size_t(permuted_unit), -1);
  const std::int64_t first = (units - 1) * permuted_unit;
  permuted_numbers({units - 1, units}, count, 9, y.data() - first);
  for (std::int64_t i = first; i < count; ++i)
    REQUIRE(y[std::size_t(i - first)] == permuted(i, count, 9));
}

namespace {
/// How many of the numbers of some parameters, of units in another order, are not those that single
/// generators give, to the bit.
template <class Op, class T>
int numbers_apart(std::uint64_t key, const std::vector<T>& parameter) {
  const auto count = std::int64_t(parameter.size());
  std::vector<T> y(parameter.size(), T(-7));
  for (int unit = drawn_units(count); unit-- > 0;)
    draw_numbers<Op, T>({unit, unit + 1}, key, count, parameter.data(), y.data());
  int apart = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    generator random(key, i);
    const T expected = T(Op::draw(random, double(parameter[i])));
    apart += std::memcmp(&expected, &y[i], sizeof expected) != 0 &&
             !(std::isnan(expected) && std::isnan(y[i]));
  }
  return apart;
}
}  // namespace

TEST_CASE_TEMPLATE("numbers of distributions are those of single generators, to the bit", T, float,
                   double) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  for (const std::uint64_t key : {std::uint64_t{0}, fold_in(5, 1)}) {
    for (const double p : {1e-30, 1e-3, 0.02, 0.3, 0.5, 0.999, 1.0, 1.5, 3.0, 9.9999, 10.0, 11.0,
                           40.0, 1e3, 1e6, 1e9, 2e10, 1e20, 1e30}) {
      INFO(key, ", ", p);
      const std::vector<T> all(20'003, T(p));
      CHECK(numbers_apart<random_gamma_op>(key, all) == 0);
      CHECK(numbers_apart<random_poisson_op>(key, all) == 0);
    }
    // Parameters of all kinds side by side, some of which have no distribution.
    for (const std::size_t count : {0u, 1u, 7u, 8u, 9u, 1023u, 1024u, 1025u, 5000u}) {
      std::vector<T> mixed(count);
      generator random(key, 77);
      for (std::size_t i = 0; i < count; ++i) {
        const T all[] = {T(0),
                         T(-1),
                         infinity,
                         std::numeric_limits<T>::quiet_NaN(),
                         T(0.5),
                         T(-0.0),
                         T(1e-3),
                         std::numeric_limits<T>::max(),
                         T(10),
                         T(12),
                         T(0.9),
                         std::numeric_limits<T>::denorm_min(),
                         T(20) * random.uniform<T>(),
                         T(2)};
        mixed[i] = all[random.below(std::uint32_t(std::size(all)))];
      }
      INFO(key, ", ", count);
      CHECK(numbers_apart<random_gamma_op>(key, mixed) == 0);
      CHECK(numbers_apart<random_poisson_op>(key, mixed) == 0);
    }
  }
}

TEST_CASE_TEMPLATE("a vector of uniform numbers can be drawn at any place", T, float, double) {
  for (const std::uint64_t key : {std::uint64_t{0}, ~std::uint64_t{0}, fold_in(5, 1)}) {
    for (const std::int64_t first :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{4},
          std::int64_t{16}, std::int64_t{1001}, (std::int64_t{1} << 34) - 8,
          (std::int64_t{1} << 35) + 3}) {
      CAPTURE(first);
      alignas(64) T drawn[lanes<T>];
      store(drawn, uniform_vector<T>(key, first));
      for (int i = 0; i < lanes<T>; ++i)
        CHECK(drawn[i] == uniform<T>(key, std::uint64_t(first + i)));
    }
  }
}

TEST_CASE_TEMPLATE("tensors of uniform numbers", T, float, double) {
  const std::uint64_t key = fold_in(2, 3);
  for (const std::int64_t n : {1, 7, 8, 9, 15, 16, 17, 4095, 4096, 4097, 9001}) {
    CAPTURE(n);
    std::vector<T> y(std::size_t(n) + 2, T(9));
    for (int u = uniform_units(n); u-- > 0;) uniform_numbers({u, u + 1}, key, n, y.data());
    int wrong = 0;
    for (std::int64_t i = 0; i < n; ++i)
      wrong += y[std::size_t(i)] != uniform<T>(key, std::uint64_t(i));
    CHECK(wrong == 0);
    CHECK(y[std::size_t(n)] == T(9));
    CHECK(y[std::size_t(n) + 1] == T(9));
  }
}
