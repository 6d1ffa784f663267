// Rows of a table by index: reading them, and adding to them.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/ops/numbers.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace cella::cpu {

/// `outer` tables of `rows` rows of `width` elements, and as often `count` rows beside them, each
/// with an index, which is the same in all of them.
struct indexed_rows {
  std::int64_t rows{}, width{}, count{}, outer = 1;
};

/// Units of work: rows.
constexpr int gather_units(const indexed_rows& e);
/// Units of work: stretches of columns, of which each thread takes neighbours, or of several tables
/// each one; and bytes of scratch for each thread.
constexpr int scatter_units(const indexed_rows& e);
constexpr std::int64_t scatter_scratch(const indexed_rows& e);

/// y[i] = table[indices[i]]; NaN where the table has no such row.
template <class T, class Index>
void gather_rows(work_range units, const indexed_rows& e, const T* table, const Index* indices,
                 T* y);

/// table = 0, then table[indices[i]] += x[i] in the order of i; rows that the table lacks are
/// dropped. `Past`: what is not added to is stored past the caches; rows are whole vectors.
template <bool Past = false, class T, class Index>
void scatter_rows(work_range units, const indexed_rows& e, const T* x, const Index* indices,
                  T* table, std::byte* scratch);

/// The same for one table with rows of one number each, which may be an integer.
template <class T, class Index>
void scatter_numbers(const indexed_rows& e, const T* x, const Index* indices, T* table);
/// And with x the same everywhere.
template <class T, class Index>
void scatter_numbers(const indexed_rows& e, T x, const Index* indices, T* table);

/// A tensor of `outer` tables of `rows` rows of `width` elements, of which `count` rows each are
/// replaced or added to.
struct row_changes {
  std::int64_t outer{}, rows{}, width{}, count{};
  bool adds{};
};

/// Units of work: rows whose numbers are the unit's modulo their count, or all rows.
constexpr int put_rows_units(const row_changes& e);

/// table[indices[i]] = x[i], or += x[i], in the order of i; rows that a table lacks are dropped.
/// `shared`: by put_rows_units(); else the one unit is all rows.
template <class T, class Index>
void put_rows(work_range units, const row_changes& e, const Index* indices, const T* x, T* table,
              bool shared);

namespace detail {

inline constexpr std::int64_t elements_of_gather = 4096;  // of a unit, or one row
inline constexpr std::int64_t columns_of_scatter = 64;

constexpr std::int64_t rows_of_gather(const indexed_rows& e) {
  return std::max<std::int64_t>(1, elements_of_gather / std::max<std::int64_t>(1, e.width));
}
/// Asks for the first lines of a row, which will be written.
template <class T>
void prefetch_row(const T* row, std::int64_t width) {
  constexpr std::int64_t line = 64 / sizeof(T), most = 8;
  for (std::int64_t j = 0; j < std::min(width, most * line); j += line)
    __builtin_prefetch(row + j, 1);
}
/// What is read where a table has no such row.
template <class T>
T missing_row() {
  if constexpr (std::is_integral_v<T>)
    return T{};
  else
    return T(std::numeric_limits<float>::quiet_NaN());
}
/// y[i] = from[named[i]], or `missing` where there are no so many rows. Of a table with several
/// columns, in which neighbours are `width` apart, number i is of column i. Whether all of some are
/// there is asked first, by vectors.
template <class T, class Index, class Width = std::integral_constant<std::int64_t, 0>>
void gather_numbers(const T* from, std::int64_t rows, const Index* named, std::int64_t n, T missing,
                    T* y, Width width = {}) {
  using number = std::make_unsigned_t<Index>;
  constexpr std::int64_t together = 256;
  constexpr bool columns = std::is_same_v<Width, std::int64_t>;
  const auto element = [&](std::int64_t i) __attribute__((always_inline)) {
    const auto row = static_cast<std::int64_t>(named[i]);
    return columns ? from[row * width + i] : from[row];
  };
  // Negative ones are larger than all others.
  const auto most = static_cast<number>(
      std::min<std::uint64_t>(std::uint64_t(rows) - 1, std::numeric_limits<Index>::max()));
  for (std::int64_t first = 0; first < n; first += together) {
    const std::int64_t last = std::min(n, first + together);
    number outside = rows == 0;
    for (std::int64_t i = first; i < last; ++i) outside |= static_cast<number>(named[i]) > most;
    if (outside == 0) {
#pragma GCC unroll 8
      for (std::int64_t i = first; i < last; ++i) y[i] = element(i);
    } else {
      for (std::int64_t i = first; i < last; ++i)
        y[i] = rows > 0 && static_cast<number>(named[i]) <= most ? element(i) : missing;
    }
  }
}
/// Whether the sums are of single numbers, and the loops over a row would take most of the time.
constexpr bool counts(const indexed_rows& e) { return e.width == 1; }

}  // namespace detail

constexpr int gather_units(const indexed_rows& e) {
  const std::int64_t each = detail::rows_of_gather(e);
  return int((e.outer * e.count + each - 1) / each);
}
constexpr int scatter_units(const indexed_rows& e) {
  constexpr std::int64_t each = detail::columns_of_scatter;
  return int(e.outer == 1 ? (e.width + each - 1) / each : e.outer);
}
constexpr int put_rows_units(const row_changes& e) {
  // Each unit looks at all indices, which takes less than to wait for a few far rows.
  return e.count >= 256 && e.width >= 16 ? 4 : 1;
}
constexpr std::int64_t scatter_scratch(const indexed_rows& e) {
  return detail::counts(e) ? 0 : e.rows;
}

template <class T, class Index>
void gather_rows(work_range units, const indexed_rows& e, const T* table, const Index* indices,
                 T* y) {
  const std::int64_t each = detail::rows_of_gather(e);
  const std::int64_t last = std::min(e.outer * e.count, units.last * each);
  const T missing = detail::missing_row<T>();
  for (std::int64_t row = units.first * each; row < last;) {
    const std::int64_t first = row % e.count, n = std::min(last - row, e.count - first);
    const T* const from = table + row / e.count * e.rows * e.width;
    const Index* const named = indices + first;
    T* const to = y + row * e.width;
    if (e.width == 1) detail::gather_numbers(from, e.rows, named, n, missing, to);
    for (std::int64_t i = e.width == 1 ? n : 0; i < n; ++i) {
      const auto r = static_cast<std::int64_t>(named[i]);
      if (r >= 0 && r < e.rows)
        std::memcpy(to + i * e.width, from + r * e.width, std::size_t(e.width) * sizeof(T));
      else
        std::fill_n(to + i * e.width, e.width, missing);
    }
    row += n;
  }
}
CELLA_COMPILED_ONCE(gather_rows<float, std::int32_t>);

namespace detail {

template <class T, class Index, class X>
[[gnu::always_inline]] inline void scatter_each(const indexed_rows& e, X x, const Index* indices,
                                                T* table) {
  std::int64_t i = 0;
  const auto add_to = [&](T * to, std::int64_t k) __attribute__((always_inline)) {
    const auto r = static_cast<std::int64_t>(indices[k]);
    if (r >= 0 && r < e.rows) to[r] = cella::detail::wrapping_sum(to[r], x(k));
  };
  std::fill_n(table, e.rows, T(0));
  if constexpr (std::is_integral_v<T>) {
    // A number that was just added to is waited for, and few are added to often. Sums of integers
    // may be made in any order: neighbours have tables of their own.
    constexpr std::int64_t few = 256, ways = 4;
    if (e.rows <= few && e.count >= 4 * ways * e.rows) {
      T others[ways - 1][few];
      for (auto& other : others) std::fill_n(other, e.rows, T(0));
      for (; i + ways <= e.count; i += ways) {
        add_to(table, i);
        for (std::int64_t k = 1; k < ways; ++k) add_to(others[k - 1], i + k);
      }
      for (const auto& other : others) {
        for (std::int64_t r = 0; r < e.rows; ++r)
          table[r] = cella::detail::wrapping_sum(table[r], other[r]);
      }
    }
  }
  for (; i < e.count; ++i) add_to(table, i);
}

}  // namespace detail

template <class T, class Index>
void scatter_numbers(const indexed_rows& e, const T* x, const Index* indices, T* table) {
  detail::scatter_each(
      e, [=](std::int64_t i) { return x[i]; }, indices, table);
}
template <class T, class Index>
void scatter_numbers(const indexed_rows& e, T x, const Index* indices, T* table) {
  detail::scatter_each(
      e, [=](std::int64_t) { return x; }, indices, table);
}

template <bool Past, class T, class Index>
void scatter_rows(work_range units, const indexed_rows& e, const T* x, const Index* indices,
                  T* table, std::byte* scratch) {
  if (e.outer > 1) {
    const indexed_rows one{e.rows, e.width, e.count};
    for (std::int64_t o = units.first; o < units.last; ++o)
      scatter_rows<Past>({0, scatter_units(one)}, one, x + o * e.count * e.width, indices,
                         table + o * e.rows * e.width, scratch);
    return;
  }
  if (detail::counts(e)) return scatter_numbers(e, x, indices, table);
  constexpr int L = lanes<T>;
  const std::int64_t first = units.first * detail::columns_of_scatter;
  const std::int64_t last = std::min(e.width, units.last * detail::columns_of_scatter);
  // What whole vectors leave over is added number by number and not masked: a row that was just
  // added to is read again from the stores under way, which must be as wide as the reads.
  const std::int64_t whole = first + (last - first) / L * L;
  const auto put = [&](T* to, auto value) {
    for (std::int64_t j = first; j < whole; j += L) store_vector<Past>(to + j, value(j));
  };
  const vec<T> zero(T(0));
  // The first row of an index is stored, so that the table need not be zeroed and read again.
  std::memset(scratch, 0, std::size_t(e.rows));
  for (std::int64_t i = 0; i < e.count; ++i) {
    const auto r = static_cast<std::int64_t>(indices[i]);
    if (r < 0 || r >= e.rows) continue;
    const T* const from = x + i * e.width;
    T* const to = table + r * e.width;
    if (scratch[r] == std::byte{0}) {
      scratch[r] = std::byte{1};
      put(to, [&](std::int64_t j) { return zero + load_unaligned(from + j); });
      for (std::int64_t j = whole; j < last; ++j) to[j] = T(0) + from[j];
    } else {
      for (std::int64_t j = first; j < whole; j += L)
        store_unaligned(to + j, load_unaligned(to + j) + load_unaligned(from + j));
      for (std::int64_t j = whole; j < last; ++j) to[j] += from[j];
    }
  }
  for (std::int64_t r = 0; r < e.rows; ++r) {
    if (scratch[r] != std::byte{0}) continue;
    T* const to = table + r * e.width;
    put(to, [&](std::int64_t) { return zero; });
    std::fill(to + whole, to + last, T(0));
  }
}
CELLA_COMPILED_ONCE(scatter_rows<false, float, std::int32_t>);

template <class T, class Index>
void put_rows(work_range units, const row_changes& e, const Index* indices, const T* x, T* table,
              bool shared) {
  constexpr int L = lanes<T>;
  // So many rows ahead of their turn their first lines are asked for: tables are larger than
  // caches.
  constexpr std::int64_t ahead = 12;
  const std::int64_t all = shared ? put_rows_units(e) : 1;
  const auto mine = [&](std::int64_t r) {
    return r >= 0 && r < e.rows && (all == 1 || (r % all >= units.first && r % all < units.last));
  };
  for (std::int64_t o = 0; o < e.outer; ++o, table += e.rows * e.width) {
    for (std::int64_t i = 0; i < e.count; ++i, x += e.width) {
      if (i + ahead < e.count) {
        const auto next = static_cast<std::int64_t>(indices[i + ahead]);
        if (mine(next)) detail::prefetch_row(table + next * e.width, e.width);
      }
      const auto r = static_cast<std::int64_t>(indices[i]);
      if (!mine(r)) continue;
      T* const to = table + r * e.width;
      if (!e.adds) {
        std::memcpy(to, x, std::size_t(e.width) * sizeof(T));
        continue;
      }
      std::int64_t j = 0;
      for (; j + L <= e.width; j += L)
        store_unaligned(to + j, load_unaligned(to + j) + load_unaligned(x + j));
      for (; j < e.width; ++j) to[j] += x[j];
    }
  }
}

}  // namespace cella::cpu
