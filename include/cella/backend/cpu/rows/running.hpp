// Running results along an axis: sums and recurrences. The extrema so far: running_best.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cella/backend/cpu/rows/best_position.hpp>
#include <cella/backend/cpu/simd/numbers_in_parts.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/ops/numbers.hpp>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace cella::cpu {

/// Lines along the middle axis of a tensor seen as [outer, extent, inner], from their ends if
/// `reverse`.
struct running_extents {
  search_extents lines{};
  bool reverse{};
};

/// Units of work: lines that lie beside each other, or some rows.
constexpr int running_units(const running_extents& e);

/// y_i = x_0 + ... + x_i along each line, or without x_i if `exclusive`. Sums are taken in double
/// precision, those of integers modulo 2^n.
template <class T>
void running_sums(work_range units, const running_extents& e, bool exclusive, const T* x, T* y);

/// y_i = a_i y_(i-1) + x_i along each line, with y_0 = x_0; in double precision.
template <class T>
void running_recurrences(work_range units, const running_extents& e, const T* a, const T* x, T* y);

namespace detail {

inline constexpr std::int64_t columns_of_running = 64;
/// Lines that are computed at a time: each waits for its last sum, the others need not.
inline constexpr int lines_at_a_time = 4;
/// From this length on a line alone is cut into as many parts.
inline constexpr std::int64_t long_line = 128;

constexpr std::int64_t running_strips(const running_extents& e) {
  return e.lines.inner == 1 ? 1 : (e.lines.inner + columns_of_running - 1) / columns_of_running;
}

/// What sums of T are taken in.
template <class T>
using running_total = std::conditional_t<std::is_floating_point_v<T>, double, T>;

/// Where some lines begin, and how far their elements are apart (negative: they run back).
struct line_places {
  std::int64_t first{}, between{}, step{};
};
constexpr line_places places_of_lines(const running_extents& e, std::int64_t first,
                                      std::int64_t between) {
  return e.reverse ? line_places{first + e.lines.extent - 1, between, -1}
                   : line_places{first, between, 1};
}
/// Elements [from, to) of a line that begins `at`.
constexpr line_places part_of_line(line_places p, std::int64_t from) {
  return {p.first + p.step * from, 0, p.step};
}

template <class T>
struct sum_rule {
  using number = T;
  using total = running_total<T>;
  const T* x;
  T* y;
  bool exclusive;
  total start() const { return total{}; }
  [[gnu::always_inline]] total next(total before, std::int64_t i) const {
    return cella::detail::wrapping_sum(before, static_cast<total>(x[i]));
  }
  [[gnu::always_inline]] void put(std::int64_t i, total before, total after) const {
    y[i] = static_cast<T>(exclusive ? before : after);
  }
};

/// Lines that begin at `p.first + k p.between`; `totals` are those in front of them, and then at
/// their ends.
template <int Lines, bool Stores, class Rule>
void run_lines(const Rule& rule, line_places p, std::int64_t count,
               std::array<typename Rule::total, std::size_t(Lines)>& totals) {
  std::array<std::int64_t, std::size_t(Lines)> at;
  for (int k = 0; k < Lines; ++k) at[std::size_t(k)] = p.first + k * p.between;
  auto total = totals;
  for (std::int64_t n = 0; n < count; ++n) {
#pragma GCC unroll 8
    for (std::size_t k = 0; k < std::size_t(Lines); ++k) {
      const std::int64_t i = at[k] + n * p.step;
      const auto after = rule.next(total[k], i);
      if constexpr (Stores) rule.put(i, total[k], after);
      total[k] = after;
    }
  }
  totals = total;
}

/// One line. A long one is cut into parts, whose sums are taken first, so that they can run beside
/// each other.
template <class T>
void run_one_line(const sum_rule<T>& rule, line_places p, std::int64_t count) {
  std::array<running_total<T>, 1> total{};
  if (count < long_line) return run_lines<1, true>(rule, p, count, total);
  const std::int64_t each = count / lines_at_a_time;
  line_places parts{p.first, p.step * each, p.step};
  std::array<running_total<T>, lines_at_a_time> totals{};
  run_lines<lines_at_a_time, false>(rule, parts, each, totals);
  running_total<T> before{};
  for (auto& t : totals) {
    const auto sum = t;
    t = before;
    before = cella::detail::wrapping_sum(before, sum);
  }
  run_lines<lines_at_a_time, true>(rule, parts, each, totals);
  total[0] = totals.back();
  run_lines<1, true>(rule, part_of_line(p, lines_at_a_time * each), count - lines_at_a_time * each,
                     total);
}

template <class T>
struct recurrence_rule {
  using total = running_total<T>;
  const T *a, *x;
  T* y;
  [[gnu::always_inline]] total next(total before, std::int64_t i) const {
    return cella::detail::wrapping_sum(
        cella::detail::wrapping_product(static_cast<total>(a[i]), before),
        static_cast<total>(x[i]));
  }
  [[gnu::always_inline]] void put(std::int64_t i, total, total after) const {
    y[i] = static_cast<T>(after);
  }
};
/// The same where all x are 0.
template <class T>
struct product_rule {
  using total = double;
  const T* a;
  T* y;
  [[gnu::always_inline]] double next(double before, std::int64_t i) const {
    return static_cast<double>(a[i]) * before + 0.0;
  }
  [[gnu::always_inline]] void put(std::int64_t i, double, double after) const {
    y[i] = static_cast<T>(after);
  }
};
/// Whether all of so many numbers are 0 without a sign.
template <class T>
bool are_zero(const T* x, std::int64_t count) {
  using bits = typename format<T>::integer;
  constexpr std::int64_t block = 64;
  for (std::int64_t i = 0; i < count; i += block) {
    bits any = 0;
    for (std::int64_t j = i, end = std::min(i + block, count); j < end; ++j)
      any |= std::bit_cast<bits>(x[j]);
    if (any != 0) return false;
  }
  return true;
}

/// The product of so many factors; 0 if one in between is so large or so small that digits of it
/// might be lost.
template <class T>
double product_in_range(const T* a, std::int64_t count) {
  constexpr double least = 1e-100, most = 1e100;
  constexpr int L = lanes<T>;
  using v = vec<double>;
  std::array<v, 4> parts, low, high;
  for (auto* all : {&parts, &low, &high}) all->fill(v(1.0));
  const auto multiply = [&](std::size_t k, v factor) __attribute__((always_inline)) {
    parts[k] = parts[k] * factor;
    const v size = xsimd::abs(parts[k]);
    low[k] = minimum(low[k], size);
    high[k] = maximum(high[k], size);
  };
  std::int64_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    for (; i + 2 * L <= count; i += 2 * L) {
      const wide_lanes x = widen(load_unaligned(a + i)), y = widen(load_unaligned(a + i + L));
      multiply(0, x.low);
      multiply(1, x.high);
      multiply(2, y.low);
      multiply(3, y.high);
    }
  } else {
    for (; i + L <= count; i += L) multiply(0, load_unaligned(a + i));
  }
  double all = 1;
  bool inside = true;
  const auto take = [&](double factor) {
    all *= factor;
    inside &= std::abs(all) >= least && std::abs(all) <= most;
  };
  for (std::size_t k = 0; k < parts.size(); ++k) {
    inside &= !greater(v(least), low[k]) && !greater(high[k], v(most));
    alignas(64) double each[lanes<double>];
    store(each, parts[k]);
    for (double factor : each) take(factor);
  }
  for (; i < count; ++i) take(static_cast<double>(a[i]));
  return inside ? all : 0;
}

/// One line behind its first element h. A long product is cut into parts, which are multiplied up
/// first, so that they can run beside each other.
template <class T>
void run_one_line(const recurrence_rule<T>& rule, line_places p, std::int64_t count,
                  running_total<T> h) {
  std::array<running_total<T>, 1> total{h};
  if constexpr (std::is_floating_point_v<T>) {
    constexpr int parts = 8;
    const std::int64_t each = count / parts;
    std::array<double, parts> starts;
    // Where elements from number k on, so many, begin in memory.
    const auto lowest = [&](std::int64_t k, std::int64_t n) {
      return p.first + p.step * k - (p.step < 0 ? n - 1 : 0);
    };
    bool cut = count >= long_line && are_zero(rule.x + lowest(0, count), count);
    for (int k = 0; k < parts && cut; ++k) {
      starts[std::size_t(k)] = h;
      h *= product_in_range(rule.a + lowest(each * k, each), each);
      cut = std::abs(h) >= 1e-200 && std::abs(h) <= 1e200;
    }
    if (cut) {
      run_lines<parts, true>(product_rule<T>{rule.a, rule.y}, {p.first, p.step * each, p.step},
                             each, starts);
      total[0] = starts.back();
      p = part_of_line(p, parts * each);
      count -= parts * each;
    }
  }
  run_lines<1, true>(rule, p, count, total);
}

/// Calls f(first element, how many columns beside it) for each strip of columns among the units.
template <class F>
void for_each_strip(work_range units, const running_extents& e, F f) {
  const std::int64_t strips = running_strips(e), inner = e.lines.inner;
  for (std::int64_t u = units.first; u < units.last; ++u) {
    const std::int64_t first = u % strips * columns_of_running;
    f(u / strips * e.lines.extent * inner + first,
      int(std::min(columns_of_running, inner - first)));
  }
}
/// Calls f(first element of a row of it) along the lines of a strip.
template <class F>
[[gnu::always_inline]] inline void along_strip(const running_extents& e, std::int64_t first, F f) {
  const std::int64_t inner = e.lines.inner, n = e.lines.extent;
  for (std::int64_t i = 0; i < n; ++i) f(first + (e.reverse ? n - 1 - i : i) * inner, i);
}
/// Lines [first, last) of the units, if they are rows.
constexpr std::array<std::int64_t, 2> rows_of_units(work_range units, const running_extents& e) {
  return {units.first * std::int64_t{lines_at_a_time},
          std::min(units.last * std::int64_t{lines_at_a_time}, e.lines.outer)};
}

}  // namespace detail

constexpr int running_units(const running_extents& e) {
  if (e.lines.outer * e.lines.extent * e.lines.inner == 0) return 0;
  constexpr std::int64_t each = detail::lines_at_a_time;
  return int(e.lines.inner == 1 ? (e.lines.outer + each - 1) / each
                                : e.lines.outer * detail::running_strips(e));
}

template <class T>
void running_sums(work_range units, const running_extents& e, bool exclusive, const T* x, T* y) {
  using total = detail::running_total<T>;
  if (e.lines.inner == 1) {
    const detail::sum_rule<T> rule{x, y, exclusive};
    const std::int64_t n = e.lines.extent;
    auto [row, last] = detail::rows_of_units(units, e);
    for (; row + detail::lines_at_a_time <= last; row += detail::lines_at_a_time) {
      std::array<total, detail::lines_at_a_time> totals{};
      detail::run_lines<detail::lines_at_a_time, true>(rule, detail::places_of_lines(e, row * n, n),
                                                       n, totals);
    }
    for (; row < last; ++row) detail::run_one_line(rule, detail::places_of_lines(e, row * n, n), n);
    return;
  }
  detail::for_each_strip(units, e, [&](std::int64_t first, int columns) {
    std::array<total, detail::columns_of_running> sums{};
    detail::along_strip(e, first, [&](std::int64_t at, std::int64_t) {
      for (int j = 0; j < columns; ++j) {
        const total before = sums[std::size_t(j)];
        const total after = cella::detail::wrapping_sum(before, static_cast<total>(x[at + j]));
        y[at + j] = static_cast<T>(exclusive ? before : after);
        sums[std::size_t(j)] = after;
      }
    });
  });
}

template <class T>
void running_recurrences(work_range units, const running_extents& e, const T* a, const T* x, T* y) {
  using total = detail::running_total<T>;
  const detail::recurrence_rule<T> rule{a, x, y};
  if (e.lines.inner == 1) {
    constexpr int lines = detail::lines_at_a_time;
    const std::int64_t n = e.lines.extent;
    // The first element, and the places behind it.
    const auto start = [&](std::int64_t row, total& h) {
      const auto p = detail::places_of_lines(e, row * n, n);
      h = static_cast<total>(x[p.first]);
      y[p.first] = x[p.first];
      return detail::line_places{p.first + p.step, p.between, p.step};
    };
    auto [row, last] = detail::rows_of_units(units, e);
    for (; row + lines <= last; row += lines) {
      std::array<total, std::size_t(lines)> h;
      for (int k = lines; k-- > 1;) start(row + k, h[std::size_t(k)]);
      detail::run_lines<lines, true>(rule, start(row, h[0]), n - 1, h);
    }
    for (; row < last; ++row) {
      total h;
      const auto p = start(row, h);
      detail::run_one_line(rule, p, n - 1, h);
    }
    return;
  }
  detail::for_each_strip(units, e, [&](std::int64_t first, int columns) {
    std::array<total, detail::columns_of_running> h;
    detail::along_strip(e, first, [&](std::int64_t at, std::int64_t i) {
      if (i == 0) {
        for (int j = 0; j < columns; ++j) h[std::size_t(j)] = static_cast<total>(x[at + j]);
      } else {
        for (int j = 0; j < columns; ++j) h[std::size_t(j)] = rule.next(h[std::size_t(j)], at + j);
      }
      for (int j = 0; j < columns; ++j) y[at + j] = static_cast<T>(h[std::size_t(j)]);
    });
  });
}

}  // namespace cella::cpu
