// Operands of matrix products: where they lie, and how they are brought together.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/simd/storage.hpp>
#include <cstdint>
#include <limits>

namespace cella::cpu {

/// A matrix in memory: element (i, j) at `data[i * row + j * column]`. Swap the strides to
/// transpose.
template <class T>
struct matrix {
  const T* data{};
  std::int64_t row{}, column{};

  constexpr matrix transposed() const { return {data, column, row}; }
};

/// Copies `width` elements that lie together into a row of a panel; zeros follow, up to `panel`.
template <class T, class S>
[[gnu::always_inline]] inline void pack_row(const S* from, int width, T* to, int panel) {
  constexpr int L = lanes<T>;
  const int whole = width / L * L;
  for (int r = 0; r < whole; r += L) store_unaligned(to + r, load_stored<T>(from + r));
  for (int r = whole; r < panel; r += L)
    store_unaligned(to + r, load_stored<T>(from + r, std::clamp(width - r, 0, L)));
}

/// Copies `width` x `depth` elements, element (r, k) at `from[r * width_stride + k *
/// depth_stride]`, into a panel of whole vectors: (r, k) at `to[k * panel + r]`. Rows from `width`
/// to `panel` become zero. The elements may be stored in another type than is computed in.
template <class T, class S>
[[gnu::noinline]] void pack_panel(int width, int depth, const S* from, std::int64_t width_stride,
                                  std::int64_t depth_stride, T* to, int panel) {
  constexpr int L = lanes<T>, line = 64 / int(sizeof(S));
  if (width_stride == 1) {
    for (int k = 0; k < depth; ++k)
      pack_row(from + k * depth_stride, width, to + std::int64_t{k} * panel, panel);
    return;
  }
  if (depth_stride == 1) {
    for (int k = 0; k < depth; k += L) {
      const int columns = std::min(L, depth - k);
      for (int r = 0; r < panel; r += L) {
        const S* source = from + r * width_stride + k;
        T* target = to + std::int64_t{k} * panel + r;
        for (int i = 0; i < std::min(L, width - r); ++i)
          __builtin_prefetch(source + i * width_stride + 2 * line);
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
#pragma GCC unroll 16
        for (int i = 0; i < L; ++i) {
          if (i < columns) store_unaligned(target + i * panel, square[i]);
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

/// Neighbouring panels of a matrix whose rows hold a piece for each: the first `wider` panels are
/// `width` + 1 elements wide, the others `width`, and `last_width` the last one.
struct panel_pieces {
  int count, wider, width, last_width;

  constexpr int of(int piece) const {
    return piece + 1 == count ? last_width : width + (piece < wider);
  }
  constexpr int sum() const {
    return (count - 1) * width + std::min(wider, count - 1) + last_width;
  }
};

/// Copies `depth` rows, `row` apart, into panels that lie `pitch` apart, each a row of `panel`
/// elements for each row of the matrix. All panels at once: rows that lie far apart are fetched
/// once, and asked for ahead, as the processor does not see which is next.
template <class T, class S>
[[gnu::noinline]] void pack_panels(const panel_pieces& pieces, int depth, const S* from,
                                   std::int64_t row, T* to, std::int64_t pitch, int panel) {
  constexpr int line = 64 / int(sizeof(S)), lines_ahead = 32;
  const int length = pieces.sum();
  const std::int64_t ahead = std::max(1, lines_ahead * line / std::max(length, 2 * line)) * row;
  for (int k = 0; k < depth; ++k, from += row, to += panel) {
    for (int r = 0; r < length; r += line) __builtin_prefetch(from + ahead + r);
    const S* source = from;
    T* target = to;
    for (int p = 0; p < pieces.count; ++p, target += pitch) {
      pack_row(source, pieces.of(p), target, panel);
      source += pieces.of(p);
    }
  }
}

/// Stores rows x columns of a larger tile to c, or adds them to what is there.
template <class T>
void store_part(const T* tile, std::int64_t tile_row, int rows, int columns, T* c,
                std::int64_t c_row, bool accumulate) {
  for (int i = 0; i < rows; ++i, tile += tile_row, c += c_row) {
    for (int j = 0; j < columns; ++j) c[j] = accumulate ? c[j] + tile[j] : tile[j];
  }
}

// ---- side work
//
// What register tiles do beside their own work: they ask for operands of later tiles, so that far
// memory is waited for behind the arithmetic. `work_off` hands each kind of work to its argument,
// which takes some of its `steps`, one for each summand.

struct no_side_work {
  template <class Take>
  static void work_off(Take&&) {}
};

/// Summands that a tile adds in one turn of its loop. All that a loop does beside multiplications
/// takes an instruction's place: on a core that another thread shares, turns of two took a quarter
/// longer than turns of four with AVX2, where a multiplication is eight sums and not sixteen.
inline constexpr int summands_of_turn = vector_registers == 32 ? 2 : 4;

/// Rows of a panel of A: no fewer than a register tile has, and whole vectors.
inline constexpr int panel_rows = vector_registers == 32 ? 16 : 8;

/// Asks for the lines of rows of memory.
struct side_prefetch {
  const char* at{};
  std::int64_t jump{};        // bytes from behind a row's last line to the next row
  int lines{}, left{};        // of a row, and of this row
  std::int64_t steps{};       // still to come: lines, until they are spread
  int pace = 1, waiting = 1;  // steps from one line to the next, and to the first

  side_prefetch() = default;
  /// Rows of `row_length` elements; `a.column` is 1.
  template <class T>
  side_prefetch(const matrix<T>& a, int rows, int row_length)
      : at(reinterpret_cast<const char*>(a.data)) {
    constexpr int line = 64, size = int(sizeof(T));
    const auto within = int(reinterpret_cast<std::uintptr_t>(at) % line);
    lines = left = (within + row_length * size + line - 1) / line;
    jump = a.row * size - std::int64_t{lines} * line;
    // Taken by turns; a few lines more are no harm.
    steps =
        (std::int64_t{rows} * lines + summands_of_turn - 1) / summands_of_turn * summands_of_turn;
  }

  /// Spreads the lines over most of so many steps: in a burst they would wait for memory, and
  /// tiles' own operands, which come from the second-level cache, behind them.
  void spread(std::int64_t over) {
    if (steps > 0) pace = int(std::max(std::int64_t{1}, over * 7 / 8 / steps));
    steps *= pace;
  }
  [[gnu::always_inline]] void step(int count = 1) {
    if ((waiting -= count) > 0) return;
    do {
      waiting += pace;
      __builtin_prefetch(at, 0, 2);
      at += 64;
      if (--left == 0) {
        at += jump;
        left = lines;
      }
    } while (waiting <= 0);
  }
};

/// Asks for what the same tile reads a few summands later, where that lies further apart than the
/// processor looks ahead by itself: A column by column.
struct side_ahead {
  static constexpr int summands = 4;  ///< how far ahead
  const char* at{};
  std::int64_t stride{};  // bytes
  std::int64_t steps = std::numeric_limits<int>::max();

  /// The elements `step` apart that begin at `from`.
  template <class T>
  side_ahead(const T* from, std::int64_t step)
      : at(reinterpret_cast<const char*>(from + summands * step)),
        stride(step * std::int64_t{sizeof(T)}) {}

  [[gnu::always_inline]] void step(int count = 1) {
#pragma GCC unroll 4
    for (int i = 0; i < count; ++i, at += stride) __builtin_prefetch(at);
  }
  template <class Take>
  [[gnu::always_inline]] void work_off(Take&& take) {
    take(*this);
  }
};

/// Asks for rows of a tile, of which a list has the beginnings.
struct side_rows {
  /// Lines of a row: register tiles are two vectors wide.
  static constexpr int lines = vector_registers == 32 ? 2 : 1;
  const void* const* next{};
  std::int64_t steps{};       // still to come: rows, until they are spread
  int pace = 1, waiting = 1;  // steps from one row to the next, and to the first

  /// Spreads the rows over half of so many steps: in a burst they would hold up the tile's own
  /// operands, which come from the second-level cache. Asks for those beyond at once.
  void spread(int over) {
    constexpr int apart = 16;
    const auto beyond = std::max(std::int64_t{0}, steps - over / 2);
    ask(beyond + (steps - beyond) % summands_of_turn);
    if (steps > 0) pace = std::clamp(over / (2 * int(steps)), 1, apart);
    steps *= pace;
  }
  [[gnu::always_inline]] void step(int count = 1) {
    if ((waiting -= count) > 0) return;
    do {
      waiting += pace;
      const char* at = static_cast<const char*>(*next);
      for (int i = 0; i < lines; ++i) __builtin_prefetch(at + i * 64, 0, 2);
      ++next;
    } while (waiting <= 0);
  }
  /// Takes `count` steps at once.
  void ask(std::int64_t count) {
    steps -= count;
    for (; count > 0; --count) step();
  }
};

/// What this tile's results will touch, and then what a later one reads.
struct side_pair {
  // No copies: to copy what has just been stored would wait for earlier results to be stored.
  side_rows& rows;
  side_prefetch& next;

  template <class Take>
  [[gnu::always_inline]] void work_off(Take&& take) {
    take(rows);
    take(next);
  }
};

}  // namespace cella::cpu
