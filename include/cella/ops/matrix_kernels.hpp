// Decompositions of one matrix in double precision: what the operations of linear_algebra.hpp
// compute.
#pragma once

#include <algorithm>
#include <cella/graph/list.hpp>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace cella::detail {

/// A dense row-major matrix.
struct matrix {
  int rows{}, columns{};
  list<double> elements;

  matrix(int r, int c) : rows(r), columns(c), elements(std::size_t(r) * std::size_t(c), 0.0) {}
  double& operator()(int i, int j) {
    return elements[std::size_t(i) * std::size_t(columns) + std::size_t(j)];
  }
  double operator()(int i, int j) const {
    return elements[std::size_t(i) * std::size_t(columns) + std::size_t(j)];
  }
  void fill(double value) { std::fill(elements.begin(), elements.end(), value); }
  void set_identity() {
    fill(0);
    for (int i = 0; i < std::min(rows, columns); ++i) (*this)(i, i) = 1;
  }
  matrix transposed() const {
    matrix t(columns, rows);
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < columns; ++j) t(j, i) = (*this)(i, j);
    return t;
  }
};

/// The sum of products of two lines, in an order of its own, so that it takes vectors.
inline double dot_of(const double* x, const double* y, int count) {
  constexpr int lanes = 8;
  double sums[lanes]{};
  int k = 0;
  for (; k + lanes <= count; k += lanes)
    for (int p = 0; p < lanes; ++p) sums[p] += x[k + p] * y[k + p];
  for (; k < count; ++k) sums[0] += x[k] * y[k];
  for (int p = lanes / 2; p > 0; p /= 2)
    for (int i = 0; i < p; ++i) sums[i] += sums[i + p];
  return sums[0];
}

/// The lower triangle L of A = L L^T, of whose own only the lower one is read; NaN where A is not
/// positive definite.
inline void cholesky_of(const matrix& a, matrix& l) {
  const int n = a.rows;
  l.fill(0);
  for (int j = 0; j < n; ++j) {
    for (int i = j; i < n; ++i) {
      double sum = a(i, j);
      for (int k = 0; k < j; ++k) sum -= l(i, k) * l(j, k);
      if (i == j && !(sum > 0)) return l.fill(std::numeric_limits<double>::quiet_NaN());
      l(i, j) = i == j ? std::sqrt(sum) : sum / l(j, j);
    }
  }
}

/// Solves T X = B in the place of B, or T^T X = B; T is the upper or the lower triangle of `a`.
inline void solve_triangle(const matrix& a, matrix& b, bool upper, bool transposed, bool unit) {
  const int n = a.rows;
  const bool from_below = upper != transposed;
  for (int step = 0; step < n; ++step) {
    const int i = from_below ? n - 1 - step : step;
    const int first = from_below ? i + 1 : 0, last = from_below ? n : i;
    for (int k = first; k < last; ++k) {
      const double factor = transposed ? a(k, i) : a(i, k);
      for (int j = 0; j < b.columns; ++j) b(i, j) -= factor * b(k, j);
    }
    if (unit) continue;
    for (int j = 0; j < b.columns; ++j) b(i, j) /= a(i, i);
  }
}

/// P A = L U in the place of A, L without its diagonal of ones; row i comes from row `order[i]`.
/// Returns the sign of the permutation.
inline double lu_of(matrix& a, list<int>& order) {
  const int n = a.rows;
  double sign = 1;
  order.clear();
  for (int i = 0; i < n; ++i) order.push_back(i);
  for (int k = 0; k < n; ++k) {
    int best = k;
    for (int i = k + 1; i < n; ++i)
      if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
    if (best != k) {
      for (int j = 0; j < n; ++j) std::swap(a(k, j), a(best, j));
      std::swap(order[std::size_t(k)], order[std::size_t(best)]);
      sign = -sign;
    }
    if (a(k, k) == 0) continue;
    for (int i = k + 1; i < n; ++i) {
      const double factor = a(i, k) /= a(k, k);
      for (int j = k + 1; j < n; ++j) a(i, j) -= factor * a(k, j);
    }
  }
  return sign;
}

/// The power of 2 that brings a number to between 1 and 2, as far as there is one; of 0 it is 1.
inline double scale_to_one(double largest) {
  return largest == 0 ? 1 : std::ldexp(1.0, std::clamp(-std::ilogb(largest), -1022, 1022));
}
/// What counts as nothing beside elements near 1: squares of smaller numbers lose digits.
inline constexpr double nothing_beside_one = 1e-130;

/// A matrix times the power of 2 that brings its largest element near 1, so that no square
/// overflows, and that power; 0 where an element is not finite: then there are no orthogonal
/// factors, but NaN.
struct scaled_matrix {
  matrix elements;
  double scale;

  explicit scaled_matrix(const matrix& a) : elements(a), scale(scale_of(a)) {
    for (double& x : elements.elements) x *= scale;
  }

 private:
  static double scale_of(const matrix& a) {
    double largest = 0;
    for (double x : a.elements) {
      if (!std::isfinite(x)) return 0;
      largest = std::max(largest, std::abs(x));
    }
    return scale_to_one(largest);
  }
};

/// A = Q R with the columns of Q [m,n] orthonormal and R [n,n] upper, m >= n, by Householder's
/// reflections, with the signs that LAPACK has; NaN where A is not finite.  Source: Golub and Van
/// Loan, "Matrix Computations"
inline void qr_of(const matrix& from, matrix& q, matrix& r) {
  const int m = from.rows, n = from.columns;
  const scaled_matrix given(from);
  if (given.scale == 0) {
    q.fill(std::numeric_limits<double>::quiet_NaN());
    return r.fill(std::numeric_limits<double>::quiet_NaN());
  }
  // Columns as rows, so that they lie side by side in memory; vectors of reflections below R.
  matrix a = given.elements.transposed(), columns(n, m);
  list<double> scale(std::size_t(n), 0.0);
  // x - (x . v) scale v, where v has a 1 at k and the rest in row k of a.
  auto reflect = [&](matrix& of, int j, int k) {
    double* const x = &of.elements[std::size_t(j) * std::size_t(m)];
    const double* const v = &a.elements[std::size_t(k) * std::size_t(m)];
    const double along = (x[k] + dot_of(v + k + 1, x + k + 1, m - k - 1)) * scale[std::size_t(k)];
    x[k] -= along;
    for (int i = k + 1; i < m; ++i) x[i] -= along * v[i];
  };
  for (int k = 0; k < n; ++k) {
    double tail = 0;
    for (int i = k + 1; i < m; ++i) tail += a(k, i) * a(k, i);
    const double alpha = a(k, k);
    // LAPACK reflects nothing either if they are nothing.
    if (!(tail > nothing_beside_one * nothing_beside_one)) continue;
    const double beta = -std::copysign(std::sqrt(alpha * alpha + tail), alpha);
    scale[std::size_t(k)] = (beta - alpha) / beta;
    for (int i = k + 1; i < m; ++i) a(k, i) /= alpha - beta;
    a(k, k) = beta;
    for (int j = k + 1; j < n; ++j) reflect(a, j, k);
  }
  r.fill(0);
  for (int i = 0; i < n; ++i)
    for (int j = i; j < n; ++j) r(i, j) = a(j, i) / given.scale;
  columns.set_identity();
  for (int k = n; k-- > 0;)
    for (int j = k; j < n; ++j) reflect(columns, j, k);
  q = columns.transposed();
}

}  // namespace cella::detail
