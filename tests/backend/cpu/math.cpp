#include <doctest/doctest.h>

#include <bit>
#include <cella/backend/cpu/simd/fast_math.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

/// Bit patterns in a fixed stride through all of them, so that every exponent and both signs occur
/// alike, and the specials.
template <class T>
std::vector<T> numbers_of_all_exponents(int count) {
  using bits = typename cpu::detail::format<T>::integer;
  std::vector<T> x{T(0),
                   -T(0),
                   std::numeric_limits<T>::infinity(),
                   -std::numeric_limits<T>::infinity(),
                   std::numeric_limits<T>::quiet_NaN(),
                   std::numeric_limits<T>::denorm_min(),
                   std::numeric_limits<T>::min(),
                   std::numeric_limits<T>::max(),
                   T(1),
                   -T(1)};
  const bits stride = std::numeric_limits<bits>::max() / bits(count) | 1;
  bits at = 12345;
  for (int i = 0; i < count; ++i, at += stride) x.push_back(std::bit_cast<T>(at));
  while (x.size() % 16) x.push_back(T(1));
  return x;
}
template <class T>
std::vector<T> evenly(double low, double high, int count) {
  std::vector<T> x;
  for (int i = 0; i < count; ++i) x.push_back(T(low + (high - low) * i / count));
  return x;
}

/// The error of y in units in the last place of the exact result e, where that is a normal number;
/// infinite where a special is missed. Below the normal numbers anything as small will do.
template <class T>
double error_in_units(T y, long double e) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  using limits = std::numeric_limits<T>;
  if (std::isnan(e)) return std::isnan(y) ? 0 : wrong;
  // What rounds to infinity.
  const int bits = limits::digits;
  if (std::abs(e) >= std::ldexp(1.0L - std::ldexp(0.5L, -bits), limits::max_exponent))
    return static_cast<long double>(y) == std::copysign(HUGE_VALL, e) ? 0 : wrong;
  if (e == 0) return y == 0 && std::signbit(y) == std::signbit(e) ? 0 : wrong;
  if (std::abs(e) < static_cast<long double>(limits::min()))
    return std::abs(static_cast<long double>(y) - e) <= static_cast<long double>(limits::min())
               ? 0
               : wrong;
  int exponent = 0;
  std::frexp(e, &exponent);
  const long double off = std::abs(static_cast<long double>(y) - e);
  return std::isnan(y) ? wrong : double(std::ldexp(off, bits - exponent));
}

/// The worst of the numbers x.
template <class T, class Function, class Exact>
double worst_error(const std::vector<T>& x, Function f, Exact exact) {
  constexpr std::size_t L = std::size_t(lanes<T>);
  double worst = 0;
  for (std::size_t first = 0; first + L <= x.size(); first += L) {
    T y[L];
    store_unaligned(y, f(load_unaligned(x.data() + first)));
    for (std::size_t i = 0; i < L; ++i) {
      const double error = error_in_units(y[i], exact(static_cast<long double>(x[first + i])));
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

/// Over all exponents, and closely where most calls are.
template <class T, class Function, class Exact>
void check(Function f, Exact exact, double units, double low, double high) {
  const double everywhere = worst_error(numbers_of_all_exponents<T>(100'000), f, exact);
  const double closely = worst_error(evenly<T>(low, high, 1 << 17), f, exact);
  CAPTURE(everywhere);
  CAPTURE(closely);
  CHECK(everywhere <= units);
  CHECK(closely <= units);
}

}  // namespace

TEST_CASE_TEMPLATE(
    "exponentials, logarithms and what is made of them are right to 2 units in the last place", T,
    float, double) {
  check<T>([](vec<T> x) { return exponential<T>(x); }, [](long double x) { return std::exp(x); }, 2,
           -90, 90);
  check<T>([](vec<T> x) { return logarithm<T>(x); }, [](long double x) { return std::log(x); }, 2,
           0.3, 3);
  check<T>([](vec<T> x) { return logarithm_of_successor<T>(x); },
           [](long double x) { return std::log1p(x); }, 2, -0.9, 2);
  check<T>([](vec<T> x) { return binary_logarithm<T>(x); },
           [](long double x) { return std::log2(x); }, 2, 0.3, 3);
  check<T>([](vec<T> x) { return inverse_hyperbolic_sine<T>(x); },
           [](long double x) { return std::asinh(x); }, 2, -5, 5);
}

TEST_CASE_TEMPLATE("sigmoids and hyperbolic tangents are right to 2 units in the last place", T,
                   float, double) {
  check<T>([](vec<T> x) { return logistic<T>(x); },
           [](long double x) {
             return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
           },
           2, -20, 20);
  check<T>([](vec<T> x) { return hyperbolic_tangent<T>(x); },
           [](long double x) { return std::tanh(x); }, 2, -10, 10);
  check<T>([](vec<T> x) { return hyperbolic_tangent<T>(x); },
           [](long double x) { return std::tanh(x); }, 2, -0.7, 0.7);
}

TEST_CASE_TEMPLATE("powers too small for a normal number are 0", T, float, double) {
  // ln of the smallest normal number, of the smallest number, and what lies below.
  const T least = std::is_same_v<T, float> ? T(-87.33655) : T(-708.39642);
  const T none = -std::numeric_limits<T>::infinity();
  for (const T x : {least, T(least * T(1.1)), T(least * 2), T(least * 100), none}) {
    CAPTURE(x);
    CHECK(sum(exponential<T>(vec<T>(x))) == 0);
    CHECK(sum(logistic<T>(vec<T>(x))) == 0);
  }
  const T next = std::is_same_v<T, float> ? T(-87.33653) : T(-708.39641);
  CHECK(largest(exponential<T>(vec<T>(next))) >= std::numeric_limits<T>::min());
}

TEST_CASE_TEMPLATE(
    "sines and cosines are right to 2 units in the last place, for large angles, too", T, float,
    double) {
  // Beyond 10^6 they are the standard library's, which is as right as its reduction.
  check<T>([](vec<T> x) { return sine<T>(x); }, [](long double x) { return std::sin(x); }, 2, -30,
           30);
  check<T>([](vec<T> x) { return cosine<T>(x); }, [](long double x) { return std::cos(x); }, 2, -30,
           30);
  CHECK(worst_error(
            evenly<T>(0.9e6, 1e6, 1 << 16), [](vec<T> x) { return sine<T>(x); },
            [](long double x) { return std::sin(x); }) <= 2);
}

TEST_CASE_TEMPLATE("tangents are right to 2 units in the last place, beside their poles, too", T,
                   float, double) {
  const auto f = [](vec<T> x) { return tangent<T>(x); };
  const auto exact = [](long double x) { return std::tan(x); };
  check<T>(f, exact, 2, -30, 30);
  CHECK(worst_error(evenly<T>(0.9e6, 1e6, 1 << 16), f, exact) <= 2);
  // The numbers next to multiples of pi / 2.
  std::vector<T> x;
  for (int k = 1; k <= 4096; ++k)
    x.push_back(static_cast<T>(k * (std::numbers::pi_v<long double> / 2)));
  CHECK(worst_error(x, f, exact) <= 2);
}

TEST_CASE("error functions and reciprocal roots are right to 2 units in the last place") {
  check<float>([](vec<float> x) { return error_function<float>(x); },
               [](long double x) { return std::erf(x); }, 2, -5, 5);
  check<float>([](vec<float> x) { return reciprocal_root<float>(x); },
               [](long double x) { return 1 / std::sqrt(x); }, 2, 0, 10);
  check<double>([](vec<double> x) { return reciprocal_root<double>(x); },
                [](long double x) { return 1 / std::sqrt(x); }, 2, 0, 10);
}

TEST_CASE("powers are right to 2 units in the last place, with all the special cases of C") {
  const auto exponents = {0.5f,    -0.5f,  2.0f,        3.0f,      -1.0f,      0.0f, 2.7f,
                          100.25f, -33.0f, 16777217.0f, HUGE_VALF, -HUGE_VALF, NAN};
  for (float y : exponents) {
    CAPTURE(y);
    check<float>([&](vec<float> x) { return power<float>(x, vec<float>(y)); },
                 [&](long double x) { return std::pow(x, static_cast<long double>(y)); }, 2, -3, 3);
  }
  const auto bases = {2.0f, 0.999f, 1.0f, -1.0f, 0.0f, -0.0f, -7.5f, HUGE_VALF, -HUGE_VALF, NAN};
  for (float x : bases) {
    CAPTURE(x);
    check<float>([&](vec<float> y) { return power<float>(vec<float>(x), y); },
                 [&](long double y) { return std::pow(static_cast<long double>(x), y); }, 2, -30,
                 30);
  }
}

namespace {

double gelu_argument(double x) {
  return cella::detail::gelu_factor * (x + cella::detail::gelu_cubic * x * x * x);
}
double exact_gelu_tanh(double x) { return 0.5 * x * (1 + std::tanh(gelu_argument(x))); }
double exact_gelu_tanh_slope(double x) {
  const double t = std::tanh(gelu_argument(x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * cella::detail::gelu_factor *
                             (1 + 3 * cella::detail::gelu_cubic * x * x);
}
/// The largest |y - exact| / scale(exact, x).
template <class Op, class Exact, class Scale>
double worst_of(double low, double high, Exact exact, Scale scale) {
  constexpr std::size_t L = std::size_t(lanes<float>);
  const std::vector<float> x = evenly<float>(low, high, 1 << 16);
  double worst = 0;
  for (std::size_t first = 0; first + L <= x.size(); first += L) {
    float y[L];
    store_unaligned(y, vector_form<Op>::apply(load_unaligned(x.data() + first)));
    for (std::size_t i = 0; i < L; ++i) {
      const double at = double{x[first + i]}, e = exact(at);
      const double error = std::abs(double{y[i]} - e) / scale(e, at);
      worst = error <= worst ? worst : error;
    }
  }
  return worst;
}
double absolute(double, double) { return 1; }
double relative(double e, double) { return std::abs(e); }
double of_operand(double, double x) { return std::max(1.0, std::abs(x)); }

}  // namespace

TEST_CASE(
    "the tanh form of gelu and its derivative are right to 3e-6 of what they multiply, and at "
    "infinity") {
  CHECK(worst_of<gelu_tanh_op>(-12, 12, exact_gelu_tanh, of_operand) < 3e-6);
  CHECK(worst_of<gelu_tanh_slope_op>(-12, 12, exact_gelu_tanh_slope, absolute) < 3e-6);

  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto first_of = [](vec<float> v) { return v.get(0); };
  CHECK(first_of(vector_form<gelu_tanh_op>::apply(vec<float>(infinity))) == infinity);
  CHECK(first_of(vector_form<gelu_tanh_op>::apply(vec<float>(-infinity))) == 0);
  CHECK(std::isnan(first_of(vector_form<gelu_tanh_op>::apply(vec<float>(NAN)))));
  CHECK(first_of(vector_form<gelu_tanh_slope_op>::apply(vec<float>(infinity))) == 1);
  CHECK(first_of(vector_form<gelu_tanh_slope_op>::apply(vec<float>(-infinity))) == 0);
  CHECK(std::isnan(first_of(vector_form<gelu_tanh_slope_op>::apply(vec<float>(NAN)))));
}

TEST_CASE("the forms of fast_math keep the errors that they state") {
  CHECK(worst_of<fast<exp_op>>(
            -80, 80, [](double x) { return std::exp(x); }, relative) < 8e-6);
  CHECK(worst_of<fast<log_op>>(
            1e-6, 9, [](double x) { return std::log(x); }, relative) < 1e-5);
  CHECK(worst_of<fast<sigmoid_op>>(
            -90, 90, [](double x) { return 1 / (1 + std::exp(-x)); }, absolute) < 4e-6);
  CHECK(worst_of<fast<tanh_op>>(
            -90, 90, [](double x) { return std::tanh(x); }, absolute) < 4e-6);
  CHECK(worst_of<fast<gelu_tanh_op>>(-12, 12, exact_gelu_tanh, of_operand) < 1e-5);
  CHECK(worst_of<fast<gelu_tanh_slope_op>>(-12, 12, exact_gelu_tanh_slope, absolute) < 1e-5);
}
