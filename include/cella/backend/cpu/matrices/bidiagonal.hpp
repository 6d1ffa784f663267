// Square matrices as bidiagonal ones, and the singular values of these, in double precision.
#pragma once

#include <array>
#include <cella/backend/cpu/matrices/lines.hpp>
#include <cella/backend/cpu/matrices/reflections.hpp>
#include <cella/backend/cpu/matrices/rotations.hpp>
#include <limits>

namespace cella::cpu {

/// Reflections of one side of a matrix [n,n], one a row of `v`, and what the matrix makes of those
/// of a block: rows of `w`.
struct side_reflections {
  written_part v;    ///< [n,n]
  written_part w;    ///< [block_of_reflections,n]
  written_part t;    ///< [n,block_of_reflections]
  double* products;  ///< [block_of_reflections]

  /// Column i of the T of the block that begins with reflection `begin`, of which reflection i was
  /// made last; `products` become those of it with the others, negated.
  template <std::same_as<double> T = double>
  void add_to_block(int n, int begin, int i, T scale) const {
    const T* const last = &v(begin + i, 0);
    detail::multiply_lines<true, false>(i, n, v.from(begin, 0), last, products, nullptr, nullptr);
    for (int k = 0; k < i; ++k) {
      T sum = 0;
      for (int j = k; j < i; ++j) sum += t(begin + k, j) * products[j];
      t(begin + k, i) = -scale * sum;
      t(begin + i, k) = 0;
    }
    t(begin + i, i) = scale;
    for (int k = 0; k < i; ++k) products[k] = -products[k];
  }
};
struct bidiagonal_room {
  side_reflections left, right;
  double* diagonal;  ///< [n]
  double* beside;    ///< [n], to the right of the diagonal
};

/// A [n,n] = U B V^T: B's diagonals, and the reflections whose products are U and V. Row k of the
/// right ones begins behind the diagonal. Half of the arithmetic is that of products of matrices.
/// Source: Dongarra, Hammarling and Sorensen, "Block reduction of matrices to condensed forms",
/// 1989
template <std::same_as<double> T = double>
void make_bidiagonal(int n, written_part a, const bidiagonal_room& r) {
  const auto &left = r.left, &right = r.right;
  // to -= the sum of column c of `factors` [count,n] times rows.
  const auto subtract_rows = [](int count, known_part factors, int c, int length, known_part rows,
                                T* room, T* to) {
    for (int k = 0; k < count; ++k) room[k] = -factors(k, c);
    detail::multiply_lines<false, true>(count, length, rows, nullptr, nullptr, room, to);
  };
  for (int begin = 0; begin < n; begin += block_of_reflections) {
    const int count = std::min(block_of_reflections, n - begin), end = begin + count;
    const written_part vs = left.v.from(begin, 0), us = right.v.from(begin, 0);
    // A without what the reflections before take from it: A - V Y^T - X U^T; Y and X are w.
    for (int i = 0; i < count; ++i) {
      const int c = begin + i, next = c + 1, rows = n - c, rest = n - next;
      T* const v = &vs(i, 0);
      T* const y = &left.w(i, 0);
      T* const u = &us(i, 0);
      T* const x = &right.w(i, 0);
      std::fill_n(v, c, T(0));
      std::fill_n(y, next, T(0));
      std::fill_n(u, next, T(0));
      std::fill_n(x, next, T(0));
      for (int k = c; k < n; ++k) v[k] = a(k, c);
      subtract_rows(i, left.w, c, rows, vs.from(0, c), left.products, v + c);
      subtract_rows(i, us, c, rows, right.w.from(0, c), left.products, v + c);
      const auto of_column = detail::reflect_line(rows, v + c);
      r.diagonal[c] = of_column.left;
      left.add_to_block(n, begin, i, of_column.scale);
      r.beside[c] = 0;
      if (rest == 0) {
        right.add_to_block(n, begin, i, T(0));
        continue;
      }
      std::fill_n(y + next, rest, T(0));
      detail::multiply_lines<false, true>(rows, rest, a.from(c, next), nullptr, nullptr, v + c,
                                          y + next);
      detail::multiply_lines<false, true>(i, rest, left.w.from(0, next), nullptr, nullptr,
                                          left.products, y + next);
      detail::multiply_lines<true, false>(i, rows, right.w.from(0, c), v + c, left.products,
                                          nullptr, nullptr);
      for (int k = 0; k < i; ++k) left.products[k] = -left.products[k];
      detail::multiply_lines<false, true>(i, rest, us.from(0, next), nullptr, nullptr,
                                          left.products, y + next);
      for (int k = next; k < n; ++k) y[k] *= of_column.scale;
      std::copy_n(&a(c, next), rest, u + next);
      subtract_rows(i + 1, vs, c, rest, left.w.from(0, next), right.products, u + next);
      subtract_rows(i, right.w, c, rest, us.from(0, next), right.products, u + next);
      const auto of_row = detail::reflect_line(rest, u + next);
      r.beside[c] = of_row.left;
      right.add_to_block(n, begin, i, of_row.scale);
      detail::multiply_lines<true, false>(rest, rest, a.from(next, next), u + next, x + next,
                                          nullptr, nullptr);
      detail::multiply_lines<false, true>(i, rest, right.w.from(0, next), nullptr, nullptr,
                                          right.products, x + next);
      detail::multiply_lines<true, false>(i + 1, rest, left.w.from(0, next), u + next,
                                          right.products, nullptr, nullptr);
      for (int k = 0; k <= i; ++k) right.products[k] = -right.products[k];
      detail::multiply_lines<false, true>(i + 1, rest, vs.from(0, next), nullptr, nullptr,
                                          right.products, x + next);
      for (int k = next; k < n; ++k) x[k] *= of_row.scale;
    }
    if (end == n) break;
    const int rest = n - end;
    subtract_product(rest, rest, count, known_part(vs.from(0, end)).transposed(),
                     left.w.from(0, end), a.from(end, end));
    subtract_product(rest, rest, count, known_part(right.w.from(0, end)).transposed(),
                     us.from(0, end), a.from(end, end));
  }
}

namespace detail {

/// The rotation that turns (f, g) into (length, 0).
struct plane_rotation {
  double cosine = 1, sine = 0, length;

  plane_rotation(double f, double g) : length(f) {
    if (g == 0) return;
    const plane_length of(f, g);
    length = of.length;
    cosine = f * of.inverse;
    sine = g * of.inverse;
  }
};
}  // namespace detail

/// The singular values of a bidiagonal matrix in the place of its diagonal, by the implicit QR
/// method; their signs are free. Rows of n elements, those of U^T and of V^T, are turned along if
/// there are `turns` of both. Returns whether all values were found. Source: Golub and Reinsch,
/// "Singular value decomposition and least squares solutions", 1970; Demmel and Kahan, "Accurate
/// singular values of bidiagonal matrices", 1990
template <std::same_as<double> T = double>
bool find_singular_values(int n, T* d, T* e, std::array<rotation_sequences*, 2> turns,
                          std::array<written_part, 2> rows) {
  constexpr T epsilon = std::numeric_limits<T>::epsilon() / 2;
  constexpr int most_steps = 60;
  T largest = 0;
  for (int i = 0; i < n; ++i) largest = std::max({largest, std::abs(d[i]), std::abs(e[i])});
  const auto is_nothing = [&](int i) {
    const T size = std::abs(e[i]);
    return size <= epsilon * (std::abs(d[i]) + std::abs(d[i + 1])) ||
           size <= epsilon / 64 * largest;
  };
  const auto apply = [&] {
    for (std::size_t k = 0; k < turns.size(); ++k)
      if (turns[k]) turns[k]->template apply<false>(n, rows[k]);
  };
  int last = n - 1;
  for (int step = 0; last > 0; ++step) {
    if (step == most_steps * n) return false;
    if (is_nothing(last - 1)) {
      --last;
      continue;
    }
    int first = last - 1;
    T least = std::min(std::abs(d[last]), std::abs(d[first])), most = std::abs(d[last]);
    most = std::max(most, std::abs(d[first]));
    while (first > 0 && !is_nothing(first - 1)) {
      --first;
      least = std::min(least, std::abs(d[first]));
      most = std::max(most, std::abs(d[first]));
    }
    if (turns[0] && turns[0]->is_full()) apply();
    // The shift is the eigenvalue of the last two columns' products that is nearer to the last;
    // none where the matrix is singular: then a step splits it.
    T shift = 0;
    if (least > epsilon * most) {
      const T f = d[last - 1], g = e[last - 1], h = d[last];
      const T before = last - 1 > first ? e[last - 2] : 0;
      const T near = f * f + before * before, far = h * h + g * g, between = f * g;
      const T half = (near - far) / 2;
      const T root = std::sqrt(half * half + between * between);
      shift = between == 0 ? far : far - between * between / (half + std::copysign(root, half));
    }
    T f = shift == 0 ? d[first] : (d[first] * d[first] - shift) / d[first], g = e[first];
    for (rotation_sequences* t : turns)
      if (t) t->begin(first);
    for (int i = first; i < last; ++i) {
      const detail::plane_rotation of_columns(f, g);
      if (i > first) e[i - 1] = of_columns.length;
      const T c = of_columns.cosine, s = of_columns.sine;
      f = c * d[i] + s * e[i];
      e[i] = c * e[i] - s * d[i];
      g = s * d[i + 1];
      d[i + 1] *= c;
      const detail::plane_rotation of_rows(f, g);
      const T c2 = of_rows.cosine, s2 = of_rows.sine;
      d[i] = of_rows.length;
      f = c2 * e[i] + s2 * d[i + 1];
      d[i + 1] = c2 * d[i + 1] - s2 * e[i];
      if (i + 1 < last) {
        g = s2 * e[i + 1];
        e[i + 1] *= c2;
      }
      if (turns[0]) turns[0]->add(c2, -s2);
      if (turns[1]) turns[1]->add(c, -s);
    }
    e[last - 1] = f;
  }
  apply();
  return true;
}

}  // namespace cella::cpu
