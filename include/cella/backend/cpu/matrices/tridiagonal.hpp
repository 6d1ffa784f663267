// Symmetric matrices as tridiagonal ones, and the eigenvalues of these, in double precision.
#pragma once

#include <cella/backend/cpu/matrices/lines.hpp>
#include <cella/backend/cpu/matrices/reflections.hpp>
#include <cella/backend/cpu/matrices/rotations.hpp>
#include <limits>

namespace cella::cpu {

namespace detail {

/// y = A v of a symmetric A [n,n], of which the upper triangle is read, once.
template <std::same_as<double> T = double>
void multiply_symmetric(int n, known_part a, const T* v, T* y) {
  std::fill_n(y, n, T(0));
  for (int i = 0; i < n; i += 4) {
    const int here = std::min(4, n - i), rest = n - i - here;
    for (int k = i; k < i + here; ++k) {
      y[k] += a(k, k) * v[k];
      for (int j = k + 1; j < i + here; ++j) {
        y[k] += a(k, j) * v[j];
        y[j] += a(k, j) * v[k];
      }
    }
    if (rest == 0) continue;
    T dots[4];
    pass_over_rows<4, true, true>(rest, a.from(i, i + 4), v + i + 4, dots, v + i, y + i + 4);
    for (int k = 0; k < 4; ++k) y[i + k] += dots[k];
  }
}

}  // namespace detail

/// What a symmetric matrix is made tridiagonal with.
struct tridiagonal_room {
  written_part v;    ///< [n,n], a reflection a row
  written_part w;    ///< [block_of_reflections,n]
  written_part t;    ///< [n,block_of_reflections]
  double* diagonal;  ///< [n]
  double* beside;    ///< [n]
  double* products;  ///< [2 block_of_reflections]
};

/// A [n,n], of which the upper triangle is read and written, as Q T Q^T: T's diagonals, and the
/// reflections whose product is Q. Row k of V is that which leaves one element of row k beside the
/// diagonal. Half of the arithmetic is that of products of matrices.  Source: Dongarra, Hammarling
/// and Sorensen, "Block reduction of matrices to condensed forms", 1989
template <std::same_as<double> T = double>
void make_tridiagonal(int n, written_part a, const tridiagonal_room& r) {
  T* const on_v = r.products;
  T* const on_w = on_v + block_of_reflections;
  for (int begin = 0; begin < n; begin += block_of_reflections) {
    const int count = std::min(block_of_reflections, n - begin), end = begin + count;
    for (int i = 0; i < count; ++i) {
      const int c = begin + i, next = c + 1, rest = n - next;
      // Row c, as the reflections before it in this block leave it.
      T* const row = &a(c, c);
      for (int k = 0; k < i; ++k) {
        on_v[k] = -r.w(k, c);
        on_w[k] = -r.v(begin + k, c);
      }
      detail::multiply_lines<false, true>(i, n - c, r.v.from(begin, c), nullptr, nullptr, on_v,
                                          row);
      detail::multiply_lines<false, true>(i, n - c, r.w.from(0, c), nullptr, nullptr, on_w, row);
      r.diagonal[c] = row[0];
      T* const v = &r.v(c, 0);
      T* const w = &r.w(i, 0);
      std::fill_n(v, next, T(0));
      std::fill_n(w, next, T(0));
      r.beside[c] = 0;
      r.t(c, i) = 0;
      if (rest == 0) continue;
      std::copy_n(row + 1, rest, v + next);
      const auto h = detail::reflect_line(rest, v + next);
      r.beside[c] = h.left;
      r.t(c, i) = h.scale;
      // A v of the matrix as it would be.
      detail::multiply_symmetric(rest, a.from(next, next), v + next, w + next);
      const known_part vs = r.v.from(begin, next), ws = r.w.from(0, next);
      detail::multiply_lines<true, false>(i, rest, ws, v + next, on_v, nullptr, nullptr);
      detail::multiply_lines<true, false>(i, rest, vs, v + next, on_w, nullptr, nullptr);
      // Column i of the block's T.
      for (int k = 0; k < i; ++k) {
        T sum = 0;
        for (int j = k; j < i; ++j) sum += r.t(begin + k, j) * on_w[j];
        r.t(begin + k, i) = -h.scale * sum;
        r.t(c, k) = 0;
      }
      for (int k = 0; k < i; ++k) {
        on_v[k] = -on_v[k];
        on_w[k] = -on_w[k];
      }
      detail::multiply_lines<false, true>(i, rest, vs, nullptr, nullptr, on_v, w + next);
      detail::multiply_lines<false, true>(i, rest, ws, nullptr, nullptr, on_w, w + next);
      for (int j = next; j < n; ++j) w[j] *= h.scale;
      const T along = -h.scale / 2 * detail::dot_of_lines(rest, v + next, w + next);
      detail::add_line(rest, along, v + next, w + next);
    }
    constexpr int strip = 4 * register_tile<T>::rows;
    for (int i = end; i < n; i += strip) {
      const int rows = std::min(strip, n - i);
      const written_part v = r.v.from(begin, i), w = r.w.from(0, i);
      subtract_product(rows, n - i, count, known_part(v).transposed(), w, a.from(i, i));
      subtract_product(rows, n - i, count, known_part(w).transposed(), v, a.from(i, i));
    }
  }
}

/// The eigenvalues of a tridiagonal matrix in the place of its diagonal, by the implicit QL method;
/// beside[k] stands between k and k + 1. Rows of n elements are turned along if there are `turns`,
/// which keep the rotations until they are full. Returns whether all were found.  Source: Dubrulle,
/// Martin and Wilkinson, "The implicit QL algorithm", 1968
template <std::same_as<double> T = double>
bool find_eigenvalues(int n, T* diagonal, T* beside, rotation_sequences* turns, written_part rows) {
  constexpr T epsilon = std::numeric_limits<T>::epsilon() / 2;
  constexpr int most_steps = 60;
  T largest = 0;
  for (int i = 0; i < n; ++i)
    largest = std::max(largest, std::abs(diagonal[i]) + std::abs(beside[i]));
  // Where neighbours are what rounding has left, a step leaves as much: then what counts is the
  // whole matrix.
  const auto is_nothing = [&](int i, int step) {
    const T size = std::abs(beside[i]);
    return size <= epsilon * (std::abs(diagonal[i]) + std::abs(diagonal[i + 1])) ||
           size <= (step < most_steps / 2 ? epsilon * epsilon : 2 * epsilon) * largest;
  };
  for (int l = 0; l < n; ++l) {
    for (int step = 0;; ++step) {
      int m = l;
      while (m < n - 1 && !is_nothing(m, step)) ++m;
      if (m == l) break;
      if (step == most_steps) return false;
      if (turns && turns->is_full()) turns->template apply<true>(n, rows);
      T g = (diagonal[l + 1] - diagonal[l]) / (2 * beside[l]);
      T root = std::sqrt(g * g + 1);
      if (std::isinf(root)) root = std::abs(g);
      g = diagonal[m] - diagonal[l] + beside[l] / (g + std::copysign(root, g));
      T s = 1, c = 1, p = 0;
      if (turns) turns->begin(m - 1);
      int i = m - 1;
      for (; i >= l; --i) {
        const T f = s * beside[i], b = c * beside[i];
        const plane_length of(f, g);
        beside[i + 1] = of.length;
        if (of.length == 0) {  // the matrix falls apart
          diagonal[i + 1] -= p;
          beside[m] = 0;
          break;
        }
        s = f * of.inverse;
        c = g * of.inverse;
        g = diagonal[i + 1] - p;
        const T r = (diagonal[i] - g) * s + 2 * c * b;
        p = s * r;
        diagonal[i + 1] = g + p;
        g = c * r - b;
        if (turns) turns->add(c, s);
      }
      if (i >= l) continue;
      diagonal[l] -= p;
      beside[l] = g;
      beside[m] = 0;
    }
  }
  if (turns) turns->template apply<true>(n, rows);
  return true;
}

}  // namespace cella::cpu
