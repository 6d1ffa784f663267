// The loops round the register tile: cache blocks, packing, partial sums. They serve matrix
// products and convolutions alike; where the operands come from and where results go is a
// **source**:
//   static constexpr bool indirect            rows of B are found through a table
//   void begin(int pass)                      called before anything of a pass is read
//   int depth(int pass)                       summands of a pass
//   matrix<S> a(int pass)                     A of this pass; it is packed if S is not T
//   void pack_b(int pass, int strip, T* to)   copies a strip of B, if it is to be packed,
//   void find_b(int pass, int strip, task&)   else says where it lies
//   tile_output<T> output(int row, int column)   where C lies, if tiles are stored there at once,
//   void finish(const T* tile, std::int64_t tile_row, int row, int height, int strip)   else the
//   sink; before the tile is computed `void announce(int row, int height, int strip)` is called, if
//   the source has it
#pragma once

#include <algorithm>
#include <cella/backend/cpu/gemm_tile.hpp>
#include <cella/backend/cpu/sink.hpp>
#include <cella/backend/work_range.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cella::cpu {

/// A matrix in memory: element (i, j) at `data[i * row + j * column]`. Swap the strides to
/// transpose.
template <class T>
struct matrix {
  const T* data{};
  std::int64_t row{}, column{};
};

namespace detail {

/// How a product of rows x columns is cut up. Units of work are register tiles, column by column.
template <class T>
struct blocking {
  static constexpr int tile_rows = register_tile<T>::rows;
  static constexpr int tile_columns = register_tile<T>::columns;
  /// Depth of one pass where operands are packed: a strip of B should fit the first-level cache.
  static constexpr int deepest = 1536 / int(sizeof(T));

  int rows{}, columns{}, row_tiles{}, strips{};
  int passes = 1, depth{};  // passes over the depth, and the largest depth of one
  bool pack_a{}, pack_b{};
  int block_tiles{}, block_strips{};  // packed at once
  int band_tiles{};                   // rows whose partial sums are kept between passes
  int share{}, rest{};                // rows of a tile, and how many tiles have one more

  constexpr blocking() = default;
  constexpr blocking(int rows_of_c, int columns_of_c)
      : rows(rows_of_c),
        columns(columns_of_c),
        row_tiles((rows + tile_rows - 1) / tile_rows),
        strips((columns + tile_columns - 1) / tile_columns),
        block_tiles(std::min(row_tiles, std::max(1, 252 / tile_rows))),
        block_strips(std::min(strips, std::max(1, 512 / tile_columns))),
        band_tiles(row_tiles),
        share(row_tiles > 0 ? rows / row_tiles : 0),
        rest(row_tiles > 0 ? rows % row_tiles : 0) {}

  constexpr void set_passes(int number, int largest_depth) {
    passes = number;
    depth = largest_depth;
    band_tiles = passes > 1 ? std::min(row_tiles, 2 * block_tiles) : row_tiles;
  }
  constexpr int units() const { return row_tiles * strips; }
  /// One tile below the other, computed from the operands where they lie.
  constexpr bool is_short() const { return strips == 1 && passes == 1 && !pack_a && !pack_b; }
  /// Tiles differ in height by at most one.
  constexpr int first_row(int tile) const { return tile * share + std::min(tile, rest); }
  constexpr int width(int strip) const {
    return std::min(tile_columns, columns - strip * tile_columns);
  }

  constexpr std::int64_t packed_a() const {
    return pack_a ? std::int64_t{block_tiles} * tile_rows * depth : 0;
  }
  constexpr std::int64_t packed_b() const {
    return pack_b ? std::int64_t{block_strips} * tile_columns * depth : 0;
  }
  constexpr std::int64_t partial_sums() const {
    return passes > 1 ? std::int64_t{band_tiles} * tile_rows * block_strips * tile_columns : 0;
  }
  /// Elements of scratch.
  constexpr std::int64_t scratch() const { return packed_a() + packed_b() + partial_sums(); }
};

/// Where a tile of C is stored at once: nowhere, or at `c`, added to what is there or not.
template <class T>
struct tile_output {
  T* c{};
  std::int64_t row{};
  bool add{};
};

template <class T>
tile_output<T> output_of(const any_sink<T>& sink, std::int64_t offset, std::int64_t row_step) {
  if (!sink.target()) return {};
  return {sink.target() + offset, row_step, sink.adds()};
}

/// The tiles `rows` x `strips`.
template <class T, class Source>
void multiply_tiles(const blocking<T>& plan, work_range rows, work_range strips, Source&& source,
                    T* scratch) {
  constexpr int L = lanes<T>, tile_columns = blocking<T>::tile_columns;
  T* const packed_a = scratch;
  T* const packed_b = packed_a + plan.packed_a();
  T* const partial = packed_b + plan.packed_b();
  const std::int64_t partial_row = std::int64_t{plan.block_strips} * tile_columns;
  alignas(64) T tile[blocking<T>::tile_rows * tile_columns];

  for (int s0 = strips.first; s0 < strips.last; s0 += plan.block_strips) {
    const int s1 = std::min(s0 + plan.block_strips, strips.last);
    for (int band = rows.first; band < rows.last; band += plan.band_tiles) {
      const int band_last = std::min(band + plan.band_tiles, rows.last);
      for (int pass = 0; pass < plan.passes; ++pass) {
        source.begin(pass);
        const int depth = source.depth(pass);
        const auto a = source.a(pass);
        if (plan.pack_b) {
          for (int s = s0; s < s1; ++s) {
            source.pack_b(pass, s, packed_b + std::int64_t{s - s0} * depth * tile_columns);
          }
        }
        for (int t0 = band; t0 < band_last; t0 += plan.block_tiles) {
          const int t1 = std::min(t0 + plan.block_tiles, band_last);
          const int i0 = plan.first_row(t0);
          if (plan.pack_a) {
            // In short pieces where A is transposed: tiles share cache lines and pages, and rows
            // that lie pages apart share the few ways of a set.
            const int piece = a.column == 1 ? depth : 8;
            for (int k = 0; k < depth; k += piece) {
              for (int t = t0; t < t1; ++t) {
                const int i = plan.first_row(t), height = plan.first_row(t + 1) - i;
                pack_panel(height, std::min(piece, depth - k), a.data + i * a.row + k * a.column,
                           a.row, a.column, packed_a + std::int64_t{i - i0} * depth + k * height,
                           height);
              }
            }
          }
          for (int s = s0; s < s1; ++s) {
            const int width = plan.width(s), vectors = (width + L - 1) / L;
            tile_task<T> task{};
            task.depth = depth;
            task.last = width - (vectors - 1) * L;
            if (plan.pack_b) {
              task.b = packed_b + std::int64_t{s - s0} * depth * tile_columns;
              task.b_row = tile_columns;
            } else {
              source.find_b(pass, s, task);
            }
            for (int t = t0; t < t1; ++t) {
              const int i = plan.first_row(t), height = plan.first_row(t + 1) - i;
              if (plan.pack_a) {
                task.a = packed_a + std::int64_t{i - i0} * depth;
                task.a_row = 1;
                task.a_column = height;
              } else if constexpr (std::is_same_v<decltype(a.data), const T*>) {
                task.a = a.data + i * a.row;
                task.a_row = a.row;
                task.a_column = a.column;
              }
              const tile_output<T> output = source.output(i, s * tile_columns);
              task.accumulate = pass > 0 || output.add;
              if (output.c) {
                task.c = output.c;
                task.c_row = output.row;
              } else if (plan.passes > 1) {
                task.c =
                    partial + (i - plan.first_row(band)) * partial_row + (s - s0) * tile_columns;
                task.c_row = partial_row;
              } else {
                task.c = tile;
                task.c_row = tile_columns;
              }
              const bool hands_over = !output.c && pass + 1 == plan.passes;
              if constexpr (requires { source.announce(i, height, s); }) {
                if (hands_over) source.announce(i, height, s);
              }
              multiply_tile<std::remove_cvref_t<Source>::indirect>(height, vectors, task);
              if (hands_over) source.finish(task.c, task.c_row, i, height, s);
            }
          }
        }
      }
    }
  }
}

/// Units [first, last) as at most three rectangles of tiles.
template <class T, class Source>
void multiply_units(const blocking<T>& plan, work_range units, Source&& source, T* scratch) {
  const int tall = plan.row_tiles;
  for (int first = units.first; first < units.last;) {
    const int strip = first / tall, row = first % tall;
    work_range rows{row, tall}, strips{strip, strip + 1};
    if (row == 0 && units.last - first >= tall) {
      strips.last = strip + (units.last - first) / tall;
    } else {
      rows.last = std::min(tall, row + units.last - first);
    }
    multiply_tiles(plan, rows, strips, source, scratch);
    first += rows.size() * strips.size();
  }
}

}  // namespace detail
}  // namespace cella::cpu
