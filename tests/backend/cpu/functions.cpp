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
