// How a matrix product is cut into register tiles and cache blocks.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/gemm/tile.hpp>
#include <cella/backend/cpu/gemm/unit_tile.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstdint>
#include <type_traits>

namespace cella::cpu::detail {

/// How a product of rows x columns is cut up. Units of work are register tiles, column by column or
/// row by row.
template <class T>
struct blocking {
  static constexpr int tile_columns = register_tile<T>::columns;
  /// Depth at which a strip of B fits the first-level cache.
  static constexpr int deepest = 1536 / int(sizeof(T));

  int tile_rows = register_tile<T>::rows, rows_of_panel = panel_rows;
  int rows{}, columns{}, row_tiles{}, strips{};
  int passes = 1, depth{};  // passes over the depth, and the largest depth of one
  bool copy_a{};            // blocks of A are copied into panels
  bool a_along_rows{};      // A lies column by column
  bool pack_b{};            // strips of B are put together
  bool given_b{};           // strips of B are packed already
  bool prefetch_b{};        // those are asked for
  bool row_by_row{};        // the order of the units
  int block_tiles{};        // rows of A that are copied at once
  int block_strips{};       // columns that are gone through for each block of A
  int band_tiles{};         // rows whose partial sums are kept between passes
  int share{}, rest{};      // rows of a tile, and how many tiles have one more

  constexpr blocking() = default;
  /// By a matrix unit all tiles but the last one are whole.
  constexpr blocking(int rows_of_c, int columns_of_c, bool by_unit = false)
      : tile_rows(by_unit ? unit_block : register_tile<T>::rows),
        rows_of_panel(by_unit ? unit_block : panel_rows),
        rows(rows_of_c),
        columns(columns_of_c),
        row_tiles((rows + tile_rows - 1) / tile_rows),
        strips((columns + tile_columns - 1) / tile_columns),
        block_tiles(std::min(row_tiles, std::max(1, 280 / tile_rows))),
        block_strips(std::min(strips, std::max(1, 1024 / tile_columns))),
        band_tiles(row_tiles),
        share(by_unit         ? unit_block
              : row_tiles > 0 ? rows / row_tiles
                              : 0),
        rest(!by_unit && row_tiles > 0 ? rows % row_tiles : 0) {}

  /// Cuts the rows into blocks of equal height: one, if `one` elements of A hold all rows at the
  /// given depth, else such that each has at most `several` elements.
  constexpr void cut_rows(int one, int several, int depth_of_a) {
    const int column = std::max(depth_of_a, 1) * tile_rows;
    int most = std::clamp(one / column, 1, block_tiles);
    if (most < row_tiles) most = std::clamp(several / column, 1, most);
    const int blocks = (row_tiles + most - 1) / most;
    block_tiles = (row_tiles + blocks - 1) / blocks;
  }
  constexpr void set_passes(int number, int largest_depth) {
    passes = number;
    depth = largest_depth;
    band_tiles = passes > 1 ? std::min(row_tiles, 2 * block_tiles) : row_tiles;
  }
  constexpr int units() const { return row_tiles * strips; }
  constexpr int height(work_range tiles) const {
    return first_row(tiles.last) - first_row(tiles.first);
  }
  /// Computed from the operands where they lie.
  constexpr bool in_place() const { return passes == 1 && !copy_a && !pack_b; }
  /// Tiles differ in height by at most one, or the last one is lower.
  constexpr int first_row(int tile) const {
    return std::min(tile * share + std::min(tile, rest), rows);
  }
  constexpr int width(int strip) const {
    return std::min(tile_columns, columns - strip * tile_columns);
  }

  constexpr bool one_block() const { return block_tiles >= row_tiles; }
  /// Whether strips of B are put together once for all blocks of A, and not one after the other.
  constexpr bool keep_b() const { return pack_b && !one_block(); }

  /// Elements from one panel of A to the next, and from a strip of B: a cache line more than they
  /// take, so that they spread over the cache.
  constexpr std::int64_t panel_of_a() const { return (std::int64_t{depth} + 1) * rows_of_panel; }
  constexpr std::int64_t strip_of_b() const { return (std::int64_t{depth} + 1) * tile_columns; }
  /// Strips of B that are packed together.
  static constexpr int group = 4;

  // What the scratch holds, in elements: A, B, partial sums, and sums of these.
  constexpr std::int64_t copied_a() const { return copy_a ? block_tiles * panel_of_a() : 0; }
  constexpr std::int64_t packed_b() const {
    const int held = keep_b() ? block_strips : std::min(group, block_strips);
    return pack_b ? held * strip_of_b() : 0;
  }
  constexpr std::int64_t partial_sums() const {
    return passes > 1 ? std::int64_t{band_tiles} * tile_rows * block_strips * tile_columns : 0;
  }
  /// The sums of so many passes are added in their own precision, sums of those in double.
  static constexpr int passes_of_block = 16;
  constexpr bool widens() const { return std::is_same_v<T, float> && passes > passes_of_block; }
  constexpr std::int64_t wide_sums() const {
    return widens() ? partial_sums() * std::int64_t{sizeof(double) / sizeof(T)} : 0;
  }
  constexpr std::int64_t scratch() const {
    return copied_a() + packed_b() + partial_sums() + wide_sums();
  }
};

}  // namespace cella::cpu::detail
