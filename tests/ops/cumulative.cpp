#include <cella/ops/cumulative.hpp>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input cube{.extents = {2, 3, 4}};
constexpr case_input matrix{.extents = {2, 4}};
constexpr gradient_case cases[] = {
    {"cumsum", [](var x) { return cumsum(x, 1); }, {cube}},
    {"cumsum, reversed", [](var x) { return cumsum(x, -1, true); }, {cube}},
    {"cumsum, exclusive", [](var x) { return cumsum(x, 0, false, true); }, {cube}},
    {"cumsum, both", [](var x) { return square(cumsum(x, 1, true, true)); }, {cube}},
    {"cumprod", [](var x) { return cumprod(x, 1); }, {cube}},
    {"cumprod, reversed", [](var x) { return cumprod(x, -1, true); }, {cube}},
    {"cumprod, exclusive", [](var x) { return cumprod(x, 1, false, true); }, {cube}},
    {"cumprod, both", [](var x) { return cumprod(x, 1, true, true); }, {cube}},
    {"cumprod of one",
     [](var x) { return cumprod(x, 1) + cumprod(x, 1, false, true); },
     {{.extents = {3, 1}}}},
    {"linear_recurrence",
     [](var a, var x) { return linear_recurrence(a, x, 1); },
     {matrix, matrix}},
    {"linear_recurrence, reversed",
     [](var a, var x) { return square(linear_recurrence(a, x, 0, true)); },
     {{.extents = {4, 2}}, {.extents = {4, 2}}}},
};

reals along(reals x, bool reverse, bool exclusive, var (*f)(operand, int, bool, bool)) {
  return eval([=](var v) { return f(v, 0, reverse, exclusive); }, f64({int(x.size())}, x)).values;
}

}  // namespace

TEST_CASE("running results: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("sums and products run from either end, with or without the element itself") {
  CHECK(along({1, 2, 3, 4}, false, false, cumsum) == reals{1, 3, 6, 10});
  CHECK(along({1, 2, 3, 4}, true, false, cumsum) == reals{10, 9, 7, 4});
  CHECK(along({1, 2, 3, 4}, false, true, cumsum) == reals{0, 1, 3, 6});
  CHECK(along({1, 2, 3, 4}, true, true, cumsum) == reals{9, 7, 4, 0});
  CHECK(along({1, 2, 3, 4}, false, false, cumprod) == reals{1, 2, 6, 24});
  CHECK(along({1, 2, 3, 4}, true, false, cumprod) == reals{24, 24, 12, 4});
  CHECK(along({1, 2, 3, 4}, false, true, cumprod) == reals{1, 1, 2, 6});
  CHECK(along({1, 2, 3, 4}, true, true, cumprod) == reals{24, 12, 4, 1});
}

TEST_CASE("a recurrence starts from its first input, whatever the first factor") {
  const auto h = eval([](var a, var x) { return linear_recurrence(a, x, 0); },
                      f64({3}, {infinity, 2, 3}), f64({3}, {1, 10, 100}));
  CHECK(h.values == reals{1, 12, 136});
}

TEST_CASE("the derivative of a running product is exact where elements are zero") {
  // y = (a, ab, abc); at (2, 0, 3) the derivative of the sum is (1 + b + bc, a + ac, ab).
  const auto d = eval(
      [](var x) {
        return grad(
            [](var t) { return sum_axes(cumprod(t, 0), 1, std::source_location::current()); })(x);
      },
      f64({3}, {2, 0, 3}));
  CHECK(d.values == reals{1, 8, 0});
}

TEST_CASE("the faults of running results name the axis and the types") {
  const tensor_type x{dtype::f64, {2, 3}};
  CHECK(fault([](const vars& v) { return cumsum(v[0], 2); }, {x}) ==
        "cumsum: x0 [2,3] has no axis 2");
  CHECK(fault([](const vars& v) { return cumprod(v[0], -3); }, {x}) ==
        "cumprod: x0 [2,3] has no axis -3");
  CHECK(fault([](const vars& v) { return linear_recurrence(v[0], v[1], 5); }, {x, x}) ==
        "linear_recurrence: x1 [2,3] has no axis 5");
  CHECK(fault([](const vars& v) { return linear_recurrence(v[0], v[1], 1); },
              {x, {dtype::f64, {3}}}) == "linear_recurrence: x1 [3] has no axis 1");
  CHECK(fault([](const vars& v) { return linear_recurrence(v[0], v[1], 0); },
              {x, {dtype::f64, {3}}}) ==
        "linear_recurrence: types differ: x0 is f64[2,3], x1 is f64[3]");
}
