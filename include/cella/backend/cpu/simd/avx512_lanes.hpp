// Lane operations of AVX-512. Empty elsewhere.
#pragma once

#include <cella/backend/cpu/simd/portable_lanes.hpp>
#include <cstdint>

#if defined(__AVX512F__)

namespace cella::cpu::detail {

template <>
struct native_lanes<float, 64> : portable_lanes<float> {
  // The unmasked forms of many intrinsics start from an undefined register, of which g++ 12 warns.
  static constexpr __mmask16 all = 0xffff;
  static __mmask16 mask(unsigned bits) { return static_cast<__mmask16>(bits); }
  static v fma(v a, v b, v c) { return _mm512_fmadd_ps(a, b, c); }
  static v load_first(const float* p, int n) {
    return _mm512_maskz_loadu_ps(mask(first_bits(n)), p);
  }
  static void store_first(float* p, int n, v a) {
    _mm512_mask_storeu_ps(p, mask(first_bits(n)), a);
  }
  static unsigned greater(v a, v b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
  static unsigned unordered(v a, v b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q); }
  static v select(unsigned bits, v a, v b) { return _mm512_mask_mov_ps(b, mask(bits), a); }
  static v select_negative(v by, v a, v b) {
    const auto signs = _mm512_cmplt_epi32_mask(_mm512_castps_si512(by), _mm512_setzero_si512());
    return _mm512_mask_mov_ps(b, signs, a);
  }
  static v keep(unsigned bits, v a) { return _mm512_maskz_mov_ps(mask(bits), a); }
  static unsigned equal_first(const std::int32_t* p, int n, std::int32_t value) {
    const auto first = mask(first_bits(n));
    return _mm512_mask_cmpeq_epi32_mask(first, _mm512_maskz_loadu_epi32(first, p),
                                        _mm512_set1_epi32(value));
  }
  static unsigned equal_bytes(const std::uint8_t* p, std::uint8_t value) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return static_cast<unsigned>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(static_cast<char>(value)))));
  }
  template <int Blocks>
  static v pick(v a, v b) {
    return _mm512_maskz_shuffle_f32x4(all, a, b, Blocks);
  }
  static v low_pairs(v a, v b) {
    return _mm512_castpd_ps(
        _mm512_maskz_unpacklo_pd(0xff, _mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
  static v high_pairs(v a, v b) {
    return _mm512_castpd_ps(
        _mm512_maskz_unpackhi_pd(0xff, _mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
  static void transpose(v* r) {
    v t[16];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      t[2 * i] = _mm512_maskz_unpacklo_ps(all, r[2 * i], r[2 * i + 1]);
      t[2 * i + 1] = _mm512_maskz_unpackhi_ps(all, r[2 * i], r[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4) {
      r[i] = low_pairs(t[i], t[i + 2]);
      r[i + 1] = high_pairs(t[i], t[i + 2]);
      r[i + 2] = low_pairs(t[i + 1], t[i + 3]);
      r[i + 3] = high_pairs(t[i + 1], t[i + 3]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      t[i] = pick<0x88>(r[i], r[4 + i]);
      t[4 + i] = pick<0xdd>(r[i], r[4 + i]);
      t[8 + i] = pick<0x88>(r[8 + i], r[12 + i]);
      t[12 + i] = pick<0xdd>(r[8 + i], r[12 + i]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      r[i] = pick<0x88>(t[i], t[8 + i]);
      r[4 + i] = pick<0x88>(t[4 + i], t[12 + i]);
      r[8 + i] = pick<0xdd>(t[i], t[8 + i]);
      r[12 + i] = pick<0xdd>(t[4 + i], t[12 + i]);
    }
  }
  // Adds while it transposes: 30 shuffles where the transpose alone takes 64.
  static v sums(const v* r) {
    v t[8], u[4];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      t[i] = v(_mm512_maskz_unpacklo_ps(all, r[2 * i], r[2 * i + 1])) +
             v(_mm512_maskz_unpackhi_ps(all, r[2 * i], r[2 * i + 1]));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      u[i] = low_pairs(t[2 * i], t[2 * i + 1]) + high_pairs(t[2 * i], t[2 * i + 1]);
    }
    const v a = pick<0x88>(u[0], u[1]) + pick<0xdd>(u[0], u[1]);
    const v b = pick<0x88>(u[2], u[3]) + pick<0xdd>(u[2], u[3]);
    return pick<0x88>(a, b) + pick<0xdd>(a, b);
  }
  template <class F>
  [[gnu::always_inline]] static float fold(v a, F f) {
    a = f(a, pick<0x4e>(a, a));
    a = f(a, pick<0xb1>(a, a));
    a = f(a, v(_mm512_maskz_shuffle_ps(all, a, a, 0x4e)));
    a = f(a, v(_mm512_maskz_shuffle_ps(all, a, a, 0xb1)));
    return _mm512_cvtss_f32(a);
  }
  static v max(v a, v b) { return _mm512_maskz_max_ps(all, a, b); }
  static v min(v a, v b) { return _mm512_maskz_min_ps(all, a, b); }
};

template <>
struct native_lanes<double, 64> : portable_lanes<double> {
  static constexpr __mmask8 all = 0xff;
  static __mmask8 mask(unsigned bits) { return static_cast<__mmask8>(bits); }
  static v fma(v a, v b, v c) { return _mm512_fmadd_pd(a, b, c); }
  static v load_first(const double* p, int n) {
    return _mm512_maskz_loadu_pd(mask(first_bits(n)), p);
  }
  static void store_first(double* p, int n, v a) {
    _mm512_mask_storeu_pd(p, mask(first_bits(n)), a);
  }
  static unsigned greater(v a, v b) { return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ); }
  static unsigned unordered(v a, v b) { return _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q); }
  static v select(unsigned bits, v a, v b) { return _mm512_mask_mov_pd(b, mask(bits), a); }
  static v select_negative(v by, v a, v b) {
    const auto signs = _mm512_cmplt_epi64_mask(_mm512_castpd_si512(by), _mm512_setzero_si512());
    return _mm512_mask_mov_pd(b, signs, a);
  }
  static v keep(unsigned bits, v a) { return _mm512_maskz_mov_pd(mask(bits), a); }
  template <int Blocks>
  static v pick(v a, v b) {
    return _mm512_maskz_shuffle_f64x2(all, a, b, Blocks);
  }
  static void transpose(v* r) {
    v t[8];
#pragma GCC unroll 4
    for (int i = 0; i < 8; i += 2) {
      t[i] = _mm512_maskz_unpacklo_pd(all, r[i], r[i + 1]);
      t[i + 1] = _mm512_maskz_unpackhi_pd(all, r[i], r[i + 1]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      const v a = pick<0x88>(t[i], t[2 + i]), b = pick<0x88>(t[4 + i], t[6 + i]);
      const v c = pick<0xdd>(t[i], t[2 + i]), d = pick<0xdd>(t[4 + i], t[6 + i]);
      r[i] = pick<0x88>(a, b);
      r[2 + i] = pick<0x88>(c, d);
      r[4 + i] = pick<0xdd>(a, b);
      r[6 + i] = pick<0xdd>(c, d);
    }
  }
  static v sums(const v* r) {
    v t[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      t[i] = v(_mm512_maskz_unpacklo_pd(all, r[2 * i], r[2 * i + 1])) +
             v(_mm512_maskz_unpackhi_pd(all, r[2 * i], r[2 * i + 1]));
    }
    const v a = pick<0x88>(t[0], t[1]) + pick<0xdd>(t[0], t[1]);
    const v b = pick<0x88>(t[2], t[3]) + pick<0xdd>(t[2], t[3]);
    return pick<0x88>(a, b) + pick<0xdd>(a, b);
  }
  template <class F>
  [[gnu::always_inline]] static double fold(v a, F f) {
    a = f(a, pick<0x4e>(a, a));
    a = f(a, pick<0xb1>(a, a));
    a = f(a, v(_mm512_maskz_shuffle_pd(all, a, a, 0x55)));
    return _mm512_cvtsd_f64(a);
  }
  static v max(v a, v b) { return _mm512_maskz_max_pd(all, a, b); }
  static v min(v a, v b) { return _mm512_maskz_min_pd(all, a, b); }
};

}  // namespace cella::cpu::detail

#endif
