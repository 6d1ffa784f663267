// Rows combined at those of a table by index: by their product, the largest or the smallest.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/rows/fold.hpp>
#include <cella/backend/cpu/rows/indexed_rows.hpp>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace cella::cpu {

/// Units of work: stretches of columns.
constexpr int reduced_rows_units(const indexed_rows& e) {
  constexpr std::int64_t each = detail::columns_of_scatter;
  return int((e.width + each - 1) / each);
}

/// table = what changes nothing, then table[indices[i]] is combined with x[i] in the order of i;
/// rows that the table lacks are dropped. NaN is the largest and the smallest.
template <fold_rule Rule, class T, class Index>
void reduce_rows(work_range units, const indexed_rows& e, const T* x, const Index* indices,
                 T* table);

namespace detail {

template <fold_rule Rule, class T>
[[gnu::always_inline]] constexpr T combined(T there, T v) {
  if constexpr (Rule == fold_rule::product)
    return cella::detail::wrapping_product(there, v);
  else
    return ((Rule == fold_rule::largest ? v > there : v < there) | (v != v)) ? v : there;
}
template <fold_rule Rule, class T>
constexpr T least_combined() {
  if constexpr (Rule != fold_rule::product && std::is_floating_point_v<T>)
    return (Rule == fold_rule::largest ? T(-1) : T(1)) * std::numeric_limits<T>::infinity();
  else
    return neutral<Rule, T>();
}

}  // namespace detail

template <fold_rule Rule, class T, class Index>
void reduce_rows(work_range units, const indexed_rows& e, const T* x, const Index* indices,
                 T* table) {
  const std::int64_t first = units.first * detail::columns_of_scatter;
  const std::int64_t last = std::min(units.last * detail::columns_of_scatter, e.width);
  for (std::int64_t r = 0; r < e.rows; ++r)
    std::fill(table + r * e.width + first, table + r * e.width + last,
              detail::least_combined<Rule, T>());
  for (std::int64_t i = 0; i < e.count; ++i) {
    const auto r = static_cast<std::int64_t>(indices[i]);
    if (r < 0 || r >= e.rows) continue;
    const T* const from = x + i * e.width;
    T* const to = table + r * e.width;
    for (std::int64_t j = first; j < last; ++j) to[j] = detail::combined<Rule>(to[j], from[j]);
  }
}

}  // namespace cella::cpu
