#include <cella/ops/sorting.hpp>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

// Elements that differ: a derivative is one where their order does not change.
constexpr case_input cube{.extents = {2, 3, 4}};
constexpr gradient_case cases[] = {
    {"sort", [](var x) { return sort(x, 1) * 2; }, {cube}},
    {"sort, descending", [](var x) { return square(sort(x, -1, true)); }, {cube}},
    {"top_k", [](var x) { return square(top_k(x, 2, 1).values); }, {cube}},
    {"top_k, smallest", [](var x) { return top_k(x, 3, 2, false).values; }, {cube}},
};

reals order(const valued_tensor& x, int axis, bool descending = false) {
  return eval([=](var v) { return argsort(v, axis, descending); }, x).values;
}

}  // namespace

TEST_CASE("sorted elements: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("the order of elements along an axis; equal ones keep theirs") {
  CHECK(order(f64({5}, {3, 1, 2, 1, 3}), 0) == reals{1, 3, 2, 0, 4});
  CHECK(order(f64({5}, {3, 1, 2, 1, 3}), 0, true) == reals{0, 4, 2, 1, 3});
  CHECK(order(f64({2, 3}, {3, 1, 2, 4, 6, 5}), 0) == reals{0, 0, 0, 1, 1, 1});
  CHECK(order(f64({2, 3}, {3, 1, 2, 4, 6, 5}), -1) == reals{1, 2, 0, 0, 2, 1});
  CHECK(order(f64({1, 2, 2}, {2, 1, 0, 3}), 1) == reals{1, 0, 0, 1});
}

TEST_CASE("zeros of both signs are equal, infinities are the ends, and NaN is behind them") {
  CHECK(order(f64({6}, {not_a_number, infinity, 0.0, -0.0, -1, -infinity}), 0) ==
        reals{5, 4, 2, 3, 1, 0});
  CHECK(order(f64({3}, {1, not_a_number, 2}), 0, true) == reals{1, 2, 0});
}

TEST_CASE("integers are in order to the last digit") {
  const auto large = eval(
      [](var v) {
        return argsort(constant(v, {(std::int64_t{1} << 62) + 1, std::int64_t{1} << 62,
                                    -(std::int64_t{1} << 62)}),
                       0);
      },
      f64({1}, {0}));
  CHECK(large.values == reals{2, 1, 0});
  const auto without_sign = eval(
      [](var v) {
        return argsort(constant(v, {~std::uint64_t{0}, std::uint64_t{1}}), 0);
      },
      f64({1}, {0}));
  CHECK(without_sign.values == reals{1, 0});
}

TEST_CASE("the largest and the smallest elements, and where they are") {
  const auto best = [](int k, bool largest) {
    return eval([=](var v) { return top_k(v, k, 0, largest).indices; }, f64({4}, {2, 7, 1, 5}))
        .values;
  };
  CHECK(best(2, true) == reals{1, 3});
  CHECK(best(1, false) == reals{2});
  CHECK(best(4, true) == reals{1, 3, 0, 2});
}

TEST_CASE("the faults of sorting name the axis and the number") {
  const auto x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK_THROWS_WITH_AS(eval([](var v) { return sort(v, 2); }, x),
                       doctest::Contains("has no axis 2"), model_error);
  CHECK_THROWS_WITH_AS(eval([](var v) { return top_k(v, 4).values; }, x),
                       doctest::Contains("there are no 4 elements along axis -1"), model_error);
  CHECK_THROWS_WITH_AS(eval([](var v) { return argsort(complex(v, v)); }, x),
                       doctest::Contains("complex numbers have no such operation"), model_error);
}
