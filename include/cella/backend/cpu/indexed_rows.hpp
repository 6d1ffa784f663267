// Rows of a table by index: reading them, and adding to them.
#pragma once

#include <cella/backend/cpu/simd.hpp>
#include <cstdint>
#include <cstring>
#include <limits>

namespace cella::cpu {

/// y[i] = table[indices[i]] for `count` rows of `width` elements; NaN where the table of `rows`
/// rows has no such row.
template <class T, class Index>
void gather_rows(const T* table, std::int64_t rows, std::int64_t width, const Index* indices,
                 std::int64_t count, T* y) {
  for (std::int64_t i = 0; i < count; ++i, y += width) {
    const auto r = static_cast<std::int64_t>(indices[i]);
    if (r >= 0 && r < rows) {
      std::memcpy(y, table + r * width, std::size_t(width) * sizeof(T));
    } else {
      for (std::int64_t j = 0; j < width; ++j) y[j] = T(std::numeric_limits<float>::quiet_NaN());
    }
  }
}

/// table = 0, then table[indices[i]] += x[i] in the order of i; rows that the table lacks are
/// dropped.
template <class T, class Index>
void scatter_rows(const T* __restrict x, const Index* indices, std::int64_t count,
                  std::int64_t rows, std::int64_t width, T* __restrict table) {
  // A row that was just added to is read again from the stores under way: they must be as wide as
  // the reads, so what whole vectors leave over is added number by number and not masked.
  const std::int64_t whole = width / lanes<T> * lanes<T>;
  std::memset(table, 0, std::size_t(rows * width) * sizeof(T));
  if (width == 1) {
    // Counts, and sums of numbers: the loops over a row would take most of the time.
    for (std::int64_t i = 0; i < count; ++i) {
      const auto r = static_cast<std::int64_t>(indices[i]);
      if (r >= 0 && r < rows) table[r] += x[i];
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i, x += width) {
    const auto r = static_cast<std::int64_t>(indices[i]);
    if (r < 0 || r >= rows) continue;
    T* const to = table + r * width;
    for (std::int64_t j = 0; j < whole; j += lanes<T>)
      store_unaligned(to + j, load_unaligned(to + j) + load_unaligned(x + j));
    for (std::int64_t j = whole; j < width; ++j) to[j] += x[j];
  }
}

}  // namespace cella::cpu
