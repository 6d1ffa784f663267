// The inner part of matrix products: a register tile. It knows nothing of epilogues, so it is
// compiled once per element type.
#pragma once

#include <array>
#include <cella/backend/cpu/gemm_operand.hpp>
#include <cstdint>
#include <utility>

namespace cella::cpu {

/// The largest register tile: `rows` x `vectors` accumulators, `vectors` rows of B and one element
/// of A must fit the vector registers (32 with AVX-512, else 16).
template <class T>
struct register_tile {
  static constexpr bool many_registers = vector_registers == 32;
  static constexpr int rows = many_registers ? 14 : 6;
  static_assert(rows <= panel_rows);
  static constexpr int vectors = 2;
  static constexpr int columns = vectors * lanes<T>;
};

/// Where a tile finds its operands.
enum class tile_form {
  strided,
  indirect,  ///< row k of B at `b + b_rows[k]`
  packed     ///< A is a panel of `panel_rows`, B one of the tile's columns: constant strides
};

/// One tile of C = A B: element (i, k) of A at `a[i * a_row + k * a_column]`, row k of B at
/// `b + k * b_row`, row i of C at `c + i * c_row`. The last vector of a row has `last` valid
/// elements: nothing beyond them is read or written.
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

/// Computes a tile, and takes a step of `side` for each summand.
template <class T, int Rows, int Vectors, bool Whole, tile_form Form, class Side>
[[gnu::noinline]] void multiply_tile(const tile_task<T>& task, Side& side) {
  constexpr int L = lanes<T>;
  constexpr int prefetch_distance = 16;
  const int last = Whole ? L : task.last;
  constexpr bool packed = Form == tile_form::packed, indirect = Form == tile_form::indirect;
  const std::int64_t row = packed ? 1 : task.a_row;
  const std::int64_t a_step = packed ? panel_rows : task.a_column;
  const std::int64_t b_step = packed ? register_tile<T>::columns : task.b_row;
  const T* a = task.a;
  const T* b = task.b;
  [[maybe_unused]] const std::int64_t* b_rows = task.b_rows;
  // g++ keeps the accumulators in registers only if every loop over them is unrolled by pragma.
  vec<T> sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) sum[i][j] = vec<T>(T(0));
  }
  Side here = side;
  const auto add_summand = [&]() __attribute__((always_inline)) {
    if constexpr (indirect) b = task.b + *b_rows++;
    vec<T> y[Vectors];
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) {
      y[j] = Whole || j + 1 < Vectors ? load_unaligned(b + j * L) : load_first(b + j * L, last);
      if constexpr (!indirect) __builtin_prefetch(b + j * L + prefetch_distance * b_step);
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const vec<T> x(a[i * row]);
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) sum[i][j] = multiply_add(x, y[j], sum[i][j]);
    }
    a += a_step;
    if constexpr (!indirect) b += b_step;
  };
  int k = 0;
  for (const int steps = here.steps_within(task.depth); k < steps; ++k) {
    here.step();
    add_summand();
  }
  if constexpr (packed) {
    for (; k + 1 < task.depth; k += 2) {
      add_summand();
      add_summand();
    }
  }
  for (; k < task.depth; ++k) add_summand();
  side = here;
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

/// The tile kernels of every height from `lowest` and width from `narrowest`,
/// `[ragged][rows - lowest][vectors - narrowest]`.
template <class T, tile_form Form, class Side, int lowest, int narrowest>
inline constexpr auto tile_kernels = [] {
  using kernel = void (*)(const tile_task<T>&, Side&);
  constexpr int rows = register_tile<T>::rows - lowest + 1;
  constexpr int vectors = register_tile<T>::vectors - narrowest + 1;
  // Masks cost nothing with AVX-512: one set of kernels serves both.
  constexpr bool whole = !register_tile<T>::many_registers;
  std::array<std::array<std::array<kernel, vectors>, rows>, 2> table{};
  [&]<int... I>(std::integer_sequence<int, I...>) {
    ((table[0][I / vectors][I % vectors] =
          &multiply_tile<T, I / vectors + lowest, I % vectors + narrowest, whole, Form, Side>,
      table[1][I / vectors][I % vectors] =
          &multiply_tile<T, I / vectors + lowest, I % vectors + narrowest, false, Form, Side>),
     ...);
  }
  (std::make_integer_sequence<int, rows * vectors>{});
  return table;
}();

/// Chooses the kernel; `ragged`: the last vector is not whole.
template <tile_form Form, class T>
inline void multiply_tile(int rows, int vectors, const tile_task<T>& task) {
  constexpr auto& kernels = tile_kernels<T, Form, no_side_work, 1, 1>;
  const bool ragged = task.last < lanes<T>;
  no_side_work nothing;
  kernels[ragged][std::size_t(rows - 1)][std::size_t(vectors - 1)](task, nothing);
}

/// Whether a tile is large enough for a kernel with side work, or with constant strides: others are
/// few, and each kernel costs compile time.
template <class T>
constexpr bool is_large_tile(int rows, int vectors) {
  return rows > register_tile<T>::rows / 2 && vectors == register_tile<T>::vectors;
}
template <tile_form Form, class T, class Side>
inline void multiply_tile(int rows, const tile_task<T>& task, Side& side) {
  constexpr int lowest = register_tile<T>::rows / 2 + 1;
  constexpr auto& kernels = tile_kernels<T, Form, Side, lowest, register_tile<T>::vectors>;
  kernels[task.last < lanes<T>][std::size_t(rows - lowest)][0](task, side);
}

}  // namespace cella::cpu
