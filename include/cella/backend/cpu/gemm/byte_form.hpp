// Products of matrices of bytes, and how their operands are put together: for vectors, or for the
// tiles of a matrix unit.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/gemm/operand.hpp>
#include <cella/backend/cpu/simd/byte_sums.hpp>
#include <cella/backend/cpu/simd/matrix_unit.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/plan/memory.hpp>

namespace cella::cpu {

/// C[i,j] = sum over k of A[i,k] B[k,j] modulo 2^32, for i < rows, j < columns, k < depth. Element
/// (i, j) of C lies at `c[i * c_row + j * c_column]`. It is exact up to a depth of 65793.
struct byte_product {
  int rows{}, columns{}, depth{};
  matrix<std::uint8_t> a{};
  matrix<std::int8_t> b{};
  std::int32_t* c{};
  std::int64_t c_row{}, c_column = 1;
};

namespace detail {

/// For a matrix unit, or for vectors if it is void: the summands of a word, the groups of them that
/// the depth is filled up to multiples of, the rows and columns of a tile of C, and how many tiles
/// of rows share a strip of B while it is near.
template <class Unit>
struct byte_form {
  static constexpr int group = 4, step = unit_words;
  static constexpr int rows = 2 * unit_rows, columns = 2 * unit_words, tiles = 4;
};
template <>
struct byte_form<void> {
  static constexpr int group = byte_sums::group, step = 1;
  static constexpr int rows = byte_sums::rows, columns = 2 * byte_sums::lanes, tiles = 4;
};
template <class Unit>
inline constexpr int byte_rows = byte_form<Unit>::tiles* byte_form<Unit>::rows;
template <class Unit>
inline constexpr int byte_columns = byte_form<Unit>::columns;

/// Words that so many summands fill, and the same with the zeros behind.
template <class Unit>
constexpr int byte_groups(int depth) {
  return (depth + byte_form<Unit>::group - 1) / byte_form<Unit>::group;
}
template <class Unit>
constexpr int all_byte_groups(int depth) {
  return int(align_up(byte_groups<Unit>(depth), byte_form<Unit>::step));
}

/// to(j, i) = from(i, j), of `rows` x `columns` words; rows lie so many bytes apart.
inline void transpose_words(int rows, int columns, const void* from, std::int64_t from_row,
                            void* to, std::int64_t to_row) {
  constexpr int L = lanes<float>;
  const auto source = [&](int i, int j) {
    return reinterpret_cast<const float*>(static_cast<const std::byte*>(from) + i * from_row) + j;
  };
  const auto target = [&](int j, int i) {
    return reinterpret_cast<float*>(static_cast<std::byte*>(to) + j * to_row) + i;
  };
  for (int i = 0; i < rows; i += L) {
    const int height = std::min(L, rows - i);
    for (int j = 0; j < columns; j += L) {
      const int width = std::min(L, columns - j);
      vec<float> square[L];
      if (height == L && width == L) {
#pragma GCC unroll 16
        for (int k = 0; k < L; ++k) square[k] = load_unaligned(source(i + k, j));
        transpose<float>(square);
#pragma GCC unroll 16
        for (int k = 0; k < L; ++k) store_unaligned(target(j + k, i), square[k]);
      } else if constexpr (register_bytes == 64) {
        for (int k = 0; k < L; ++k)
          square[k] = k < height ? load_first(source(i + k, j), width) : vec<float>(0.f);
        transpose<float>(square);
        for (int k = 0; k < width; ++k) store_first(target(j + k, i), height, square[k]);
      } else {
        // Parts of other vectors are read number by number, which words of bytes are not.
        for (int k = 0; k < height; ++k) {
          for (int m = 0; m < width; ++m)
            std::memcpy(target(j + m, i + k), source(i + k, j + m), 4);
        }
      }
    }
  }
}

/// Groups of `count` bytes, `step` apart, of `Width` columns that lie side by side.
template <int Group, int Width, class Byte>
[[gnu::always_inline]] inline void group_columns(const Byte* from, std::int64_t step, int count,
                                                 std::uint32_t* to) {
  if (Group == 4 && count == 4) return groups_of_four<Width>(from, step, to);
  for (int j = 0; j < Width; ++j) to[j] = group_of_bytes<Group>(from + j, step, count);
}

/// A strip of `width` columns of B, from `from` on: group g of column j at `to[g * wide + j]`, with
/// zeros beyond.
template <class Unit>
void pack_byte_strip(const matrix<std::int8_t>& b, const std::int8_t* from, int width, int depth,
                     std::uint32_t* to) {
  constexpr int group = byte_form<Unit>::group, wide = byte_columns<Unit>;
  const int groups = byte_groups<Unit>(depth), all = all_byte_groups<Unit>(depth);
  int g = 0;
  if (group == 4 && b.row == 1) {
    g = depth / group;
    if (width < wide) std::fill_n(to, g * wide, 0u);
    transpose_words(width, g, from, b.column, to, wide * 4);
  }
  for (; g < groups; ++g) {
    const int count = std::min(group, depth - g * group);
    const std::int8_t* const first = from + g * group * b.row;
    std::uint32_t* const words = to + std::int64_t{g} * wide;
    if (width == wide && b.column == 1) {
      group_columns<group, wide>(first, b.row, count, words);
    } else {
      for (int j = 0; j < wide; ++j)
        words[j] = j < width ? group_of_bytes<group>(first + j * b.column, b.row, count) : 0;
    }
  }
  std::fill_n(to + std::int64_t{groups} * wide, (all - groups) * wide, 0u);
}

/// `rows` rows of A for vectors: group g of row i at `to[g * byte_sums::rows + i]`.
inline void pack_byte_rows(const matrix<std::uint8_t>& a, int first, int rows, int depth,
                           std::uint32_t* to) {
  constexpr int group = byte_sums::group;
  const std::uint8_t* const from = a.data + first * a.row;
  const int whole = depth / group, left = depth - whole * group;
  for (int g = 0; g < whole; ++g, to += byte_sums::rows) {
    for (int i = 0; i < rows; ++i)
      to[i] = group_of_bytes<group>(from + i * a.row + g * group * a.column, a.column, group);
  }
  for (int i = 0; i < rows && left > 0; ++i)
    to[i] = group_of_bytes<group>(from + i * a.row + whole * group * a.column, a.column, left);
}

// ---- A in tiles

/// Bytes of a row of a tile, and of a step: the rows of two tiles, one behind the other.
inline constexpr int tile_row_bytes = unit_words * 4,
                     tile_step_bytes = 2 * unit_rows * tile_row_bytes;

/// A row of A that is written into tiles from its first byte to its last.
class tile_row_writer {
 public:
  explicit tile_row_writer(std::byte* first) : to_(first) {}
  void append(const void* bytes, std::int64_t count) {
    const auto* from = static_cast<const std::byte*>(bytes);
    for (; used_ + count >= tile_row_bytes; to_ += tile_step_bytes, used_ = 0) {
      const int fits = tile_row_bytes - used_;
      if (fits == tile_row_bytes)
        std::memcpy(to_, from, tile_row_bytes);
      else
        std::memcpy(to_ + used_, from, std::size_t(fits));
      from += fits;
      count -= fits;
    }
    std::memcpy(to_ + used_, from, std::size_t(count));
    used_ += int(count);
  }
  /// Zeros up to the end of the tile.
  void finish() {
    if (used_ > 0) std::memset(to_ + used_, 0, std::size_t(tile_row_bytes - used_));
  }

 private:
  std::byte* to_;
  int used_ = 0;
};

/// `rows` rows of A, from `first` on. What is left of the tiles' rows stays as it is.
inline void pack_byte_tiles(const matrix<std::uint8_t>& a, int first, int rows, int depth,
                            std::byte* to) {
  const std::uint8_t* const from = a.data + first * a.row;
  if (a.column == 1) {
    for (int i = 0; i < rows; ++i) {
      tile_row_writer row(to + i * tile_row_bytes);
      row.append(from + i * a.row, depth);
      row.finish();
    }
    return;
  }
  constexpr int wide = 2 * unit_rows;
  std::uint32_t words[unit_words][wide];
  for (int k = 0; k < depth; k += tile_row_bytes, to += tile_step_bytes) {
    for (int g = 0; g < unit_words; ++g) {
      const int count = std::clamp(depth - k - 4 * g, 0, 4);
      const std::uint8_t* const group = from + (k + 4 * g) * a.column;
      if (rows == wide && a.row == 1) {
        group_columns<4, wide>(group, a.column, count, words[g]);
      } else {
        for (int i = 0; i < rows; ++i)
          words[g][i] = group_of_bytes<4>(group + i * a.row, a.column, count);
      }
    }
    transpose_words(unit_words, rows, words, sizeof words[0], to, tile_row_bytes);
  }
}

}  // namespace detail
}  // namespace cella::cpu
