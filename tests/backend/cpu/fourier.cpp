// Fourier transforms of lines in lanes beside sums of turned numbers.
#include <doctest/doctest.h>

#include <cella/backend/cpu/rows/fourier.hpp>
#include <cmath>
#include <random>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

template <class T>
using complex_numbers = std::vector<std::complex<T>>;

template <class T>
complex_numbers<T> random_numbers(std::size_t count) {
  static std::mt19937 random(5);
  std::uniform_real_distribution<T> number(-1, 1);
  complex_numbers<T> x(count);
  for (auto& z : x) z = {number(random), number(random)};
  return x;
}

/// The largest difference from sums in long double.
template <class T>
double difference_from_sums(const search_extents& e, int sign, const complex_numbers<T>& x,
                            const complex_numbers<T>& y) {
  const auto n = e.extent;
  std::vector<std::complex<long double>> turns;
  for (std::int64_t j = 0; j < n; ++j)
    turns.push_back(
        std::polar(1.0L, sign * 2 * std::acos(-1.0L) * (long double)(j) / (long double)(n)));
  long double most = 0;
  for (std::int64_t line = 0; line < e.outer * e.inner; ++line) {
    const std::int64_t first = line / e.inner * e.inner * n + line % e.inner;
    for (std::int64_t k = 0; k < n; ++k) {
      std::complex<long double> sum = 0;
      for (std::int64_t j = 0; j < n; ++j)
        sum += std::complex<long double>(x[std::size_t(first + j * e.inner)]) *
               turns[std::size_t(j * k % n)];
      most = std::max(
          most, std::abs(sum - std::complex<long double>(y[std::size_t(first + k * e.inner)])));
    }
  }
  return double(most);
}

}  // namespace

TEST_CASE_TEMPLATE("lines of any length and number are transformed as sums say", T, float, double) {
  const double rounding = std::is_same_v<T, float> ? 1e-6 : 1e-15;
  for (const std::int64_t n : {1, 2, 3, 4, 5, 8, 12, 30, 31, 37, 62, 64, 96, 101, 128, 222}) {
    for (const auto& [outer, inner] :
         {std::pair{1, 1}, {3, 1}, {4, 1}, {9, 1}, {21, 1}, {2, 5}, {1, 17}}) {
      CAPTURE(n);
      CAPTURE(outer);
      CAPTURE(inner);
      const search_extents e{outer, n, inner};
      const auto x = random_numbers<T>(std::size_t(outer * n * inner));
      for (const int sign : {-1, 1}) {
        complex_numbers<T> y(x.size(), {77, 77});
        std::vector<vec<double>> scratch(std::size_t(fourier_scratch(e)) / sizeof(vec<double>) + 1);
        const auto lines = [&](double scale) {
          fourier_lines(work_range{0, fourier_units(e)}, e, sign, scale, x.data(), y.data(),
                        reinterpret_cast<std::byte*>(scratch.data()));
        };
        lines(1);
        CHECK(difference_from_sums(e, sign, x, y) < rounding * 4 * double(n));
        // A power of two changes no digit.
        const auto all = y;
        lines(0.25);
        bool quarters = true;
        for (std::size_t i = 0; i < y.size(); ++i) quarters &= y[i] * T(4) == all[i];
        CHECK(quarters);
      }
    }
  }
}
