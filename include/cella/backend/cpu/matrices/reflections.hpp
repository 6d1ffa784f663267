// Householder's reflections in double precision, a block of them at a time.
#pragma once

#include <array>
#include <cella/backend/cpu/matrices/lines.hpp>
#include <cella/backend/cpu/matrices/triangular_solve.hpp>
#include <cmath>
#include <concepts>
#include <utility>

namespace cella::cpu {

/// Reflections whose product is one block I - V T V^T.  Source: Schreiber and Van Loan, "A
/// storage-efficient WY representation for products of Householder transformations", 1989
inline constexpr int block_of_reflections = 32;

/// The block of `count` reflections: V [rows,count] with ones on its diagonal and zeros beyond, and
/// the upper triangle T with zeros below.
struct reflections {
  int rows, count;
  written_part v, t;
};
/// Room for two products with a block: [block_of_reflections,columns] each.
struct reflection_room {
  written_part first, second;
};

namespace detail {

template <std::same_as<double> T = double>
void fill_with_zeros(int rows, int columns, written_part a) {
  for (int i = 0; i < rows; ++i) std::fill_n(&a(i, 0), columns, 0.0);
}

/// R in the place of A [rows,columns], columns <= few_equations, of which vectors are read as a
/// whole; V and T of the reflections. A pass over the rows applies a reflection and makes what the
/// next one needs: the products of its column with all columns, and so with the vectors before it.
template <std::same_as<double> T = double>
void reflect_few(int rows, int columns, written_part a, written_part v, written_part t) {
  constexpr int width = few_equations, L = lanes<T>, vectors = width / L, together = 4;
  using line = std::array<vec<T>, std::size_t(vectors)>;
  constexpr std::make_index_sequence<std::size_t(vectors)> all{};
  alignas(64) T products[width]{}, step[width];
  T inverse = 1;
  // Row i less `-factor` times the step, stored.
  const auto stepped = [&](T * row, vec<T> factor) __attribute__((always_inline)) {
    return [&]<std::size_t... P>(std::index_sequence<P...>) __attribute__((always_inline)) {
      const line y{multiply_add(factor, load(step + P * L), load_unaligned(row + P * L))...};
      (store_unaligned(row + P * L, y[P]), ...);
      return y;
    }
    (all);
  };
  for (int k = -1; k < columns; ++k) {
    if (k >= 0) {
      const line_reflection h = reflection_of(a(k, k), products[k]);
      const T scale = h.scale;
      inverse = h.inverse;
      a(k, k) = h.left;
      for (int j = 0; j < width; ++j) {
        products[j] = a(k, j) + inverse * products[j];
        step[j] = j > k ? products[j] * scale : 0;
      }
      for (int j = k + 1; j < width; ++j) a(k, j) -= step[j];
      // Column k of T: -scale T (V^T v).
      for (int i = 0; i < k; ++i) {
        T sum = 0;
        for (int j = i; j < k; ++j) sum += t(i, j) * products[j];
        t(i, k) = -scale * sum;
        t(k, i) = 0;
      }
      t(k, k) = scale;
    } else {
      std::fill_n(step, width, T(0));
    }
    // Row i times its element of the next column is added up for all rows below that one's
    // diagonal.
    std::array<line, std::size_t(together)> sums;
    for (line& s : sums) s.fill(vec<T>(T(0)));
    const int next = k + 1;
    const auto reflect_row = [&](int i, line* sum) __attribute__((always_inline)) {
      const T factor = k < 0 ? T(0) : a(i, k) * inverse;
      const line y = stepped(&a(i, 0), vec<T>(-factor));
      const T own = next < width ? a(i, next) : T(0);
      if (k >= 0) a(i, k) = factor;
      if (!sum) return;
      for (std::size_t p = 0; p < std::size_t(vectors); ++p)
        (*sum)[p] = multiply_add(vec<T>(own), y[p], (*sum)[p]);
    };
    if (next > 0 && next < rows) reflect_row(next, nullptr);
    int i = next + 1;
    for (; i + together <= rows; i += together) {
#pragma GCC unroll 4
      for (int u = 0; u < together; ++u) reflect_row(i + u, &sums[std::size_t(u)]);
    }
    for (; i < rows; ++i) reflect_row(i, &sums[0]);
    for (std::size_t p = 0; p < std::size_t(vectors); ++p)
      store(products + int(p) * L, (sums[0][p] + sums[1][p]) + (sums[2][p] + sums[3][p]));
    if (k >= 0) products[k] *= inverse;
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      v(i, j) = i > j ? a(i, j) : i == j ? 1 : 0;
      if (i > j) a(i, j) = 0;
    }
  }
}

}  // namespace detail

/// C [rows,columns] becomes (I - V T V^T) C, or of the transposed block.
template <std::same_as<double> T = double>
void apply_reflections(const reflections& h, bool transposed, int columns, written_part c,
                       const reflection_room& room) {
  const known_part t = h.t;
  detail::fill_with_zeros(h.count, columns, room.first);
  detail::fill_with_zeros(h.count, columns, room.second);
  // -V^T C; T times what that is the negative of; and V times it.
  subtract_product(h.count, columns, h.rows, known_part(h.v).transposed(), c, room.first);
  subtract_product(h.count, columns, h.count, transposed ? t.transposed() : t, room.first,
                   room.second);
  subtract_product(h.rows, columns, h.count, h.v, room.second, c);
}

/// R in the place of A [rows,columns] with columns <= block_of_reflections, and its reflections: by
/// halves.  Source: Elmroth and Gustavson, "Applying recursion to serial and parallel QR
/// factorization", 2000
template <std::same_as<double> T = double>
void reflect(const reflections& h, written_part a, const reflection_room& room) {
  if (h.count <= detail::few_equations) return detail::reflect_few(h.rows, h.count, a, h.v, h.t);
  const int half = detail::half_of(h.count), rest = h.count - half;
  const reflections left{h.rows, half, h.v, h.t};
  const reflections right{h.rows - half, rest, h.v.from(half, half), h.t.from(half, half)};
  const written_part between = h.t.from(0, half);
  reflect(left, a, room);
  apply_reflections(left, true, rest, a.from(0, half), room);
  reflect(right, a.from(half, half), room);
  detail::fill_with_zeros(half, rest, h.v.from(0, half));
  detail::fill_with_zeros(rest, half, h.t.from(half, 0));
  // Between them T is -T1 V1^T V2 T2.
  for (const written_part& x : {room.first, room.second, between})
    detail::fill_with_zeros(half, rest, x);
  subtract_product(half, rest, right.rows, known_part(h.v.from(half, 0)).transposed(), right.v,
                   room.first);
  subtract_product(half, rest, half, left.t, room.first, room.second);
  subtract_product(half, rest, rest, room.second, right.t, between);
}

/// Blocks of reflections: T of the one that begins with column k lies in row k of `t` and
/// following.
struct reflection_blocks {
  int rows, columns;
  written_part v, t;
  reflection_room room;

  reflections at(int k) const {
    return {rows - k, std::min(block_of_reflections, columns - k), v.from(k, k), t.from(k, 0)};
  }
  /// A [rows,columns], rows >= columns, becomes R.
  template <std::same_as<double> T = double>
  void factor(written_part a) const {
    for (int k = 0; k < columns; k += block_of_reflections) {
      const reflections h = at(k);
      const int next = k + h.count;
      reflect(h, a.from(k, k), room);
      if (next < columns) apply_reflections(h, true, columns - next, a.from(k, next), room);
    }
  }
  /// C [rows,those] becomes their product times C.
  template <std::same_as<double> T = double>
  void apply(int those, written_part c) const {
    for (int k = last_block(); k >= 0; k -= block_of_reflections)
      apply_reflections(at(k), false, those, c.from(k, 0), room);
  }
  /// The first columns of their product: Q.
  template <std::same_as<double> T = double>
  void multiply_out(written_part q) const {
    detail::fill_with_zeros(rows, columns, q);
    for (int i = 0; i < columns; ++i) q(i, i) = 1;
    for (int k = last_block(); k >= 0; k -= block_of_reflections)
      apply_reflections(at(k), false, columns - k, q.from(k, k), room);
  }

 private:
  constexpr int last_block() const {
    return columns ? (columns - 1) / block_of_reflections * block_of_reflections : -1;
  }
};

}  // namespace cella::cpu
