// The inner part of matrix products: a register tile. It knows nothing of epilogues, so it is
// compiled once per element type.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/gemm/pairs.hpp>
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
  by_columns,  ///< A lies column by column: `a_row` is 1
  indirect,    ///< row k of B at `b + b_rows[k]`
  packed,      ///< A is a panel of `panel_rows`, B one of the tile's columns, filled up with zeros
  pairs        ///< the same of words that are pairs of summands
};
constexpr bool reads_panels(tile_form f) { return f == tile_form::packed || f == tile_form::pairs; }

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

/// Computes a tile, and does what it can of `side` meanwhile: a step for each summand. The lanes of
/// a vector are part of its name, so that no program is linked with the tiles of other
/// instructions.
template <class T, int Lanes, int Rows, int Vectors, bool Whole, tile_form Form, class Side>
[[gnu::noinline]] void multiply_tile(const tile_task<T>& task, Side& side);

// A tenth of what a program of products compiles. A program that is compiled for several sets of
// instructions has its own for each.
#if !defined(CELLA_KERNELS) || defined(CELLA_COMPILES_KERNELS) || \
    defined(CELLA_INSTRUCTIONS_ARE_CHOSEN)
template <class T, int Lanes, int Rows, int Vectors, bool Whole, tile_form Form, class Side>
void multiply_tile(const tile_task<T>& task, Side& side) {
  constexpr int L = Lanes;
  constexpr int prefetch_distance = 16;
  constexpr bool packed = reads_panels(Form), indirect = Form == tile_form::indirect;
  constexpr bool contiguous_a = packed || Form == tile_form::by_columns;
  constexpr bool asks_for_b = !packed && !indirect;
  // The rows of a shifted image lie far apart: of each, what the next strip reads. With few
  // registers tiles are low, and ask too often.
  constexpr bool asks_for_next = indirect && !few_vector_registers;
  const int last = Whole ? L : task.last;
  const std::int64_t row = contiguous_a ? 1 : task.a_row;
  const std::int64_t a_step = packed ? panel_rows : task.a_column;
  const std::int64_t b_step = packed ? register_tile<T>::columns : task.b_row;
  // A pointer for every four rows of A. With one for all of them, compilers keep the offset of each
  // row, which takes more registers than there are; the empty statements hide from them that the
  // pointers are related.
  constexpr int group = contiguous_a ? Rows : 4, groups = (Rows + group - 1) / group;
  const T* a[groups];
#pragma GCC unroll 16
  for (int g = 0; g < groups; ++g) {
    a[g] = task.a + g * group * row;
    asm("" : "+r"(a[g]));
  }
  const T* b = task.b;
  [[maybe_unused]] const T* b_ahead = b + prefetch_distance * b_step;
  asm("" : "+r"(b_ahead));
  [[maybe_unused]] const std::int64_t* b_rows = task.b_rows;
  // g++ keeps the accumulators in registers only if every loop over them is unrolled by pragma.
  vec<T> sum[Rows][Vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) sum[i][j] = vec<T>(T(0));
  }
  const auto add_summand = [&]() __attribute__((always_inline)) {
    if constexpr (indirect) b = task.b + *b_rows++;
    vec<T> y[Vectors];
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) {
      const bool whole = Whole || packed || j + 1 < Vectors;
      y[j] = whole ? load_unaligned(b + j * L) : load_first(b + j * L, last);
      if constexpr (few_vector_registers) y[j] = in_register<T>(y[j]);
      if constexpr (asks_for_b) __builtin_prefetch(b_ahead + j * L);
      if constexpr (asks_for_next) __builtin_prefetch(b + (Vectors + j) * L);
    }
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
      const vec<T> x(a[i / group][i % group * row]);
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) {
        if constexpr (Form == tile_form::pairs)
          sum[i][j] = add_pairs(x, y[j], sum[i][j]);
        else
          add_product<T>(sum[i][j], x, y[j]);
      }
    }
#pragma GCC unroll 16
    for (int g = 0; g < groups; ++g) a[g] += a_step;
    if constexpr (!indirect) b += b_step;
    if constexpr (asks_for_b) b_ahead += b_step;
  };
  constexpr int together = contiguous_a ? summands_of_turn : 1;
  int left = task.depth;
  side.work_off([&](auto& work) __attribute__((always_inline)) {
    const auto turns = int(std::min<std::int64_t>(left, work.steps)) / together;
    if (turns <= 0) return;
    auto here = work;
    for (int k = 0; k < turns; ++k) {
      here.step(together);
#pragma GCC unroll 4
      for (int i = 0; i < together; ++i) add_summand();
    }
    left -= turns * together;
    here.steps -= turns * together;
    work = here;
  });
  for (; left >= together; left -= together) {
#pragma GCC unroll 4
    for (int i = 0; i < together; ++i) add_summand();
  }
  if constexpr (together > 1) {
#pragma GCC unroll 1
    for (; left > 0; --left) add_summand();
  }
  T* c = task.c;
  const std::int64_t c_row = task.c_row;
  if (task.accumulate) {
    const T* from = c;
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i, from += c_row) {
#pragma GCC unroll 8
      for (int j = 0; j < Vectors; ++j) {
        const bool whole = Whole || j + 1 < Vectors;
        sum[i][j] =
            sum[i][j] + (whole ? load_unaligned(from + j * L) : load_first(from + j * L, last));
      }
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i, c += c_row) {
#pragma GCC unroll 8
    for (int j = 0; j < Vectors; ++j) {
      if (Whole || j + 1 < Vectors) {
        store_unaligned(c + j * L, sum[i][j]);
      } else {
        store_first(c + j * L, last, sum[i][j]);
      }
    }
  }
}
#endif

/// The tile kernels of every height from `lowest` and width from `narrowest`,
/// `[ragged][rows - lowest][vectors - narrowest]`.
template <class T, tile_form Form, class Side, int lowest, int narrowest>
inline constexpr auto tile_kernels = [] {
  using kernel = void (*)(const tile_task<T>&, Side&);
  constexpr int rows = register_tile<T>::rows - lowest + 1;
  constexpr int vectors = register_tile<T>::vectors - narrowest + 1;
  // With AVX-512 one set of kernels serves both, where a masked load does not matter: it takes a
  // place among the multiplications.
  constexpr bool large = lowest > 1;
  constexpr bool whole = !register_tile<T>::many_registers || (large && !reads_panels(Form));
  std::array<std::array<std::array<kernel, vectors>, rows>, 2> table{};
  [&]<int... I>(std::integer_sequence<int, I...>) {
    ((table[0][I / vectors][I % vectors] =
          &multiply_tile<T, lanes<T>, I / vectors + lowest, I % vectors + narrowest, whole, Form,
                         Side>,
      table[1][I / vectors][I % vectors] =
          &multiply_tile<T, lanes<T>, I / vectors + lowest, I % vectors + narrowest, false, Form,
                         Side>),
     ...);
  }
  (std::make_integer_sequence<int, rows * vectors>{});
  return table;
}();

/// The kernels with side work, which are those of large tiles: others are few, and each kernel
/// costs compile time.
template <class T, tile_form Form, class Side>
inline constexpr auto& large_tile_kernels =
    tile_kernels<T, Form, Side, register_tile<T>::rows / 2 + 1, register_tile<T>::vectors>;

/// Chooses the kernel; `ragged`: the last vector is not whole.
template <tile_form Form, class T>
inline void multiply_tile(int rows, int vectors, const tile_task<T>& task) {
  constexpr auto& kernels = tile_kernels<T, Form, no_side_work, 1, 1>;
  const bool ragged = task.last < lanes<T>;
  no_side_work nothing;
  kernels[ragged][std::size_t(rows - 1)][std::size_t(vectors - 1)](task, nothing);
}

/// Whether a tile is large enough for a kernel with side work.
template <class T>
constexpr bool is_large_tile(int rows, int vectors) {
  return rows > register_tile<T>::rows / 2 && vectors == register_tile<T>::vectors;
}
template <tile_form Form, class T, class Side>
inline void multiply_tile(int rows, const tile_task<T>& task, Side& side) {
  constexpr int lowest = register_tile<T>::rows / 2 + 1;
  large_tile_kernels<T, Form, Side>[task.last < lanes<T>][std::size_t(rows - lowest)][0](task,
                                                                                         side);
}

}  // namespace cella::cpu
