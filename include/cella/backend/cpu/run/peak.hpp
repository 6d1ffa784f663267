// What the processor can do at most, to hold kernels against.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/buffer.hpp>
#include <chrono>
#include <cstdint>
#include <cstring>

namespace cella::cpu {

/// Floating-point operations per second of multiply-adds in registers, on one core: the best of
/// many tries, some milliseconds in all.
template <class T = float>
double measured_peak() {
  constexpr int chains = 12, turns = 20000;
  using clock = std::chrono::steady_clock;
  const vec<T> factor(T(0.999));
  double best = 0;
  for (int attempt = 0; attempt < 100; ++attempt) {
    vec<T> sums[chains];
    // Chains that differ: equal ones would be computed once.
    for (int c = 0; c < chains; ++c) sums[c] = vec<T>(T(c));
    const auto start = clock::now();
    for (int i = 0; i < turns; ++i) {
#pragma GCC unroll 12
      for (int c = 0; c < chains; ++c) sums[c] = multiply_add(sums[c], factor, factor);
    }
    const std::chrono::duration<double> took = clock::now() - start;
    for (int c = 1; c < chains; ++c) sums[0] += sums[c];
    volatile T keep = sums[0].get(0);
    (void)keep;
    best = std::max(best, 2.0 * lanes<T> * chains * turns / took.count());
  }
  return best;
}

/// Bytes per second, read and written, of copying so many bytes that both take `bytes` in all, over
/// and over on one core: what is small stays in a cache. The best of some tries in `seconds`.
inline double measured_copy(std::size_t bytes, double seconds = 0.1) {
  using clock = std::chrono::steady_clock;
  const std::size_t half = std::max<std::size_t>(bytes / 2, 64);
  aligned_buffer from(half), to(half);
  const std::size_t copies = std::max<std::size_t>((1 << 16) / half, 1);  // above the clock's grain
  double best = 0;
  const auto end = clock::now() + std::chrono::nanoseconds(std::int64_t(1e9 * seconds));
  for (int attempt = 0; attempt < 3 || clock::now() < end; ++attempt) {
    const auto start = clock::now();
    for (std::size_t i = 0; i < copies; ++i) {
      std::memcpy(to.data(), from.data(), half);
      asm volatile("" : : "r"(to.data()) : "memory");
    }
    const std::chrono::duration<double> took = clock::now() - start;
    best = std::max(best, 2.0 * double(half) * double(copies) / took.count());
  }
  return best;
}

}  // namespace cella::cpu
