#include <cella/ops/prod.hpp>
#include <cella/ops/reduction.hpp>
#include <cmath>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input cube{.extents = {2, 3, 4}};
constexpr case_input bits{.extents = {2, 3}, .low = 0, .high = 2, .element = dtype::boolean};
constexpr case_input large{.extents = {1, 2, 1, 3, 1, 2, 1, 2}};
constexpr gradient_case cases[] = {
    {"sum", [](var x) { return sum(x, {1}); }, {cube}},
    {"sum of all", [](var x) { return sum(x); }, {cube}},
    {"sum of a scalar", [](var x) { return sum(x) * x; }, {{}}},
    {"sum, negative axes, kept",
     [](var x) {
       return sum(x, {-1, 0}, true);
     },
     {cube}},
    {"sum of rank 8",
     [](var x) {
       return sum(x, {1, 4, 7});
     },
     {large}},
    {"mean",
     [](var x) {
       return mean(x, {0, 2});
     },
     {cube}},
    {"mean, kept", [](var x) { return mean(x, {1}, true) * x; }, {cube}},
    {"max", [](var x) { return max(x, {2}); }, {cube}},
    {"max of all", [](var x) { return max(x) * x; }, {cube}},
    {"min",
     [](var x) {
       return min(x, {0, 1}, true);
     },
     {cube}},
    {"prod", [](var x) { return prod(x, {1}); }, {cube}},
    {"prod of two axes",
     [](var x) {
       return prod(x, {0, 2});
     },
     {cube}},
    {"prod of all", [](var x) { return prod(x); }, {{.extents = {2, 3}}}},
    {"prod of rank 8",
     [](var x) {
       return prod(x, {1, 5}, true);
     },
     {large}},
    {"any", [](var x) { return any(x, {1}); }, {bits}},
    {"all", [](var x) { return all(x, {0}, true); }, {bits}},
    {"variance",
     [](var x) {
       return variance(x, {1, 2});
     },
     {cube}},
    {"logsumexp", [](var x) { return logsumexp(x, {1}); }, {cube}},
    {"logsumexp of all, kept", [](var x) { return logsumexp(x, {}, true); }, {cube}},
    {"l2_norm", [](var x) { return l2_norm(x, {2}); }, {cube}},
    {"l2_normalize", [](var x) { return l2_normalize(x, {1}); }, {cube}},
    {"argmax", [](var x) { return argmax(x, 1); }, {cube}},
    {"argmin", [](var x) { return argmin(x, -1); }, {cube}},
};
constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }

template <class F>
reals line(F g, reals x) {
  const int n = int(x.size());
  return eval(g, f64({n}, std::move(x))).values;
}
template <class F>
reals slopes(F g, reals x) {
  return line([g](var v) { return grad(g)(v); }, std::move(x));
}

}  // namespace

TEST_CASE("reductions: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("an empty list of axes means all of them") {
  const auto x = f64({2, 2}, {1, 2, 3, 4});
  CHECK(eval([](var v) { return sum(v, {}); }, x).values == reals{10});
  CHECK(eval([](var v) { return max(v, {}, true); }, x).type.shape == shape{1, 1});
}

TEST_CASE("equal extremes share the derivative evenly") {
  CHECK(slopes([](var t) { return max(t); }, {3, 1, 3}) == reals{0.5, 0, 0.5});
  CHECK(slopes([](var t) { return min(t); }, {3, 1, 1, 1}) == reals{0, 1 / 3.0, 1 / 3.0, 1 / 3.0});
}

TEST_CASE("extremes of infinities and NaN") {
  CHECK(line([](var t) { return max(t); }, {-infinity, -infinity}) == reals{-infinity});
  CHECK(line([](var t) { return min(t); }, {infinity, 5}) == reals{5});
  for (reals x :
       {reals{not_a_number, 1, 2}, reals{1, not_a_number, 2}, reals{2, 1, not_a_number}}) {
    CHECK(std::isnan(line([](var t) { return max(t); }, x)[0]));
    CHECK(std::isnan(line([](var t) { return min(t); }, x)[0]));
  }
  CHECK(slopes([](var t) { return max(t); }, {infinity, 1}) == reals{1, 0});
}

TEST_CASE("unsigned and truth values have extremes") {
  const valued_tensor x{{dtype::u8, {3}}, {200, 0, 7}};
  CHECK(eval([](var v) { return min(v); }, x).values == reals{0});
  CHECK(eval([](var v) { return max(v); }, x).values == reals{200});
  CHECK(eval([](var v) { return argmin(v, 0); }, x).values == reals{1});
  CHECK(eval([](var v) { return any(v); }, truths({2}, {0, 1})).values == reals{1});
  CHECK(eval([](var v) { return any(v); }, truths({2}, {0, 0})).values == reals{0});
  CHECK(eval([](var v) { return all(v); }, truths({2}, {0, 1})).values == reals{0});
  CHECK(eval([](var v) { return all(v); }, truths({2}, {1, 1})).values == reals{1});
}

TEST_CASE("the derivative of a product is exact with one zero, two zeros, and of second order") {
  CHECK(slopes([](var t) { return prod(t); }, {2, 0, 3}) == reals{0, 6, 0});
  CHECK(slopes([](var t) { return prod(t); }, {2, 0, 0}) == reals{0, 0, 0});
  // d/dx sum of the gradient of abc = (b + c, a + c, a + b)
  CHECK(slopes([](var t) { return sum(grad([](var u) { return prod(u); })(t)); }, {0, 0, 5}) ==
        reals{5, 5, 0});
}

TEST_CASE("argmax and argmin give the first of equals, and the first NaN") {
  auto largest = [](reals x) { return line([](var t) { return argmax(t, 0); }, std::move(x))[0]; };
  auto smallest = [](reals x) { return line([](var t) { return argmin(t, 0); }, std::move(x))[0]; };
  CHECK(largest({1, 3, 3}) == 1);
  CHECK(smallest({1, 3, 1}) == 0);
  CHECK(largest({-infinity, -infinity}) == 0);
  CHECK(largest({1, not_a_number, 3, not_a_number}) == 1);
  CHECK(smallest({1, not_a_number, 0}) == 1);
}

TEST_CASE("logsumexp neither overflows nor turns infinities into NaN") {
  auto of = [](reals x) { return line([](var t) { return logsumexp(t); }, std::move(x))[0]; };
  CHECK(of({1000, 1000}) == doctest::Approx(1000 + std::log(2)).epsilon(1e-15));
  CHECK(of({-1000, -1000}) == doctest::Approx(-1000 + std::log(2)).epsilon(1e-15));
  CHECK(of({-infinity, 3}) == 3);
  CHECK(of({-infinity, -infinity}) == -infinity);
  CHECK(of({infinity, 3}) == infinity);
}

TEST_CASE("the norm of a zero vector has the derivative zero") {
  const auto slope = [](const reals& at) {
    return line([](var v) { return grad([](var t) { return l2_norm(t); })(v); }, at);
  };
  CHECK(slope({0, 0}) == reals{0, 0});
  CHECK(slope({0, -3}) == reals{0, -1});
}

TEST_CASE("l2_normalize leaves a zero vector zero") {
  CHECK(line([](var t) { return l2_normalize(t, {0}); }, {0, 0}) == reals{0, 0});
  const valued_tensor half{{dtype::f16, {2}}, {0, 0}};
  CHECK(eval([](var t) { return l2_normalize(t, {0}); }, half).values == reals{0, 0});
}

TEST_CASE("the norm of zeros has the derivative 0") {
  const auto d = eval([](var v) { return grad([](var x) { return sum(l2_norm(x, {1})); })(v); },
                      f64({2, 2}, {0, 0, 3, 4}));
  check_close(d.values, reals{0, 0, 0.6, 0.8}, 1e-15);
}

TEST_CASE("the faults of reductions name the axis, or the type and the remedy") {
  CHECK(fault([](const vars& v) { return sum(v[0], {2}); }, {f({2, 3})}) ==
        "sum: x0 [2,3] has no axis 2");
  CHECK(fault(
            [](const vars& v) {
              return max(v[0], {0, -3});
            },
            {f({2, 3})}) == "max: x0 [2,3] has no axis -3");
  CHECK(fault(
            [](const vars& v) {
              return sum(v[0], {0, 1, -2});
            },
            {f({2, 3})}) == "sum: axis 0 is named twice");
  CHECK(fault([](const vars& v) { return mean(v[0], {0}); }, {f({})}) ==
        "mean: x0 [] has no axis 0");
  CHECK(fault([](const vars& v) { return logsumexp(v[0], {1}); }, {f({2})}) ==
        "logsumexp: x0 [2] has no axis 1");
  CHECK(fault([](const vars& v) { return argmax(v[0], -3); }, {f({2, 3})}) ==
        "argmax: x0 [2,3] has no axis -3");
  CHECK(fault([](const vars& v) { return argmin(v[0], 2); }, {f({2, 3})}) ==
        "argmin: x0 [2,3] has no axis 2");
  CHECK(fault([](const vars& v) { return sum(v[0]); }, {{dtype::boolean, {2}}}) ==
        "sum: x0 is bool[2]; convert it to numbers with cast()");
  CHECK(fault([](const vars& v) { return mean(v[0]); }, {{dtype::i32, {2}}}) ==
        "mean: x0 is i32[2]; convert it to floating point with cast()");
  CHECK(fault([](const vars& v) { return any(v[0]); }, {f({2})}) ==
        "any: x0 is f64[2]; it must be bool (compare with >, ==, ...)");
  CHECK(fault([](const vars& v) { return all(v[0]); }, {f({2})}) ==
        "all: x0 is f64[2]; it must be bool (compare with >, ==, ...)");
}
