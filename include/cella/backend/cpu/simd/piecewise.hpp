// Functions in pieces, each a polynomial whose coefficients are looked up: in registers, where
// processors can (AVX-512), or in rows of memory, which are transposed (AVX2).
#pragma once

#include <array>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cstdint>

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
#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
inline constexpr bool has_piecewise = true;
#else
inline constexpr bool has_piecewise = false;
#endif

/// Whether coefficients are looked up in registers. What takes no more than two polynomials is
/// computed so where they are not.
#if defined(__AVX512F__)
inline constexpr bool has_pieces_in_registers = true;
#else
inline constexpr bool has_pieces_in_registers = false;
#endif

/// The fit at x >= 0 is start + slope step, of which the product is at most a fourth of the start,
/// or of all; anything behind its end. NaN for NaN.
template <class T>
struct value_in_parts {
  vec<T> start, slope, step;
  [[gnu::always_inline]] vec<T> value() const { return multiply_add(slope, step, start); }
};
template <const piecewise_fit& Fit, class T>
[[gnu::always_inline]] inline value_in_parts<T> piecewise_in_parts(vec<T> x);
template <const piecewise_fit& Fit, class T>
[[gnu::always_inline]] inline vec<T> piecewise(vec<T> x) {
  return piecewise_in_parts<Fit, T>(x).value();
}

#if defined(__AVX512F__)
template <const piecewise_fit& Fit, class T>
[[gnu::always_inline]] inline value_in_parts<T> piecewise_in_parts(vec<T> x) {
  // The exponent and the first two digits are the number of the piece.
  const __m512i upper = _mm512_maskz_srli_epi32(0xffff, _mm512_castps_si512(x), 21);
  const __m512i first = _mm512_set1_epi32(4 * (127 + Fit.first_end) - 1);
  const __m512i piece =
      _mm512_maskz_max_epi32(0xffff, _mm512_sub_epi32(upper, first), _mm512_setzero_si512());
  const auto of = [&](const float* all) __attribute__((always_inline)) {
    return vec<float>(
        _mm512_maskz_permutex2var_ps(0xffff, load(all), piece, load(all + lanes<float>)));
  };
  const vec<float> step = x - of(Fit.middle);
  vec<float> slope = of(Fit.c[piecewise_fit::degree]), start = of(Fit.c[0]);
#pragma GCC unroll 8
  for (int k = piecewise_fit::degree - 1; k > 0; --k)
    slope = multiply_add(slope, step, of(Fit.c[k]));
  if (Fit.odd) start = _mm512_mask_mov_ps(start, _mm512_cmple_epi32_mask(upper, first), x);
  return {start, slope, step};
}
#elif defined(__AVX2__) && defined(__FMA__)
/// What a fit has of each piece, side by side: its coefficients, its middle.
struct row_of_piece {
  alignas(32) float c[piecewise_fit::degree + 1];
  float middle, unused;
};
template <const piecewise_fit& Fit>
inline constexpr auto rows_of_pieces = [] {
  std::array<row_of_piece, std::size_t(piecewise_fit::pieces)> rows{};
  for (int i = 0; i < piecewise_fit::pieces; ++i) {
    row_of_piece& row = rows[std::size_t(i)];
    for (int k = 0; k <= piecewise_fit::degree; ++k) row.c[k] = Fit.c[k][i];
    row.middle = Fit.middle[i];
  }
  return rows;
}();

template <const piecewise_fit& Fit, class T>
[[gnu::always_inline]] inline value_in_parts<T> piecewise_in_parts(vec<T> x) {
  // The exponent and the first two digits are the number of the piece. Behind the last one there is
  // none, nor is there for NaN, which `step` remains.
  const __m256i upper = _mm256_srli_epi32(_mm256_castps_si256(x), 21);
  const __m256i first = _mm256_set1_epi32(4 * (127 + Fit.first_end) - 1);
  const __m256i piece =
      _mm256_and_si256(_mm256_max_epi32(_mm256_sub_epi32(upper, first), _mm256_setzero_si256()),
                       _mm256_set1_epi32(piecewise_fit::pieces - 1));
  alignas(32) std::uint32_t at[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), _mm256_slli_epi32(piece, 5));
  // Four columns of the rows; those of the upper half stand beside those of the lower one.
  static_assert(sizeof(row_of_piece) == 32);
  const char* const rows = reinterpret_cast<const char*>(rows_of_pieces<Fit>.data());
  struct columns {
    __m256 c[4];
  };
  const auto columns_from = [&](int skipped) __attribute__((always_inline)) {
    const auto pair = [&](int i) __attribute__((always_inline)) {
      const auto row = [&](int k) __attribute__((always_inline)) {
        return reinterpret_cast<const float*>(rows + at[k]) + skipped;
      };
      return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_load_ps(row(i))),
                                  _mm_load_ps(row(i + 4)), 1);
    };
    const __m256 a = pair(0), b = pair(1), c = pair(2), d = pair(3);
    const __m256 ab = _mm256_unpacklo_ps(a, b), cd = _mm256_unpacklo_ps(c, d);
    const __m256 more_ab = _mm256_unpackhi_ps(a, b), more_cd = _mm256_unpackhi_ps(c, d);
    return columns{{_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee),
                    _mm256_shuffle_ps(more_ab, more_cd, 0x44),
                    _mm256_shuffle_ps(more_ab, more_cd, 0xee)}};
  };
  static_assert(piecewise_fit::degree == 5);
  const columns upper_half = columns_from(4), lower_half = columns_from(0);
  const vec<float> step = x - vec<float>(upper_half.c[2]);
  vec<float> slope = multiply_add(vec<float>(upper_half.c[1]), step, upper_half.c[0]);
  slope = multiply_add(slope, step, lower_half.c[3]);
  slope = multiply_add(slope, step, lower_half.c[2]);
  slope = multiply_add(slope, step, lower_half.c[1]);
  vec<float> start = lower_half.c[0];
  if (Fit.odd) {
    const __m256i behind = _mm256_cmpgt_epi32(upper, first);
    start = _mm256_blendv_ps(x, start, _mm256_castsi256_ps(behind));
  }
  return {start, slope, step};
}
#endif

}  // namespace cella::cpu::detail
