#include <cella/ops/functions.hpp>
#include <cmath>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input any{.extents = {3, 4}, .low = -1.5, .high = 1.5};
constexpr case_input positive{.extents = {3, 4}, .low = 0.5, .high = 3};
constexpr case_input inside{.extents = {3, 4}, .low = -0.8, .high = 0.8};
constexpr case_input above_one{.extents = {3, 4}, .low = 1.3, .high = 3};

constexpr gradient_case cases[] = {
    {"square", [](var x) { return square(x); }, {any}},
    {"sqrt", [](var x) { return sqrt(x); }, {positive}},
    {"rsqrt", [](var x) { return rsqrt(x); }, {positive}},
    {"exp", [](var x) { return exp(x); }, {any}},
    {"expm1", [](var x) { return expm1(x); }, {any}},
    {"log", [](var x) { return log(x); }, {positive}},
    {"log1p", [](var x) { return log1p(x); }, {inside}},
    {"log2", [](var x) { return log2(x); }, {positive}},
    {"sin", [](var x) { return sin(x); }, {any}},
    {"cos", [](var x) { return cos(x); }, {any}},
    {"tan", [](var x) { return tan(x); }, {inside}},
    {"asin", [](var x) { return asin(x); }, {inside}},
    {"acos", [](var x) { return acos(x); }, {inside}},
    {"atan", [](var x) { return atan(x); }, {any}},
    {"sinh", [](var x) { return sinh(x); }, {any}},
    {"cosh", [](var x) { return cosh(x); }, {any}},
    {"tanh", [](var x) { return tanh(x); }, {any}},
    {"asinh", [](var x) { return asinh(x); }, {any}},
    {"acosh", [](var x) { return acosh(x); }, {above_one}},
    {"atanh", [](var x) { return atanh(x); }, {inside}},
    {"erf", [](var x) { return erf(x); }, {any}},
    {"erfc", [](var x) { return erfc(x); }, {any}},
    {"abs", [](var x) { return abs(x); }, {any}},
    {"sign", [](var x) { return sign(x); }, {any}},
    {"floor", [](var x) { return floor(x); }, {any}},
    {"ceil", [](var x) { return ceil(x); }, {any}},
    {"round", [](var x) { return round(x); }, {any}},
    {"trunc", [](var x) { return trunc(x); }, {any}},
    {"sigmoid", [](var x) { return sigmoid(x); }, {any}},
    {"reciprocal", [](var x) { return reciprocal(x); }, {positive}},
    {"pow", [](var x, var y) { return pow(x, y); }, {positive, any}},
    {"pow with a number",
     [](var x) { return pow(x, 3) + pow(x, 2) + pow(x, 1) + pow(x, 0); },
     {any}},
    {"pow of a number", [](var x) { return pow(2.5, x); }, {any}},
    {"atan2",
     [](var y, var x) { return atan2(y, x); },
     {positive, {.extents = {4}, .low = 0.5, .high = 2}}},
    {"floor_div", [](var x, var y) { return floor_div(x, y); }, {any, positive}},
    {"mod", [](var x, var y) { return mod(x, y); }, {any, positive}},
    {"fmod", [](var x, var y) { return fmod(x, y); }, {any, positive}},
    {"squared_difference", [](var x, var y) { return squared_difference(x, y); }, {any, positive}},
    {"lerp", [](var x, var y, var t) { return lerp(x, y, t); }, {any, positive, inside}},
};

}  // namespace

TEST_CASE("functions: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("functions of one operand equal those of the C++ library") {
  struct truth {
    var (*f)(operand);
    double (*expected)(double);
    reals at;
  };
  const reals all{-infinity, -1.5, -0.0, 0, 0.25, 2, infinity, not_a_number};
  const truth truths_of[] = {
      {exp, std::exp, all},     {expm1, std::expm1, all}, {sin, std::sin, all},
      {cos, std::cos, all},     {tan, std::tan, all},     {atan, std::atan, all},
      {sinh, std::sinh, all},   {cosh, std::cosh, all},   {tanh, std::tanh, all},
      {asinh, std::asinh, all}, {erf, std::erf, all},     {erfc, std::erfc, all},
      {abs, std::abs, all},     {floor, std::floor, all}, {ceil, std::ceil, all},
      {trunc, std::trunc, all}, {sqrt, std::sqrt, all},   {log, std::log, all},
      {log2, std::log2, all},   {log1p, std::log1p, all}, {asin, std::asin, all},
      {acos, std::acos, all},   {acosh, std::acosh, all}, {atanh, std::atanh, all},
  };
  for (const truth& t : truths_of) {
    reals expected;
    for (double x : t.at) expected.push_back(t.expected(x));
    const auto f = t.f;
    const auto y = eval([f](var x) { return f(x); }, f64({int(t.at.size())}, t.at));
    check_close(y.values, expected, 1e-14);
  }
}

TEST_CASE("rounding breaks ties to even") {
  CHECK(eval([](var x) { return round(x); }, f64({5}, {-1.5, -0.5, 0.5, 1.5, 2.5})).values ==
        reals{-2, 0, 0, 2, 2});
}

TEST_CASE("sigmoid does not overflow") {
  CHECK(eval([](var x) { return sigmoid(x); }, f64({4}, {-800, 800, -infinity, infinity})).values ==
        reals{0, 1, 0, 1});
}

TEST_CASE("sign of zero is zero, and the derivative of abs there too") {
  CHECK(eval([](var x) { return sign(x); }, f64({3}, {-3, 0, 0.5})).values == reals{-1, 0, 1});
  CHECK(eval([](var x) { return grad([](var t) { return abs(t); })(x); }, scalar(0)).values[0] ==
        0);
}

TEST_CASE("powers of zero have finite derivatives of both orders") {
  // x, y, then dx, dy as PyTorch gives them.
  const double rows[][4] = {{0, 0, 0, 0}, {0, 1, 1, 0}, {0, 2, 0, 0}, {0, 3, 0, 0}};
  for (const auto& r : rows) {
    CAPTURE(r[1]);
    auto by = [](int k) {
      return [k](var x, var y) {
        return k == 0 ? grad([](var t, var u) { return pow(t, u); })(x, y)
                      : grad([](var u, var t) { return pow(t, u); })(y, x);
      };
    };
    CHECK(eval(by(0), scalar(r[0]), scalar(r[1])).values[0] == r[2]);
    CHECK(eval(by(1), scalar(r[0]), scalar(r[1])).values[0] == r[3]);
    const auto mixed = eval(
        [](var x, var y) {
          return grad([x](var u) { return grad([u](var t) { return pow(t, u); })(x); })(y);
        },
        scalar(r[0]), scalar(r[1]));
    CHECK_FALSE(std::isnan(mixed.values[0]));
  }
  CHECK(eval([](var x) { return grad(grad([](var t) { return pow(t, 2); }))(x); }, scalar(0))
            .values[0] == 2);
}

TEST_CASE("quotients and remainders of real numbers are those of the exact quotient") {
  const auto x = f64({8}, {1, -1, 1e5, 1e300, -7, 5, 2.5, -0.0});
  const auto y = f64({8}, {0.1, 0.1, 0.3, 0.7, 2, -3, HUGE_VAL, 2});
  // As NumPy has them.
  CHECK(eval([](var a, var b) { return floor_div(a, b); }, x, y).values ==
        reals{9, -10, 333333, 1e300 / 0.7, -4, -2, 0, -0.0});
  reals rest;
  for (std::size_t i = 0; i < 8; ++i) rest.push_back(std::fmod(x.values[i], y.values[i]));
  CHECK(eval([](var a, var b) { return fmod(a, b); }, x, y).values == rest);
  rest[1] += 0.1;
  rest[4] += 2;
  rest[5] -= 3;
  CHECK(eval([](var a, var b) { return mod(a, b); }, x, y).values == rest);
  for (const auto& [a, b] : {std::pair{1.0, 0.0}, {HUGE_VAL, 2.0}, {std::nan(""), 2.0}})
    CHECK(
        std::isnan(eval([](var v, var w) { return fmod(v, w); }, scalar(a), scalar(b)).values[0]));
}

TEST_CASE("integer quotients round down, remainders take the divisor's sign") {
  const auto x = i64({6}, {7, -7, 7, -7, 5, -9});
  const auto y = i64({6}, {2, 2, -2, -2, 0, 3});
  CHECK(eval([](var a, var b) { return floor_div(a, b); }, x, y).values ==
        reals{3, -4, -4, 3, 0, -3});
  CHECK(eval([](var a, var b) { return mod(a, b); }, x, y).values == reals{1, 1, -1, -1, 5, 0});
  CHECK(eval([](var a, var b) { return a / b; }, x, y).values == reals{3, -3, -3, 3, 0, -3});
  CHECK(eval([](var a, var b) { return fmod(a, b); }, x, y).values == reals{1, -1, 1, -1, 5, 0});
}

TEST_CASE("atan2 knows the four quadrants and the axes") {
  const reals y{1, 1, -1, -1, 0, 0, 1, -1}, x{1, -1, 1, -1, 1, -1, 0, 0};
  reals expected;
  for (std::size_t i = 0; i < x.size(); ++i) expected.push_back(std::atan2(y[i], x[i]));
  CHECK(eval([](var a, var b) { return atan2(a, b); }, f64({8}, y), f64({8}, x)).values ==
        expected);
}

TEST_CASE("atan2 has the derivatives 0 where no angle is") {
  const auto slope = [](const vars& v) {
    const auto of = [&](const vars& at) {
      return gradients(sum(atan2(at[0], at[1])), std::array{at[0], at[1]});
    };
    const auto first = of(v);
    const auto second = gradients(sum(first[0]) + sum(first[1]), std::array{v[0], v[1]});
    return vars{first[0], first[1], second[0], second[1]};
  };
  const auto d = run_eagerly(slope, {f64({2}, {0, 1}), f64({2}, {0, 2})});
  check_close(d[0].values, reals{0, 0.4}, 1e-15);
  check_close(d[1].values, reals{0, -0.2}, 1e-15);
  // Of x / r - y / r, r = x^2 + y^2, by y and by x.
  check_close(d[2].values, reals{0, -0.28}, 1e-15);
  check_close(d[3].values, reals{0, 0.04}, 1e-15);
}
