// Softmax cross-entropy of plain rows: loss and gradient in one go.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <cella/backend/cpu/simd/long_sum.hpp>
#include <cella/backend/cpu/simd/math.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cmath>
#include <cstdint>

namespace cella::cpu {

/// Logits [samples][classes].
struct softmax_rows_extents {
  int samples{}, classes{};
};

/// Units of work: a few rows each.
inline constexpr int softmax_unit_rows = 8;
constexpr int softmax_rows_units(const softmax_rows_extents& e) {
  return (e.samples + softmax_unit_rows - 1) / softmax_unit_rows;
}

/// Cross-entropy -log softmax(z)[label] of each sample, times `scale` (1 / samples for the mean),
/// in `losses`. A sample whose label is outside [0, classes) counts for nothing.
/// - dz [samples][classes]: the gradient; null if not wanted; may be z itself.
template <class T>
[[gnu::noinline]] void softmax_cross_entropy_rows(work_range units, const softmax_rows_extents& e,
                                                  const T* z, const std::int32_t* labels, T scale,
                                                  T* dz, T* losses) {
  constexpr int L = lanes<T>;
  const int n = e.classes;
  const int end = std::min(units.last * softmax_unit_rows, e.samples);
  for (int i = units.first * softmax_unit_rows; i < end; ++i) {
    const T* const row = z + std::int64_t{i} * n;
    T* const to = dz ? dz + std::int64_t{i} * n : nullptr;
    const std::int32_t label = labels[i];
    if (label < 0 || label >= n) {
      losses[i] = T(0);
      if (to) std::fill(to, to + n, T(0));
      continue;
    }
    const T top = largest(row, n);
    const T at_label = row[label] - top;
    const vec<T> offset(top);
    vector_sum<T> total;
    int j = 0;
    for (; j + L <= n; j += L) {
      const vec<T> p = exponential<T>(load_unaligned(row + j) - offset);
      total.add(p);
      if (to) store_unaligned(to + j, p);
    }
    if (j < n) {
      const vec<T> p = keep(first_bits(n - j), exponential<T>(load_first(row + j, n - j) - offset));
      total.add(p);
      if (to) store_first(to + j, n - j, p);
    }
    const T power_sum = total.over_lanes();
    losses[i] = scale * (std::log(power_sum) - at_label);
    if (!to) continue;
    const vec<T> share(scale / power_sum);
    for (j = 0; j + L <= n; j += L) store_unaligned(to + j, load_unaligned(to + j) * share);
    if (j < n) store_first(to + j, n - j, load_first(to + j, n - j) * share);
    to[label] -= scale;
  }
}
CELLA_COMPILED_FOR_FLOATS(softmax_cross_entropy_rows);

}  // namespace cella::cpu
