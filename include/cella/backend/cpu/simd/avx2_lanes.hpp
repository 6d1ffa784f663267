// Lane operations of AVX2 with FMA. Empty elsewhere.
#pragma once

#include <cella/backend/cpu/simd/portable_lanes.hpp>
#include <cstdint>

#if defined(__AVX2__) && defined(__FMA__) && !defined(__AVX512F__)

namespace cella::cpu::detail {

/// All ones, then all zeros: read at offset (lanes - n) it is the mask of the first n lanes.
template <class Integer>
inline constexpr Integer ones_then_zeros[16]{-1, -1, -1, -1, -1, -1, -1, -1,
                                             0,  0,  0,  0,  0,  0,  0,  0};

template <>
struct native_lanes<float, 32> : portable_lanes<float> {
  static __m256i first(int n) {
    return _mm256_loadu_si256(
        reinterpret_cast<const __m256i*>(ones_then_zeros<std::int32_t> + 8 - n));
  }
  static __m256 spread(unsigned bits) {
    const __m256i bit = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    const __m256i all = _mm256_set1_epi32(static_cast<int>(bits));
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(all, bit), bit));
  }
  static v fma(v a, v b, v c) { return _mm256_fmadd_ps(a, b, c); }
  static v load_first(const float* p, int n) { return _mm256_maskload_ps(p, first(n)); }
  /// In parts: some processors take tens of cycles for a store under a mask.
  static void store_first(float* p, int n, v a) {
    if (n == 8) return _mm256_storeu_ps(p, a);
    __m128 part = _mm256_castps256_ps128(a);
    if (n & 4) {
      _mm_storeu_ps(p, part);
      part = _mm256_extractf128_ps(a, 1);
      p += 4;
    }
    if (n & 2) {
      _mm_storel_pi(reinterpret_cast<__m64*>(p), part);
      part = _mm_movehl_ps(part, part);
      p += 2;
    }
    if (n & 1) _mm_store_ss(p, part);
  }
  static unsigned greater(v a, v b) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_GT_OQ)));
  }
  static unsigned unordered(v a, v b) {
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)));
  }
  static v select(unsigned bits, v a, v b) { return _mm256_blendv_ps(b, a, spread(bits)); }
  static v select_negative(v by, v a, v b) { return _mm256_blendv_ps(b, a, by); }
  static v keep(unsigned bits, v a) { return _mm256_and_ps(spread(bits), a); }
  static unsigned equal_first(const std::int32_t* p, int n, std::int32_t value) {
    const __m256i equal =
        _mm256_cmpeq_epi32(_mm256_maskload_epi32(p, first(n)), _mm256_set1_epi32(value));
    return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(equal))) & first_bits(n);
  }
  static unsigned equal_bytes(const std::uint8_t* p, std::uint8_t value) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    const __m128i equal = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(static_cast<char>(value)));
    return static_cast<unsigned>(_mm_movemask_epi8(equal)) & 0xffu;
  }
  static void transpose(v* r) {
    v t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
      t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 8; i += 4) {
      r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
      r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
      r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
      r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const v low = _mm256_permute2f128_ps(r[i], r[4 + i], 0x20);
      r[4 + i] = _mm256_permute2f128_ps(r[i], r[4 + i], 0x31);
      r[i] = low;
    }
  }
  static v sums(const v* r) {
    const v a = _mm256_hadd_ps(_mm256_hadd_ps(r[0], r[1]), _mm256_hadd_ps(r[2], r[3]));
    const v b = _mm256_hadd_ps(_mm256_hadd_ps(r[4], r[5]), _mm256_hadd_ps(r[6], r[7]));
    return v(_mm256_permute2f128_ps(a, b, 0x20)) + v(_mm256_permute2f128_ps(a, b, 0x31));
  }
};

template <>
struct native_lanes<double, 32> : portable_lanes<double> {
  static __m256i first(int n) {
    return _mm256_loadu_si256(
        reinterpret_cast<const __m256i*>(ones_then_zeros<std::int64_t> + 8 - n));
  }
  static __m256d spread(unsigned bits) {
    const __m256i bit = _mm256_setr_epi64x(1, 2, 4, 8);
    const __m256i all = _mm256_set1_epi64x(static_cast<long long>(bits));
    return _mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_and_si256(all, bit), bit));
  }
  static v fma(v a, v b, v c) { return _mm256_fmadd_pd(a, b, c); }
  static v load_first(const double* p, int n) { return _mm256_maskload_pd(p, first(n)); }
  static void store_first(double* p, int n, v a) {
    if (n == 4) return _mm256_storeu_pd(p, a);
    __m128d part = _mm256_castpd256_pd128(a);
    if (n & 2) {
      _mm_storeu_pd(p, part);
      part = _mm256_extractf128_pd(a, 1);
      p += 2;
    }
    if (n & 1) _mm_store_sd(p, part);
  }
  static unsigned greater(v a, v b) {
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_GT_OQ)));
  }
  static unsigned unordered(v a, v b) {
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_UNORD_Q)));
  }
  static v select(unsigned bits, v a, v b) { return _mm256_blendv_pd(b, a, spread(bits)); }
  static v select_negative(v by, v a, v b) { return _mm256_blendv_pd(b, a, by); }
  static v keep(unsigned bits, v a) { return _mm256_and_pd(spread(bits), a); }
  static void transpose(v* r) {
    const v a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]);
    const v c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);
    r[0] = _mm256_permute2f128_pd(a, c, 0x20);
    r[1] = _mm256_permute2f128_pd(b, d, 0x20);
    r[2] = _mm256_permute2f128_pd(a, c, 0x31);
    r[3] = _mm256_permute2f128_pd(b, d, 0x31);
  }
  static v sums(const v* r) {
    const v a = _mm256_hadd_pd(r[0], r[1]), b = _mm256_hadd_pd(r[2], r[3]);
    return v(_mm256_permute2f128_pd(a, b, 0x20)) + v(_mm256_permute2f128_pd(a, b, 0x31));
  }
};

}  // namespace cella::cpu::detail

#endif
