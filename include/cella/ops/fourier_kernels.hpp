// The discrete Fourier transform of one line of complex numbers, of any length, in double
// precision: what the operation of fourier.hpp computes.
#pragma once

#include <algorithm>
#include <cella/graph/list.hpp>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <numbers>

namespace cella::detail {

using complex_line = list<std::complex<double>>;

/// y[k] = sum of x[j] exp(sign 2 pi i j k / n): by mixed radices, where n has large prime factors
/// by a convolution of a longer length that has none (Bluestein 1970).
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
      fourier_transform(m, -1)(spectrum_);
      return;
    }
    for (std::int64_t j = 0; j < n; ++j) roots_.push_back(turn(j, n, sign));
  }

  /// Transforms n numbers in their place.
  void operator()(complex_line& x) const {
    if (n_ < 2) return;
    if (!chirp_.empty()) return by_convolution(x);
    const complex_line from = x;
    by_factors(from.data(), 1, x.data(), n_, 0);
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
  void by_factors(const std::complex<double>* x, std::int64_t step, std::complex<double>* y,
                  std::int64_t n, std::size_t level) const {
    if (n == 1) {
      y[0] = x[0];
      return;
    }
    const std::int64_t p = factors_[level], m = n / p, by = n_ / n;
    for (std::int64_t r = 0; r < p; ++r)
      by_factors(x + r * step, step * p, y + r * m, m, level + 1);
    const std::complex<double>* const roots = roots_.data();
    // i, or -i, for the sign of the transform.
    const double quarter = p == 4 ? roots[n_ / 4].imag() : 0;
    std::complex<double> part[most_factor];
    for (std::int64_t k = 0; k < m; ++k) {
      part[0] = y[k];
      for (std::int64_t r = 1; r < p; ++r) part[r] = product(y[r * m + k], roots[by * r * k]);
      if (p == 2) {
        y[k] = part[0] + part[1];
        y[m + k] = part[0] - part[1];
      } else if (p == 4) {
        const auto even = part[0] + part[2], odd = part[1] + part[3], turned = part[0] - part[2];
        const auto apart = part[1] - part[3];
        const std::complex<double> side(-quarter * apart.imag(), quarter * apart.real());
        y[k] = even + odd;
        y[m + k] = turned + side;
        y[2 * m + k] = even - odd;
        y[3 * m + k] = turned - side;
      } else {
        for (std::int64_t q = 0; q < p; ++q) {
          std::complex<double> sum = part[0];
          for (std::int64_t r = 1; r < p; ++r) sum += product(part[r], roots[n_ / p * (r * q % p)]);
          y[q * m + k] = sum;
        }
      }
    }
  }
  /// Without the cases of infinities, which the operator of std::complex looks after.
  static std::complex<double> product(std::complex<double> a, std::complex<double> b) {
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  }
  void by_convolution(complex_line& x) const {
    const auto n = std::size_t(n_), m = spectrum_.size();
    complex_line work(m, 0.0);
    for (std::size_t j = 0; j < n; ++j) work[j] = product(x[j], chirp_[j]);
    fourier_transform(std::int64_t(m), -1)(work);
    for (std::size_t j = 0; j < m; ++j) work[j] = product(work[j], spectrum_[j]);
    fourier_transform(std::int64_t(m), 1)(work);
    for (std::size_t j = 0; j < n; ++j) x[j] = product(work[j], chirp_[j]) / double(m);
  }

  std::int64_t n_;
  list<std::int64_t> factors_;
  complex_line roots_, chirp_, spectrum_;
};

}  // namespace cella::detail
