// Products along axes, and sums, products and extrema of integers and truth values.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/rows/best_position.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/ops/numbers.hpp>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace cella::cpu {

enum class fold_rule { sum, product, largest, smallest };

/// Units of work: strips of columns, or some lines.
constexpr int fold_units(const search_extents& e);

/// y[o,i] = the middle axis of x[o,.,i] folded; of floating-point numbers only products, in double
/// precision; integers modulo 2^n.
template <fold_rule Rule, class T>
void fold_lines(work_range units, const search_extents& e, const T* x, T* y);

namespace detail {

inline constexpr std::int64_t columns_of_fold = 64;
/// So many are folded together, if they are in the same hands: memory is read in long stretches.
inline constexpr std::int64_t most_columns_of_fold = 16 * columns_of_fold;
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

/// A line of so many numbers, folded.
template <fold_rule Rule, class T>
T fold_line(const T* x, std::int64_t count) {
  // So many at a time: each waits for the last product of its own.
  constexpr std::size_t apart = 32;
  std::array<T, apart> parts;
  parts.fill(neutral<Rule, T>());
  const auto add = [&](std::int64_t i, std::size_t n) __attribute__((always_inline)) {
    for (std::size_t k = 0; k < n; ++k) parts[k] = folded<Rule>(parts[k], x[i + std::int64_t(k)]);
  };
  std::int64_t i = 0;
  for (; i + std::int64_t{apart} <= count; i += std::int64_t{apart}) add(i, apart);
  add(i, std::size_t(count - i));
  for (std::size_t half = apart / 2; half > 0; half /= 2) {
    for (std::size_t k = 0; k < half; ++k) parts[k] = folded<Rule>(parts[k], parts[k + half]);
  }
  return parts[0];
}
/// Doubles that numbers of type T are multiplied as, side by side. Those that are converted lie in
/// 256 bits at most: processors that compute 512 in two halves convert them in more than two steps
/// (a million floats on Zen 4: 65 microseconds instead of 40).
template <class T>
inline constexpr int factors = std::is_same_v<T, double> ? lanes<double>
                                                         : std::min(lanes<double>, 4);
template <class T>
using factor_lanes = typename compiler_vector<double, factors<T>>::type;
template <class T>
[[gnu::always_inline]] inline void load_factors(const T* x, factor_lanes<T>& to) {
#if defined(__AVX__)
  // What g++ makes of the conversion below are two halves and what joins them.
  if constexpr (std::is_same_v<T, float>) {
    to = _mm256_cvtps_pd(_mm_loadu_ps(x));
    return;
  }
#endif
  typename compiler_vector<T, factors<T>>::type given;
  std::memcpy(&given, x, sizeof given);
  to = __builtin_convertvector(given, factor_lanes<T>);
}

template <fold_rule Rule, std::floating_point T>
T fold_line(const T* x, std::int64_t count) {
  static_assert(Rule == fold_rule::product);
  constexpr int L = factors<T>, apart = 8;
  factor_lanes<T> parts[apart], next;
  for (auto& part : parts) part = 1 + factor_lanes<T>{};
  std::int64_t i = 0;
  for (; i + apart * L <= count; i += apart * L) {
    // Asked for ahead of time, memory does not wait for the conversions.
    constexpr int line = 64, ahead = 256, bytes = apart * L * int(sizeof(T));
#pragma GCC unroll 8
    for (int k = 0; k < bytes; k += line)
      __builtin_prefetch(reinterpret_cast<const char*>(x + i) + ahead + k);
#pragma GCC unroll 8
    for (int k = 0; k < apart; ++k) {
      load_factors(x + i + k * L, next);
      parts[k] *= next;
    }
  }
  for (; i + L <= count; i += L) {
    load_factors(x + i, next);
    parts[0] *= next;
  }
#pragma GCC unroll 4
  for (int half = apart / 2; half > 0; half /= 2) {
#pragma GCC unroll 4
    for (int k = 0; k < half; ++k) parts[k] *= parts[k + half];
  }
#pragma GCC unroll 8
  for (int half = L / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int k = 0; k < half; ++k) parts[0][k] *= parts[0][k + half];
  }
  double all = parts[0][0];
  for (; i < count; ++i) all *= static_cast<double>(x[i]);
  return static_cast<T>(all);
}

/// y[j] = x[.,j] folded over so many rows, which are `apart`, for some columns.
template <fold_rule Rule, class T>
void fold_columns(const T* x, std::int64_t rows, std::int64_t apart, std::size_t columns, T* y) {
  using N = std::conditional_t<std::is_floating_point_v<T>, double, T>;
  std::array<N, std::size_t(most_columns_of_fold)> all;
  std::fill_n(all.begin(), columns, neutral<Rule, N>());
  // Several rows at a time: the results are read and written less often.
  const auto add = [&]<int Rows>() __attribute__((always_inline)) {
    std::size_t j = 0;
    if constexpr (std::is_floating_point_v<T>) {
      constexpr auto L = std::size_t(factors<T>);
      for (; j + L <= columns; j += L) {
        factor_lanes<T> product, next;
        std::memcpy(&product, &all[j], sizeof product);
#pragma GCC unroll 8
        for (int k = 0; k < Rows; ++k) {
          load_factors(x + k * apart + j, next);
          product *= next;
        }
        std::memcpy(&all[j], &product, sizeof product);
      }
    }
    for (; j < columns; ++j) {
      N one = all[j];
#pragma GCC unroll 8
      for (int k = 0; k < Rows; ++k)
        one = folded<Rule>(one, static_cast<N>(x[k * apart + std::int64_t(j)]));
      all[j] = one;
    }
    x += Rows * apart;
  };
  constexpr int together = 8;
  std::int64_t i = 0;
  for (; i + together <= rows; i += together) add.template operator()<together>();
  for (; i < rows; ++i) add.template operator()<1>();
  for (std::size_t j = 0; j < columns; ++j) y[j] = static_cast<T>(all[j]);
}

}  // namespace detail

constexpr int fold_units(const search_extents& e) {
  if (e.inner != 1) return int(e.outer * detail::strips_of_fold(e));
  const std::int64_t each = detail::lines_of_fold(e);
  return int((e.outer + each - 1) / each);
}

template <fold_rule Rule, class T>
void fold_lines(work_range units, const search_extents& e, const T* x, T* y) {
  if (e.inner == 1) {
    const std::int64_t each = detail::lines_of_fold(e);
    const std::int64_t last = std::min(e.outer, units.last * each);
    for (std::int64_t o = units.first * each; o < last; ++o)
      y[o] = detail::fold_line<Rule>(x + o * e.extent, e.extent);
    return;
  }
  const std::int64_t strips = detail::strips_of_fold(e);
  for (std::int64_t u = units.first; u < units.last;) {
    const std::int64_t outer = u / strips, strip = u % strips;
    const std::int64_t taken = std::min(
        {units.last - u, strips - strip, detail::most_columns_of_fold / detail::columns_of_fold});
    const std::int64_t first = strip * detail::columns_of_fold;
    const std::int64_t columns = std::min(taken * detail::columns_of_fold, e.inner - first);
    detail::fold_columns<Rule>(x + outer * e.extent * e.inner + first, e.extent, e.inner,
                               std::size_t(columns), y + outer * e.inner + first);
    u += taken;
  }
}

}  // namespace cella::cpu
