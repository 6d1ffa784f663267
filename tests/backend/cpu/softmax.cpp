#include <doctest/doctest.h>

#include <cella/backend/cpu/rows/softmax.hpp>
#include <cella/graph/random.hpp>
#include <cmath>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

/// Softmax, or its logarithm, in double precision.
std::vector<double> reference(const softmax_extents& e, const std::vector<double>& x,
                              bool logarithm) {
  std::vector<double> y(x.size());
  for (std::int64_t line = 0; line < e.outer * e.inner; ++line) {
    const std::int64_t base = line / e.inner * e.extent * e.inner + line % e.inner;
    const auto at = [&](int i) { return std::size_t(base + i * e.inner); };
    double top = x[at(0)], sum = 0;
    for (int i = 0; i < e.extent; ++i) top = std::max(top, x[at(i)]);
    for (int i = 0; i < e.extent; ++i) sum += std::exp(x[at(i)] - top);
    for (int i = 0; i < e.extent; ++i) {
      const double v = x[at(i)] - top;
      y[at(i)] = logarithm ? v - std::log(sum) : std::exp(v) / sum;
    }
  }
  return y;
}

template <bool Logarithm, class T>
void check(const softmax_extents& e) {
  CAPTURE(e.outer);
  CAPTURE(e.extent);
  CAPTURE(e.inner);
  const auto n = std::size_t(e.outer * e.extent * e.inner);
  std::vector<T> x(n), y(n + 3, T(9));
  for (std::size_t i = 0; i < n; ++i) x[i] = uniform<T>(3, i) * T(20) - T(10);
  const auto expected = reference(e, {x.begin(), x.end()}, Logarithm);
  for (int u = softmax_units<T>(e); u-- > 0;) softmax<Logarithm>({u, u + 1}, e, x.data(), y.data());
  double worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double scale = std::max(std::abs(expected[i]), Logarithm ? 1.0 : 1e-30);
    const double error = std::abs(double{y[i]} - expected[i]) / scale;
    worst = error <= worst ? worst : error;
  }
  CHECK(worst < (std::is_same_v<T, float> ? 4e-6 : 1e-14));
  for (std::size_t i = n; i < y.size(); ++i) CHECK(y[i] == T(9));

  // In place.
  const std::vector<T> apart(y.begin(), y.begin() + std::int64_t(n));
  softmax<Logarithm>({0, softmax_units<T>(e)}, e, x.data(), x.data());
  CHECK(x == apart);
}

}  // namespace

TEST_CASE_TEMPLATE("softmax of rows", T, float, double) {
  for (int rows : {1, 7, 8, 9, 20}) {
    for (int extent : {1, 2, 7, 8, 9, 15, 16, 17, 31, 64, 1009}) {
      check<false, T>({rows, extent, 1});
      check<true, T>({rows, extent, 1});
    }
  }
}
TEST_CASE_TEMPLATE("softmax along another axis", T, float, double) {
  for (std::int64_t outer : {1, 3}) {
    for (int extent : {1, 5, 16, 37}) {
      for (std::int64_t inner : {2, 7, 8, 9, 15, 16, 17, 65, 131}) {
        check<false, T>({outer, extent, inner});
        check<true, T>({outer, extent, inner});
      }
    }
  }
}
TEST_CASE("a NaN makes its line NaN, and no other") {
  std::vector<float> x(3 * 20, 1.0f), y(x.size());
  x[25] = std::nanf("");
  softmax<false>({0, 1}, {3, 20, 1}, x.data(), y.data());
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(std::isnan(y[i]) == (i / 20 == 1));
}
TEST_CASE("differences beyond the range of the exponential are zero, not NaN") {
  std::vector<float> x(40, -1e30f), y(x.size());
  x[3] = 1e30f;
  softmax<false>({0, 1}, {1, 40, 1}, x.data(), y.data());
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == (i == 3 ? 1.0f : 0.0f));
}
