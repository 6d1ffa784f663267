#include <cella/ops/cost.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/transform/control.hpp>

#include "passes/expression.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Of f(x) or f(x, y) on tensors of 2 x 3.
template <class F>
std::int64_t operations(F f) {
  return operations_of_region(graph_of(f), 0);
}

}  // namespace

TEST_CASE("operations are counted by what each node computes") {
  CHECK(operations([](var x, var y) { return x * y + x; }) == 12);
  CHECK(operations([](var x) { return sum(x); }) == 6);
  CHECK(operations([](var x) { return x; }) == 0);
  CHECK(operations([](var x) { return transpose(reshape(x, {3, 2}), {1, 0}); }) == 0);
  CHECK(operations([](var x, var y) { return matmul(x, transpose(y, {1, 0})); }) == 2 * 2 * 2 * 3);
}

TEST_CASE("a loop counts as often as it runs, a branch once") {
  const auto step = [](var h, var x) {
    const var next = tanh(h * x);
    return std::tuple{next, next};
  };
  // Three sums of two; two steps of two operations on three numbers.
  CHECK(operations([&](var x, var y) { return std::get<1>(scan(step, sum(y, {0}), x)); }) ==
        6 + 2 * 2 * 3);
  CHECK(operations([](var x) {
          const auto four = [](var, var s) {
            return for_i(
                4, [](var, var t) { return t + t; }, s);
          };
          return for_i(5, four, x);
        }) == 5 * 4 * 6);
  CHECK(operations([](var x) {
          return cond(
              sum(x) > 0, [](var a) { return a * a; }, [](var a) { return a; }, x);
        }) == 6 + 1 + 6);
}
