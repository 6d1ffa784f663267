// Products of matrices of bytes with sums of 32 bits, and convolutions as such products. They are
// exact, so that vectors and the matrix unit yield the same.
#pragma once

#include <cella/backend/cpu/gemm/byte_tiles.hpp>
#include <type_traits>

namespace cella::cpu {

/// B is put together first, in units of strips of columns, into so many words: as the matrix unit
/// reads it, or vectors if that is void.
template <class Unit = matrix_unit>
constexpr int byte_pack_units(int columns);
template <class Unit = matrix_unit>
constexpr std::int64_t byte_packed_words(int columns, int depth);
template <class Unit = matrix_unit>
void byte_pack(const byte_product& p, std::uint32_t* to, work_range strips);

/// Then units of rows are computed, on any number of threads; each needs scratch of its own.
template <class Unit = matrix_unit>
constexpr int byte_product_units(int rows);
template <class Unit = matrix_unit>
constexpr std::int64_t byte_product_scratch(int depth);
template <class Unit = matrix_unit>
void byte_multiply(const byte_product& p, const std::uint32_t* packed, std::byte* scratch,
                   work_range units);

namespace detail {

/// Rows [first, end) of the product in vectors, of B as `Unit` has it. A comes from
/// `pack_a(first row, rows, words)`.
template <class Unit, class PackA>
void multiply_in_vectors(const byte_product& p, const std::uint32_t* packed, std::byte* scratch,
                         int first, int end, PackA pack_a) {
  constexpr int most = byte_sums::rows, wide = byte_columns<Unit>;
  const int groups = byte_groups<Unit>(p.depth), all = all_byte_groups<Unit>(p.depth);
  auto* const a = reinterpret_cast<std::uint32_t*>(scratch);
  const std::int64_t panel = std::int64_t{groups} * most;
  alignas(64) std::int32_t tile[most * wide];
  for (int i = first, t = 0; i < end; i += most, ++t)
    pack_a(i, std::min(most, end - i), a + t * panel);
  for (int s = 0; s < byte_pack_units<Unit>(p.columns); ++s) {
    const std::uint32_t* const b = packed + std::int64_t{s} * all * wide;
    const int column = s * wide, width = std::min(wide, p.columns - column);
    for (int i = first, t = 0; i < end; i += most, ++t) {
      const int height = std::min(most, end - i);
      byte_tile(height, groups, a + t * panel, b, tile);
      store_sums(tile, wide, height, width, p.c + i * p.c_row + column * p.c_column, p.c_row,
                 p.c_column);
    }
  }
}

/// Bytes of B that stay near while tiles of rows go by.
inline constexpr int byte_strips_near = 1 << 20;

/// The same in tiles of the unit; `tiles_at(first row, rows, place)` says where those of A lie, and
/// may put them together at the place.
template <class Unit, class TilesAt>
void multiply_in_tiles(Unit& unit, const byte_product& p, const std::uint32_t* packed,
                       std::byte* scratch, int first, int end, TilesAt tiles_at) {
  constexpr int most = byte_form<Unit>::rows, wide = byte_columns<Unit>;
  const int steps = all_byte_groups<Unit>(p.depth) / unit_words;
  std::array<tiles_of_a, byte_form<Unit>::tiles> a;
  alignas(64) std::int32_t sums[most * wide];
  for (int i = first, t = 0; i < end; i += most, ++t)
    a[std::size_t(t)] =
        tiles_at(i, std::min(most, end - i), scratch + t * std::int64_t{steps} * tile_step_bytes);
  // Row by row of tiles, so that rows of C are written from one end to the other.
  const int strips = byte_pack_units<Unit>(p.columns);
  const int near = std::max(1, byte_strips_near / (steps * unit_words * wide * 4));
  for (int from = 0; from < strips; from += near) {
    for (int i = first, t = 0; i < end; i += most, ++t) {
      const int height = std::min(most, end - i);
      for (int s = from; s < std::min(from + near, strips); ++s) {
        const std::uint32_t* const b = packed + std::int64_t{s} * steps * unit_words * wide;
        const int column = s * wide, width = std::min(wide, p.columns - column);
        std::int32_t* const c = p.c + i * p.c_row + column * p.c_column;
        const bool whole = p.c_column == 1 && height % unit_rows == 0 && width % unit_words == 0;
        if (whole) {
          byte_tiles(unit, height, width, steps, a[std::size_t(t)], b, c, p.c_row * 4);
        } else {
          byte_tiles(unit, height, width, steps, a[std::size_t(t)], b, sums, wide * 4);
          store_sums(sums, wide, height, width, c, p.c_row, p.c_column);
        }
      }
    }
  }
}

/// Whether the unit is worth its tiles, which must be made ready and are computed whole. Where it
/// is emulated there is no choice, since the words of vectors may be other ones.
template <class Unit>
constexpr bool multiplies_in_tiles(const byte_product& p) {
  if (byte_sums::group != byte_form<Unit>::group || !std::is_same_v<Unit, matrix_unit>) return true;
  const std::int64_t products = std::int64_t{p.rows} * p.columns * p.depth;
  return p.rows > 2 && products > (p.depth > tile_row_bytes / 2 ? 1 << 13 : 1 << 17);
}

/// What byte_multiply does, with A from what `multiply_in_vectors` and `multiply_in_tiles` ask for.
template <class Unit, class PackA, class TilesAt>
void multiply_bytes(const byte_product& p, const std::uint32_t* packed, std::byte* scratch,
                    work_range units, PackA pack_a, TilesAt tiles_at) {
  const auto for_each_unit = [&](auto f) {
    for (int u = units.first; u < units.last; ++u)
      f(u * byte_rows<Unit>, std::min((u + 1) * byte_rows<Unit>, p.rows));
  };
  if constexpr (!std::is_void_v<Unit>) {
    if (multiplies_in_tiles<Unit>(p)) {
      Unit unit;
      for_each_unit([&](int first, int end) {
        multiply_in_tiles(unit, p, packed, scratch, first, end, tiles_at);
      });
      return;
    }
  }
  if constexpr (byte_sums::group == byte_form<Unit>::group)
    for_each_unit([&](int first, int end) {
      multiply_in_vectors<Unit>(p, packed, scratch, first, end, pack_a);
    });
}

}  // namespace detail

template <class Unit>
constexpr int byte_pack_units(int columns) {
  return (columns + detail::byte_columns<Unit> - 1) / detail::byte_columns<Unit>;
}
template <class Unit>
constexpr std::int64_t byte_packed_words(int columns, int depth) {
  return std::int64_t{byte_pack_units<Unit>(columns)} * detail::byte_columns<Unit> *
         detail::all_byte_groups<Unit>(depth);
}
template <class Unit>
void byte_pack(const byte_product& p, std::uint32_t* to, work_range strips) {
  constexpr int wide = detail::byte_columns<Unit>;
  const std::int64_t size = byte_packed_words<Unit>(wide, p.depth);
  for (int s = strips.first; s < strips.last; ++s)
    detail::pack_byte_strip<Unit>(p.b, p.b.data + s * wide * p.b.column,
                                  std::min(wide, p.columns - s * wide), p.depth, to + s * size);
}

template <class Unit>
constexpr int byte_product_units(int rows) {
  return (rows + detail::byte_rows<Unit> - 1) / detail::byte_rows<Unit>;
}
template <class Unit>
constexpr std::int64_t byte_product_scratch(int depth) {
  // Vectors, which fill it otherwise, may need a tile of rows more.
  constexpr int rows = detail::byte_rows<Unit> + (std::is_void_v<Unit> ? 0 : byte_sums::rows);
  return std::int64_t{rows} * detail::all_byte_groups<Unit>(depth) * 4;
}
template <class Unit>
void byte_multiply(const byte_product& p, const std::uint32_t* packed, std::byte* scratch,
                   work_range units) {
  detail::multiply_bytes<Unit>(
      p, packed, scratch, units,
      [&](int first, int rows, std::uint32_t* to) {
        detail::pack_byte_rows(p.a, first, rows, p.depth, to);
      },
      [&](int first, int rows, std::byte* to) -> detail::tiles_of_a {
        // Whole tiles are read where they lie.
        if (p.a.column == 1 && p.depth % detail::tile_row_bytes == 0 && rows % unit_rows == 0)
          return {reinterpret_cast<const std::byte*>(p.a.data + first * p.a.row), p.a.row,
                  detail::tile_row_bytes};
        detail::pack_byte_tiles(p.a, first, rows, p.depth, to);
        return {to};
      });
}

}  // namespace cella::cpu
