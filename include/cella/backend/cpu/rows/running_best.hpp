// Where the extrema so far are, along an axis.
#pragma once

#include <array>
#include <bit>
#include <cella/backend/cpu/rows/running.hpp>
#include <cella/backend/cpu/simd/simd.hpp>

namespace cella::cpu {

/// Where the first of the largest (or smallest) elements up to each one lies; NaN is both. Units
/// are those of running_units.
template <bool Largest, class T>
void running_best(work_range units, const running_extents& e, const T* x, std::int64_t* y);

// ------------------------------------------------------------------------------------------------

namespace detail {

/// Whether v takes the place of `best`: the first NaN does, and nothing takes its place.
template <bool Largest, class T>
[[gnu::always_inline]] inline bool takes_over(T v, T best) {
  return ((Largest ? v > best : v < best) | (v != v)) & (best == best);
}
/// Which of up to 16 elements would take over, as bits.
template <bool Largest, class T>
[[gnu::always_inline]] inline unsigned all_that_take_over(const T* x, int count, T best) {
  unsigned bits = 0;
  if constexpr (std::is_floating_point_v<T>) {
    const vec<T> b(best);
    for (int j = 0; j < count; j += lanes<T>) {
      const vec<T> v = load_first(x + j, std::min(lanes<T>, count - j));
      bits |= ((Largest ? greater(v, b) : greater(b, v)) | unordered(v, v)) << j;
    }
    return best == best ? bits & first_bits(count) : 0;
  } else {
    for (int j = 0; j < count; ++j) bits |= unsigned{takes_over<Largest>(x[j], best)} << j;
    return bits;
  }
}

/// Along a row: of most groups of elements none takes over, which is asked of all at once.
template <bool Largest, class T>
void best_along_row(std::int64_t n, bool reverse, const T* x, std::int64_t* y) {
  constexpr std::int64_t group = 16;
  std::int64_t at = reverse ? n - 1 : 0;
  T best = x[at];
  for (std::int64_t done = 0; done < n; done += group) {
    const int count = int(std::min(group, n - done));
    const std::int64_t first = reverse ? n - done - count : done;
    unsigned bits = all_that_take_over<Largest>(x + first, count, best);
    // Each of them holds from its place on, as far as the row is written.
    int from = reverse ? count : 0;
    while (bits) {
      const int j = reverse ? int(std::bit_width(bits)) - 1 : std::countr_zero(bits);
      bits &= ~(1u << j);
      if (!takes_over<Largest>(x[first + j], best)) continue;
      if (reverse) {
        std::fill(y + first + j + 1, y + first + from, at);
        from = j + 1;
      } else {
        std::fill(y + first + from, y + first + j, at);
        from = j;
      }
      best = x[first + j];
      at = first + j;
    }
    // Mostly all of them, as many as the compiler knows.
    const int low = reverse ? 0 : from, high = reverse ? from : count;
    if (high - low == group)
      std::fill_n(y + first, group, at);
    else
      std::fill(y + first + low, y + first + high, at);
  }
}

}  // namespace detail

template <bool Largest, class T>
void running_best(work_range units, const running_extents& e, const T* x, std::int64_t* y) {
  const std::int64_t n = e.lines.extent;
  if (e.lines.inner == 1) {
    const auto [row, last] = detail::rows_of_units(units, e);
    for (std::int64_t r = row; r < last; ++r)
      detail::best_along_row<Largest>(n, e.reverse, x + r * n, y + r * n);
    return;
  }
  detail::for_each_strip(units, e, [&](std::int64_t first, int columns) {
    std::array<T, detail::columns_of_running> best;
    std::array<std::int64_t, detail::columns_of_running> where;
    detail::along_strip(e, first, [&](std::int64_t at, std::int64_t i) {
      const std::int64_t place = e.reverse ? n - 1 - i : i;
      if (i == 0) {
        for (int j = 0; j < columns; ++j) best[std::size_t(j)] = x[at + j];
        std::fill(where.begin(), where.end(), place);
      }
      for (int j = 0; j < columns; ++j) {
        const T v = x[at + j];
        const bool takes = detail::takes_over<Largest>(v, best[std::size_t(j)]);
        best[std::size_t(j)] = takes ? v : best[std::size_t(j)];
        where[std::size_t(j)] = takes ? place : where[std::size_t(j)];
        y[at + j] = where[std::size_t(j)];
      }
    });
  });
}

}  // namespace cella::cpu
