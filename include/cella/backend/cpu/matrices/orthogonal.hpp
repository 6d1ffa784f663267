// Decompositions with orthogonal factors, of one matrix of a batch.
#pragma once

#include <array>
#include <cella/backend/cpu/matrices/bidiagonal.hpp>
#include <cella/backend/cpu/matrices/task.hpp>
#include <cella/backend/cpu/matrices/tridiagonal.hpp>
#include <cella/ops/free_signs.hpp>
#include <cella/ops/matrix_kernels.hpp>
#include <cmath>
#include <limits>

namespace cella::cpu::detail {

/// The power of 2 that brings elements whose squares would be lost near 1; 0 if one is not finite:
/// then there are no such factors, but NaN. `nothing` is the sum of all, times 0.
template <class T>
double scale_of(T largest, T nothing) {
  if (nothing != 0) return 0;
  const bool fits = largest == 0 || (largest > T(1e-30) && largest < T(1e30));
  return fits ? 1 : cella::detail::scale_to_one(double(largest));
}
template <class T>
double scale_of(const T* x, std::int64_t count) {
  T largest = 0, nothing = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(x[i]));
    nothing += x[i] * T(0);
  }
  return scale_of(largest, nothing);
}
template <class T>
void fill_with_nan(std::int64_t count, T* y) {
  if (y) std::fill_n(y, count, std::numeric_limits<T>::quiet_NaN());
}

/// What matrices are reflected in.
struct qr_room {
  written_part a;
  reflection_blocks blocks;

  constexpr qr_room(const decomposition_extents& e, part_room& room)
      : a(room.matrix(e.rows, e.n)), blocks(room_of(e, room)) {}

 private:
  static constexpr reflection_blocks room_of(const decomposition_extents& e, part_room& room) {
    return {e.rows,
            e.n,
            room.matrix(e.rows, e.n),
            room.matrix(e.n, block_of_reflections),
            {room.matrix(block_of_reflections, e.n), room.matrix(block_of_reflections, e.n)}};
  }
};

template <class T>
void qr(const attributes&, const decomposition_task<T>& t, part_room room) {
  const int m = t.e.rows, n = t.e.n;
  const std::int64_t all = std::int64_t{m} * n, square = std::int64_t{n} * n;
  const double scale = scale_of(t.a, all);
  if (scale == 0) {
    fill_with_nan(all, t.result(0));
    return fill_with_nan(square, t.result(1));
  }
  const qr_room r(t.e, room);
  read_rows(t.a, m, n, r.a, scale);
  r.blocks.factor(r.a);
  if (t.results[1]) write_rows(r.a, n, n, t.result(1), 1 / scale);
  if (!t.results[0]) return;
  r.blocks.multiply_out(r.a);
  write_rows(r.a, m, n, t.result(0));
}

/// What symmetric matrices are diagonalized in.
struct eigh_room {
  written_part a, q;
  tridiagonal_room tridiagonal;
  reflection_room reflected;
  rotation_sequences turns;
  int* order;

  constexpr eigh_room(const decomposition_extents& e, part_room& room)
      : a(room.matrix(e.n, e.n)),
        q(room.matrix(e.n, e.n)),
        tridiagonal(room_of(e.n, room)),
        reflected{room.matrix(block_of_reflections, e.n), room.matrix(block_of_reflections, e.n)},
        turns(rotation_sequences::in(room, e.n)),
        order(room.whole_numbers(e.n)) {}

 private:
  static constexpr tridiagonal_room room_of(int n, part_room& room) {
    return {room.matrix(n, n),
            room.matrix(block_of_reflections, n),
            room.matrix(n, block_of_reflections),
            room.numbers(n),
            room.numbers(n),
            room.numbers(2 * block_of_reflections)};
  }
};

/// Orders rows by keys that ascend.
template <std::same_as<double> T = double>
void sort_by_key(int n, const T* key, int* order) {
  for (int i = 0; i < n; ++i) order[i] = i;
  std::sort(order, order + n,
            [&](int i, int j) { return key[i] != key[j] ? key[i] < key[j] : i < j; });
}

/// Changes the sign of a vector whose largest element is negative; whether it did.
template <std::same_as<double> T = double>
bool make_largest_positive(int n, T* v) {
  if (!cella::detail::has_negative_largest(n, [&](int i) { return v[i]; })) return false;
  for (int i = 0; i < n; ++i) v[i] = -v[i];
  return true;
}

/// Rows that are the columns of the product Q [n,n] of reflections, one a row of `v`. If they begin
/// behind the diagonal Q is 1 and beside it their product.
template <std::same_as<double> T = double>
void multiply_out_transposed(int n, written_part v, written_part t, const reflection_room& room,
                             bool behind, written_part q, written_part rows) {
  const int first = behind ? 1 : 0, rest = n - first;
  fill_with_zeros(n, n, q);
  if (n > 0) q(0, 0) = 1;
  if (rest > 0)
    reflection_blocks{rest, rest, v.from(0, first).transposed(), t, room}.multiply_out(
        q.from(first, first));
  for_squares(n, [&](int i, int j) { rows(i, j) = q(j, i); });
}

template <class T>
void eigh(const attributes&, const decomposition_task<T>& t, part_room room) {
  const int n = t.e.n;
  const std::size_t row = std::size_t(n);
  eigh_room r(t.e, room);
  // The lower triangle of A counts.
  T largest = 0, nothing = 0;
  for (int i = 0; i < n; ++i)
    for (int j = 0; j <= i; ++j) {
      const T x = t.a[std::size_t(i) * row + std::size_t(j)];
      largest = std::max(largest, std::abs(x));
      nothing += x * T(0);
    }
  const double scale = scale_of(largest, nothing);
  const auto fail = [&] {
    fill_with_nan(n, t.result(0));
    fill_with_nan(std::int64_t{n} * n, t.result(1));
  };
  if (scale == 0) return fail();
  for_squares<true>(
      n, [&](int i, int j) { r.a(j, i) = scale * t.a[std::size_t(i) * row + std::size_t(j)]; });
  make_tridiagonal(n, r.a, r.tridiagonal);
  const bool vectors = t.results[1] != nullptr;
  if (vectors)
    multiply_out_transposed(n, r.tridiagonal.v, r.tridiagonal.t, r.reflected, true, r.q, r.a);
  double* const w = r.tridiagonal.diagonal;
  if (!find_eigenvalues(n, w, r.tridiagonal.beside, vectors ? &r.turns : nullptr, r.a))
    return fail();
  sort_by_key(n, w, r.order);
  for (int k = 0; k < n && t.results[0]; ++k)
    t.result(0)[k] = static_cast<T>(w[r.order[k]] / scale);
  if (!vectors) return;
  for (int k = 0; k < n; ++k) make_largest_positive(n, &r.a(k, 0));
  T* const to = t.result(1);
  for_squares(n, [&](int i, int j) {
    to[std::size_t(i) * row + std::size_t(j)] = static_cast<T>(r.a(r.order[j], i));
  });
}

/// What singular values are found in.
struct svd_room {
  qr_room tall;
  bidiagonal_room bidiagonal;
  written_part q, left_rows, right_rows;
  rotation_sequences left, right;
  int* order;

  constexpr svd_room(const decomposition_extents& e, part_room& room)
      : tall(e, room),
        bidiagonal(room_of(e.n, room)),
        q(room.matrix(e.n, e.n)),
        left_rows(room.matrix(e.n, e.n)),
        right_rows(room.matrix(e.n, e.n)),
        left(rotation_sequences::in(room, e.n)),
        right(rotation_sequences::in(room, e.n)),
        order(room.whole_numbers(e.n)) {}

 private:
  static constexpr side_reflections side_of(int n, part_room& room) {
    return {room.matrix(n, n), room.matrix(block_of_reflections, n),
            room.matrix(n, block_of_reflections), room.numbers(block_of_reflections)};
  }
  static constexpr bidiagonal_room room_of(int n, part_room& room) {
    return {side_of(n, room), side_of(n, room), room.numbers(n), room.numbers(n)};
  }
};

template <class T>
void svd(const attributes&, const decomposition_task<T>& t, part_room room) {
  const int m = t.e.rows, n = t.e.n;
  const std::int64_t all = std::int64_t{m} * n, square = std::int64_t{n} * n;
  const double scale = scale_of(t.a, all);
  const auto fail = [&] {
    fill_with_nan(all, t.result(0));
    fill_with_nan(n, t.result(1));
    fill_with_nan(square, t.result(2));
  };
  if (scale == 0) return fail();
  svd_room r(t.e, room);
  const written_part a = r.tall.a;
  const reflection_blocks& blocks = r.tall.blocks;
  read_rows(t.a, m, n, a, scale);
  if (m > n) blocks.factor(a);
  make_bidiagonal(n, a, r.bidiagonal);
  const auto &left = r.bidiagonal.left, &right = r.bidiagonal.right;
  const bool vectors = t.results[0] || t.results[2];
  if (vectors) {
    multiply_out_transposed(n, left.v, left.t, blocks.room, false, r.q, r.left_rows);
    multiply_out_transposed(n, right.v, right.t, blocks.room, true, r.q, r.right_rows);
  }
  double* const s = r.bidiagonal.diagonal;
  if (!find_singular_values(
          n, s, r.bidiagonal.beside,
          vectors ? std::array{&r.left, &r.right} : std::array<rotation_sequences*, 2>{},
          {r.left_rows, r.right_rows}))
    return fail();
  for (int k = 0; k < n; ++k) {
    // U takes the sign of a value, and that which V loses.
    if (vectors && make_largest_positive(n, &r.right_rows(k, 0)) != (s[k] < 0))
      for (int i = 0; i < n; ++i) r.left_rows(k, i) = -r.left_rows(k, i);
    s[k] = -std::abs(s[k]);
  }
  sort_by_key(n, s, r.order);
  for (int k = 0; k < n && t.results[1]; ++k)
    t.result(1)[k] = static_cast<T>(-s[r.order[k]] / scale);
  if (T* const v = t.result(2))
    for_squares(n, [&](int i, int j) {
      v[std::int64_t{i} * n + j] = static_cast<T>(r.right_rows(r.order[j], i));
    });
  if (!t.results[0]) return;
  for_squares(n, [&](int i, int j) { a(i, j) = r.left_rows(r.order[j], i); });
  if (m > n) {
    fill_with_zeros(m - n, n, a.from(n, 0));
    blocks.apply(n, a);
  }
  write_rows(a, m, n, t.result(0));
}

}  // namespace cella::cpu::detail
