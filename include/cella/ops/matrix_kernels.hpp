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

/// A = Q R with the columns of Q [m,n] orthonormal and R [n,n] upper, m >= n, by Householder's
/// reflections, with the signs that LAPACK has.  Source: Golub and Van Loan, "Matrix Computations"
inline void qr_of(matrix a, matrix& q, matrix& r) {
  const int m = a.rows, n = a.columns;
  list<double> scale(std::size_t(n), 0.0);
  for (int k = 0; k < n; ++k) {
    double tail = 0;
    for (int i = k + 1; i < m; ++i) tail += a(i, k) * a(i, k);
    const double alpha = a(k, k);
    if (tail == 0) continue;  // LAPACK reflects nothing either
    const double beta = -std::copysign(std::sqrt(alpha * alpha + tail), alpha);
    scale[std::size_t(k)] = (beta - alpha) / beta;
    for (int i = k + 1; i < m; ++i) a(i, k) /= alpha - beta;
    a(k, k) = beta;
    for (int j = k + 1; j < n; ++j) {
      double sum = a(k, j);
      for (int i = k + 1; i < m; ++i) sum += a(i, k) * a(i, j);
      sum *= scale[std::size_t(k)];
      a(k, j) -= sum;
      for (int i = k + 1; i < m; ++i) a(i, j) -= sum * a(i, k);
    }
  }
  r.fill(0);
  for (int i = 0; i < n; ++i)
    for (int j = i; j < n; ++j) r(i, j) = a(i, j);
  q.set_identity();
  for (int k = n; k-- > 0;) {
    for (int j = k; j < n; ++j) {
      double sum = q(k, j);
      for (int i = k + 1; i < m; ++i) sum += a(i, k) * q(i, j);
      sum *= scale[std::size_t(k)];
      q(k, j) -= sum;
      for (int i = k + 1; i < m; ++i) q(i, j) -= sum * a(i, k);
    }
  }
}

/// The columns i and j of a matrix turned by an angle.
inline void rotate_columns(matrix& a, int i, int j, double cosine, double sine) {
  for (int k = 0; k < a.rows; ++k) {
    const double x = a(k, i), y = a(k, j);
    a(k, i) = cosine * x - sine * y;
    a(k, j) = sine * x + cosine * y;
  }
}
/// Tangent of the angle at which a rotation makes the off-diagonal `between` zero, given how far
/// the diagonal's elements are apart.
inline double jacobi_tangent(double apart, double between) {
  const double ratio = apart / (2 * between);
  return std::copysign(1.0, ratio) / (std::abs(ratio) + std::sqrt(1 + ratio * ratio));
}
/// The columns of a matrix in an order that `key` makes ascending, and the keys with them.
inline void sort_columns(list<double>& key, std::initializer_list<matrix*> all) {
  for (int i = 0; i < int(key.size()); ++i) {
    const auto least = std::min_element(key.begin() + i, key.end()) - key.begin();
    if (least == i) continue;
    std::swap(key[std::size_t(i)], key[std::size_t(least)]);
    for (matrix* a : all)
      for (int k = 0; k < a->rows; ++k) std::swap((*a)(k, i), (*a)(k, int(least)));
  }
}

inline constexpr int most_sweeps = 60;

/// A = V diag(w) V^T of a symmetric A, of which the lower triangle is read, w ascending, by
/// Jacobi's rotations. The largest element of each vector is positive.
inline void eigh_of(const matrix& from, list<double>& w, matrix& v) {
  const int n = from.rows;
  matrix a = from;
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n; ++j) a(i, j) = a(j, i);
  v.set_identity();
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool turned = false;
    for (int i = 0; i < n; ++i) {
      for (int j = i + 1; j < n; ++j) {
        const double size = std::sqrt(std::abs(a(i, i))) * std::sqrt(std::abs(a(j, j)));
        const double least = std::numeric_limits<double>::min();
        if (!(std::abs(a(i, j)) > 1e-17 * size + least)) continue;
        turned = true;
        const double t = jacobi_tangent(a(j, j) - a(i, i), a(i, j));
        const double c = 1 / std::sqrt(1 + t * t), s = t * c;
        rotate_columns(a, i, j, c, s);
        for (int k = 0; k < n; ++k) {
          const double x = a(i, k), y = a(j, k);
          a(i, k) = c * x - s * y;
          a(j, k) = s * x + c * y;
        }
        a(i, j) = a(j, i) = 0;
        rotate_columns(v, i, j, c, s);
      }
    }
    if (!turned) break;
  }
  w.clear();
  for (int i = 0; i < n; ++i) w.push_back(a(i, i));
  sort_columns(w, {&v});
  for (int j = 0; j < n; ++j) {
    int best = 0;
    for (int i = 1; i < n; ++i)
      if (std::abs(v(i, j)) > std::abs(v(best, j)) * (1 + 1e-12)) best = i;
    if (n > 0 && v(best, j) < 0)
      for (int i = 0; i < n; ++i) v(i, j) = -v(i, j);
  }
}

/// A column of length 1 that is orthogonal to the first `count` of Q.
inline void complete_column(matrix& q, int count) {
  for (int axis = 0; axis < q.rows; ++axis) {
    for (int i = 0; i < q.rows; ++i) q(i, count) = i == axis;
    for (int pass = 0; pass < 2; ++pass) {
      for (int j = 0; j < count; ++j) {
        double sum = 0;
        for (int i = 0; i < q.rows; ++i) sum += q(i, j) * q(i, count);
        for (int i = 0; i < q.rows; ++i) q(i, count) -= sum * q(i, j);
      }
    }
    double size = 0;
    for (int i = 0; i < q.rows; ++i) size += q(i, count) * q(i, count);
    if (size * (q.rows + 1) < 0.5) continue;
    for (int i = 0; i < q.rows; ++i) q(i, count) /= std::sqrt(size);
    return;
  }
}

/// A = U diag(s) V^T with m >= n, s descending, by rotations that make A's columns orthogonal.
/// Source: Hestenes 1958
inline void svd_of(matrix a, matrix& u, list<double>& s, matrix& v) {
  const int m = a.rows, n = a.columns;
  v.set_identity();
  auto dot = [&](int i, int j) {
    double sum = 0;
    for (int k = 0; k < m; ++k) sum += a(k, i) * a(k, j);
    return sum;
  };
  for (int sweep = 0; sweep < most_sweeps; ++sweep) {
    bool turned = false;
    for (int i = 0; i < n; ++i) {
      for (int j = i + 1; j < n; ++j) {
        const double x = dot(i, i), y = dot(j, j), between = dot(i, j);
        if (!(std::abs(between) > 1e-16 * std::sqrt(x) * std::sqrt(y))) continue;
        turned = true;
        const double t = jacobi_tangent(y - x, between);
        const double c = 1 / std::sqrt(1 + t * t);
        rotate_columns(a, i, j, c, t * c);
        rotate_columns(v, i, j, c, t * c);
      }
    }
    if (!turned) break;
  }
  s.clear();
  for (int j = 0; j < n; ++j) s.push_back(-std::sqrt(dot(j, j)));
  sort_columns(s, {&a, &v});
  for (double& x : s) x = -x;
  const double least = n ? s[0] * 1e-300 : 0;
  u.fill(0);
  for (int j = 0; j < n; ++j) {
    if (!(s[std::size_t(j)] > least)) {
      complete_column(u, j);
      continue;
    }
    for (int i = 0; i < m; ++i) u(i, j) = a(i, j) / s[std::size_t(j)];
  }
}

}  // namespace cella::detail
