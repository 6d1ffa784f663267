// Operands of matrix products: where they lie, and how they are brought together.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/storage.hpp>
#include <cstdint>

namespace cella::cpu {

/// A matrix in memory: element (i, j) at `data[i * row + j * column]`. Swap the strides to
/// transpose.
template <class T>
struct matrix {
  const T* data{};
  std::int64_t row{}, column{};

  constexpr matrix transposed() const { return {data, column, row}; }
};

/// Copies a matrix into rows that lie `pitch` apart; its elements may be stored in another type.
template <class T, class S>
void copy_rows(const matrix<S>& a, int rows, int width, T* to, std::int64_t pitch) {
  constexpr int L = lanes<T>;
  for (int i = 0; i < rows; ++i) {
    const S* from = a.data + i * a.row;
    T* target = to + i * pitch;
    if (a.column == 1) {
      for (int j = 0; j < width; j += L)
        store_unaligned(target + j, load_stored<T>(from + j, std::min(L, width - j)));
    } else {
      for (int j = 0; j < width; ++j) target[j] = static_cast<T>(from[j * a.column]);
    }
  }
}

/// Copies `width` x `depth` elements, element (r, k) at `from[r * width_stride + k *
/// depth_stride]`, into a panel of whole vectors: (r, k) at `to[k * panel + r]`. Rows from `width`
/// to `panel` become zero. The elements may be stored in another type than is computed in.
template <class T, class S>
[[gnu::noinline]] void pack_panel(int width, int depth, const S* from, std::int64_t width_stride,
                                  std::int64_t depth_stride, T* to, int panel) {
  constexpr int L = lanes<T>;
  if (width_stride == 1) {
    const int whole = width / L * L;
    for (int k = 0; k < depth; ++k) {
      const S* source = from + k * depth_stride;
      T* target = to + std::int64_t{k} * panel;
      for (int r = 0; r < whole; r += L) store_unaligned(target + r, load_stored<T>(source + r));
      for (int r = whole; r < panel; r += L)
        store_unaligned(target + r, load_stored<T>(source + r, std::clamp(width - r, 0, L)));
    }
    return;
  }
  if (depth_stride == 1) {
    for (int k = 0; k < depth; k += L) {
      const int columns = std::min(L, depth - k);
      for (int r = 0; r < panel; r += L) {
        const S* source = from + r * width_stride + k;
        T* target = to + std::int64_t{k} * panel + r;
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

// ---- side work
//
// What register tiles do beside their own work, one step for each summand: operands of later tiles
// are copied together, or asked for, so that far memory is waited for behind the arithmetic.

struct no_side_work {
  void step() {}
};

/// Elements of a row that are copied together: as many as a register tile has rows, and no less
/// than a vector.
inline constexpr int copied_piece = vector_registers == 32 ? 16 : 8;

/// Copies rows of a matrix, a piece at each step.
template <class T>
struct side_copy {
  static constexpr int L = lanes<T>;
  static_assert(copied_piece % L == 0);

  const T* from{};
  T* to{};
  std::int64_t from_jump{}, to_jump{};  // from behind a row's last piece to the next row
  std::int64_t to_step{};               // from piece to piece
  std::int64_t ahead{};                 // how far ahead memory is asked for, in elements
  int pieces{}, left{};                 // of a row, and of this row
  int shorter{};                        // pieces of `length` elements; those before have one more
  int length{}, rest{};                 // elements of a piece, and of a row's last
  std::int64_t steps{};                 // still to come

  side_copy() = default;
  /// Rows of `row_length` elements into rows that lie `pitch` apart. The next `rows_ahead` are
  /// asked for. `a.column` is 1.
  side_copy(const matrix<T>& a, int rows, int row_length, T* target, std::int64_t pitch,
            int rows_ahead)
      : from(a.data), to(target), to_step(copied_piece), ahead(rows_ahead * a.row) {
    pieces = left = shorter = (row_length + copied_piece - 1) / copied_piece;
    length = copied_piece;
    rest = row_length - (pieces - 1) * copied_piece;
    from_jump = a.row - row_length;
    to_jump = pitch - pieces * to_step;
    steps = std::int64_t{rows} * pieces;
  }
  /// Each row in `parts` pieces, of which the first `longer` have `part_length` + 1 elements and
  /// the others `part_length`: one to each of `parts` panels, `panel` apart, whose rows have
  /// `copied_piece` elements.
  side_copy(const matrix<T>& a, int rows, int parts, int longer, int part_length, T* target,
            std::int64_t panel, int rows_ahead)
      : from(a.data), to(target), to_step(panel), ahead(rows_ahead * a.row) {
    pieces = left = parts;
    shorter = parts - longer;
    length = part_length;
    rest = part_length + (shorter == 0);
    from_jump = a.row - std::int64_t{parts} * part_length - longer;
    to_jump = copied_piece - parts * to_step;
    steps = std::int64_t{rows} * parts;
  }

  [[gnu::always_inline]] void step() {
    if (steps <= 0) return;
    // Into the second-level cache: the first has few ways for rows that lie pages apart.
    constexpr int line = std::max(L, 64 / int(sizeof(T)));
    for (int i = 0; i < copied_piece; i += line) __builtin_prefetch(from + ahead + i, 0, 2);
    const int count = left == 1 ? rest : length + (left > shorter);
    store_unaligned(to, load_first(from, std::min(L, count)));
    for (int v = L; v < copied_piece; v += L) {
      if (v < count) store_unaligned(to + v, load_first(from + v, std::min(L, count - v)));
    }
    from += count;
    to += to_step;
    --steps;
    if (--left == 0) {
      from += from_jump;
      to += to_jump;
      left = pieces;
    }
  }
  void finish() {
    while (steps > 0) step();
  }
};

/// Asks for the lines of rows of memory.
struct side_prefetch {
  const char* at{};
  std::int64_t jump{};   // bytes from behind a row's last line to the next row
  int lines{}, left{};   // of a row, and of this row
  std::int64_t steps{};  // still to come

  side_prefetch() = default;
  /// Rows of `row_length` elements; `a.column` is 1.
  template <class T>
  side_prefetch(const matrix<T>& a, int rows, int row_length)
      : at(reinterpret_cast<const char*>(a.data)) {
    constexpr int line = 64, size = int(sizeof(T));
    const auto within = int(reinterpret_cast<std::uintptr_t>(at) % line);
    lines = left = (within + row_length * size + line - 1) / line;
    jump = a.row * size - std::int64_t{lines} * line;
    steps = std::int64_t{rows} * lines;
  }

  [[gnu::always_inline]] void step() {
    __builtin_prefetch(at, 0, 2);
    at += 64;
    --steps;
    if (--left == 0) {
      at += jump;
      left = lines;
    }
  }
};

/// Asks for what the same tile reads a few summands later, where that lies further apart than the
/// processor looks ahead by itself: A column by column.
struct side_ahead {
  static constexpr int summands = 4;  ///< how far ahead
  const char* at{};
  std::int64_t stride{};  // bytes

  /// The elements `step` apart that begin at `from`.
  template <class T>
  side_ahead(const T* from, std::int64_t step)
      : at(reinterpret_cast<const char*>(from + summands * step)),
        stride(step * std::int64_t{sizeof(T)}) {}

  [[gnu::always_inline]] void step() {
    __builtin_prefetch(at);
    at += stride;
  }
};

/// Asks for lines of a list.
struct side_lines {
  const void* const* next{};
  int steps{};  // still to come

  [[gnu::always_inline]] void step() {
    if (steps <= 0) return;
    __builtin_prefetch(*next, 0, 2);
    ++next;
    --steps;
  }
  void finish() {
    while (steps > 0) step();
  }
};

template <class Side>
struct side_pair {
  Side side;
  side_lines lines;

  [[gnu::always_inline]] void step() {
    side.step();
    lines.step();
  }
};

}  // namespace cella::cpu
