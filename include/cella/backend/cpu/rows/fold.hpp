// Products along axes, and sums, products and extrema of integers and truth values.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/rows/best_position.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/ops/numbers.hpp>
#include <cstdint>
#include <type_traits>

namespace cella::cpu {

enum class fold_rule { sum, product, largest, smallest };

/// Units of work: strips of columns, or some lines.
constexpr int fold_units(const search_extents& e);

/// y[o,i] = the middle axis of x[o,.,i] folded; floating-point numbers in double precision,
/// integers modulo 2^n.
template <fold_rule Rule, class T>
void fold_lines(work_range units, const search_extents& e, const T* x, T* y);

namespace detail {

inline constexpr std::int64_t columns_of_fold = 64;
inline constexpr std::int64_t numbers_of_fold = 4096;  // of a unit of lines, or one line

template <fold_rule Rule, class N>
[[gnu::always_inline]] constexpr N folded(N a, N b) {
  if constexpr (Rule == fold_rule::sum)
    return cella::detail::wrapping_sum(a, b);
  else if constexpr (Rule == fold_rule::product)
    return cella::detail::wrapping_product(a, b);
  else if constexpr (Rule == fold_rule::largest)
    return std::max(a, b);
  else
    return std::min(a, b);
}
template <fold_rule Rule, class N>
constexpr N neutral() {
  if constexpr (Rule == fold_rule::largest)
    return std::numeric_limits<N>::lowest();
  else if constexpr (Rule == fold_rule::smallest)
    return std::numeric_limits<N>::max();
  else
    return Rule == fold_rule::product ? N(1) : N(0);
}
constexpr std::int64_t lines_of_fold(const search_extents& e) {
  return std::max<std::int64_t>(1, numbers_of_fold / std::max<std::int64_t>(1, e.extent));
}
constexpr std::int64_t strips_of_fold(const search_extents& e) {
  return (e.inner + columns_of_fold - 1) / columns_of_fold;
}

}  // namespace detail

constexpr int fold_units(const search_extents& e) {
  if (e.inner != 1) return int(e.outer * detail::strips_of_fold(e));
  const std::int64_t each = detail::lines_of_fold(e);
  return int((e.outer + each - 1) / each);
}

template <fold_rule Rule, class T>
void fold_lines(work_range units, const search_extents& e, const T* x, T* y) {
  using N = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  // So many at a time: each waits for the last product of its own.
  constexpr std::size_t apart = 32;
  if (e.inner == 1) {
    const std::int64_t each = detail::lines_of_fold(e);
    const std::int64_t last = std::min(e.outer, units.last * each);
    for (std::int64_t o = units.first * each; o < last; ++o) {
      const T* const line = x + o * e.extent;
      std::array<N, apart> parts;
      parts.fill(detail::neutral<Rule, N>());
      const auto add = [&](std::int64_t i, std::size_t count) __attribute__((always_inline)) {
        for (std::size_t k = 0; k < count; ++k)
          parts[k] = detail::folded<Rule>(parts[k], static_cast<N>(line[i + std::int64_t(k)]));
      };
      std::int64_t i = 0;
      for (; i + std::int64_t{apart} <= e.extent; i += std::int64_t{apart}) add(i, apart);
      add(i, std::size_t(e.extent - i));
      for (std::size_t half = apart / 2; half > 0; half /= 2) {
        for (std::size_t k = 0; k < half; ++k)
          parts[k] = detail::folded<Rule>(parts[k], parts[k + half]);
      }
      y[o] = static_cast<T>(parts[0]);
    }
    return;
  }
  const std::int64_t strips = detail::strips_of_fold(e);
  for (std::int64_t u = units.first; u < units.last; ++u) {
    const std::int64_t first = u % strips * detail::columns_of_fold;
    const auto columns = std::size_t(std::min(detail::columns_of_fold, e.inner - first));
    const T* row = x + u / strips * e.extent * e.inner + first;
    std::array<N, detail::columns_of_fold> all;
    all.fill(detail::neutral<Rule, N>());
    // Two rows and two at a time: the results are read and written less often.
    std::int64_t i = 0;
    for (; i + 4 <= e.extent; i += 4, row += 4 * e.inner) {
      const auto pair = [&](const T* at) __attribute__((always_inline)) {
        return detail::folded<Rule>(static_cast<N>(at[0]), static_cast<N>(at[e.inner]));
      };
      for (std::size_t j = 0; j < columns; ++j) {
        const N four = detail::folded<Rule>(pair(row + j), pair(row + 2 * e.inner + j));
        all[j] = detail::folded<Rule>(all[j], four);
      }
    }
    for (; i < e.extent; ++i, row += e.inner) {
      for (std::size_t j = 0; j < columns; ++j)
        all[j] = detail::folded<Rule>(all[j], static_cast<N>(row[j]));
    }
    T* const to = y + u / strips * e.inner + first;
    for (std::size_t j = 0; j < columns; ++j) to[j] = static_cast<T>(all[j]);
  }
}

}  // namespace cella::cpu
