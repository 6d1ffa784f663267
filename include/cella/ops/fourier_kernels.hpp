// The discrete Fourier transform of one line of complex or of real numbers, of any length: what the
// operations of fourier.hpp compute.
#pragma once

#include <algorithm>
#include <cella/graph/list.hpp>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numbers>

namespace cella::detail {

using complex_line = list<std::complex<double>>;

// The arithmetic of transforms; several numbers side by side have their own.

/// Without the cases of infinities, which the operator of std::complex looks after.
template <std::floating_point R>
std::complex<R> turned(std::complex<R> a, std::complex<R> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
/// a i quarter
template <std::floating_point R>
std::complex<R> quarter_turn(std::complex<R> a, R quarter) {
  return {-quarter * a.imag(), quarter * a.real()};
}
template <std::floating_point R>
std::complex<R> mirrored(std::complex<R> a) {
  return {a.real(), -a.imag()};
}
template <std::floating_point R>
std::complex<R> stretched(std::complex<R> a, R by) {
  return {a.real() * by, a.imag() * by};
}

/// exp(sign 2 pi i j / n), right to the last digits: of angles up to an eighth of a circle sine and
/// cosine are.
inline std::complex<double> root_of_unity(std::int64_t j, std::int64_t n, int sign) {
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

/// y[k] = sum of x[j] exp(sign 2 pi i j k / n): by mixed radices, where n has large prime factors
/// by a convolution of a longer length that has none (Bluestein 1970). In precision R.
template <std::floating_point R>
class fourier_transform {
 public:
  fourier_transform(std::int64_t n, int sign) : n_(n) {
    if (const std::int64_t m = convolution_length(n)) {
      for (std::int64_t j = 0; j < n; ++j) chirp_.push_back(turn(j * j % (2 * n), 2 * n, sign));
      there_ = std::make_unique<const fourier_transform>(m, -1);
      back_ = std::make_unique<const fourier_transform>(m, 1);
      list<number> mirrored_chirp(std::size_t(m), {});
      for (std::int64_t j = 0; j < n; ++j) {
        const auto c = std::conj(chirp_[std::size_t(j)]);
        mirrored_chirp[std::size_t(j)] = mirrored_chirp[std::size_t((m - j) % m)] = c;
      }
      spectrum_.resize(std::size_t(m));
      (*there_)(mirrored_chirp.data(), spectrum_.data(), spectrum_.data());
      return;
    }
    std::int64_t rest = n;
    for (; rest % 4 == 0 && rest > 0; rest /= 4) factors_.push_back(4);
    for (std::int64_t f = 2; rest > 1; ++f)
      for (; rest % f == 0; rest /= f) factors_.push_back(f);
    for (std::int64_t j = 0; j < n; ++j) roots_.push_back(turn(j, n, sign));
  }

  /// How many numbers a line must have room for, and how many of work space a transform needs.
  static constexpr std::int64_t room(std::int64_t n) { return n; }
  static constexpr std::int64_t work_space(std::int64_t n) { return 2 * convolution_length(n); }
  /// y = the transform of the n numbers at x, which lie elsewhere. C is std::complex<R>, or
  /// several of them side by side.
  template <class C>
  void operator()(const C* x, C* y, C* work) const {
    if (there_)
      by_convolution(x, y, work);
    else if (n_ < 2)
      std::copy_n(x, n_, y);
    else
      by_factors(x, 1, y, n_, 0);
  }

 private:
  using number = std::complex<R>;
  static constexpr std::int64_t most_factor = 31;

  /// The power of two in which n numbers are convolved if n has a large prime factor; else 0.
  static constexpr std::int64_t convolution_length(std::int64_t n) {
    std::int64_t rest = n, m = 1;
    for (std::int64_t f = 2; f <= most_factor && rest > 0; ++f)
      while (rest % f == 0) rest /= f;
    if (rest <= 1) return 0;
    while (m < 2 * n - 1) m *= 2;
    return m;
  }
  static number turn(std::int64_t j, std::int64_t n, int sign) {
    return number(root_of_unity(j, n, sign));
  }

  /// y[0..n) = the transform of n numbers that lie `step` apart: of each residue by the next
  /// factor p, joined by p-point transforms.
  template <class C>
  void by_factors(const C* x, std::int64_t step, C* y, std::int64_t n, std::size_t level) const {
    const std::int64_t p = factors_[level], m = n / p;
    if (n == 16 && p == 4) return last_levels<4>(x, step, y);
    if (n == 8 && p == 4) return last_levels<2>(x, step, y);
    if (m > 1)
      for (std::int64_t r = 0; r < p; ++r)
        by_factors(x + r * step, step * p, y + r * m, m, level + 1);
    if (p == 4)
      join_four(x, step, y, m);
    else if (p == 2)
      join_two(x, step, y, m);
    else if (p == 3)
      join_three(x, step, y, m);
    else if (p == 5)
      join_five(x, step, y, m);
    else
      join(p, x, step, y, m);
  }
  /// The last two levels in one: fours of transforms of M points.
  template <int M, class C>
  void last_levels(const C* x, std::int64_t step, C* y) const {
    for (std::int64_t r = 0; r < 4; ++r)
      if constexpr (M == 4)
        join_four(x + r * step, 4 * step, y + 4 * r, 1);
      else
        join_two(x + r * step, 4 * step, y + 2 * r, 1);
    join_four(x, step, y, M);
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
    const R quarter = roots_[std::size_t(n_ / 4)].imag();  // i or -i, as the sign is
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
  void join_three(const C* x, std::int64_t step, C* y, std::int64_t m) const {
    const std::int64_t by = n_ / (3 * m);
    const R sine = roots_[std::size_t(n_ / 3)].imag();
    for (std::int64_t k = 0; k < m; ++k) {
      const C a = part(x, step, y, m, 0, k, by), b = part(x, step, y, m, 1, k, by);
      const C c = part(x, step, y, m, 2, k, by);
      const C both = b + c, rest = a - stretched(both, R(0.5)), side = quarter_turn(b - c, sine);
      y[k] = a + both;
      y[m + k] = rest + side;
      y[2 * m + k] = rest - side;
    }
  }
  template <class C>
  void join_five(const C* x, std::int64_t step, C* y, std::int64_t m) const {
    const std::int64_t by = n_ / (5 * m);
    const number one = roots_[std::size_t(n_ / 5)], two = roots_[std::size_t(n_ / 5 * 2)];
    for (std::int64_t k = 0; k < m; ++k) {
      const C a = part(x, step, y, m, 0, k, by), b = part(x, step, y, m, 1, k, by);
      const C c = part(x, step, y, m, 2, k, by), d = part(x, step, y, m, 3, k, by);
      const C e = part(x, step, y, m, 4, k, by);
      const C outer = b + e, inner = c + d, across = b - e, between = c - d;
      const C near = a + stretched(outer, one.real()) + stretched(inner, two.real());
      const C far = a + stretched(outer, two.real()) + stretched(inner, one.real());
      const C by_one = quarter_turn(across, one.imag()) + quarter_turn(between, two.imag());
      const C by_two = quarter_turn(across, two.imag()) - quarter_turn(between, one.imag());
      y[k] = a + outer + inner;
      y[m + k] = near + by_one;
      y[2 * m + k] = far + by_two;
      y[3 * m + k] = far - by_two;
      y[4 * m + k] = near - by_one;
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
  void by_convolution(const C* x, C* y, C* work) const {
    const auto n = std::size_t(n_), m = spectrum_.size();
    C* const other = work + m;
    for (std::size_t j = 0; j < n; ++j) work[j] = turned(x[j], chirp_[j]);
    std::fill(work + n, other, C{});
    (*there_)(work, other, other);
    for (std::size_t j = 0; j < m; ++j) other[j] = turned(other[j], spectrum_[j]);
    (*back_)(other, work, work);
    for (std::size_t j = 0; j < n; ++j) y[j] = turned(work[j], chirp_[j] / R(m));
  }

  std::int64_t n_;
  list<std::int64_t> factors_;
  list<number> roots_, chirp_, spectrum_;
  std::unique_ptr<const fourier_transform> there_, back_;  ///< of the convolution
};

/// n real numbers and the first n/2 + 1 of their transform, of which the others are the conjugates.
/// An even number of numbers is transformed in pairs, as half as many complex ones.
template <std::floating_point R>
class real_fourier_transform {
 public:
  /// sign -1: from numbers to their transform; 1: back, without a division by n.
  real_fourier_transform(std::int64_t n, int sign) : n_(n), of_line_(n % 2 ? n : n / 2, sign) {
    if (!in_pairs()) return;
    for (std::int64_t k = 0; k <= n / 4; ++k) {
      const auto root = root_of_unity(k, n, sign);
      turns_.push_back(std::complex<R>(quarter_turn(root, double(sign))));
    }
  }

  bool in_pairs() const { return n_ % 2 == 0; }
  /// Complex numbers of a line: pairs of real ones, or real ones without an imaginary part.
  std::int64_t count() const { return in_pairs() ? n_ / 2 : n_; }
  /// How many there must be room for, and numbers of work space.
  static constexpr std::int64_t room(std::int64_t n) { return n % 2 ? n : n / 2 + 1; }
  static constexpr std::int64_t work_space(std::int64_t n) {
    return fourier_transform<R>::work_space(n % 2 ? n : n / 2);
  }

  /// y = the transform of a line; its middle (all but the first number, and number n/2 of an even
  /// n) `times`.
  template <class C>
  void to_spectrum(const C* line, C* y, C* work, R times) const {
    of_line_(line, y, work);
    if (in_pairs()) {
      const C first = y[0], turn = quarter_turn(first, R(-1));  // which has the imaginary part
      y[n_ / 2] = stretched(first - turn + mirrored(first - turn), R(0.5));
      y[0] = stretched(first + turn + mirrored(first + turn), R(0.5));
      unfold(y, times / 2);
    } else {
      for (std::int64_t k = 1; k <= n_ / 2; ++k) y[k] = stretched(y[k], times);
    }
  }
  /// y = the line with the transform x, whose middle counts so many times; x is overwritten.
  template <class C>
  void from_spectrum(C* x, C* y, C* work, R times) const {
    x[0] = stretched(x[0] + mirrored(x[0]), R(0.5));
    if (in_pairs()) {
      const C last = stretched(x[n_ / 2] + mirrored(x[n_ / 2]), R(0.5));
      x[0] = x[0] + last + quarter_turn(x[0] - last, R(1));
      unfold(x, times / 2);
    } else {
      for (std::int64_t k = 1; k <= n_ / 2; ++k) {
        x[k] = stretched(x[k], times / 2);
        x[n_ - k] = mirrored(x[k]);
      }
    }
    of_line_(x, y, work);
  }

 private:
  /// Between the transform of pairs and that of the numbers, in the middle: sums of a number and
  /// the conjugate of its counterpart, and their turned differences.
  template <class C>
  void unfold(C* x, R times) const {
    for (std::int64_t k = 1, back = n_ / 2 - 1; k <= back; ++k, --back) {
      const C a = stretched(x[k], times), b = stretched(mirrored(x[back]), times);
      const C sum = a + b, turn = turned(a - b, turns_[std::size_t(k)]);
      x[k] = sum + turn;
      x[back] = mirrored(sum - turn);
    }
  }

  std::int64_t n_;
  fourier_transform<R> of_line_;
  list<std::complex<R>> turns_;
};

/// A transform in double precision, with room for a line.
template <template <class> class Transform>
struct transform_of_line {
  Transform<double> of;
  complex_line line, result, work;

  transform_of_line(std::int64_t n, int sign)
      : of(n, sign),
        line(std::size_t(Transform<double>::room(n)), {}),
        result(line),
        work(std::size_t(Transform<double>::work_space(n)), {}) {}
};

}  // namespace cella::detail
