// Eigenvalues and singular values of one matrix, with their vectors, in double precision.
#pragma once

#include <cella/ops/free_signs.hpp>
#include <cella/ops/matrix_kernels.hpp>

namespace cella::detail {

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

inline bool has_negative_largest(const matrix& a, int column) {
  return has_negative_largest(a.rows, [&](int i) { return a(i, column); });
}
inline void negate_column(matrix& a, int column) {
  for (int i = 0; i < a.rows; ++i) a(i, column) = -a(i, column);
}

/// Sweeps, or steps for an eigenvalue, after which a method has failed: it takes a few.
inline constexpr int most_sweeps = 60;

/// A symmetric matrix, the rows of `v`, as Q T Q^T with a tridiagonal T: its diagonal, what stands
/// below that (from element 1 on), and Q in the place of `v`.
inline void tridiagonalize(matrix& v, list<double>& diagonal, list<double>& below) {
  const int n = v.rows;
  diagonal.assign(std::size_t(n), 0.0);
  below.assign(std::size_t(n), 0.0);
  double* const d = diagonal.data();
  double* const e = below.data();
  for (int j = 0; j < n; ++j) d[j] = v(n - 1, j);
  for (int i = n - 1; i > 0; --i) {
    double scale = 0, h = 0;
    for (int k = 0; k < i; ++k) scale += std::abs(d[k]);
    if (scale == 0) {
      e[i] = d[i - 1];
      for (int j = 0; j < i; ++j) {
        d[j] = v(i - 1, j);
        v(i, j) = v(j, i) = 0;
      }
    } else {
      for (int k = 0; k < i; ++k) {
        d[k] /= scale;
        h += d[k] * d[k];
      }
      const double f = d[i - 1], g = f > 0 ? -std::sqrt(h) : std::sqrt(h);
      e[i] = scale * g;
      h -= f * g;
      d[i - 1] = f - g;
      for (int j = 0; j < i; ++j) e[j] = 0;
      // The vector of the reflection is kept as a column; the matrix is symmetric: its rows serve.
      for (int j = 0; j < i; ++j) {
        v(j, i) = d[j];
        double sum = e[j] + v(j, j) * d[j];
        for (int k = j + 1; k < i; ++k) {
          sum += v(k, j) * d[k];
          e[k] += v(k, j) * d[j];
        }
        e[j] = sum;
      }
      double along = 0;
      for (int j = 0; j < i; ++j) {
        e[j] /= h;
        along += e[j] * d[j];
      }
      for (int j = 0; j < i; ++j) e[j] -= along / (h + h) * d[j];
      for (int k = 0; k < i; ++k)
        for (int j = 0; j <= k; ++j) v(k, j) -= d[j] * e[k] + e[j] * d[k];
      for (int j = 0; j < i; ++j) {
        d[j] = v(i - 1, j);
        v(i, j) = 0;
      }
    }
    d[i] = h;
  }
  // The reflections, one after the other.
  list<double> sums(std::size_t(n), 0.0);
  for (int i = 0; i < n - 1; ++i) {
    v(n - 1, i) = v(i, i);
    v(i, i) = 1;
    if (const double h = d[i + 1]; h != 0) {
      for (int k = 0; k <= i; ++k) d[k] = v(k, i + 1) / h;
      std::fill(sums.begin(), sums.end(), 0.0);
      for (int k = 0; k <= i; ++k)
        for (int j = 0; j <= i; ++j) sums[std::size_t(j)] += v(k, i + 1) * v(k, j);
      for (int k = 0; k <= i; ++k)
        for (int j = 0; j <= i; ++j) v(k, j) -= sums[std::size_t(j)] * d[k];
    }
    for (int k = 0; k <= i; ++k) v(k, i + 1) = 0;
  }
  for (int j = 0; j < n; ++j) {
    d[j] = v(n - 1, j);
    v(n - 1, j) = 0;
  }
  if (n > 0) v(n - 1, n - 1) = 1;
}
/// The eigenvalues of a tridiagonal matrix, whose largest elements are near 1, in the place of its
/// diagonal, and those vectors, the rows of `rows`, turned along. Returns whether all were found.
inline bool diagonalize(list<double>& diagonal, list<double>& below, matrix& rows) {
  const int n = rows.rows;
  double* const d = diagonal.data();
  double* const e = below.data();
  for (int i = 1; i < n; ++i) e[i - 1] = e[i];
  if (n > 0) e[n - 1] = 0;
  double shift = 0, largest = nothing_beside_one;
  constexpr double epsilon = std::numeric_limits<double>::epsilon() / 2;
  for (int l = 0; l < n; ++l) {
    largest = std::max(largest, std::abs(d[l]) + std::abs(e[l]));
    int m = l;
    while (m < n - 1 && std::abs(e[m]) > epsilon * largest) ++m;
    for (int step = 0; m > l; ++step) {
      if (step == most_sweeps) return false;
      double g = d[l], p = (d[l + 1] - g) / (2 * e[l]);
      double r = std::copysign(std::hypot(p, 1.0), p);
      d[l] = e[l] / (p + r);
      d[l + 1] = e[l] * (p + r);
      const double next = d[l + 1];
      const double h = g - d[l];
      for (int i = l + 2; i < n; ++i) d[i] -= h;
      shift += h;
      p = d[m];
      double c = 1, c2 = 1, c3 = 1, s = 0, s2 = 0;
      const double below_next = e[l + 1];
      for (int i = m - 1; i >= l; --i) {
        c3 = c2;
        c2 = c;
        s2 = s;
        g = c * e[i];
        const double old = c * p;
        r = std::hypot(p, e[i]);
        e[i + 1] = s * r;
        s = e[i] / r;
        c = p / r;
        p = c * d[i] - s * g;
        d[i + 1] = old + s * (c * g + s * d[i]);
        double* const x = &rows(i, 0);
        double* const y = &rows(i + 1, 0);
        for (int k = 0; k < n; ++k) {
          const double far = y[k];
          y[k] = s * x[k] + c * far;
          x[k] = c * x[k] - s * far;
        }
      }
      p = -s * s2 * c3 * below_next * e[l] / next;
      e[l] = s * p;
      d[l] = c * p;
      if (std::abs(e[l]) <= epsilon * largest) break;
    }
    d[l] += shift;
    e[l] = 0;
  }
  return true;
}

/// A = V diag(w) V^T of a symmetric A, of which the lower triangle is read, w ascending: by
/// Householder's reflections and the implicit QL method. The largest element of each vector is
/// positive. NaN where A is not finite or the method fails. Source: tred2 and tql2 of EISPACK
/// (Bowdler, Martin, Reinsch and Wilkinson 1968)
inline void eigh_of(const matrix& from, list<double>& w, matrix& v) {
  const int n = from.rows;
  v = from;
  for (int i = 0; i < n; ++i)
    for (int j = i + 1; j < n; ++j) v(i, j) = v(j, i);
  scaled_matrix given(v);
  v.fill(std::numeric_limits<double>::quiet_NaN());
  w.assign(std::size_t(n), std::numeric_limits<double>::quiet_NaN());
  if (given.scale == 0) return;
  list<double> values, below;
  tridiagonalize(given.elements, values, below);
  matrix rows = given.elements.transposed();
  if (!diagonalize(values, below, rows)) return;
  for (std::size_t k = 0; k < values.size(); ++k) w[k] = values[k] / given.scale;
  v = rows.transposed();
  sort_columns(w, {&v});
  for (int j = 0; j < n; ++j)
    if (has_negative_largest(v, j)) negate_column(v, j);
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

/// A = U diag(s) V^T with m >= n, s descending: by rotations that make A's columns orthogonal,
/// after a QR decomposition, of whose R these are fewer and shorter. The largest element of each
/// column of V is positive. NaN where A is not finite or the method fails. Sources: Hestenes 1958;
/// Drmac and Veselic, "New fast and accurate Jacobi SVD algorithm", 2008
inline void svd_of(const matrix& from, matrix& u, list<double>& s, matrix& v) {
  const int m = from.rows, n = from.columns;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  u.fill(nan);
  v.fill(nan);
  s.assign(std::size_t(n), nan);
  const scaled_matrix given(from);
  if (given.scale == 0) return;
  matrix q(m, n), r(n, n), turns(n, n);
  qr_of(given.elements, q, r);
  // Columns of R as rows, so that they lie side by side in memory; and those of V.
  matrix a = r.transposed();
  turns.set_identity();
  auto row = [&](matrix& x, int i) { return &x.elements[std::size_t(i) * std::size_t(n)]; };
  auto dot = [&](int i, int j) { return dot_of(row(a, i), row(a, j), n); };
  auto turn = [&](matrix& of, int i, int j, double c, double sine) {
    double *x = row(of, i), *y = row(of, j);
    for (int k = 0; k < n; ++k) {
      const double near = x[k], far = y[k];
      x[k] = c * near - sine * far;
      y[k] = sine * near + c * far;
    }
  };
  // As orthogonal as sums of n products can be.
  const double rounding = std::numeric_limits<double>::epsilon() * std::sqrt(double(n));
  list<double> size(std::size_t(n), 0.0);
  bool turned = true;
  for (int sweep = 0; turned; ++sweep) {
    if (sweep == most_sweeps) return;
    turned = false;
    // Squares of the lengths, which each rotation changes; afresh for each sweep.
    for (int i = 0; i < n; ++i) size[std::size_t(i)] = dot(i, i);
    for (int i = 0; i < n; ++i) {
      for (int j = i + 1; j < n; ++j) {
        double &x = size[std::size_t(i)], &y = size[std::size_t(j)];
        // What is nothing gets a column below that is orthogonal to the others.
        if (std::min(x, y) < nothing_beside_one * nothing_beside_one) continue;
        const double between = dot(i, j);
        if (!(std::abs(between) > rounding * std::sqrt(x) * std::sqrt(y))) continue;
        turned = true;
        const double t = jacobi_tangent(y - x, between), c = 1 / std::sqrt(1 + t * t);
        turn(a, i, j, c, t * c);
        turn(turns, i, j, c, t * c);
        x = std::max(x - t * between, 0.0);
        y += t * between;
      }
    }
  }
  s.clear();
  for (int j = 0; j < n; ++j) s.push_back(-std::sqrt(dot(j, j)));
  matrix left = a.transposed();
  v = turns.transposed();
  sort_columns(s, {&left, &v});
  for (double& x : s) x = -x;
  for (int j = 0; j < n; ++j) {
    if (!(s[std::size_t(j)] > nothing_beside_one)) {
      complete_column(left, j);
      continue;
    }
    for (int i = 0; i < n; ++i) left(i, j) /= s[std::size_t(j)];
  }
  for (double& x : s) x /= given.scale;
  for (int j = 0; j < n; ++j) {
    if (!has_negative_largest(v, j)) continue;
    negate_column(v, j);
    negate_column(left, j);
  }
  u.fill(0);
  for (int i = 0; i < m; ++i)
    for (int k = 0; k < n; ++k)
      for (int j = 0; j < n; ++j) u(i, j) += q(i, k) * left(k, j);
}

}  // namespace cella::detail
