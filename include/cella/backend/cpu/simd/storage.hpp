// Numbers that memory holds in 16 bits (f16, bf16) and registers as single precision: they are
// converted as they are loaded, and rounded to nearest, ties to even, as they are stored. In the
// same way everything can be loaded and stored whose type in memory is that of the registers.
#pragma once

#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/graph/dtype.hpp>
#include <cstring>
#include <type_traits>

namespace cella::cpu {

/// Whether S are the 16 bits of a number of single precision, rounded.
template <class S>
inline constexpr bool is_half = std::is_same_v<S, float16> || std::is_same_v<S, bfloat16>;

/// Whether vectors of T can be loaded from, and stored to, elements of type S.
template <class T, class S>
concept stored_as = std::is_same_v<S, T> ||(std::is_same_v<T, float>&& is_half<S>);

namespace detail {

/// Conversions between single precision and the 16 bits of S, a whole vector at a time.
template <class S>
struct narrow_lanes {
  static constexpr int n_lanes = lanes<float>;
  static vec<float> load(const S* p) {
    alignas(vec<float>) float row[n_lanes];
    for (int i = 0; i < n_lanes; ++i) row[i] = static_cast<float>(p[i]);
    return cpu::load(row);
  }
  static void store(S* p, vec<float> a) {
    alignas(vec<float>) float row[n_lanes];
    cpu::store(row, a);
    for (int i = 0; i < n_lanes; ++i) p[i] = S(row[i]);
  }
};

#if defined(__AVX512F__)

// The masked forms: see native_lanes<float, 64>.
template <>
struct narrow_lanes<bfloat16> {
  static vec<float> load(const bfloat16* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m512i wide = _mm512_maskz_cvtepu16_epi32(0xffff, bits);
    return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xffff, wide, 16));
  }
  static void store(bfloat16* p, vec<float> a) {
    const __m512i b = _mm512_castps_si512(a);
    const __m512i upper = _mm512_maskz_srli_epi32(0xffff, b, 16);
    const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_maskz_srli_epi32(
        0xffff, _mm512_add_epi32(b, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    const __m512i kept = _mm512_mask_or_epi32(rounded, nan, upper, _mm512_set1_epi32(0x40));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtepi32_epi16(0xffff, kept));
  }
};
template <>
struct narrow_lanes<float16> {
  static vec<float> load(const float16* p) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm512_maskz_cvtph_ps(0xffff, bits);
  }
  static void store(float16* p, vec<float> a) {
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(p),
        _mm512_maskz_cvtps_ph(0xffff, a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
};

#elif defined(__AVX2__)

template <>
struct narrow_lanes<bfloat16> {
  static vec<float> load(const bfloat16* p) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static void store(bfloat16* p, vec<float> a) {
    const __m256i b = _mm256_castps_si256(a);
    const __m256i upper = _mm256_srli_epi32(b, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(b, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    const __m256i kept =
        _mm256_blendv_epi8(rounded, _mm256_or_si256(upper, _mm256_set1_epi32(0x40)), nan);
    _mm_storeu_si128(
        reinterpret_cast<__m128i*>(p),
        _mm_packus_epi32(_mm256_castsi256_si128(kept), _mm256_extracti128_si256(kept, 1)));
  }
};
#if defined(__F16C__)
template <>
struct narrow_lanes<float16> {
  static vec<float> load(const float16* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static void store(float16* p, vec<float> a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
  }
};
#endif

#endif

}  // namespace detail

/// A whole vector from elements of type S.
template <class T, class S>
requires stored_as<T, S>
[[gnu::always_inline]] inline vec<T> load_stored(const S* p) {
  if constexpr (std::is_same_v<T, S>)
    return load_unaligned(p);
  else
    return detail::narrow_lanes<S>::load(p);
}
/// The first n (0 <= n <= lanes) elements at p, zeros behind; touches nothing beyond p + n.
template <class T, class S>
requires stored_as<T, S>
[[gnu::always_inline]] inline vec<T> load_stored(const S* p, int n) {
  if constexpr (std::is_same_v<T, S>) {
    return load_first(p, n);
  } else {
    S row[lanes<T>]{};
    std::memcpy(static_cast<void*>(row), p, std::size_t(n) * sizeof(S));
    return detail::narrow_lanes<S>::load(row);
  }
}
/// Stores a whole vector, rounded to S.
template <class S, class T>
requires stored_as<T, S>
[[gnu::always_inline]] inline void store_stored(S* p, vec<T> a) {
  if constexpr (std::is_same_v<T, S>)
    store_unaligned(p, a);
  else
    detail::narrow_lanes<S>::store(p, a);
}
/// The first n (0 <= n <= lanes) of them; touches nothing beyond p + n.
template <class S, class T>
requires stored_as<T, S>
[[gnu::always_inline]] inline void store_stored(S* p, vec<T> a, int n) {
  if constexpr (std::is_same_v<T, S>) {
    store_first(p, n, a);
  } else {
    S row[lanes<T>];
    detail::narrow_lanes<S>::store(row, a);
    std::memcpy(static_cast<void*>(p), row, std::size_t(n) * sizeof(S));
  }
}
/// What loading yields after S was stored.
template <class S, class T>
requires stored_as<T, S>
[[gnu::always_inline]] inline vec<T> rounded_to(vec<T> a) {
  if constexpr (std::is_same_v<T, S>) {
    return a;
  } else {
    S row[lanes<T>];
    detail::narrow_lanes<S>::store(row, a);
    return detail::narrow_lanes<S>::load(row);
  }
}

}  // namespace cella::cpu
