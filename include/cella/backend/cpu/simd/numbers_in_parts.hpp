// Polynomials of whole vectors, and numbers taken apart into exponent and fraction and put together
// again: what exponentials and logarithms are made of.
#pragma once

#include <cella/backend/cpu/simd/simd.hpp>
#include <cstdint>
#include <limits>
#include <type_traits>

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 warns of the undefined registers from which its own AVX-512 intrinsics start.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace cella::cpu::detail {

/// c[0] + c[1] x + c[2] x^2 + ..., by Horner's rule.
template <class T, std::size_t N>
[[gnu::always_inline]] inline vec<T> polynomial(const T (&c)[N], vec<T> x) {
  vec<T> sum(c[N - 1]);
#pragma GCC unroll 16
  for (int k = int(N) - 2; k >= 0; --k) sum = multiply_add(sum, x, vec<T>(c[k]));
  return sum;
}

/// The same in two sums that do not wait for each other, of even and of odd powers: for long ones.
template <class T, std::size_t N>
[[gnu::always_inline]] inline vec<T> long_polynomial(const T (&c)[N], vec<T> x) {
  constexpr int last = int(N) - 1;
  const vec<T> square = x * x;
  vec<T> odd(c[last % 2 ? last : last - 1]), even(c[last % 2 ? last - 1 : last]);
#pragma GCC unroll 16
  for (int k = (last % 2 ? last : last - 1) - 2; k >= 1; k -= 2)
    odd = multiply_add(odd, square, vec<T>(c[k]));
#pragma GCC unroll 16
  for (int k = (last % 2 ? last - 1 : last) - 2; k >= 0; k -= 2)
    even = multiply_add(even, square, vec<T>(c[k]));
  return multiply_add(odd, x, even);
}

/// To the nearest integer, ties to even.
template <class T>
[[gnu::always_inline]] inline vec<T> nearest(vec<T> x) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return _mm512_maskz_roundscale_ps(0xffff, x, 8);
  else
    return _mm512_maskz_roundscale_pd(0xff, x, 8);
#else
  return xsimd::nearbyint(x);
#endif
}

/// The format of T.
template <class T>
struct format {
  using integer = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  static constexpr int digits = std::numeric_limits<T>::digits - 1;
  static constexpr int bias = std::numeric_limits<T>::max_exponent - 1;
};

/// A number this large has no fraction, so that an integer n that is added to it stands in its
/// lowest bits: as the exponent of 2^n.
template <class T>
inline constexpr T large_number = T(1.5) * T(typename format<T>::integer{1} << format<T>::digits) +
                                  T(format<T>::bias);
/// 2^n from the sum of a large number and n, for integers n whose power is a normal number.
template <class T>
[[gnu::always_inline]] inline vec<T> power_of_sum(vec<T> sum) {
  using f = format<T>;
  return xsimd::bitwise_cast<vec<T> >(xsimd::bitwise_cast<vec<typename f::integer> >(sum)
                                      << f::digits);
}
/// 2^n, put together from its digits.
template <class T>
[[gnu::always_inline]] inline vec<T> power_of_digits(vec<T> n) {
  return power_of_sum<T>(n + vec<T>(large_number<T>));
}

/// x 2^n for integers n of at most twice the range of the exponents.
template <class T>
[[gnu::always_inline]] inline vec<T> times_power_of_two(vec<T> x, vec<T> n) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return _mm512_maskz_scalef_ps(0xffff, x, n);
  else
    return _mm512_maskz_scalef_pd(0xff, x, n);
#else
  // In two steps: the factor itself may lie outside the range of the result. Half of n is rounded
  // where it is added to a number so large.
  const vec<T> large(large_number<T>), half = multiply_add(n, vec<T>(T(0.5)), large);
  return x * power_of_sum<T>(half) * power_of_digits<T>(n - (half - large));
#endif
}

/// 2^n for integers n whose power is a normal number.
template <class T>
[[gnu::always_inline]] inline vec<T> power_of_two(vec<T> n) {
#if defined(__AVX512F__)
  return times_power_of_two<T>(vec<T>(T(1)), n);
#else
  return power_of_digits<T>(n);
#endif
}
/// x = 2^exponent * fraction for positive x, with a fraction between Limit / 2 and Limit.
template <class T>
struct parts_of_number {
  vec<T> fraction, exponent;
};
/// Whether all are positive, neither denormal nor infinite.
template <class T>
[[gnu::always_inline]] inline bool are_ordinary(vec<T> x) {
  using limits = std::numeric_limits<T>;
  return xsimd::all((x >= vec<T>(limits::min())) && (x <= vec<T>(limits::max())));
}
/// `Ordinary`: as `are_ordinary` says; what processors do by themselves is then left out where they
/// do not.
template <bool Ordinary = false, class T>
[[gnu::always_inline]] inline parts_of_number<T> take_apart(vec<T> x, T limit) {
  parts_of_number<T> p;
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) {
    p = {_mm512_maskz_getmant_ps(0xffff, x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src),
         _mm512_maskz_getexp_ps(0xffff, x)};
  } else {
    p = {_mm512_maskz_getmant_pd(0xff, x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_src),
         _mm512_maskz_getexp_pd(0xff, x)};
  }
#else
  using f = format<T>;
  using integers = vec<typename f::integer>;
#if defined(__AVX2__)
  if constexpr (Ordinary && std::is_same_v<T, float>) {
    // Halves of the limit have the exponent 0.
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i half = _mm256_castps_si256(vec<T>(limit * T(0.5)));
    const __m256i n = _mm256_srai_epi32(_mm256_sub_epi32(bits, half), f::digits);
    const __m256i fraction = _mm256_sub_epi32(bits, _mm256_slli_epi32(n, f::digits));
    return {_mm256_castsi256_ps(fraction), _mm256_cvtepi32_ps(n)};
  }
#endif
  const T up = T(typename f::integer{1} << (f::digits + 2));
  const auto denormal = x < vec<T>(std::numeric_limits<T>::min());
  if constexpr (!Ordinary) x = xsimd::select(denormal, x * vec<T>(up), x);
  const integers bits = xsimd::bitwise_cast<integers>(x);
  const vec<T> one(T(1)), whole(T(typename f::integer{1} << f::digits));
  const integers of_one = xsimd::bitwise_cast<integers>(one);
  const integers fraction(typename f::integer((typename f::integer{1} << f::digits) - 1));
  p.fraction = xsimd::bitwise_cast<vec<T> >((bits & fraction) | of_one);
  p.exponent =
      xsimd::bitwise_cast<vec<T> >((bits >> f::digits) | xsimd::bitwise_cast<integers>(whole)) -
      (whole + vec<T>(T(f::bias)));
  if constexpr (!Ordinary)
    p.exponent = p.exponent - xsimd::select(denormal, vec<T>(T(f::digits + 2)), vec<T>(T(0)));
#endif
  const auto above = p.fraction > vec<T>(limit);
  p.fraction = xsimd::select(above, p.fraction * vec<T>(T(0.5)), p.fraction);
  p.exponent = xsimd::select(above, p.exponent + vec<T>(T(1)), p.exponent);
  return p;
}

}  // namespace cella::cpu::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
