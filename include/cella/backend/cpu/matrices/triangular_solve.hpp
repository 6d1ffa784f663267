// Systems of equations with a triangular matrix, in double precision.
#pragma once

#include <cella/backend/cpu/matrices/subtracted_product.hpp>
#include <cella/backend/host/work_range.hpp>

namespace cella::cpu {

/// A triangle of a matrix: the lower or the upper one, whose diagonal may count as ones.
struct triangle {
  known_part of;
  bool upper = false;
  bool unit = false;

  /// T^T is the other triangle of the transpose.
  triangle transposed() const { return {of.transposed(), !upper, unit}; }
  triangle from(int i) const { return {of.from(i, i), upper, unit}; }
};

namespace detail {

/// Equations that are solved in registers, and columns that are eliminated one by one.
inline constexpr int few_equations = 8;
/// A multiple of it that is about half of n, and less than n.
constexpr int half_of(int n) { return ceil_divide(n / 2, few_equations) * few_equations; }

/// Solves T X = B in the place of B for n <= few_equations.
template <bool Upper>
void solve_few(int n, triangle t, int columns, written_part x) {
  constexpr int L = lanes<double>;
  // Equations that are missing leave zeros as they are.
  double factor[few_equations][few_equations]{}, reciprocal[few_equations]{};
  for (int i = 0; i < n; ++i) {
    for (int k = Upper ? i + 1 : 0; k < (Upper ? n : i); ++k) factor[i][k] = -t.of(i, k);
    reciprocal[i] = t.unit ? 1 : 1 / t.of(i, i);
  }
  for (int j = 0; j < columns; j += L) {
    const int here = std::min(L, columns - j);
    vec<double> row[few_equations];
#pragma GCC unroll 8
    for (int s = 0; s < few_equations; ++s) {
      const int i = Upper ? few_equations - 1 - s : s;
      vec<double> y = i < n ? load_first(&x(i, j), here) : vec<double>(0.0);
#pragma GCC unroll 8
      for (int before = 0; before < s; ++before) {
        const int k = Upper ? few_equations - 1 - before : before;
        y = multiply_add(vec<double>(factor[i][k]), row[k], y);
      }
      row[i] = y * vec<double>(reciprocal[i]);
      if (i < n) store_first(&x(i, j), here, row[i]);
    }
  }
}

}  // namespace detail

/// Solves T X = B [n,columns] in the place of B: a half of the equations, what these take from the
/// others, and the others.
template <std::same_as<double> T = double>
void solve_triangle(int n, triangle t, int columns, written_part x) {
  if (n <= detail::few_equations) {
    if (t.upper)
      detail::solve_few<true>(n, t, columns, x);
    else
      detail::solve_few<false>(n, t, columns, x);
    return;
  }
  const int half = detail::half_of(n), rest = n - half;
  if (t.upper) {
    solve_triangle(rest, t.from(half), columns, x.from(half, 0));
    subtract_product(half, columns, rest, t.of.from(0, half), x.from(half, 0), x);
    solve_triangle(half, t, columns, x);
  } else {
    solve_triangle(half, t, columns, x);
    subtract_product(rest, columns, half, t.of.from(half, 0), x, x.from(half, 0));
    solve_triangle(rest, t.from(half), columns, x.from(half, 0));
  }
}

}  // namespace cella::cpu
