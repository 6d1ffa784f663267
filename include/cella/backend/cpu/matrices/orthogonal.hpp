// Decompositions with orthogonal factors, of one matrix of a batch.
#pragma once

#include <cella/backend/cpu/matrices/reflections.hpp>
#include <cella/backend/cpu/matrices/task.hpp>
#include <cmath>
#include <limits>

namespace cella::cpu::detail {

/// The power of 2 that brings elements whose squares would be lost near 1; 0 if one is not finite:
/// then there are no such factors, but NaN.
template <class T>
double scale_of(const T* x, std::int64_t count) {
  T largest = 0, sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(x[i]));
    sum += x[i] * T(0);
  }
  if (sum != 0) return 0;
  const bool fits = largest == 0 || (largest > T(1e-30) && largest < T(1e30));
  return fits ? 1 : std::ldexp(1.0, std::max(-std::ilogb(double(largest)), -1022));
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

}  // namespace cella::cpu::detail
