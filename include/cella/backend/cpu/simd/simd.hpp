// The few lane operations that xsimd lacks: fused multiply-add (xsimd 8.1 has none for AVX-512 and
// clang does not contract), the first n elements, comparisons as bits, square transposes. AVX-512
// and AVX2 have their own (avx512_lanes.hpp, avx2_lanes.hpp); any other target takes the portable
// form (portable_lanes.hpp).
#pragma once

#include <bit>
#include <cella/backend/cpu/simd/avx2_lanes.hpp>
#include <cella/backend/cpu/simd/avx512_lanes.hpp>
#include <cella/backend/cpu/simd/vector.hpp>
#include <cella/backend/host/floating_point_mode.hpp>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

namespace cella::cpu {

namespace detail {
/// Lane i is that with number F{}(i) of a, and of b behind it.
template <class T, class F>
[[gnu::always_inline]] inline vec<T> picked(typename vec<T>::register_type a,
                                            typename vec<T>::register_type b, F) {
  return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    return vec<T>(typename vec<T>::register_type(__builtin_shufflevector(a, b, F{}(I)...)));
  }
  (std::make_integer_sequence<int, lanes<T>>{});
}
}  // namespace detail

/// a * b + c (named unlike xsimd's, which argument-dependent lookup would find); rounded once where
/// the instruction set has it (AVX-512, AVX2 with FMA, NEON).
template <class T>
[[gnu::always_inline]] inline vec<T> multiply_add(vec<T> a, std::type_identity_t<vec<T>> b,
                                                  std::type_identity_t<vec<T>> c) {
  return detail::native_lanes<T>::fma(a, b, c);
}

/// Loads and stores of a whole vector; `load` and `store` want the alignment of `vec<T>`.
template <class T>
[[gnu::always_inline]] inline vec<T> load(const T* p) {
  return vec<T>::load_aligned(p);
}
template <class T>
[[gnu::always_inline]] inline vec<T> load_unaligned(const T* p) {
  return vec<T>::load_unaligned(p);
}
template <class T>
[[gnu::always_inline]] inline void store(T* p, std::type_identity_t<vec<T>> a) {
  a.store_aligned(p);
}
template <class T>
[[gnu::always_inline]] inline void store_unaligned(T* p, std::type_identity_t<vec<T>> a) {
  a.store_unaligned(p);
}
/// Stores past the caches, so that what was there is not read first: for results that no cache
/// holds until they are read. p is aligned. Others may read after `finish_stores`.
template <class T>
[[gnu::always_inline]] inline void store_past_caches(T* p, std::type_identity_t<vec<T>> a) {
  [[maybe_unused]] const typename vec<T>::register_type bits = a;
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i*>(p), std::bit_cast<__m512i>(bits));
#elif defined(__AVX__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(p), std::bit_cast<__m256i>(bits));
#elif defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(p), std::bit_cast<__m128i>(bits));
#else
  store(p, a);
#endif
}
inline void finish_stores() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}
/// Stores `Past` the caches, for which p is aligned, or not.
template <bool Past, class T>
[[gnu::always_inline]] inline void store_vector(T* p, std::type_identity_t<vec<T>> a) {
  if constexpr (Past)
    store_past_caches(p, a);
  else
    store_unaligned(p, a);
}

/// The first n (0 <= n <= lanes) elements at p, zeros behind; touches nothing beyond p + n.
template <class T>
[[gnu::always_inline]] inline vec<T> load_first(const T* p, int n) {
  return detail::native_lanes<T>::load_first(p, n);
}
/// Stores the first n (0 <= n <= lanes) lanes; touches nothing beyond p + n.
template <class T>
[[gnu::always_inline]] inline void store_first(T* p, int n, std::type_identity_t<vec<T>> a) {
  detail::native_lanes<T>::store_first(p, n, a);
}

/// Bit i says whether a[i] > b[i]; false where either is NaN.
template <class T>
[[gnu::always_inline]] inline unsigned greater(vec<T> a, std::type_identity_t<vec<T>> b) {
  return detail::native_lanes<T>::greater(a, b);
}

/// Bit i says whether a[i] or b[i] is NaN.
template <class T>
[[gnu::always_inline]] inline unsigned unordered(vec<T> a, std::type_identity_t<vec<T>> b) {
  return detail::native_lanes<T>::unordered(a, b);
}

/// Lane i of a where bit i is set, else of b.
template <class T>
[[gnu::always_inline]] inline vec<T> select(unsigned bits, vec<T> a,
                                            std::type_identity_t<vec<T>> b) {
  return detail::native_lanes<T>::select(bits, a, b);
}

/// Lane i of a where that of `by` has a sign, else of b; one of them where it is NaN.
template <class T>
[[gnu::always_inline]] inline vec<T> select_negative(vec<T> by, std::type_identity_t<vec<T>> a,
                                                     std::type_identity_t<vec<T>> b) {
  return detail::native_lanes<T>::select_negative(by, a, b);
}

/// Lane i of a where bit i is set, else zero, whatever a holds there.
template <class T>
[[gnu::always_inline]] inline vec<T> keep(unsigned bits, vec<T> a) {
  return detail::native_lanes<T>::keep(bits, a);
}

/// The larger and the smaller of two vectors, lane by lane; either operand where one is NaN.
template <class T>
[[gnu::always_inline]] inline vec<T> maximum(vec<T> a, std::type_identity_t<vec<T>> b) {
  return detail::native_lanes<T>::max(a, b);
}
template <class T>
[[gnu::always_inline]] inline vec<T> minimum(vec<T> a, std::type_identity_t<vec<T>> b) {
  return detail::native_lanes<T>::min(a, b);
}

/// Bit i (i < n <= lanes<T>) says whether p[i] is `value`; reads nothing beyond p + n.
template <class T>
[[gnu::always_inline]] inline unsigned equal_first(const std::int32_t* p, int n,
                                                   std::int32_t value) {
  return detail::native_lanes<T>::equal_first(p, n, value);
}

/// Bit i says whether p[i] is `value`, for lanes<T> bytes.
template <class T>
[[gnu::always_inline]] inline unsigned equal_bytes(const std::uint8_t* p, std::uint8_t value) {
  return detail::native_lanes<T>::equal_bytes(p, value);
}

/// Sum of the lanes.
template <class T>
[[gnu::always_inline]] inline T sum(vec<T> a) {
  return detail::native_lanes<T>::fold(a, [](const auto& x, const auto& y) { return x + y; });
}

/// The largest lane; which one is unspecified if there is a NaN.
template <class T>
[[gnu::always_inline]] inline T largest(vec<T> a) {
  return detail::native_lanes<T>::fold(a, [](const auto& x, const auto& y) {
    if constexpr (std::is_same_v<decltype(x), const T&>)
      return x < y ? y : x;
    else
      return maximum(x, y);
  });
}

/// The largest of n elements, minus infinity if there are none.
template <class T>
[[gnu::always_inline]] inline T largest(const T* x, int n) {
  vec<T> top(-std::numeric_limits<T>::infinity());
  int j = 0;
  for (; j + lanes<T> <= n; j += lanes<T>) top = maximum(top, load_unaligned(x + j));
  if (j < n) top = select(first_bits(n - j), maximum(top, load_first(x + j, n - j)), top);
  return largest(top);
}

/// Lane i is the sum of rows[i]; `rows` are lanes<T> vectors.
template <class T>
[[gnu::always_inline]] inline vec<T> sums(const vec<T>* rows) {
  return detail::native_lanes<T>::sums(rows);
}

/// Transposes the square of lanes<T> vectors in place.
template <class T>
[[gnu::always_inline]] inline void transpose(vec<T>* rows) {
  detail::native_lanes<T>::transpose(rows);
}

/// Of numbers by turns, low and high: those with even places, and those with odd ones; and back.
template <class T>
[[gnu::always_inline]] inline vec<T> even_lanes(vec<T> low, std::type_identity_t<vec<T>> high) {
  return detail::picked<T>(low, high, [](int i) { return 2 * i; });
}
template <class T>
[[gnu::always_inline]] inline vec<T> odd_lanes(vec<T> low, std::type_identity_t<vec<T>> high) {
  return detail::picked<T>(low, high, [](int i) { return 2 * i + 1; });
}
template <class T>
[[gnu::always_inline]] inline vec<T> low_by_turns(vec<T> even, std::type_identity_t<vec<T>> odd) {
  return detail::picked<T>(even, odd, [](int i) { return i / 2 + i % 2 * lanes<T>; });
}
template <class T>
[[gnu::always_inline]] inline vec<T> high_by_turns(vec<T> even, std::type_identity_t<vec<T>> odd) {
  return detail::picked<T>(even, odd, [](int i) { return (lanes<T> + i) / 2 + i % 2 * lanes<T>; });
}
/// Every other one of 2 lanes - 1 numbers, of which `last` has the last ones: they share one.
template <class T>
[[gnu::always_inline]] inline vec<T> every_other(vec<T> first, std::type_identity_t<vec<T>> last) {
  return detail::picked<T>(first, last, [](int i) { return 2 * i + (2 * i >= lanes<T>); });
}

/// Single-precision lanes as two vectors of doubles, and back (rounded).
struct wide_lanes {
  vec<double> low, high;
};
[[gnu::always_inline]] inline wide_lanes widen(vec<float> a);
[[gnu::always_inline]] inline vec<float> narrow(wide_lanes a);

/// A vector that several products share, held in a register from here on. Without this g++ 12 may
/// read memory again for each product, and the loads, not the products, set the pace.
template <class T>
[[gnu::always_inline]] inline vec<T> in_register(typename vec<T>::register_type shared) {
#if defined(__SSE2__) && !defined(__clang__)
  asm("" : "+v"(shared));
#endif
  return shared;
}
/// Adds x y to a sum that stays in its register, where there are few. Without this g++ 12 may leave
/// the new sum where a factor was, and moves it later, or stores it.
template <class T>
[[gnu::always_inline]] inline void add_product(vec<T>& sum, vec<T> x, vec<T> y) {
#if defined(__FMA__) && !defined(__AVX512F__) && !defined(__clang__)
  typename vec<T>::register_type all = sum, a = x, b = y;
  if constexpr (sizeof(T) == sizeof(float))
    asm("vfmadd231ps {%2, %1, %0|%0, %1, %2}" : "+x"(all) : "x"(a), "x"(b));
  else
    asm("vfmadd231pd {%2, %1, %0|%0, %1, %2}" : "+x"(all) : "x"(a), "x"(b));
  sum = all;
#else
  sum = multiply_add(x, y, sum);
#endif
}
/// Loads a vector that several products share. Not by `in_register`: g++ then allots registers
/// otherwise, and code for AVX-512, which is well as it is, would change.
template <class T>
[[gnu::always_inline]] inline vec<T> load_shared(const T* p) {
#if defined(__SSE2__) && !defined(__clang__)
  typename vec<T>::register_type a = load(p);
  asm("" : "+v"(a));
  return a;
#else
  return load(p);
#endif
}

/// While it lives, this thread treats denormal numbers as zero and rounds denormal results to zero
/// (x86 and AArch64). Denormals in dying momenta make a training step 30 % slower.
class flush_denormals {
 public:
  flush_denormals() {
    cella::detail::set_floating_point_mode(saved_ | cella::detail::denormals_are_zero);
  }
  ~flush_denormals() { cella::detail::set_floating_point_mode(saved_); }
  flush_denormals(const flush_denormals&) = delete;
  flush_denormals& operator=(const flush_denormals&) = delete;

 private:
  cella::detail::floating_point_mode saved_ = cella::detail::get_floating_point_mode();
};

inline wide_lanes widen(vec<float> a) {
#if defined(__AVX512F__)
  const __m512d bits = _mm512_castps_pd(a);
  return {
      _mm512_maskz_cvtps_pd(0xff, _mm512_castps512_ps256(a)),
      _mm512_maskz_cvtps_pd(0xff, _mm256_castpd_ps(_mm512_maskz_extractf64x4_pd(0xff, bits, 1)))};
#elif defined(__AVX2__) && defined(__FMA__)
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(a)), _mm256_cvtps_pd(_mm256_extractf128_ps(a, 1))};
#else
  alignas(64) float in[lanes<float>];
  alignas(64) double out[lanes<float>];
  a.store_aligned(in);
  for (int i = 0; i < lanes<float>; ++i) out[i] = in[i];
  return {load(out), load(out + lanes<double>)};
#endif
}
inline vec<float> narrow(wide_lanes a) {
#if defined(__AVX512F__)
  const __m256 low = _mm512_maskz_cvtpd_ps(0xff, a.low), high = _mm512_maskz_cvtpd_ps(0xff, a.high);
  return _mm512_castpd_ps(_mm512_maskz_insertf64x4(
      0xff, _mm512_castps_pd(_mm512_castps256_ps512(low)), _mm256_castps_pd(high), 1));
#elif defined(__AVX2__) && defined(__FMA__)
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(a.low)),
                              _mm256_cvtpd_ps(a.high), 1);
#else
  alignas(64) double in[lanes<float>];
  alignas(64) float out[lanes<float>];
  store(in, a.low);
  store(in + lanes<double>, a.high);
  for (int i = 0; i < lanes<float>; ++i) out[i] = float(in[i]);
  return vec<float>::load_aligned(out);
#endif
}

}  // namespace cella::cpu
