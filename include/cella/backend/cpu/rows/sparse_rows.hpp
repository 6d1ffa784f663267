// Sparse matrices whose entries lie row by row, in one pass over them: products with dense rows,
// those of the transposed matrix, and products of dense rows at the places of the entries.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/rows/indexed_elements.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstddef>
#include <cstdint>

namespace cella::cpu {

/// `count` entries of a matrix [rows, columns], beside which dense ones have rows of `width`
/// numbers.
struct sparse_rows {
  std::int64_t rows{}, columns{}, count{}, width{};
};

/// Units of work: stretches of rows; of columns of the dense rows; of entries.
constexpr int sparse_product_units(const sparse_rows& e);
constexpr int sparse_transposed_units(const sparse_rows& e);
constexpr int sparse_entries_units(const sparse_rows& e);

/// y[i] = sum of values[k] x[columns[k]] over the entries k of row i, splits[i] to splits[i + 1] -
/// 1 in order. Those whose column lies outside are none.
template <class T, class Index>
void sparse_product(work_range units, const sparse_rows& e, const T* values, const Index* columns,
                    const Index* splits, const T* x, T* y);
/// y[columns[k]] = sum of values[k] x[i] over the entries k of all rows i.
template <class T, class Index>
void sparse_transposed(work_range units, const sparse_rows& e, const T* values,
                       const Index* columns, const Index* splits, const T* x, T* y);
/// y[k] = a[i] . b[columns[k]] for the entries k of all rows i; 0 for what is none.
template <class T, class Index>
void sparse_entries(work_range units, const sparse_rows& e, const T* a, const Index* columns,
                    const Index* splits, const T* b, T* y);

namespace detail {

inline constexpr std::int64_t entries_of_unit = 512;  // about as many, of rows of 64 numbers
inline constexpr std::int64_t columns_of_unit = 64;
inline constexpr std::int64_t entries_ahead = 8;  // whose rows are asked for

/// Entries of a stretch that takes about as long as another one.
constexpr std::int64_t entries_of(const sparse_rows& e) {
  return std::max<std::int64_t>(16, entries_of_unit * 64 / std::max<std::int64_t>(8, e.width));
}
constexpr std::int64_t rows_of(const sparse_rows& e) {
  const std::int64_t all = std::max<std::int64_t>(1, e.count + e.rows);
  return std::clamp<std::int64_t>(entries_of(e) * e.rows / all, 1,
                                  std::max<std::int64_t>(1, e.rows));
}

struct entry_range {
  std::int64_t first{}, last{};
};
/// The entries of row i, whatever the splits are.
template <class Index>
entry_range entries_of_row(const sparse_rows& e, const Index* splits, std::int64_t i) {
  return {std::max<std::int64_t>(0, std::int64_t(splits[i])),
          std::min<std::int64_t>(e.count, std::int64_t(splits[i + 1]))};
}

/// y[0] to y[n - 1] = the sum over entries of values[k] x[columns[k]]: n numbers of a row that
/// begin at x, in `Vectors` vectors of which the last may be a part, left in registers between
/// entries.
template <int Vectors, bool Part, class T, class Index>
[[gnu::always_inline]] inline void add_entries(const sparse_rows& e, entry_range entries,
                                               const T* values, const Index* columns, const T* x,
                                               int part, T* y) {
  constexpr int L = lanes<T>;
  vec<T> sums[Vectors];
  for (auto& s : sums) s = vec<T>(T(0));
  for (std::int64_t k = entries.first; k < entries.last; ++k) {
    if (k + entries_ahead < e.count) {
      const auto next = std::uint64_t(std::int64_t(columns[k + entries_ahead]));
      if (next < std::uint64_t(e.columns)) {
        const T* const row = x + std::int64_t(next) * e.width;
        for (int v = 0; v < Vectors; v += std::max(1, int(64 / sizeof(T)) / L))
          __builtin_prefetch(row + v * L);
      }
    }
    const auto c = std::int64_t(columns[k]);
    if (std::uint64_t(c) >= std::uint64_t(e.columns)) continue;
    const T* const row = x + c * e.width;
    const vec<T> value(values[k]);
#pragma GCC unroll 8
    for (int v = 0; v < Vectors; ++v) {
      const vec<T> there =
          Part && v == Vectors - 1 ? load_first(row + v * L, part) : load_unaligned(row + v * L);
      sums[v] = multiply_add(value, there, sums[v]);
    }
  }
#pragma GCC unroll 8
  for (int v = 0; v < Vectors; ++v) {
    if (Part && v == Vectors - 1)
      store_first(y + v * L, part, sums[v]);
    else
      store_unaligned(y + v * L, sums[v]);
  }
}
/// The same of one number for each entry.
template <class T, class Index>
[[gnu::always_inline]] inline T sum_of_entries(const sparse_rows& e, entry_range entries,
                                               const T* values, const Index* columns, const T* x) {
  T sum(0);
  for (std::int64_t k = entries.first; k < entries.last; ++k) {
    const auto c = std::int64_t(columns[k]);
    if (std::uint64_t(c) < std::uint64_t(e.columns)) sum += values[k] * x[c];
  }
  return sum;
}

}  // namespace detail

constexpr int sparse_product_units(const sparse_rows& e) {
  return detail::units_of(e.rows, detail::rows_of(e));
}
constexpr int sparse_transposed_units(const sparse_rows& e) {
  return detail::units_of(e.width, detail::columns_of_unit);
}
constexpr int sparse_entries_units(const sparse_rows& e) {
  return detail::units_of(e.count, detail::entries_of(e));
}

template <class T, class Index>
void sparse_product(work_range units, const sparse_rows& e, const T* values, const Index* columns,
                    const Index* splits, const T* x, T* y) {
  constexpr int L = lanes<T>, together = 4;
  const std::int64_t each = detail::rows_of(e), last = std::min(e.rows, units.last * each);
  for (std::int64_t i = units.first * each; i < last; ++i) {
    const auto entries = detail::entries_of_row(e, splits, i);
    T* const to = y + i * e.width;
    if (e.width == 1) {
      *to = detail::sum_of_entries(e, entries, values, columns, x);
      continue;
    }
    std::int64_t j = 0;
    const auto add = [&]<int Vectors, bool Part>(int part) __attribute__((always_inline)) {
      detail::add_entries<Vectors, Part>(e, entries, values, columns, x + j, part, to + j);
      j += Vectors * L;
    };
    while (j + together * L <= e.width) add.template operator()<together, false>(0);
    while (j + L <= e.width) add.template operator()<1, false>(0);
    if (j < e.width) add.template operator()<1, true>(int(e.width - j));
  }
}

template <class T, class Index>
void sparse_transposed(work_range units, const sparse_rows& e, const T* values,
                       const Index* columns, const Index* splits, const T* x, T* y) {
  constexpr int L = lanes<T>;
  const std::int64_t first = units.first * detail::columns_of_unit;
  const std::int64_t last = std::min(e.width, units.last * detail::columns_of_unit);
  // Whole vectors, and behind them numbers: a row that was just added to is read again from the
  // stores under way, which must be as wide as the reads.
  const std::int64_t whole = first + (last - first) / L * L;
  for (std::int64_t c = 0; c < e.columns; ++c)
    std::fill(y + c * e.width + first, y + c * e.width + last, T(0));
  for (std::int64_t i = 0; i < e.rows; ++i) {
    const auto entries = detail::entries_of_row(e, splits, i);
    const T* const from = x + i * e.width;
    for (std::int64_t k = entries.first; k < entries.last; ++k) {
      if (k + detail::entries_ahead < e.count) {
        const auto next = std::uint64_t(std::int64_t(columns[k + detail::entries_ahead]));
        if (next < std::uint64_t(e.columns))
          for (std::int64_t j = first; j < last; j += std::int64_t(64 / sizeof(T)))
            __builtin_prefetch(y + std::int64_t(next) * e.width + j, 1);
      }
      const auto c = std::int64_t(columns[k]);
      if (std::uint64_t(c) >= std::uint64_t(e.columns)) continue;
      const T number = values[k];
      if (e.width == 1) {
        y[c] += number * *from;
        continue;
      }
      T* const to = y + c * e.width;
      const vec<T> value(number);
      for (std::int64_t j = first; j < whole; j += L)
        store_unaligned(to + j,
                        multiply_add(value, load_unaligned(from + j), load_unaligned(to + j)));
      for (std::int64_t j = whole; j < last; ++j) to[j] += number * from[j];
    }
  }
}

template <class T, class Index>
void sparse_entries(work_range units, const sparse_rows& e, const T* a, const Index* columns,
                    const Index* splits, const T* b, T* y) {
  constexpr int L = lanes<T>;
  const std::int64_t each = detail::entries_of(e);
  const std::int64_t first = units.first * each, last = std::min(e.count, units.last * each);
  std::fill(y + first, y + last, T(0));
  // The row in which the first entry lies, or one behind it.
  std::int64_t i =
      std::upper_bound(splits, splits + e.rows + 1, static_cast<Index>(first)) - splits;
  for (i = std::max<std::int64_t>(0, i - 1); i < e.rows && std::int64_t(splits[i]) < last; ++i) {
    const auto entries = detail::entries_of_row(e, splits, i);
    const T* const of_row = a + i * e.width;
    const std::int64_t end = std::min(last, entries.last);
    for (std::int64_t k = std::max(first, entries.first); k < end; ++k) {
      const auto c = std::int64_t(columns[k]);
      if (std::uint64_t(c) >= std::uint64_t(e.columns)) continue;
      const T* const of_column = b + c * e.width;
      if (e.width == 1) {
        y[k] = *of_row * *of_column;
        continue;
      }
      vec<T> sums(T(0)), others(T(0));
      std::int64_t j = 0;
      for (; j + 2 * L <= e.width; j += 2 * L) {
        sums = multiply_add(load_unaligned(of_row + j), load_unaligned(of_column + j), sums);
        others =
            multiply_add(load_unaligned(of_row + j + L), load_unaligned(of_column + j + L), others);
      }
      for (; j < e.width; j += L) {
        const int n = int(std::min<std::int64_t>(L, e.width - j));
        sums = multiply_add(load_first(of_row + j, n), load_first(of_column + j, n), sums);
      }
      y[k] = sum(sums + others);
    }
  }
}

}  // namespace cella::cpu
