// The inner parts of matrix products: a register tile, and the packing of operands into panels.
// Everything here knows nothing of epilogues, so it is compiled once per element type.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/storage.hpp>
#include <cstdint>
#include <utility>

namespace cella::cpu {

/// The largest register tile: `rows` x `vectors` accumulators, `vectors` rows of B and one element
/// of A must fit the vector registers (32 with AVX-512, else 16).
template <class T>
struct register_tile {
  static constexpr bool many_registers = vector_registers == 32;
  static constexpr int rows = many_registers ? 14 : 6;
  static constexpr int vectors = 2;
  static constexpr int columns = vectors * lanes<T>;
};

/// One tile of C = A B: element (i, k) of A at `a[i * a_row + k * a_column]`, row k of B at
/// `b + k * b_row` (or `b + b_rows[k]`, if B is indirect), row i of C at `c + i * c_row`. The last
/// vector of a row has `last` valid elements: nothing beyond them is read or written.
template <class T>
struct tile_task {
  int depth;
  const T* a;
  std::int64_t a_row, a_column;
  const T* b;
  std::int64_t b_row;
  const std::int64_t* b_rows;
  T* c;
  std::int64_t c_row;
  int last;
  bool accumulate;  // add to what C holds
};

template <class T, int Rows, int Vectors, bool Whole, bool Indirect>
[[gnu::noinline]] void multiply_tile(const tile_task<T>& task) {
  constexpr int L = lanes<T>;
  constexpr int prefetch_distance = 16;
  const int last = Whole ? L : task.last;
  const auto row = task.a_row;
  const T* a = task.a;
  const T* b = task.b;
  // g++ keeps the accumulators in registers only if every loop over them is unrolled by pragma.
  vec<T> sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) sum[i][j] = vec<T>(T(0));
  }
  for (int k = 0; k < task.depth; ++k) {
    if constexpr (Indirect) b = task.b + task.b_rows[k];
    vec<T> y[Vectors];
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) {
      y[j] = Whole || j + 1 < Vectors ? load_unaligned(b + j * L) : load_first(b + j * L, last);
      if constexpr (!Indirect) __builtin_prefetch(b + j * L + prefetch_distance * task.b_row);
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const vec<T> x(a[i * row]);
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) sum[i][j] = multiply_add(x, y[j], sum[i][j]);
    }
    a += task.a_column;
    if constexpr (!Indirect) b += task.b_row;
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) {
      T* c = task.c + i * task.c_row + j * L;
      const bool whole = Whole || j + 1 < Vectors;
      if (task.accumulate)
        sum[i][j] = sum[i][j] + (whole ? load_unaligned(c) : load_first(c, last));
      if (whole) {
        store_unaligned(c, sum[i][j]);
      } else {
        store_first(c, last, sum[i][j]);
      }
    }
  }
}

/// The tile kernels of every height and width, `[ragged][rows - 1][vectors - 1]`.
template <class T, bool Indirect>
inline constexpr auto tile_kernels = [] {
  using kernel = void (*)(const tile_task<T>&);
  constexpr int rows = register_tile<T>::rows, vectors = register_tile<T>::vectors;
  // Masks cost nothing with AVX-512: one set of kernels serves both.
  constexpr bool whole = !register_tile<T>::many_registers;
  std::array<std::array<std::array<kernel, vectors>, rows>, 2> table{};
  [&]<int... I>(std::integer_sequence<int, I...>) {
    ((table[0][I / vectors][I % vectors] =
          &multiply_tile<T, I / vectors + 1, I % vectors + 1, whole, Indirect>,
      table[1][I / vectors][I % vectors] =
          &multiply_tile<T, I / vectors + 1, I % vectors + 1, false, Indirect>),
     ...);
  }
  (std::make_integer_sequence<int, rows * vectors>{});
  return table;
}();

template <bool Indirect, class T>
inline void multiply_tile(int rows, int vectors, const tile_task<T>& task) {
  const bool ragged = task.last < lanes<T>;
  tile_kernels<T, Indirect>[ragged][std::size_t(rows - 1)][std::size_t(vectors - 1)](task);
}

/// Copies `width` x `depth` elements, element (r, k) at `from[r * width_stride + k *
/// depth_stride]`, into a panel: (r, k) at `to[k * panel + r]`. Rows from `width` to `panel` become
/// zero. The elements may be stored in another type than is computed in.
template <class T, class S>
[[gnu::noinline]] void pack_panel(int width, int depth, const S* from, std::int64_t width_stride,
                                  std::int64_t depth_stride, T* to, int panel) {
  constexpr int L = lanes<T>;
  if (width_stride == 1) {
    const int whole = width / L * L;
    for (int k = 0; k < depth; ++k) {
      const S* source = from + k * depth_stride;
      T* target = to + std::int64_t{k} * panel;
      for (int r = 0; r < whole; r += L) store_unaligned(target + r, load_stored<T>(source + r));
      for (int r = whole; r < panel; r += L) {
        const vec<T> rest = load_stored<T>(source + r, std::clamp(width - r, 0, L));
        store_first(target + r, std::min(L, panel - r), rest);
      }
    }
    return;
  }
  if (depth_stride == 1) {
    for (int k = 0; k < depth; k += L) {
      const int columns = std::min(L, depth - k);
      for (int r = 0; r < panel; r += L) {
        const S* source = from + r * width_stride + k;
        T* target = to + std::int64_t{k} * panel + r;
        const int rows = std::min(L, panel - r);
        vec<T> square[L];
        if (r + L <= width && columns == L) {
#pragma GCC unroll 16
          for (int i = 0; i < L; ++i) square[i] = load_stored<T>(source + i * width_stride);
        } else {
#pragma GCC unroll 16
          for (int i = 0; i < L; ++i) {
            square[i] =
                r + i < width ? load_stored<T>(source + i * width_stride, columns) : vec<T>(T(0));
          }
        }
        transpose<T>(square);
        if (rows == L && columns == L) {
#pragma GCC unroll 16
          for (int i = 0; i < L; ++i) store_unaligned(target + i * panel, square[i]);
        } else {
#pragma GCC unroll 16
          for (int i = 0; i < L; ++i) {
            if (i < columns) store_first(target + i * panel, rows, square[i]);
          }
        }
      }
    }
    return;
  }
  for (int k = 0; k < depth; ++k) {
    T* target = to + std::int64_t{k} * panel;
    for (int r = 0; r < width; ++r)
      target[r] = static_cast<T>(from[r * width_stride + k * depth_stride]);
    for (int r = width; r < panel; ++r) target[r] = T(0);
  }
}

}  // namespace cella::cpu
