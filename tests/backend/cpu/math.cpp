#include <doctest/doctest.h>

#include <bit>
#include <cella/backend/cpu/math.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

/// Numbers of every exponent and both signs, with random digits, and the specials.
std::vector<float> numbers_of_all_exponents(int each) {
  std::vector<float> x;
  std::uint32_t digits = 12345;
  for (std::uint32_t exponent = 0; exponent < 256; ++exponent) {
    for (int i = 0; i < each; ++i) {
      digits = digits * 1664525u + 1013904223u;
      const std::uint32_t fraction = i == 0 ? 0 : i == 1 ? 0x7fffffu : digits >> 9;
      for (std::uint32_t sign : {0u, 0x80000000u})
        x.push_back(std::bit_cast<float>(sign | exponent << 23 | fraction));
    }
  }
  return x;
}

/// The worst error in units in the last place of the exact result, where that is a normal number.
template <class Function, class Exact>
double worst_error(const std::vector<float>& x, Function f, Exact exact) {
  constexpr int L = lanes<float>;
  double worst = 0;
  for (std::size_t first = 0; first + L <= x.size(); first += L) {
    float y[L];
    store_unaligned(y, f(load_unaligned(x.data() + first)));
    for (std::size_t i = 0; i < std::size_t(L); ++i) {
      const double e = exact(double{x[first + i]});
      if (std::isnan(e)) {
        if (!std::isnan(y[i])) return 1e9;
        continue;
      }
      if (std::abs(e) > double{std::numeric_limits<float>::max()}) {
        if (double{y[i]} != std::copysign(HUGE_VAL, e)) return 1e9;
        continue;
      }
      if (std::abs(e) < double{std::numeric_limits<float>::min()}) {
        if (!(std::abs(double{y[i]} - e) <= double{std::numeric_limits<float>::min()})) return 1e9;
        continue;
      }
      int exponent = 0;
      std::frexp(e, &exponent);
      const double error = std::abs(double{y[i]} - e) / std::ldexp(1.0, exponent - 24);
      if (!(error <= worst)) worst = std::isfinite(error) ? error : 1e9;
    }
  }
  return worst;
}

std::vector<float> evenly(float low, float high, int count) {
  std::vector<float> x;
  for (int i = 0; i < count; ++i) x.push_back(low + (high - low) * float(i) / float(count));
  return x;
}

}  // namespace

TEST_CASE("exponentials are right to 2 units in the last place, from minus to plus infinity") {
  const auto f = [](vec<float> x) { return exponential<float>(x); };
  const auto exact = [](double x) { return std::exp(x); };
  CHECK(worst_error(numbers_of_all_exponents(200), f, exact) <= 2);
  CHECK(worst_error(evenly(-90, 90, 1 << 20), f, exact) <= 2);
}

TEST_CASE(
    "hyperbolic tangents are right to 2 units in the last place, from minus to plus infinity") {
  const auto f = [](vec<float> x) { return hyperbolic_tangent<float>(x); };
  const auto exact = [](double x) { return std::tanh(x); };
  CHECK(worst_error(numbers_of_all_exponents(200), f, exact) <= 2);
  CHECK(worst_error(evenly(-10, 10, 1 << 20), f, exact) <= 2);
  CHECK(worst_error(evenly(-0.7f, 0.7f, 1 << 20), f, exact) <= 2);
}

TEST_CASE("gelu and its derivative are right to 3e-6 of what they multiply, and at infinity") {
  const auto exact = [](double x) {
    return 0.5 * x *
           (1 +
            std::tanh(cella::detail::gelu_factor * (x + cella::detail::gelu_cubic * x * x * x)));
  };
  const auto slope = [](double x) {
    const double t =
        std::tanh(cella::detail::gelu_factor * (x + cella::detail::gelu_cubic * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * cella::detail::gelu_factor *
                               (1 + 3 * cella::detail::gelu_cubic * x * x);
  };
  constexpr int L = lanes<float>;
  const std::vector<float> x = evenly(-12, 12, 1 << 16);
  double worst = 0;
  for (std::size_t first = 0; first + L <= x.size(); first += L) {
    float y[L], dy[L];
    const vec<float> v = load_unaligned(x.data() + first);
    store_unaligned(y, vector_form<gelu_tanh_op>::apply(v));
    store_unaligned(dy, vector_form<gelu_tanh_slope_op>::apply(v));
    for (std::size_t i = 0; i < std::size_t(L); ++i) {
      const double at = double{x[first + i]};
      const double error = std::abs(double{y[i]} - exact(at)) / std::max(1.0, std::abs(at));
      const double slope_error = std::abs(double{dy[i]} - slope(at));
      worst = error <= worst ? worst : error;
      worst = slope_error <= worst ? worst : slope_error;
    }
  }
  CHECK(worst < 3e-6);

  constexpr float infinity = std::numeric_limits<float>::infinity();
  const auto first_of = [](vec<float> v) { return v.get(0); };
  CHECK(first_of(vector_form<gelu_tanh_op>::apply(vec<float>(infinity))) == infinity);
  CHECK(first_of(vector_form<gelu_tanh_op>::apply(vec<float>(-infinity))) == 0);
  CHECK(std::isnan(first_of(vector_form<gelu_tanh_op>::apply(vec<float>(NAN)))));
  CHECK(first_of(vector_form<gelu_tanh_slope_op>::apply(vec<float>(infinity))) == 1);
  CHECK(first_of(vector_form<gelu_tanh_slope_op>::apply(vec<float>(-infinity))) == 0);
  CHECK(std::isnan(first_of(vector_form<gelu_tanh_slope_op>::apply(vec<float>(NAN)))));
}
