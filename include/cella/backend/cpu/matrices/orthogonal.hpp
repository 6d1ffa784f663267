// Decompositions with orthogonal factors, of one matrix of a batch.
#pragma once

#include <cella/backend/cpu/matrices/reflections.hpp>
#include <cella/backend/cpu/matrices/task.hpp>
#include <cella/backend/cpu/matrices/tridiagonal.hpp>
#include <cmath>
#include <limits>

namespace cella::cpu::detail {

/// The power of 2 that brings elements whose squares would be lost near 1; 0 if one is not finite:
/// then there are no such factors, but NaN. `nothing` is the sum of all, times 0.
template <class T>
double scale_of(T largest, T nothing) {
  if (nothing != 0) return 0;
  const bool fits = largest == 0 || (largest > T(1e-30) && largest < T(1e30));
  return fits ? 1 : std::ldexp(1.0, std::max(-std::ilogb(double(largest)), -1022));
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
  std::fill_n(y, count, std::numeric_limits<T>::quiet_NaN());
}

/// What matrices are reflected in.
struct qr_room {
  written_part a;
  reflection_blocks blocks;

  constexpr qr_room(const decomposition_extents& e, part_room& room)
      : a(room.matrix(e.rows, e.n)), blocks(room_of(e, room)) {}

 private:
  static constexpr reflection_blocks room_of(const decomposition_extents& e, part_room& room) {
    reflection_blocks b{e.rows, e.n, room.matrix(e.rows, e.n), {}, {}};
    b.t = room.matrix(e.n, block_of_reflections);
    b.room.first = room.matrix(block_of_reflections, e.n);
    b.room.second = room.matrix(block_of_reflections, e.n);
    return b;
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
  write_rows(r.a, n, n, t.result(1), 1 / scale);
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
    tridiagonal_room r{room.matrix(n, n),
                       room.matrix(block_of_reflections, n),
                       room.matrix(n, block_of_reflections),
                       {},
                       {},
                       {}};
    r.diagonal = room.numbers(n);
    r.beside = room.numbers(n);
    r.products = room.numbers(2 * block_of_reflections);
    return r;
  }
};

/// Orders rows by keys that ascend.
template <std::same_as<double> T = double>
void sort_by_key(int n, const T* key, int* order) {
  for (int i = 0; i < n; ++i) order[i] = i;
  std::sort(order, order + n,
            [&](int i, int j) { return key[i] != key[j] ? key[i] < key[j] : i < j; });
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
  if (scale == 0) {
    fill_with_nan(n, t.result(0));
    return fill_with_nan(std::int64_t{n} * n, t.result(1));
  }
  for_lower_triangle(
      n, [&](int i, int j) { r.a(j, i) = scale * t.a[std::size_t(i) * row + std::size_t(j)]; });
  make_tridiagonal(n, r.a, r.tridiagonal);
  // Q is 1, and beside it the product of reflections, whose vectors begin with element 1.
  fill_with_zeros(n, n, r.q);
  if (n > 0) r.q(0, 0) = 1;
  if (n > 1) {
    const written_part v = r.tridiagonal.v.from(0, 1).transposed();
    reflection_blocks{n - 1, n - 1, v, r.tridiagonal.t, r.reflected}.multiply_out(r.q.from(1, 1));
  }
  for_squares(n, [&](int i, int j) { r.a(i, j) = r.q(j, i); });
  double* const w = r.tridiagonal.diagonal;
  find_eigenvalues(n, w, r.tridiagonal.beside, r.turns, r.a);
  sort_by_key(n, w, r.order);
  for (int k = 0; k < n; ++k) {
    t.result(0)[k] = static_cast<T>(w[r.order[k]] / scale);
    double* const v = &r.a(r.order[k], 0);
    int best = 0;
    for (int i = 1; i < n; ++i)
      if (std::abs(v[i]) > std::abs(v[best]) * (1 + 1e-12)) best = i;
    if (v[best] < 0)
      for (int i = 0; i < n; ++i) v[i] = -v[i];
  }
  T* const to = t.result(1);
  for_squares(n, [&](int i, int j) {
    to[std::size_t(i) * row + std::size_t(j)] = static_cast<T>(r.a(r.order[j], i));
  });
}

}  // namespace cella::cpu::detail
