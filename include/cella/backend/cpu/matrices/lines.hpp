// Lines of numbers in double precision: what decompositions do beside products of matrices.
#pragma once

#include <cella/backend/cpu/matrices/subtracted_product.hpp>
#include <cmath>
#include <concepts>
#include <type_traits>

namespace cella::cpu::detail {

/// The vector of a line at x, of which the first `count` elements are read if it is not whole.
template <class Whole>
[[gnu::always_inline]] inline vec<double> load_of_line(Whole, const double* x, int count) {
  if constexpr (Whole::value)
    return load_unaligned(x);
  else
    return load_first(x, count);
}
template <class Whole>
[[gnu::always_inline]] inline void store_in_line(Whole, double* x, int count, vec<double> y) {
  if constexpr (Whole::value)
    store_unaligned(x, y);
  else
    store_first(x, count, y);
}
/// f(whether it is whole, the first element, how many there are) for each vector of a line.
template <class F>
[[gnu::always_inline]] inline void for_vectors(int n, F f) {
  constexpr int L = lanes<double>;
  int j = 0;
  for (; j + L <= n; j += L) f(std::true_type{}, j, L);
  if (j < n) f(std::false_type{}, j, n - j);
}

/// Some rows of a matrix: y += the sum of factor[r] row r if `Sums`; dots[r] = row r . x if `Dots`.
template <int Rows, bool Dots, bool Sums>
[[gnu::noinline]] void pass_over_rows(int n, known_part a, const double* x, double* dots,
                                      const double* factor, double* y) {
  vec<double> sums[Rows];
#pragma GCC unroll 4
  for (int r = 0; r < Rows; ++r) sums[r] = vec<double>(0.0);
  for_vectors(
      n, [&](auto whole, int j, int count) __attribute__((always_inline)) {
        vec<double> to(0.0), with(0.0);
        if constexpr (Sums) to = load_of_line(whole, y + j, count);
        if constexpr (Dots) with = load_of_line(whole, x + j, count);
#pragma GCC unroll 4
        for (int r = 0; r < Rows; ++r) {
          const vec<double> row = load_of_line(whole, a.at + r * a.row + j, count);
          if constexpr (Dots) sums[r] = multiply_add(row, with, sums[r]);
          if constexpr (Sums) to = multiply_add(row, vec<double>(factor[r]), to);
        }
        if constexpr (Sums) store_in_line(whole, y + j, count, to);
      });
  if constexpr (Dots)
    for (int r = 0; r < Rows; ++r) dots[r] = sum(sums[r]);
}

/// dots = A x, and y += A^T factor, for A [rows,n].
template <bool Dots, bool Sums>
inline void multiply_lines(int rows, int n, known_part a, const double* x, double* dots,
                           const double* factor, double* y) {
  int i = 0;
  for (; i + 4 <= rows; i += 4)
    pass_over_rows<4, Dots, Sums>(n, a.from(i, 0), x, Dots ? dots + i : nullptr,
                                  Sums ? factor + i : nullptr, y);
  for (; i < rows; ++i)
    pass_over_rows<1, Dots, Sums>(n, a.from(i, 0), x, Dots ? dots + i : nullptr,
                                  Sums ? factor + i : nullptr, y);
}

template <std::same_as<double> T = double>
T dot_of_lines(int n, const T* x, const T* y) {
  T dot;
  pass_over_rows<1, true, false>(n, {x, 0}, y, &dot, nullptr, nullptr);
  return dot;
}
/// y += factor x
template <std::same_as<double> T = double>
void add_line(int n, T factor, const T* x, T* y) {
  pass_over_rows<1, false, true>(n, {x, 0}, nullptr, nullptr, &factor, y);
}

/// A reflection I - scale v v^T of a line whose first element is alpha: it leaves `left` of that,
/// and nothing of the others, which times `inverse` are those of v.
struct line_reflection {
  double scale, left, inverse;
};
/// `tail` is the sum of the others' squares. LAPACK reflects nothing either if they are nothing.
/// What is left of differences of differences counts as nothing: its squares have no precision.
template <std::same_as<double> T = double>
line_reflection reflection_of(T alpha, T tail) {
  if (!(tail > 1e-280)) return {0, alpha, 1};
  const T beta = -std::copysign(std::sqrt(alpha * alpha + tail), alpha);
  return {(beta - alpha) / beta, beta, 1 / (alpha - beta)};
}
/// That of x, which becomes its vector, whose first element is 1.
template <std::same_as<double> T = double>
line_reflection reflect_line(int n, T* x) {
  const auto h = reflection_of(x[0], n > 1 ? dot_of_lines(n - 1, x + 1, x + 1) : T(0));
  x[0] = 1;
  for (int i = 1; i < n; ++i) x[i] = h.scale == 0 ? 0 : x[i] * h.inverse;
  return h;
}

}  // namespace cella::cpu::detail
