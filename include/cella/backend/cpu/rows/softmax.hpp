// Softmax and its logarithm along one axis.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/rows/softmax_rows.hpp>
#include <cella/backend/cpu/simd/long_sum.hpp>

namespace cella::cpu {

/// A tensor [outer][extent][inner], normalized along the middle axis.
struct softmax_extents {
  std::int64_t outer = 1;
  int extent = 1;
  std::int64_t inner = 1;
};

namespace detail {

/// Vectors of neighbouring lines that are normalized together where the axis is not the last one.
inline constexpr int softmax_vectors = 8;

template <class T>
constexpr std::int64_t softmax_pieces(const softmax_extents& e) {
  constexpr int width = softmax_vectors * lanes<T>;
  return (e.inner + width - 1) / width;
}

/// A row of neighbours. Three passes over what a cache holds; memory is read and written once, and
/// fetched while exponentials are computed: the next row, and the place of this one's result. The
/// exponentials are kept there, or, where results are stored past the caches, in `powers`.
template <bool Logarithm, bool Past, class T>
void softmax_row(const T* x, int n, T* powers, T* y) {
  constexpr int L = lanes<T>;
  const int whole = n / L * L, rest = n - whole;
  const T top = largest(x, n);
  const vec<T> offset(top);
  if constexpr (!Past) powers = y;
  vector_sum<T> total;
  for (int j = 0; j < whole; j += L) {
    __builtin_prefetch(x + n + j);
    const vec<T> p = exponential<T>(load_unaligned(x + j) - offset);
    total.add(p);
    if constexpr (!Logarithm)
      store_unaligned(powers + j, p);
    else if constexpr (!Past)
      __builtin_prefetch(y + j, 1);
  }
  if (rest) {
    const vec<T> p = keep(first_bits(rest), exponential<T>(load_first(x + whole, rest) - offset));
    total.add(p);
    if constexpr (!Logarithm) store_first(powers + whole, rest, p);
  }
  const T power_sum = total.over_lanes();
  const vec<T> factor(T(1) / power_sum), logarithm_of_sum(std::log(power_sum));
  const auto finish = [&](vec<T> v) {
    if constexpr (Logarithm)
      return (v - offset) - logarithm_of_sum;
    else
      return v * factor;
  };
  const T* const from = Logarithm ? x : powers;
  for (int j = 0; j < whole; j += L) store_vector<Past>(y + j, finish(load_unaligned(from + j)));
  if (rest) store_first(y + whole, rest, finish(load_first(from + whole, rest)));
}

/// `columns` neighbouring lines, at most `softmax_vectors` vectors, or as many if they are `Whole`,
/// whose elements lie `stride` apart. Three passes over what a cache holds, a run of elements at a
/// time, so that sums lie in registers; the processor does not guess where the next ones are.
template <bool Logarithm, bool Whole, class T>
void softmax_columns(const T* x, int extent, std::int64_t stride, int columns, T* y) {
  constexpr int L = lanes<T>, V = softmax_vectors;
  const int vectors = Whole ? V : (columns + L - 1) / L;
  const auto get = [&](const T* at, int v) {
    return Whole ? load_unaligned(at + v * L)
                 : load_first(at + v * L, std::min(L, columns - v * L));
  };
  const auto put = [&](T* at, int v, vec<T> value) {
    if constexpr (Whole)
      store_unaligned(at + v * L, value);
    else
      store_first(at + v * L, std::min(L, columns - v * L), value);
  };
  // Calls f(first element, elements) for runs of elements.
  const auto for_runs = [&](auto f) {
    for (int i = 0; i < extent; i += sum_run) f(i * stride, std::min(sum_run, extent - i));
  };
  vec<T> top[V], factor[V];
  long_sum<T> total[V];
  for (int v = 0; v < vectors; ++v) top[v] = vec<T>(-std::numeric_limits<T>::infinity());
  for_runs([&](std::int64_t first, int count) {
    const T* const from = x + first;
    for (int k = 0; k < count; ++k) {
      constexpr int line = 64 / int(sizeof(T));
      for (int j = 0; j < V * L; j += line) __builtin_prefetch(from + (k + sum_run) * stride + j);
    }
    for (int v = 0; v < vectors; ++v) {
      for (int k = 0; k < count; ++k) top[v] = maximum(top[v], get(from + k * stride, v));
    }
  });
  for_runs([&](std::int64_t first, int count) {
    for (int v = 0; v < vectors; ++v) {
      vec<T> run(T(0));
      for (int k = 0; k < count; ++k) {
        const std::int64_t at = first + k * stride;
        const vec<T> p = exponential<T>(get(x + at, v) - top[v]);
        run = run + p;
        if constexpr (!Logarithm) put(y + at, v, p);
      }
      total[v].add(run);
    }
  });
  for (int v = 0; v < vectors; ++v) {
    const vec<T> powers = total[v].by_lanes();
    factor[v] = Logarithm ? logarithm<T>(powers) : vec<T>(T(1)) / powers;
  }
  for (int i = 0; i < extent; ++i) {
    const std::int64_t at = i * stride;
    for (int v = 0; v < vectors; ++v) {
      if constexpr (Logarithm)
        put(y + at, v, (get(x + at, v) - top[v]) - factor[v]);
      else
        put(y + at, v, get(y + at, v) * factor[v]);
    }
  }
}

}  // namespace detail

/// Units of work of `softmax`: some rows, or some neighbouring lines.
template <class T>
constexpr int softmax_units(const softmax_extents& e) {
  if (e.inner > 1) return int(e.outer * detail::softmax_pieces<T>(e));
  return int((e.outer + softmax_unit_rows - 1) / softmax_unit_rows);
}

/// y = softmax(x), or its logarithm; y may be x. NaN in a line makes all of it NaN. `Past`: rows of
/// whole vectors (and `inner` 1) are stored past the caches; y is not x, and `powers` has room for
/// a row of each thread.
template <bool Logarithm, bool Past = false, class T>
[[gnu::noinline]] void softmax(work_range units, const softmax_extents& e, const T* x, T* y,
                               T* powers = nullptr) {
  if (e.inner == 1) {
    const std::int64_t end = std::min<std::int64_t>(units.last * softmax_unit_rows, e.outer);
    for (std::int64_t i = units.first * softmax_unit_rows; i < end; ++i)
      detail::softmax_row<Logarithm, Past>(x + i * e.extent, e.extent, powers, y + i * e.extent);
    return;
  }
  constexpr int width = detail::softmax_vectors * lanes<T>;
  const std::int64_t pieces = detail::softmax_pieces<T>(e);
  for (int u = units.first; u < units.last; ++u) {
    const std::int64_t first = u % pieces * width;
    const std::int64_t at = u / pieces * e.extent * e.inner + first;
    if (first + width <= e.inner)
      detail::softmax_columns<Logarithm, true>(x + at, e.extent, e.inner, width, y + at);
    else
      detail::softmax_columns<Logarithm, false>(x + at, e.extent, e.inner, int(e.inner - first),
                                                y + at);
  }
}

}  // namespace cella::cpu
