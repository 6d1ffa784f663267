// Functions in pieces, each a polynomial whose coefficients are looked up in registers: a few
// instructions, where processors can look up (AVX-512).
#pragma once

#include <cella/backend/cpu/simd/simd.hpp>

namespace cella::cpu::detail {

/// Polynomials of x - middle in 32 pieces of the numbers from 0 on: the first ends at 2^first_end,
/// of the others there are four between any two powers of 2.
struct piecewise_fit {
  static constexpr int pieces = 32, degree = 5;
  int first_end;
  bool odd;  ///< a function whose first piece has x itself besides
  alignas(64) float middle[pieces];
  alignas(64) float c[degree + 1][pieces];
  /// Where the last piece ends.
  constexpr float end() const {
    constexpr int octaves = (pieces - 1) / 4, rest = (pieces - 1) % 4;
    float x = 1.0f + 0.25f * rest;
    for (int k = 0; k < octaves; ++k) x *= 2;
    for (int k = 0; k > first_end; --k) x /= 2;
    return x;
  }
};

/// Whether `piecewise` is there, for single precision.
#if defined(__AVX512F__)
inline constexpr bool has_piecewise = true;
#else
inline constexpr bool has_piecewise = false;
#endif

/// The fit at x >= 0 is start + slope step, of which the product is at most a fourth of the start,
/// or of all; anything behind its end. NaN for NaN.
template <class T>
struct value_in_parts {
  vec<T> start, slope, step;
  [[gnu::always_inline]] vec<T> value() const { return multiply_add(slope, step, start); }
};
template <class T>
[[gnu::always_inline]] inline value_in_parts<T> piecewise_in_parts(const piecewise_fit& fit,
                                                                   vec<T> x);
template <class T>
[[gnu::always_inline]] inline vec<T> piecewise(const piecewise_fit& fit, vec<T> x) {
  return piecewise_in_parts<T>(fit, x).value();
}

#if defined(__AVX512F__)
template <>
[[gnu::always_inline]] inline value_in_parts<float> piecewise_in_parts<float>(
    const piecewise_fit& fit, vec<float> x) {
  // The exponent and the first two digits are the number of the piece.
  const __m512i upper = _mm512_maskz_srli_epi32(0xffff, _mm512_castps_si512(x), 21);
  const __m512i first = _mm512_set1_epi32(4 * (127 + fit.first_end) - 1);
  const __m512i piece =
      _mm512_maskz_max_epi32(0xffff, _mm512_sub_epi32(upper, first), _mm512_setzero_si512());
  const auto of = [&](const float* all) __attribute__((always_inline)) {
    return vec<float>(
        _mm512_maskz_permutex2var_ps(0xffff, load(all), piece, load(all + lanes<float>)));
  };
  const vec<float> step = x - of(fit.middle);
  vec<float> slope = of(fit.c[piecewise_fit::degree]), start = of(fit.c[0]);
#pragma GCC unroll 8
  for (int k = piecewise_fit::degree - 1; k > 0; --k)
    slope = multiply_add(slope, step, of(fit.c[k]));
  if (fit.odd) start = _mm512_mask_mov_ps(start, _mm512_cmple_epi32_mask(upper, first), x);
  return {start, slope, step};
}
#endif

}  // namespace cella::cpu::detail
