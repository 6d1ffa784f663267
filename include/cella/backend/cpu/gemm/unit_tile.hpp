// The inner part of matrix products on a matrix unit: 32 x 32 numbers of C, which are two by two of
// its tiles. B comes in strips as for vectors, 32 words of a summand, or of a group of summands,
// side by side. A panel of A holds tiles: 16 words of a row are 64 bytes that lie together.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/gemm/pairs.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cstdint>
#include <cstring>

namespace cella::cpu {

/// Rows and columns of C that are computed together.
inline constexpr int unit_block = 2 * unit_rows;

namespace detail {

/// Copies a tile of A: `height` rows of `count` summands, (i, k) at `from[i * row + k * column]`.
/// What is missing is zero.
template <class T, class S>
void pack_unit_tile(int height, int count, const S* from, std::int64_t row, std::int64_t column,
                    T* to) {
  constexpr int summands = unit_words * summands_of_word<S>, bytes = unit_words * sizeof(T);
  static_assert(bytes == summands * sizeof(S));
  const bool whole = height == unit_rows && count == summands;
  if (!whole) std::fill_n(to, unit_rows * unit_words, T(0));
  if (column == 1 && count == summands) {
    for (int i = 0; i < height; ++i) std::memcpy(to + i * unit_words, from + i * row, bytes);
    return;
  }
  if constexpr (lanes<T> == unit_words) {
    if (row == 1 && whole) {
      // Words of two neighbouring summands of 16 rows, turned.
      vec<T> square[unit_words];
      for (int w = 0; w < unit_words; ++w)
        square[w] = load_pairs(from + 2 * w * column, from + (2 * w + 1) * column);
      transpose<T>(square);
      for (int i = 0; i < unit_rows; ++i) store(to + i * unit_words, square[i]);
      return;
    }
  }
  for (int i = 0; i < height; ++i) {
    std::array<S, std::size_t(summands)> words{};
    for (int k = 0; k < count; ++k) words[std::size_t(k)] = from[i * row + k * column];
    std::memcpy(to + i * unit_words, words.data(), bytes);
  }
}

}  // namespace detail

/// Copies `rows` x `depth` summands, (i, k) at `from[i * row + k * column]`, into a panel of A: of
/// each 16 words two tiles, one below the other. Words beyond the depth are zero, and so are rows
/// beyond the last, up to whole tiles.
template <class T, class S>
void pack_unit_rows(int rows, int depth, const S* from, std::int64_t row, std::int64_t column,
                    T* to) {
  constexpr int tile = unit_rows * unit_words, summands = unit_words * summands_of_word<S>;
  for (int k = 0; k < depth; k += summands, to += 2 * tile) {
    for (int i = 0; i < rows; i += unit_rows)
      detail::pack_unit_tile(std::min(unit_rows, rows - i), std::min(summands, depth - k),
                             from + i * row + k * column, row, column, to + i / unit_rows * tile);
  }
}

/// Adds up a block of C: of Down x Across tiles, `depth` words deep, from a panel of A and from B,
/// whose rows begin `b_row` words apart, as do those of C `c_row` apart. Meanwhile it does what it
/// can of `side`, a step for each word.
template <int Down, int Across, class Unit, class T, class Side>
void multiply_unit_block(Unit& unit, int depth, const T* a, const T* b, std::int64_t b_row, T* c,
                         std::int64_t c_row, bool accumulate, Side& side) {
  constexpr int tile = unit_rows * unit_words;
  const auto in_c = [&](int i, int j) { return c + i * unit_rows * c_row + j * unit_words; };
  unit_sums<Down, Across, Unit> sums(unit);
  if (accumulate)
    sums.load(in_c, c_row * 4);
  else
    sums.zero();
  const auto add = [&]() __attribute__((always_inline)) {
    sums.add_pairs([&](int i) { return a + i * tile; }, unit_words * 4,
                   [&](int j) { return b + j * unit_words; }, b_row * 4);
    a += 2 * tile;
    b += unit_words * b_row;
  };
  int left = depth;
  side.work_off([&](auto& work) __attribute__((always_inline)) {
    const auto turns = int(std::min<std::int64_t>(left, work.steps)) / unit_words;
    if (turns <= 0) return;
    auto here = work;
    for (int k = 0; k < turns; ++k) {
      add();
      for (int i = 0; i < unit_words; ++i) here.step();
    }
    left -= turns * unit_words;
    here.steps -= turns * unit_words;
    work = here;
  });
  for (; left > 0; left -= unit_words) add();
  sums.store(in_c, c_row * 4);
}

/// The same for so many rows and columns of C; nothing beyond them is read or written.
template <class Unit, class T, class Side>
[[gnu::noinline]] void multiply_on_unit(Unit& unit, int rows, int columns, int depth, const T* a,
                                        const T* b, std::int64_t b_row, T* c, std::int64_t c_row,
                                        bool accumulate, Side& side) {
  const int down = (rows + unit_rows - 1) / unit_rows;
  const int across = (columns + unit_words - 1) / unit_words;
  const bool whole = rows % unit_rows == 0 && columns % unit_words == 0;
  alignas(64) T block[unit_block * unit_block];
  T* const to = whole ? c : block;
  const std::int64_t to_row = whole ? c_row : unit_block;
  with_unit_tiles(down, across, [&]<int Down, int Across>() {
    multiply_unit_block<Down, Across>(unit, depth, a, b, b_row, to, to_row, whole && accumulate,
                                      side);
  });
  if (!whole) store_part(block, unit_block, rows, columns, c, c_row, accumulate);
}

}  // namespace cella::cpu
