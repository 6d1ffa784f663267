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
