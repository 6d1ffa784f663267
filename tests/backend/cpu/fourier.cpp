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

/// exp(sign 2 pi i j / n) for all j < n.
std::vector<std::complex<long double>> turns_of(std::int64_t n, int sign) {
  std::vector<std::complex<long double>> turns;
  for (std::int64_t j = 0; j < n; ++j)
    turns.push_back(
        std::polar(1.0L, sign * 2 * std::acos(-1.0L) * (long double)(j) / (long double)(n)));
  return turns;
}

/// Calls f(first, k) for each line and number of its transform.
template <class F>
void each_result(const search_extents& e, std::int64_t results, F f) {
  for (std::int64_t line = 0; line < e.outer * e.inner; ++line)
    for (std::int64_t k = 0; k < results; ++k)
      f(
          [&e, line](std::int64_t j, std::int64_t n) {
            return std::size_t(line / e.inner * e.inner * n + line % e.inner + j * e.inner);
          },
          k);
}

/// The largest difference from sums in long double.
template <class T>
double difference_from_sums(const search_extents& e, int sign, const complex_numbers<T>& x,
                            const complex_numbers<T>& y) {
  const auto n = e.extent;
  const auto turns = turns_of(n, sign);
  long double most = 0;
  each_result(e, n, [&](auto at, std::int64_t k) {
    std::complex<long double> sum = 0;
    for (std::int64_t j = 0; j < n; ++j)
      sum += std::complex<long double>(x[at(j, n)]) * turns[std::size_t(j * k % n)];
    most = std::max(most, std::abs(sum - std::complex<long double>(y[at(k, n)])));
  });
  return double(most);
}

/// How often the numbers between the first and the one that is its own conjugate count.
long double weight(std::int64_t k, std::int64_t n, int times) {
  return k == 0 || 2 * k == n ? 1 : times;
}
template <class T>
double difference_of_spectra(const search_extents& e, int times, const std::vector<T>& x,
                             const complex_numbers<T>& y) {
  const auto n = e.extent, m = n / 2 + 1;
  const auto turns = turns_of(n, -1);
  long double most = 0;
  each_result(e, m, [&](auto at, std::int64_t k) {
    std::complex<long double> sum = 0;
    for (std::int64_t j = 0; j < n; ++j)
      sum += (long double)(x[at(j, n)]) * turns[std::size_t(j * k % n)];
    sum *= weight(k, n, times);
    most = std::max(most, std::abs(sum - std::complex<long double>(y[at(k, m)])));
  });
  return double(most);
}
template <class T>
double difference_of_numbers(const search_extents& e, int times, const complex_numbers<T>& x,
                             const std::vector<T>& y) {
  const auto n = e.extent, m = n / 2 + 1;
  const auto turns = turns_of(n, 1);
  long double most = 0;
  each_result(e, n, [&](auto at, std::int64_t j) {
    long double sum = 0;
    for (std::int64_t k = 0; k < m; ++k)
      sum += weight(k, n, times) *
             (std::complex<long double>(x[at(k, m)]) * turns[std::size_t(j * k % n)]).real();
    most = std::max(most, std::abs(sum - (long double)(y[at(j, n)])));
  });
  return double(most);
}

/// Of lanes, aligned as scratch is.
template <class T>
std::vector<vec<T>> scratch_of(std::int64_t bytes) {
  return std::vector<vec<T>>(std::size_t(bytes) / sizeof(vec<T>) + 1);
}
template <class T>
std::byte* bytes_of(std::vector<vec<T>>& scratch) {
  return reinterpret_cast<std::byte*>(scratch.data());
}

constexpr std::int64_t lengths[]{1,  2,  3,  4,  5,  6,  8,   12,  16,  30,   31,
                                 34, 37, 48, 62, 64, 96, 101, 128, 222, 1009, 1024};
/// Outer and inner extents: few lines, many, side by side, and so many that lanes are left over.
constexpr std::pair<int, int> lines[]{{1, 1}, {3, 1},  {4, 1},  {9, 1}, {21, 1},
                                      {2, 5}, {1, 17}, {2, 16}, {3, 40}};

}  // namespace

TEST_CASE_TEMPLATE("lines of any length and number are transformed as sums say", T, float, double) {
  const double rounding = std::is_same_v<T, float> ? 4e-7 : 1e-15;
  for (const std::int64_t n : lengths) {
    for (const auto& [outer, inner] : lines) {
      if (n * outer * inner > 10'000) continue;
      CAPTURE(n);
      CAPTURE(outer);
      CAPTURE(inner);
      const search_extents e{outer, n, inner};
      const auto x = random_numbers<T>(std::size_t(outer * n * inner));
      for (const int sign : {-1, 1}) {
        complex_numbers<T> y(x.size(), {77, 77});
        auto scratch = scratch_of<T>(fourier_scratch<T>(e));
        const auto transform = [&](T scale) {
          fourier_lines<T>({0, fourier_units<T>(e)}, e, sign, scale, x.data(), y.data(),
                           bytes_of<T>(scratch));
        };
        transform(1);
        CHECK(difference_from_sums(e, sign, x, y) < rounding * 2 * double(n));
        // A power of two changes no digit.
        const auto all = y;
        transform(T(0.25));
        bool quarters = true;
        for (std::size_t i = 0; i < y.size(); ++i) quarters &= y[i] * T(4) == all[i];
        CHECK(quarters);
      }
    }
  }
}

TEST_CASE_TEMPLATE("lines of real numbers and halves of their transforms are as sums say", T, float,
                   double) {
  const double rounding = std::is_same_v<T, float> ? 4e-7 : 1e-15;
  for (const std::int64_t n : lengths) {
    for (const auto& [outer, inner] : lines) {
      if (n * outer * inner > 10'000) continue;
      CAPTURE(n);
      CAPTURE(outer);
      CAPTURE(inner);
      const search_extents e{outer, n, inner};
      const auto z = random_numbers<T>(std::size_t(outer * (n / 2 + 1) * inner));
      std::vector<T> x;
      for (const auto& number : random_numbers<T>(std::size_t(outer * n * inner)))
        x.push_back(number.real());
      auto scratch = scratch_of<T>(real_fourier_scratch<T>(e));
      const work_range all{0, fourier_units<T>(e)};
      for (const int times : {1, 2}) {
        complex_numbers<T> spectra(z.size(), {77, 77});
        lines_to_spectra<T>(all, e, T(times), T(1), x.data(), spectra.data(), bytes_of<T>(scratch));
        CHECK(difference_of_spectra(e, times, x, spectra) < rounding * 4 * double(n));
        std::vector<T> numbers(x.size(), 77);
        spectra_to_lines<T>(all, e, T(times), T(1), z.data(), numbers.data(), bytes_of<T>(scratch));
        CHECK(difference_of_numbers(e, times, z, numbers) < rounding * 4 * double(n));
      }
    }
  }
}

TEST_CASE("tensors without elements have no lines") {
  for (const search_extents e : {search_extents{0, 4, 64}, {2, 4, 0}, {2, 0, 3}, {0, 4, 1}})
    CHECK(fourier_units<float>(e) == 0);
}
