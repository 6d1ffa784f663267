// Softmax cross-entropy with the batch in the lanes: loss, gradient and hits in one go.
#pragma once

#include <algorithm>
#include <bit>
#include <cella/backend/cpu/lanes/layout.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <cella/backend/cpu/simd/exponentials.hpp>
#include <cella/backend/cpu/simd/logarithms.hpp>
#include <cella/backend/cpu/simd/long_sum.hpp>
#include <cstdint>

namespace cella::cpu {

/// Logits [lane_blocks(samples)][classes][L].
struct lanes_softmax_extents {
  int samples{}, classes{};
};

/// Units of work of `lanes_softmax_cross_entropy`: blocks of samples.
template <class T>
constexpr int lanes_softmax_units(const lanes_softmax_extents& e) {
  return lane_blocks<T>(e.samples);
}

/// Cross-entropy -log softmax(z)[label] of each sample, times `scale` (1 / samples for the mean).
/// A sample whose label is outside [0, classes) counts for nothing.
/// - dz [blocks][classes][L]: its gradient, zero in dead lanes; null if not wanted; may be z
/// itself.
/// - loss [blocks]: one sum per block. Their sum in order is the loss, however units are shared
/// out.
/// - hits [blocks]: samples whose first largest logit is at the label; null if not wanted.
/// Dead lanes of z may hold anything.
template <class T>
[[gnu::noinline]] void lanes_softmax_cross_entropy(work_range units, const lanes_softmax_extents& e,
                                                   const T* z, const std::int32_t* labels, T scale,
                                                   T* dz, T* loss, std::int32_t* hits = nullptr) {
  constexpr int L = lanes<T>;
  for (int block = units.first; block < units.last; ++block) {
    const int n = std::min(L, e.samples - block * L), classes = e.classes;
    const T* at = z + std::int64_t{block} * classes * L;
    const std::int32_t* label = labels + std::int64_t{block} * L;

    vec<T> largest = load(at);
    unsigned hit = equal_first<T>(label, n, 0), labelled = hit;
    for (int c = 1; c < classes; ++c) {
      const vec<T> value = load(at + std::int64_t{c} * L);
      const unsigned better = greater(value, largest), right = equal_first<T>(label, n, c);
      largest = maximum(largest, value);
      hit = (hit & ~better) | (better & right);
      labelled |= right;
    }
    vec<T> at_label(T{0});
    long_sum<T> total;
    T* to = dz ? dz + std::int64_t{block} * classes * L : nullptr;
    for (int c = 0; c < classes;) {
      vec<T> run(T{0});
      for (const int end = std::min(classes, c + sum_run); c < end; ++c) {
        // Dead lanes may hold NaN: they count as zeros.
        const vec<T> shifted = keep(first_bits(n), load(at + std::int64_t{c} * L) - largest);
        const vec<T> power = exponential<T>(shifted);
        run = run + power;
        at_label = at_label + keep(equal_first<T>(label, n, c), shifted);
        if (to) store(to + std::int64_t{c} * L, power);
      }
      total.add(run);
    }
    const vec<T> sum_of_exp = total.by_lanes();
    if (to) {
      const vec<T> share = vec<T>(scale) / sum_of_exp;
      for (int c = 0; c < classes; ++c) {
        T* p = to + std::int64_t{c} * L;
        const vec<T> right = keep(equal_first<T>(label, n, c), vec<T>(scale));
        store(p, keep(labelled, load(p) * share - right));
      }
    }
    loss[block] = scale * sum(keep(labelled, logarithm<T>(sum_of_exp) - at_label));
    if (hits) hits[block] = std::popcount(hit);
  }
}
CELLA_COMPILED_FOR_FLOATS(lanes_softmax_cross_entropy);

}  // namespace cella::cpu
