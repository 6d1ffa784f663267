// Single elements by index: each from or to a place of its own along an axis; ones among zeros.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/rows/indexed_rows.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/ops/numbers.hpp>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace cella::cpu {

/// A table [outer, rows, inner], and indices [outer, count, inner] along its middle axis.
struct indexed_elements {
  std::int64_t outer{}, rows{}, count{}, inner{};
};

/// Units of work: some of the outer parts of both.
constexpr int indexed_elements_units(const indexed_elements& e);

/// y[o,i,j] = table[o, index[o,i,j], j]; NaN (0 among integers) where the table has no such row.
template <class T, class Index>
void gather_elements(work_range units, const indexed_elements& e, const T* table,
                     const Index* indices, T* y);

/// table = 0, then table[o, index[o,i,j], j] += x[o,i,j], in this order; what the table lacks is
/// dropped.
template <class T, class Index>
void scatter_elements(work_range units, const indexed_elements& e, const T* x, const Index* indices,
                      T* table);

/// Units of work: some of the indices.
constexpr int one_hot_units(std::int64_t count, std::int64_t depth);

/// y[i,k] = 1 where k = index[i], else 0.
template <class T, class Index>
void one_hot(work_range units, std::int64_t count, std::int64_t depth, const Index* indices, T* y);

namespace detail {

inline constexpr std::int64_t elements_of_unit = 4096;  // or one outer part, or one index

constexpr std::int64_t parts_of_unit(std::int64_t elements_of_part) {
  return std::max<std::int64_t>(1, elements_of_unit / std::max<std::int64_t>(1, elements_of_part));
}
constexpr int units_of(std::int64_t parts, std::int64_t each) {
  return int((parts + each - 1) / each);
}
/// Calls f(place in the table, place among the indices) for those of outer part o; -1 where the
/// table has no such row.
template <class Index, class F>
[[gnu::always_inline]] inline void for_each_element(const indexed_elements& e, std::int64_t o,
                                                    const Index* indices, F f) {
  const std::int64_t first = o * e.rows * e.inner;
  std::int64_t k = o * e.count * e.inner;
  const auto row = [&](std::int64_t i) __attribute__((always_inline)) {
    const auto r = static_cast<std::int64_t>(indices[i]);
    return r >= 0 && r < e.rows ? r : -1;
  };
  if (e.inner == 1) {
    for (const std::int64_t end = k + e.count; k < end; ++k) {
      const std::int64_t r = row(k);
      f(r < 0 ? r : first + r, k);
    }
    return;
  }
  for (std::int64_t i = 0; i < e.count; ++i) {
    for (std::int64_t j = 0; j < e.inner; ++j, ++k) {
      const std::int64_t r = row(k);
      f(r < 0 ? r : first + r * e.inner + j, k);
    }
  }
}
template <class T>
constexpr T missing_element() {
  if constexpr (std::is_floating_point_v<T>)
    return std::numeric_limits<T>::quiet_NaN();
  else
    return T{};
}

}  // namespace detail

constexpr int indexed_elements_units(const indexed_elements& e) {
  return detail::units_of(e.outer, detail::parts_of_unit(std::max(e.rows, e.count) * e.inner));
}
constexpr int one_hot_units(std::int64_t count, std::int64_t depth) {
  return detail::units_of(count, detail::parts_of_unit(depth));
}

template <class T, class Index>
void gather_elements(work_range units, const indexed_elements& e, const T* table,
                     const Index* indices, T* y) {
  const std::int64_t each = detail::parts_of_unit(std::max(e.rows, e.count) * e.inner);
  const std::int64_t last = std::min(e.outer, units.last * each);
  for (std::int64_t o = units.first * each; o < last; ++o) {
    const T* const from = table + o * e.rows * e.inner;
    const Index* const named = indices + o * e.count * e.inner;
    T* const to = y + o * e.count * e.inner;
    const T missing = detail::missing_element<T>();
    if (e.inner == 1) {
      detail::gather_numbers(from, e.rows, named, e.count, missing, to);
      continue;
    }
    for (std::int64_t i = 0; i < e.count; ++i) {
      const std::int64_t row = i * e.inner;
      detail::gather_numbers(from, e.rows, named + row, e.inner, missing, to + row, e.inner);
    }
  }
}

template <class T, class Index>
void scatter_elements(work_range units, const indexed_elements& e, const T* x, const Index* indices,
                      T* table) {
  const std::int64_t each = detail::parts_of_unit(std::max(e.rows, e.count) * e.inner);
  const std::int64_t last = std::min(e.outer, units.last * each);
  for (std::int64_t o = units.first * each; o < last; ++o) {
    std::fill_n(table + o * e.rows * e.inner, e.rows * e.inner, T{});
    detail::for_each_element(e, o, indices, [&](std::int64_t to, std::int64_t from) {
      if (to >= 0) table[to] = cella::detail::wrapping_sum(table[to], x[from]);
    });
  }
}

template <class T, class Index>
void one_hot(work_range units, std::int64_t count, std::int64_t depth, const Index* indices, T* y) {
  const std::int64_t each = detail::parts_of_unit(depth);
  const std::int64_t first = units.first * each, last = std::min(count, units.last * each);
  std::fill_n(y + first * depth, (last - first) * depth, T{});
  for (std::int64_t i = first; i < last; ++i) {
    const auto hot = static_cast<std::int64_t>(indices[i]);
    if (hot >= 0 && hot < depth) y[i * depth + hot] = T(1);
  }
}

}  // namespace cella::cpu
