// Cholesky's and Gauss's factors of a matrix in double precision, by halves.
#pragma once

#include <cella/backend/cpu/matrices/triangular_solve.hpp>
#include <cmath>
#include <concepts>
#include <utility>

namespace cella::cpu {

/// The upper triangle U of A = U^T U in the place of A's upper triangle. Returns false where A is
/// not positive definite.
template <std::same_as<double> T = double>
bool cholesky_in_place(int n, written_part a) {
  if (n <= detail::few_equations) {
    for (int k = 0; k < n; ++k) {
      if (!(a(k, k) > 0)) return false;
      const double root = a(k, k) = std::sqrt(a(k, k));
      for (int j = k + 1; j < n; ++j) a(k, j) /= root;
      for (int i = k + 1; i < n; ++i)
        for (int j = i; j < n; ++j) a(i, j) -= a(k, i) * a(k, j);
    }
    return true;
  }
  const int half = detail::half_of(n), rest = n - half;
  if (!cholesky_in_place(half, a)) return false;
  const written_part beside = a.from(0, half);
  solve_triangle(half, triangle{a, true}.transposed(), rest, beside);
  // What lies on the diagonal and beyond, in strips.
  constexpr int strip = 4 * register_tile<double>::rows;
  for (int i = 0; i < rest; i += strip)
    subtract_product(std::min(strip, rest - i), rest - i, half,
                     known_part(beside.from(0, i)).transposed(), beside.from(0, i),
                     a.from(half + i, half + i));
  return cholesky_in_place(rest, a.from(half, half));
}

/// Swaps rows k and order[k] of some columns, one pair after the other.
template <std::same_as<double> T = double>
void swap_rows(int count, const int* order, int columns, written_part a) {
  for (int k = 0; k < count; ++k)
    if (order[k] != k) std::swap_ranges(&a(k, 0), &a(k, 0) + columns, &a(order[k], 0));
}

/// P A = L U in the place of A [rows,columns], rows >= columns, L without its diagonal of ones; row
/// k was swapped with row swaps[k] before column k was eliminated.  Source: Toledo, "Locality of
/// reference in LU decomposition with partial pivoting", 1997
template <std::same_as<double> T = double>
void eliminate(int rows, int columns, written_part a, int* swaps) {
  if (columns <= detail::few_equations) {
    for (int k = 0; k < columns; ++k) {
      int best = k;
      for (int i = k + 1; i < rows; ++i)
        if (std::abs(a(i, k)) > std::abs(a(best, k))) best = i;
      swaps[k] = best;
      if (best != k) std::swap_ranges(&a(k, 0), &a(k, 0) + columns, &a(best, 0));
      if (a(k, k) == 0) continue;
      for (int i = k + 1; i < rows; ++i) {
        const double factor = a(i, k) /= a(k, k);
        for (int j = k + 1; j < columns; ++j) a(i, j) -= factor * a(k, j);
      }
    }
    return;
  }
  const int half = detail::half_of(columns), rest = columns - half;
  eliminate(rows, half, a, swaps);
  const written_part beside = a.from(0, half), below = a.from(half, half);
  swap_rows(half, swaps, rest, beside);
  solve_triangle(half, {a, false, true}, rest, beside);
  subtract_product(rows - half, rest, half, a.from(half, 0), beside, below);
  eliminate(rows - half, rest, below, swaps + half);
  swap_rows(rest, swaps + half, half, a.from(half, 0));
  for (int k = half; k < columns; ++k) swaps[k] += half;
}

}  // namespace cella::cpu
