// How a thread rounds, and whether it takes denormal numbers for zero.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace cella::detail {

/// The processor's register of floating-point modes: rounding, flush-to-zero.
#if defined(__aarch64__)
using floating_point_mode = std::uint64_t;
#else
using floating_point_mode = unsigned;
#endif

/// The bits by which denormal operands and results are zero.
inline constexpr floating_point_mode denormals_are_zero =
#if defined(__SSE2__)
    0x8040;
#elif defined(__aarch64__)
    1u << 24;
#else
    0;
#endif

/// The calling thread's mode; elsewhere 0.
inline floating_point_mode get_floating_point_mode() {
#if defined(__SSE2__)
  return _mm_getcsr();
#elif defined(__aarch64__)
  floating_point_mode mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
#else
  return 0;
#endif
}

inline void set_floating_point_mode([[maybe_unused]] floating_point_mode mode) {
#if defined(__SSE2__)
  _mm_setcsr(mode);
#elif defined(__aarch64__)
  asm volatile("msr fpcr, %0" : : "r"(mode) : "memory");
#endif
}

}  // namespace cella::detail
