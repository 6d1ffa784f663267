// Tiles of products of bytes: in vectors, and in the tiles of a matrix unit.
#pragma once

#include <array>
#include <cella/backend/cpu/gemm/byte_form.hpp>
#include <utility>

namespace cella::cpu::detail {

/// `Rows` x byte_columns sums: groups of A at `a[g * byte_sums::rows + i]`, of B at
/// `b[g * byte_columns + j]`.
template <int Rows>
[[gnu::noinline]] void byte_tile(int groups, const std::uint32_t* a, const std::uint32_t* b,
                                 std::int32_t* to) {
  using sums = byte_sums;
  constexpr int vectors = 2, columns = byte_columns<void>;
  typename sums::vector sum[Rows][vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) sum[i][j] = sums::zero();
  }
  for (int g = 0; g < groups; ++g, a += sums::rows, b += columns) {
    typename sums::vector right[vectors];
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) right[j] = sums::load(b + j * sums::lanes);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < vectors; ++j) sum[i][j] = sums::add(sum[i][j], a[i], right[j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < vectors; ++j) sums::store(to + i * columns + j * sums::lanes, sum[i][j]);
  }
}
inline void byte_tile(int rows, int groups, const std::uint32_t* a, const std::uint32_t* b,
                      std::int32_t* to) {
  using kernel = void (*)(int, const std::uint32_t*, const std::uint32_t*, std::int32_t*);
  static constexpr auto kernels = []<int... I>(std::integer_sequence<int, I...>) {
    return std::array<kernel, sizeof...(I)>{&byte_tile<I + 1>...};
  }
  (std::make_integer_sequence<int, byte_sums::rows>{});
  kernels[std::size_t(rows - 1)](groups, a, b, to);
}

/// Where tiles of A lie: their rows `row` bytes apart, the next summands `step` bytes on.
struct tiles_of_a {
  const std::byte* at{};
  std::int64_t row = tile_row_bytes, step = tile_step_bytes;
};

/// `Rows` x `Columns` tiles of C, whose rows lie `c_row` bytes apart.
template <int Rows, int Columns, class Unit>
[[gnu::noinline]] void byte_tiles(Unit& unit, int steps, tiles_of_a a, const std::uint32_t* b,
                                  std::int32_t* c, std::int64_t c_row) {
  unit_sums<Rows, Columns, Unit> sums(unit);
  sums.zero();
  for (int s = 0; s < steps; ++s, a.at += a.step, b += unit_words * byte_columns<Unit>) {
    sums.add_bytes([&](int i) { return a.at + i * unit_rows * a.row; }, a.row,
                   [&](int j) { return b + j * unit_words; }, byte_columns<Unit> * 4);
  }
  sums.store([&](int i, int j) { return c + i * unit_rows * (c_row / 4) + j * unit_words; }, c_row);
}
template <class Unit>
void byte_tiles(Unit& unit, int height, int width, int steps, const tiles_of_a& a,
                const std::uint32_t* b, std::int32_t* c, std::int64_t c_row) {
  with_unit_tiles(
      (height + unit_rows - 1) / unit_rows, (width + unit_words - 1) / unit_words,
      [&]<int Rows, int Columns>() { byte_tiles<Rows, Columns>(unit, steps, a, b, c, c_row); });
}

/// Copies `height` x `width` sums, whose rows lie `row` apart, to where they belong.
inline void store_sums(const std::int32_t* sums, int row, int height, int width, std::int32_t* c,
                       std::int64_t c_row, std::int64_t c_column) {
  if (c_column == 1) {
    for (int i = 0; i < height; ++i) std::copy_n(sums + i * row, width, c + i * c_row);
  } else if (c_row == 1) {
    transpose_words(height, width, sums, row * 4, c, c_column * 4);
  } else {
    for (int i = 0; i < height; ++i) {
      for (int j = 0; j < width; ++j) c[i * c_row + j * c_column] = sums[i * row + j];
    }
  }
}

}  // namespace cella::cpu::detail
