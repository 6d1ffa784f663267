#include <cella/ops/slicing.hpp>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input cube{.extents = {2, 3, 4}};
constexpr case_input matrix{.extents = {2, 3}};
constexpr gradient_case cases[] = {
    {"slice", [](var x) { return slice(x, 1, 1, 3); }, {cube}},
    {"slice, negative axis and bounds", [](var x) { return slice(x, -1, -3, -1); }, {cube}},
    {"slice by 2", [](var x) { return slice(x, 2, 0, 4, 2); }, {cube}},
    {"slice backwards", [](var x) { return slice(x, 2, 3, -1, -2); }, {cube}},
    {"slice of one", [](var x) { return slice(x, 0, 1, 2); }, {cube}},
    {"strided_slice",
     [](var x) {
       return strided_slice(x, {1, 0, 3}, {2, 3, 0}, {1, 2, -1});
     },
     {cube}},
    {"strided_slice without steps",
     [](var x) {
       return strided_slice(x, {0, 1, 1}, {2, 3, -1});
     },
     {cube}},
    {"reverse", [](var x) { return reverse(x, 1); }, {cube}},
    {"reverse, two axes",
     [](var x) {
       return reverse(x, {0, -1});
     },
     {cube}},
    {"concat",
     [](var x, var y) {
       return concat({x, y, x}, 1);
     },
     {matrix, {.extents = {2, 1}}}},
    {"concat of one", [](var x) { return concat({x}, 0); }, {matrix}},
    {"concat of six",
     [](var x, var y) {
       return concat({x, y, x * y, y, x, y}, -1);
     },
     {matrix, matrix}},
    {"stack",
     [](var x, var y) {
       return stack({x, y}, 1);
     },
     {matrix, matrix}},
    {"stack at the end",
     [](var x, var y) {
       return stack({x, y}, -1);
     },
     {matrix, matrix}},
    {"split",
     [](var x) {
       const auto p = split(x, 2, -1);
       return p[0] * p[1];
     },
     {cube}},
    {"unstack",
     [](var x) {
       const auto p = unstack(x, 1);
       return p[0] * p[1] + p[2];
     },
     {cube}},
    {"rank 8",
     [](var x) {
       return slice(reverse(x, {0, 7}), 3, 1, 2);
     },
     {{.extents = {2, 1, 1, 2, 1, 1, 1, 3}}}},
};
constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }

}  // namespace

TEST_CASE("cutting and joining: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("slices have Python's elements") {
  const auto x = f64({5}, {0, 1, 2, 3, 4});
  auto cut = [&](int start, int stop, int step) {
    return eval([=](var v) { return slice(v, 0, start, stop, step); }, x).values;
  };
  CHECK(cut(1, 4, 1) == reals{1, 2, 3});
  CHECK(cut(0, 5, 2) == reals{0, 2, 4});
  CHECK(cut(0, 4, 2) == reals{0, 2});
  CHECK(cut(-2, 5, 1) == reals{3, 4});
  CHECK(cut(4, -1, -1) == reals{4, 3, 2, 1, 0});
  CHECK(cut(4, 0, -2) == reals{4, 2});
  CHECK(cut(-1, 1, -3) == reals{4});
  CHECK(cut(1, 5, 40000) == reals{1});
  CHECK(cut(1, 5, 2147483647) == reals{1});
  CHECK(cut(3, -1, -2147483647 - 1) == reals{3});
}

TEST_CASE("a step may be as large as an extent") {
  constexpr int n = 131075;
  reals values(n);
  for (int i = 0; i < n; ++i) values[std::size_t(i)] = i;
  const auto x = f64({n}, values);
  auto cut = [&](int start, int stop, int step) {
    return eval([=](var v) { return slice(v, 0, start, stop, step); }, x).values;
  };
  CHECK(cut(0, n, 32768) == reals{0, 32768, 65536, 98304, 131072});
  CHECK(cut(1, n, 65536) == reals{1, 65537, 131073});
  CHECK(cut(n - 1, -1, -131074) == reals{131074, 0});
  CHECK(eval([](var v) { return strided_slice(v, {5}, {n}, {40000}); }, x).values ==
        reals{5, 40005, 80005, 120005});
  const auto dx =
      eval([](var v,
              var dy) { return vjp([](var t) { return slice(t, 0, 7, n, 65536); }, v, dy).second; },
           x, f64({2}, {3, 4}));
  reals wanted(n);
  wanted[7] = 3;
  wanted[7 + 65536] = 4;
  CHECK(dx.values == wanted);
}

TEST_CASE("embedding after slicing is a projection: what was cut out becomes zero") {
  const auto dx = eval(
      [](var x, var dy) { return vjp([](var t) { return slice(t, 0, 1, 5, 2); }, x, dy).second; },
      f64({5}, {0, 0, 0, 0, 0}), f64({2}, {7, 8}));
  CHECK(dx.values == reals{0, 7, 0, 8, 0});
}

TEST_CASE("concat joins integers and truth values too") {
  CHECK(eval(
            [](var x, var y) {
              return concat({x, y}, 0);
            },
            i64({1}, {3}), i64({2}, {4, 5}))
            .values == reals{3, 4, 5});
  CHECK(eval(
            [](var x, var y) {
              return concat({x, y}, 1);
            },
            truths({2, 1}, {1, 0}), truths({2, 1}, {0, 1}))
            .values == reals{1, 0, 0, 1});
}

TEST_CASE("split and unstack give their parts in order") {
  const auto parts =
      run_eagerly([](const vars& v) { return split(v[0], 3, 0); }, {f64({6}, {0, 1, 2, 3, 4, 5})});
  REQUIRE(parts.size() == 3);
  CHECK(parts[1].values == reals{2, 3});
  const auto rows =
      run_eagerly([](const vars& v) { return unstack(v[0], 0); }, {f64({2, 2}, {0, 1, 2, 3})});
  REQUIRE(rows.size() == 2);
  CHECK(rows[1].type.shape == shape{2});
  CHECK(rows[1].values == reals{2, 3});
}

TEST_CASE("the faults of cutting and joining name the range, the axis and the tensors") {
  auto cut = [](int axis, int start, int stop, int step) {
    return fault([=](const vars& v) { return slice(v[0], axis, start, stop, step); }, {f({3, 4})});
  };
  const std::string end = " does not lie within axis 1 of x0 [3,4]";
  CHECK(cut(1, 0, 5, 1) == "slice: [0, 5) by 1" + end);
  CHECK(cut(1, -5, 2, 1) == "slice: [-5, 2) by 1" + end);
  CHECK(cut(1, 2, 2, 1) == "slice: [2, 2) by 1 holds no element of axis 1 of x0 [3,4]");
  CHECK(cut(1, 3, 1, 1) == "slice: [3, 1) by 1 holds no element of axis 1 of x0 [3,4]");
  CHECK(cut(1, 0, 4, 0) == "slice: [0, 4) by 0 does not move along axis 1 of x0 [3,4]");
  CHECK(cut(1, 3, -2, -1) == "slice: [3, -2) by -1" + end);
  CHECK(cut(1, 2147483647, -2147483647 - 1, 1) == "slice: [2147483647, -2147483648) by 1" + end);
  CHECK(cut(2, 0, 1, 1) == "slice: [0, 1) by 1 does not lie within axis 2 of x0 [3,4]");
  CHECK(fault([](const vars& v) { return strided_slice(v[0], {0}, {1}); }, {f({3, 4})}) ==
        "strided_slice: needs one start, one stop and one step for each axis of x0 [3,4]");
  CHECK(fault(
            [](const vars& v) {
              return strided_slice(v[0], {0, 1}, {1, 9});
            },
            {f({3, 4})}) == "strided_slice: [1, 9) by 1 does not lie within axis 1 of x0 [3,4]");
  CHECK(fault([](const vars& v) { return reverse(v[0], 2); }, {f({3, 4})}) ==
        "reverse: x0 [3,4] has no axis 2");
  CHECK(fault(
            [](const vars& v) {
              return concat({v[0], v[1]}, 0);
            },
            {f({3, 4}), f({3, 5})}) ==
        "concat: x1 is f64[3,5] and the first operand is f64[3,4]; they may differ along axis 0 "
        "only");
  CHECK(fault(
            [](const vars& v) {
              return concat({v[0], v[1]}, 0);
            },
            {f({3}), {dtype::f32, {3}}}) ==
        "concat: x1 is f32[3] and the first operand is f64[3]; they may differ along axis 0 only");
  CHECK(fault(
            [](const vars& v) {
              return concat({v[0], v[0]}, -3);
            },
            {f({3, 4})}) ==
        "concat: x0 is f64[3,4] and the first operand is f64[3,4]; they may differ along axis -3 "
        "only");
  CHECK(fault(
            [](const vars& v) {
              return stack({v[0], v[1]}, 0);
            },
            {f({3}), f({4})}) ==
        "concat: reshape result is f64[1,4] and the first operand is f64[1,3]; they may differ "
        "along axis 0 only");
  CHECK(fault([](const vars& v) { return split(v[0], 3, 1); }, {f({3, 4})}) ==
        "split: axis 1 of x0 [3,4] does not divide into 3 equal parts");
  CHECK(fault([](const vars& v) { return split(v[0], 0, 1); }, {f({3, 4})}) ==
        "split: axis 1 of x0 [3,4] does not divide into 0 equal parts");
  CHECK(fault([](const vars& v) { return unstack(v[0], -3); }, {f({3, 4})}) ==
        "unstack: x0 [3,4] has no axis -3");
}
