// The discrete Fourier transform of one line of complex numbers, of any length, in double
// precision: what the operation of fourier.hpp computes.
#pragma once

#include <algorithm>
#include <cella/graph/list.hpp>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace cella::detail {

using complex_line = list<std::complex<double>>;

/// Without the cases of infinities, which the operator of std::complex looks after.
inline std::complex<double> turned(std::complex<double> a, std::complex<double> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
/// a i quarter
inline std::complex<double> quarter_turn(std::complex<double> a, double quarter) {
  return {-quarter * a.imag(), quarter * a.real()};
}

/// y[k] = sum of x[j] exp(sign 2 pi i j k / n): by mixed radices, where n has large prime factors
/// by a convolution of a longer length that has none (Bluestein 1970). A template, so that programs
/// without transforms do not compile it.
template <std::same_as<double> R>
class fourier_transform {
 public:
  fourier_transform(std::int64_t n, int sign) : n_(n) {
    std::int64_t rest = n;
    for (; rest % 4 == 0 && rest > 0; rest /= 4) factors_.push_back(4);
    for (std::int64_t f = 2; rest > 1; f = f * f > rest ? rest : f + 1)
      for (; rest % f == 0; rest /= f) factors_.push_back(f);
    if (!factors_.empty() && factors_.back() > most_factor) {
      std::int64_t m = 1;
      while (m < 2 * n - 1) m *= 2;
      for (std::int64_t j = 0; j < n; ++j) chirp_.push_back(turn(j * j % (2 * n), 2 * n, sign));
      spectrum_.resize(std::size_t(m));
      for (std::int64_t j = 0; j < n; ++j) {
        const auto c = std::conj(chirp_[std::size_t(j)]);
        spectrum_[std::size_t(j)] = spectrum_[std::size_t((m - j) % m)] = c;
      }
      const complex_line from = spectrum_;
      fourier_transform(m, -1)(from.data(), spectrum_.data());
      return;
    }
    for (std::int64_t j = 0; j < n; ++j) roots_.push_back(turn(j, n, sign));
  }

  /// y = the transform of the n numbers at x, which lie elsewhere. C is std::complex<double>, or
  /// several of them side by side, with their own `turned` and `quarter_turn`.
  template <class C>
  void operator()(const C* x, C* y) const {
    if (!chirp_.empty())
      by_convolution(x, y);
    else if (n_ < 2)
      std::copy_n(x, n_, y);
    else
      by_factors(x, 1, y, n_, 0);
  }

 private:
  static constexpr std::int64_t most_factor = 31;

  static std::complex<double> turn(std::int64_t j, std::int64_t n, int sign) {
    // Of angles up to an eighth of a circle sine and cosine are right to the last digits.
    const std::int64_t eighths = 8 * j / n;
    const auto angle = [&](std::int64_t numerator) {
      return 2 * std::numbers::pi * double(numerator) / (8 * double(n));
    };
    const std::int64_t rest = 8 * j - eighths * n;  // of an eighth, in parts of n
    const bool odd = eighths % 2;
    const double a = angle(odd ? n - rest : rest);
    double c = odd ? std::sin(a) : std::cos(a), s = odd ? std::cos(a) : std::sin(a);
    switch (eighths / 2) {
      case 0:
        break;
      case 1:
        std::swap(c, s), c = -c;
        break;
      case 2:
        c = -c, s = -s;
        break;
      default:
        std::swap(c, s), s = -s;
    }
    return {c, sign * s};
  }

  /// y[0..n) = the transform of n numbers that lie `step` apart: of each residue by the next
  /// factor p, joined by p-point transforms.
  template <class C>
  void by_factors(const C* x, std::int64_t step, C* y, std::int64_t n, std::size_t level) const {
    const std::int64_t p = factors_[level], m = n / p;
    if (m > 1)
      for (std::int64_t r = 0; r < p; ++r)
        by_factors(x + r * step, step * p, y + r * m, m, level + 1);
    if (p == 4)
      join_four(x, step, y, m);
    else if (p == 2)
      join_two(x, step, y, m);
    else
      join(p, x, step, y, m);
  }
  /// Number k of residue r, turned: of residues of one number each that number of x.
  template <class C>
  C part(const C* x, std::int64_t step, const C* y, std::int64_t m, std::int64_t r, std::int64_t k,
         std::int64_t by) const {
    if (m == 1) return x[r * step];
    return r == 0 ? y[k] : turned(y[r * m + k], roots_[std::size_t(by * r * k)]);
  }
  template <class C>
  void join_two(const C* x, std::int64_t step, C* y, std::int64_t m) const {
    const std::int64_t by = n_ / (2 * m);
    for (std::int64_t k = 0; k < m; ++k) {
      const C a = part(x, step, y, m, 0, k, by), b = part(x, step, y, m, 1, k, by);
      y[k] = a + b;
      y[m + k] = a - b;
    }
  }
  template <class C>
  void join_four(const C* x, std::int64_t step, C* y, std::int64_t m) const {
    const std::int64_t by = n_ / (4 * m);
    const double quarter = roots_[std::size_t(n_ / 4)].imag();  // i or -i, as the sign is
    for (std::int64_t k = 0; k < m; ++k) {
      const C a = part(x, step, y, m, 0, k, by), b = part(x, step, y, m, 1, k, by);
      const C c = part(x, step, y, m, 2, k, by), d = part(x, step, y, m, 3, k, by);
      const C even = a + c, odd = b + d, apart = a - c, side = quarter_turn(b - d, quarter);
      y[k] = even + odd;
      y[m + k] = apart + side;
      y[2 * m + k] = even - odd;
      y[3 * m + k] = apart - side;
    }
  }
  template <class C>
  void join(std::int64_t p, const C* x, std::int64_t step, C* y, std::int64_t m) const {
    const std::int64_t by = n_ / (p * m);
    C parts[most_factor];
    for (std::int64_t k = 0; k < m; ++k) {
      for (std::int64_t r = 0; r < p; ++r) parts[r] = part(x, step, y, m, r, k, by);
      for (std::int64_t q = 0; q < p; ++q) {
        C sum = parts[0];
        for (std::int64_t r = 1; r < p; ++r)
          sum = sum + turned(parts[r], roots_[std::size_t(n_ / p * (r * q % p))]);
        y[q * m + k] = sum;
      }
    }
  }
  template <class C>
  void by_convolution(const C* x, C* y) const {
    const auto n = std::size_t(n_), m = spectrum_.size();
    list<C> work(m, C{}), other(m, C{});
    for (std::size_t j = 0; j < n; ++j) work[j] = turned(x[j], chirp_[j]);
    fourier_transform(std::int64_t(m), -1)(work.data(), other.data());
    for (std::size_t j = 0; j < m; ++j) other[j] = turned(other[j], spectrum_[j]);
    fourier_transform(std::int64_t(m), 1)(other.data(), work.data());
    for (std::size_t j = 0; j < n; ++j) y[j] = turned(work[j], chirp_[j] / double(m));
  }

  std::int64_t n_;
  list<std::int64_t> factors_;
  complex_line roots_, chirp_, spectrum_;
};

}  // namespace cella::detail
