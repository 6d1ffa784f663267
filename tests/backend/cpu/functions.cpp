// Every function of one argument against what is exact, over the whole range of its type.
#include <doctest/doctest.h>

#include "support/function_errors.hpp"

using namespace cella;
using namespace cella::test;

TEST_CASE_TEMPLATE(
    "functions are right to 2 units in the last place, special values included, as vectors and as "
    "scalars",
    T, float, double) {
  const std::vector<T> x = numbers_of_whole_range<T>(10'000);
  int functions = 0;
  all_operations::for_each([&]<class Op>() {
    if constexpr (is_function<Op>) {
      const function_errors<T> worst = errors_of_function<Op, T>(x);
      CAPTURE(Op::name);
      CAPTURE(worst.vector.at);
      CAPTURE(worst.scalar.at);
      CHECK(worst.vector.units <= most_units);
      CHECK(worst.scalar.units <= most_units);
      ++functions;
    }
  });
  CHECK(functions >= 36);
}

TEST_CASE_TEMPLATE("fmod is std::fmod, and floor_div what belongs to it, for all numbers", T, float,
                   double) {
  constexpr auto width = std::size_t(cpu::lanes<T>);
  std::vector<T> all = numbers_of_whole_range<T>(10'000);
  // Beside numbers that are as far apart as can be, such as divide each other nearly or exactly.
  std::vector<T> x = all, y(all.rbegin(), all.rend());
  generator random(3);
  for (int i = 0; i < 50'000; ++i) {
    const T by = T(random.uniform()) + T(0.01);
    const T times = T(random.below(i % 2 ? 40 : 1 << 22));
    const T off = T(i % 3 - 1) * std::numeric_limits<T>::epsilon();
    x.push_back((i % 5 ? by : -by) * times * (1 + off));
    y.push_back(i % 7 ? by : -by);
  }
  x.resize(x.size() / width * width);
  for (std::size_t i = 0; i < x.size(); i += width) {
    T rest[width], quotient[width];
    const auto a = xsimd::load_unaligned(&x[i]), b = xsimd::load_unaligned(&y[i]);
    xsimd::store_unaligned(rest, cpu::vector_form<fmod_op>::apply(a, b));
    xsimd::store_unaligned(quotient, cpu::vector_form<floor_div_op>::apply(a, b));
    for (std::size_t k = 0; k < width; ++k) {
      CAPTURE(x[i + k]);
      CAPTURE(y[i + k]);
      const auto same = [](T found, T expected) {
        return std::isnan(expected)
                   ? std::isnan(found)
                   : found == expected && std::signbit(found) == std::signbit(expected);
      };
      REQUIRE(same(rest[k], std::fmod(x[i + k], y[i + k])));
      REQUIRE(same(quotient[k], floor_div_op::apply(x[i + k], y[i + k])));
    }
  }
}

TEST_CASE_TEMPLATE("angles of points are right to 2 units in the last place, on the axes, too", T,
                   float, double) {
  constexpr auto width = std::size_t(cpu::lanes<T>);
  const std::vector<T> all = numbers_of_whole_range<T>(10'000);
  const std::vector<T> y(all.begin(), all.begin() + std::ptrdiff_t(all.size() / width * width));
  worst_error<T> worst;
  T at_x{};
  for (std::size_t shift : {0u, 1u, 2u, 3u, 5u, 8u, 13u, 21u, 1000u, 7919u, 12345u}) {
    std::vector<T> x;
    for (std::size_t i = 0; i < y.size(); ++i) x.push_back(y[(i + shift) % y.size()]);
    for (std::size_t i = 0; i < y.size(); i += width) {
      T found[width];
      xsimd::store_unaligned(found,
                             cpu::vector_form<atan2_op>::apply(xsimd::load_unaligned<>(&y[i]),
                                                               xsimd::load_unaligned<>(&x[i])));
      for (std::size_t k = 0; k < width; ++k) {
        const double before = worst.units;
        const auto exact =
            std::atan2(static_cast<long double>(y[i + k]), static_cast<long double>(x[i + k]));
        worst.take(error_in_units(found[k], exact), y[i + k]);
        if (worst.units != before) at_x = x[i + k];
      }
    }
  }
  CAPTURE(worst.at);
  CAPTURE(at_x);
  CHECK(worst.units <= most_units);
}
