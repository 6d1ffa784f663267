// What the processor can do at most, to hold kernels against.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/simd.hpp>
#include <chrono>

namespace cella::cpu {

/// Floating-point operations per second of multiply-adds in registers, f32, on one core: the best
/// of many tries, some milliseconds in all.
inline double measured_peak() {
  constexpr int chains = 12, turns = 20000;
  using clock = std::chrono::steady_clock;
  const vec<float> factor(0.999f);
  double best = 0;
  for (int attempt = 0; attempt < 100; ++attempt) {
    vec<float> sums[chains];
    // Chains that differ: equal ones would be computed once.
    for (int c = 0; c < chains; ++c) sums[c] = vec<float>(float(c));
    const auto start = clock::now();
    for (int i = 0; i < turns; ++i) {
#pragma GCC unroll 12
      for (int c = 0; c < chains; ++c) sums[c] = multiply_add(sums[c], factor, factor);
    }
    const std::chrono::duration<double> took = clock::now() - start;
    for (int c = 1; c < chains; ++c) sums[0] += sums[c];
    volatile float keep = sums[0].get(0);
    (void)keep;
    best = std::max(best, 2.0 * lanes<float> * chains * turns / took.count());
  }
  return best;
}

}  // namespace cella::cpu
