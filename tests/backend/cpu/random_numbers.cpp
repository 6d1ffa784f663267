#include <doctest/doctest.h>

#include <cella/backend/cpu/random_numbers.hpp>
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
