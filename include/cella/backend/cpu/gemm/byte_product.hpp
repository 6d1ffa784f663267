// Products of matrices of bytes with sums of 32 bits, and convolutions as such products.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/gemm/operand.hpp>
#include <cella/backend/cpu/simd/byte_sums.hpp>
#include <cella/backend/host/work_range.hpp>
#include <utility>

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

/// B is put together first, in units of strips of columns, into so many words.
constexpr int byte_pack_units(int columns);
constexpr std::int64_t byte_packed_words(int columns, int depth);
inline void byte_pack(const byte_product& p, std::uint32_t* to, work_range strips);

/// Then units of rows are computed, on any number of threads; each needs scratch of its own.
constexpr int byte_product_units(int rows);
constexpr std::int64_t byte_product_scratch(int depth);
inline void byte_multiply(const byte_product& p, const std::uint32_t* packed, std::byte* scratch,
                          work_range units);

namespace detail {

inline constexpr int byte_vectors = 2, byte_columns = byte_vectors * byte_sums::lanes;
/// Tiles of rows that share a strip of B while it is near.
inline constexpr int byte_tiles = 4, byte_rows = byte_tiles * byte_sums::rows;
constexpr int byte_groups(int depth) { return (depth + byte_sums::group - 1) / byte_sums::group; }

/// `Rows` x byte_columns sums: groups of A at `a[g * byte_sums::rows + i]`, of B at
/// `b[g * byte_columns + j]`.
template <int Rows>
[[gnu::noinline]] void byte_tile(int groups, const std::uint32_t* a, const std::uint32_t* b,
                                 std::int32_t* to) {
  using sums = byte_sums;
  typename sums::vector sum[Rows][byte_vectors];
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < byte_vectors; ++j) sum[i][j] = sums::zero();
  }
  for (int g = 0; g < groups; ++g, a += sums::rows, b += byte_columns) {
    typename sums::vector right[byte_vectors];
#pragma GCC unroll 2
    for (int j = 0; j < byte_vectors; ++j) right[j] = sums::load(b + j * sums::lanes);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
      for (int j = 0; j < byte_vectors; ++j) sum[i][j] = sums::add(sum[i][j], a[i], right[j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < byte_vectors; ++j)
      sums::store(to + i * byte_columns + j * sums::lanes, sum[i][j]);
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

/// The product, whose A comes from `pack_a(first row, rows, words)`: groups of a tile's rows.
template <class PackA>
void byte_multiply(const byte_product& p, const std::uint32_t* packed, std::byte* scratch,
                   work_range units, PackA pack_a) {
  const int groups = byte_groups(p.depth);
  auto* const a = reinterpret_cast<std::uint32_t*>(scratch);
  const std::int64_t panel = std::int64_t{groups} * byte_sums::rows;
  alignas(64) std::int32_t tile[byte_sums::rows * byte_columns];
  for (int u = units.first; u < units.last; ++u) {
    const int first = u * byte_rows, end = std::min(first + byte_rows, p.rows);
    for (int i = first, t = 0; i < end; i += byte_sums::rows, ++t)
      pack_a(i, std::min(byte_sums::rows, end - i), a + t * panel);
    for (int s = 0; s < byte_pack_units(p.columns); ++s) {
      const std::uint32_t* const b = packed + std::int64_t{s} * groups * byte_columns;
      const int column = s * byte_columns, width = std::min(byte_columns, p.columns - column);
      for (int i = first, t = 0; i < end; i += byte_sums::rows, ++t) {
        const int height = std::min(byte_sums::rows, end - i);
        byte_tile(height, groups, a + t * panel, b, tile);
        std::int32_t* const c = p.c + i * p.c_row + column * p.c_column;
        if (p.c_column == 1) {
          for (int r = 0; r < height; ++r)
            std::copy_n(tile + r * byte_columns, width, c + r * p.c_row);
        } else {
          for (int j = 0; j < width; ++j) {
            for (int r = 0; r < height; ++r)
              c[j * p.c_column + r * p.c_row] = tile[r * byte_columns + j];
          }
        }
      }
    }
  }
}

}  // namespace detail

constexpr int byte_pack_units(int columns) {
  return (columns + detail::byte_columns - 1) / detail::byte_columns;
}
constexpr std::int64_t byte_packed_words(int columns, int depth) {
  return std::int64_t{byte_pack_units(columns)} * detail::byte_columns * detail::byte_groups(depth);
}
inline void byte_pack(const byte_product& p, std::uint32_t* to, work_range strips) {
  constexpr int group = byte_sums::group, wide = detail::byte_columns;
  const int groups = detail::byte_groups(p.depth);
  for (int s = strips.first; s < strips.last; ++s) {
    const int width = std::min(wide, p.columns - s * wide);
    std::uint32_t* strip = to + std::int64_t{s} * groups * wide;
    for (int g = 0; g < groups; ++g, strip += wide) {
      const int count = std::min(group, p.depth - g * group);
      const std::int8_t* const from = p.b.data + g * group * p.b.row + s * wide * p.b.column;
      if (width == wide && count == group && p.b.column == 1) {
        for (int j = 0; j < wide; ++j) strip[j] = group_of_bytes(from + j, p.b.row, group);
      } else {
        for (int j = 0; j < wide; ++j)
          strip[j] = j < width ? group_of_bytes(from + j * p.b.column, p.b.row, count) : 0;
      }
    }
  }
}

constexpr int byte_product_units(int rows) {
  return (rows + detail::byte_rows - 1) / detail::byte_rows;
}
constexpr std::int64_t byte_product_scratch(int depth) {
  return std::int64_t{detail::byte_rows} * detail::byte_groups(depth) * 4;
}
inline void byte_multiply(const byte_product& p, const std::uint32_t* packed, std::byte* scratch,
                          work_range units) {
  constexpr int group = byte_sums::group, most = byte_sums::rows;
  detail::byte_multiply(p, packed, scratch, units, [&](int first, int rows, std::uint32_t* to) {
    const std::uint8_t* const from = p.a.data + first * p.a.row;
    const int whole = p.depth / group, left = p.depth - whole * group;
    for (int g = 0; g < whole; ++g, to += most) {
      for (int i = 0; i < rows; ++i)
        to[i] = group_of_bytes(from + i * p.a.row + g * group * p.a.column, p.a.column, group);
    }
    for (int i = 0; i < rows && left > 0; ++i)
      to[i] = group_of_bytes(from + i * p.a.row + whole * group * p.a.column, p.a.column, left);
  });
}

}  // namespace cella::cpu
