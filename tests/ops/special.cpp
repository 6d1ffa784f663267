#include <cella/ops/numeric.hpp>
#include <cella/ops/special.hpp>

#include "support/gradient_check.hpp"
#include "support/planned.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input vector{.extents = {5}, .low = -2, .high = 2};
constexpr case_input above{.extents = {5}, .low = 0.3, .high = 9};
constexpr gradient_case cases[] = {
    {"lgamma", [](var x) { return lgamma(x); }, {above}},
    {"digamma", [](var x) { return digamma(x); }, {above}},
    {"polygamma", [](var x) { return polygamma(2, x); }, {above}},
    {"i0e", [](var x) { return i0e(x); }, {vector}},
    {"i1e", [](var x) { return i1e(x); }, {vector}},
    {"erfinv", [](var x) { return erfinv(x); }, {{.extents = {5}, .low = -0.9, .high = 0.9}}},
    {"lbeta", [](var x, var y) { return lbeta(x, y); }, {above, above}},
    {"logaddexp", [](var x, var y) { return logaddexp(x, y); }, {vector, vector}},
    {"hypot", [](var x, var y) { return hypot(x, y); }, {vector, above}},
    {"exp2", [](var x) { return exp2(x); }, {vector}},
    {"log10", [](var x) { return log10(x); }, {above}},
    {"sinc", [](var x) { return sinc(x); }, {above}},
    {"xlogy", [](var x, var y) { return xlogy(x, y); }, {vector, above}},
    {"nan_to_num", [](var x) { return nan_to_num(x, 0, 1e3) * x; }, {vector}},
};

}  // namespace

TEST_CASE("special functions: values, traces and derivatives of both orders agree") {
  for (const gradient_case& c : cases) check_gradient(c);
}

TEST_CASE("x ln y has the derivative ln y where x is 0, if there is one") {
  const auto slope = [](int by) {
    return eval(
               [by](var v, var w) {
                 const var d = sum(xlogy(v, w));
                 return gradients(d, std::array{v, w})[std::size_t(by)];
               },
               f64({4}, {0, 0, 0, 2}), f64({4}, {2, 0, infinity, 4}))
        .values;
  };
  check_close(slope(0), reals{std::log(2), 0, 0, std::log(4)}, 1e-15);
  CHECK(slope(1) == reals{0, 0, 0, 0.5});
  CHECK(eval([](var v, var w) { return xlogy(v, w); }, f64({3}, {0, 0, 0}),
             f64({3}, {0, infinity, -1}))
            .values == reals{0, 0, 0});
}

namespace {

/// The first and second derivatives of f(x, y) by x, y, and by x twice, both, and y twice.
std::vector<reals> derivatives(var (*f)(var, var), const reals& x, const reals& y) {
  const auto all = run_eagerly(
      [f](const vars& v) {
        const std::array by{v[0], v[1]};
        const auto first = gradients(sum(f(v[0], v[1])), by);
        const auto of_x = gradients(sum(first[0]), by), of_y = gradients(sum(first[1]), by);
        return vars{first[0], first[1], of_x[0], of_x[1], of_y[1]};
      },
      {f64({int(x.size())}, x), f64({int(y.size())}, y)});
  std::vector<reals> values;
  for (const auto& t : all) values.push_back(t.values);
  return values;
}

}  // namespace

TEST_CASE("of equal numbers, and on the axes, two are joined as smoothly as elsewhere") {
  const auto sum = derivatives([](var x, var y) { return logaddexp(x, y); }, {1, 2}, {1, 0});
  const double p = 1 / (1 + std::exp(-2.0)), q = 1 - p;
  const double expected[5][2] = {{0.5, p}, {0.5, q}, {0.25, p * q}, {-0.25, -p * q}, {0.25, p * q}};
  for (std::size_t k = 0; k < 5; ++k)
    check_close(sum[k], reals(expected[k], expected[k] + 2), 1e-15);

  const reals x{3, -3, 4, 0, 3, 0}, y{3, 3, 0, -5, 4, 0};
  const auto root = derivatives([](var a, var b) { return hypot(a, b); }, x, y);
  for (std::size_t i = 0; i < x.size(); ++i) {
    CAPTURE(i);
    const double r = std::sqrt(x[i] * x[i] + y[i] * y[i]), cube = r * r * r;
    const bool none = r == 0;  // all derivatives are taken to be 0 there
    const double wanted[5] = {x[i] / r, y[i] / r, y[i] * y[i] / cube, -x[i] * y[i] / cube,
                              x[i] * x[i] / cube};
    for (std::size_t k = 0; k < 5; ++k)
      CHECK(root[k][i] == doctest::Approx(none ? 0 : wanted[k]).epsilon(1e-14));
  }
  const auto far = [](double a, double b) {
    return eval([](var v, var w) { return hypot(v, w); }, f64({1}, {a}), f64({1}, {b})).values[0];
  };
  CHECK(far(3e200, -4e200) == doctest::Approx(5e200));
  CHECK(far(not_a_number, -infinity) == infinity);
  CHECK(far(infinity, not_a_number) == infinity);
  CHECK(std::isnan(far(not_a_number, 1)));
}

TEST_CASE("sin(pi x) / (pi x) has its derivatives at 0 and near it, in single precision, too") {
  const auto of = [](dtype t, const reals& x) {
    const auto all = run_eagerly(
        [](const vars& v) {
          vars d{sinc(v[0])};
          while (d.size() < 5) d.push_back(gradients(sum(d.back()), std::array{v[0]})[0]);
          return d;
        },
        {{{t, {int(x.size())}}, x}});
    std::vector<reals> values;
    for (const auto& a : all) values.push_back(a.values);
    return values;
  };
  const reals x{0, 0.0009765625, 0.25, 0.3125, 0.375, 1.5};
  const double pi = std::numbers::pi;
  const auto found = of(dtype::f64, x), single = of(dtype::f32, x);
  CHECK(found[0][0] == 1);
  CHECK(found[1][0] == 0);
  CHECK(found[2][0] == doctest::Approx(-pi * pi / 3).epsilon(1e-15));
  CHECK(found[3][0] == 0);
  CHECK(found[4][0] == doctest::Approx(std::pow(pi, 4) / 5).epsilon(1e-15));
  for (std::size_t i = 1; i < x.size(); ++i) {
    CAPTURE(x[i]);
    // The integral of cos(t s) over s from 0 to 1, and its derivatives by t, by Simpson's rule.
    const auto integral = [&](auto f) {
      const int parts = 2000;
      double total = 0;
      for (int k = 0; k <= parts; ++k)
        total += (k == 0 || k == parts ? 1 : k % 2 ? 4 : 2) * f(double(k) / parts);
      return total / (3 * parts);
    };
    const double t = pi * x[i];
    const double slope = -pi * integral([t](double s) { return s * std::sin(t * s); });
    const double bend = -pi * pi * integral([t](double s) { return s * s * std::cos(t * s); });
    CHECK(found[1][i] == doctest::Approx(slope).epsilon(1e-11));
    CHECK(found[2][i] == doctest::Approx(bend).epsilon(1e-11));
    CHECK(single[1][i] == doctest::Approx(slope).epsilon(2e-6));
    CHECK(single[2][i] == doctest::Approx(bend).epsilon(4e-6));
  }
}

TEST_CASE("gamma and Bessel functions are what mpmath computes with 30 digits") {
  const auto of = [](auto f, reals x) {
    return eval([f](var v) { return f(v); }, f64({int(x.size())}, x)).values;
  };
  check_close(of([](var x) { return lgamma(x); }, {1, 0.5, 10, -0.5, 1e-8, 100}),
              reals{0, 0.5723649429247001, 12.801827480081469, 1.2655121234846454,
                    18.420680738180208, 359.1342053695754},
              1e-14);
  check_close(of([](var x) { return digamma(x); }, {1, 0.5, 10, -0.5, 1e-3, 1.4616321449683623}),
              reals{-0.5772156649015329, -1.9635100260214235, 2.251752589066721,
                    0.03648997397857652, -1000.5755719318104, 0},
              1e-14);
  check_close(of([](var x) { return polygamma(1, x); }, {1, 0.5, 10, -0.5}),
              reals{1.6449340668482264, 4.934802200544679, 0.10516633568168575, 8.934802200544679},
              1e-14);
  check_close(of([](var x) { return polygamma(3, x); }, {1, 2.5}),
              reals{6.493939402266829, 0.22390584881725005}, 1e-13);
  check_close(of([](var x) { return i0e(x); }, {0, 1, -1, 10, 40, 1e4}),
              reals{1, 0.46575960759364043, 0.46575960759364043, 0.1278333371634286,
                    0.06327827987523533, 0.0039894726746047321},
              1e-14);
  check_close(of([](var x) { return i1e(x); }, {0, 1, -1, 10, 40, 1e4}),
              reals{0, 0.2079104153497085, -0.2079104153497085, 0.12126268138445556,
                    0.06248222907444206, 0.0039892731959836623},
              1e-14);
}

TEST_CASE("kernels of special functions take any number of elements, by several threads") {
  const int count = 3 * 1024 + 5;
  valued_tensor x = f64({count}, {}), y = x;
  for (int i = 0; i < count; ++i) {
    x.values.push_back(0.003 * i + 0.01);
    y.values.push_back(i / double(count));
  }
  const auto f = [](const vars& v) {
    return vars{lgamma(v[0]), digamma(v[0]), polygamma(2, v[0]),
                i0e(v[0]),    i1e(v[0]),     detail::bessel_ie(2, v[0]),
                erfinv(v[1])};
  };
  const traced_function g(f, {x.type, y.type});
  REQUIRE(can_be_planned(g.b.g));
  const auto expected = run_eagerly(f, {x, y}), found = run_planned(g.b.g, {x, y}, 3);
  for (std::size_t k = 0; k < expected.size(); ++k) {
    CAPTURE(k);
    check_close(found[k].values, expected[k].values, 1e-13);
  }
}

TEST_CASE("erfinv is the inverse of erf to the last digits, up to the ends") {
  reals x;
  for (double y : {1e-300, 1e-9, 0.1, 0.5, 0.75, 0.999, 1 - 1e-12}) x.insert(x.end(), {y, -y});
  check_close(eval([](var v) { return erf(erfinv(v)); }, f64({int(x.size())}, x)).values, x, 4e-16);
  const auto ends = eval([](var v) { return erfinv(v); }, f64({4}, {1, -1, 0, 1.5})).values;
  CHECK(reals(ends.begin(), ends.begin() + 3) == reals{infinity, -infinity, 0});
  CHECK(std::isnan(ends[3]));
}

TEST_CASE("what is infinite or no number is told, and replaced") {
  const auto x = f64({5}, {1, not_a_number, infinity, -infinity, 0});
  const auto of = [&](auto f) { return eval([f](var v) { return f(v); }, x).values; };
  CHECK(of([](var v) { return is_nan(v); }) == reals{0, 1, 0, 0, 0});
  CHECK(of([](var v) { return is_inf(v); }) == reals{0, 0, 1, 1, 0});
  CHECK(of([](var v) { return is_finite(v); }) == reals{1, 0, 0, 0, 1});
  CHECK(of([](var v) { return nan_to_num(v, 7, 100); }) == reals{1, 7, 100, -100, 0});
  CHECK(of([](var v) { return is_close(v, v); }) == reals{1, 0, 1, 1, 1});
  CHECK(of([](var v) { return is_close(v, 1.000001); }) == reals{1, 0, 0, 0, 0});
  CHECK(of([](var v) { return heaviside(v, 0.25); }) == reals{1, 0, 1, 0, 0.25});
  CHECK(of([](var v) { return logaddexp(v, v); })[3] == -infinity);
}

TEST_CASE("the faults of special functions name the type and the order") {
  const auto x = f64({2}, {1, 2});
  CHECK_THROWS_WITH_AS(eval([](var v) { return lgamma(cast(v, dtype::i32)); }, x),
                       doctest::Contains("convert it to floating point with cast()"), model_error);
  CHECK_THROWS_WITH_AS(eval([](var v) { return polygamma(-1, v); }, x),
                       doctest::Contains("the order -1 does not lie from 0 to 100"), model_error);
}
