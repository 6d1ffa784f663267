// Exponentials and logarithms of whole vectors, and what is made of them. Units in the last place
// (ulp) are those of the exact result.
#pragma once

#include <cella/backend/cpu/simd/piecewise_fits.hpp>
#include <cella/backend/cpu/simd/rounding_errors.hpp>
#include <limits>

namespace cella::cpu {

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 warns of the undefined registers from which its own AVX-512 intrinsics start.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// e^x, within 2 ulp; infinity above the range, NaN for NaN. Results below the smallest normal
/// number are 0.
template <class T>
[[gnu::always_inline]] inline vec<T> exponential(vec<T> x);

/// 2^x, within 2 ulp; whole powers are exact.
[[gnu::always_inline]] inline vec<float> binary_exponential(vec<float> x);

/// Natural logarithm, within 2 ulp; minus infinity for +-0, NaN below.
template <class T>
[[gnu::always_inline]] inline vec<T> logarithm(vec<T> x);

/// Logarithm to base 2, within 2 ulp; whole for powers of 2.
template <class T>
[[gnu::always_inline]] inline vec<T> binary_logarithm(vec<T> x);

/// log(1 + x), within 2 ulp, also near 0; minus infinity at -1, NaN below. `low` is added to x, of
/// which it is less than the last digit.
template <class T>
[[gnu::always_inline]] inline vec<T> logarithm_of_successor(vec<T> x, vec<T> low = vec<T>(T(0)));

/// 1 / (1 + e^-x), within 2 ulp. Results below the smallest normal number are 0.
template <class T>
[[gnu::always_inline]] inline vec<T> logistic(vec<T> x);

/// Hyperbolic tangent, within 2 ulp; +-1 far out, NaN for NaN.
template <class T>
[[gnu::always_inline]] inline vec<T> hyperbolic_tangent(vec<T> x);

namespace detail {

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

/// 2^n, put together from its digits, for integers n whose power is a normal number.
template <class T>
[[gnu::always_inline]] inline vec<T> power_of_digits(vec<T> n) {
  // A number this large has no fraction, so that the integer stands in its lowest bits.
  using f = format<T>;
  const vec<T> large(T(1.5) * T(typename f::integer{1} << f::digits) + T(f::bias));
  return xsimd::bitwise_cast<vec<T> >(xsimd::bitwise_cast<vec<typename f::integer> >(n + large)
                                      << f::digits);
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
  // In two steps: the factor itself may lie outside the range of the result.
  const vec<T> half = nearest(n * vec<T>(T(0.5)));
  return x * power_of_digits<T>(half) * power_of_digits<T>(n - half);
#endif
}

/// The least x whose e^x is a normal number.
template <class T>
inline constexpr T least_exponent = std::is_same_v<T, float> ? T(-87.33654f) : T(-708.396418532264);

/// y 2^n, which is about e^x, or 0 where that is no normal number: processors take a hundred cycles
/// to round to a denormal one, and masked scores are all of that kind.
template <class T>
[[gnu::always_inline]] inline vec<T> times_power_unless_below(vec<T> y, vec<T> n, vec<T> x) {
  const vec<T> least(least_exponent<T>);
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, least, _CMP_NLT_UQ), y, n);
  else
    return _mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(x, least, _CMP_NLT_UQ), y, n);
#else
  // The bound stands first, so that NaN is what remains.
  const vec<T> smallest(T(std::numeric_limits<T>::min_exponent - 1));
  return times_power_of_two(xsimd::select(x < least, vec<T>(T(0)), y), maximum(smallest, n));
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
template <class T>
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
  const T up = T(typename f::integer{1} << (f::digits + 2));
  const auto denormal = x < vec<T>(std::numeric_limits<T>::min());
  x = xsimd::select(denormal, x * vec<T>(up), x);
  const integers bits = xsimd::bitwise_cast<integers>(x);
  const vec<T> one(T(1)), whole(T(typename f::integer{1} << f::digits));
  const integers of_one = xsimd::bitwise_cast<integers>(one);
  const integers fraction(typename f::integer((typename f::integer{1} << f::digits) - 1));
  p.fraction = xsimd::bitwise_cast<vec<T> >((bits & fraction) | of_one);
  p.exponent =
      xsimd::bitwise_cast<vec<T> >((bits >> f::digits) | xsimd::bitwise_cast<integers>(whole)) -
      (whole + vec<T>(T(f::bias)));
  p.exponent = p.exponent - xsimd::select(denormal, vec<T>(T(f::digits + 2)), vec<T>(T(0)));
#endif
  const auto above = p.fraction > vec<T>(limit);
  p.fraction = xsimd::select(above, p.fraction * vec<T>(T(0.5)), p.fraction);
  p.exponent = xsimd::select(above, p.exponent + vec<T>(T(1)), p.exponent);
  return p;
}

/// exponent ln 2 + log(1 + f), for |f| < 0.42 and integers of the size of exponents; and what is
/// `more`, which is small.
template <class T, class... More>
[[gnu::always_inline]] inline vec<T> logarithm_of_parts(vec<T> exponent, vec<T> f, More... more) {
  // ln 2 in two parts, the first of few digits.
  if constexpr (std::is_same_v<T, float>) {
    // f - f^2 / 2 + f^3 P(f), a minimax fit to 2^-30.
    static constexpr float c[] = {0.333333135f,  -0.249999464f, 0.200020164f,
                                  -0.166717201f, 0.14225167f,   -0.123384826f,
                                  0.117713168f,  -0.120560713f, 0.0751040429f};
    const vec<T> square = f * f;
    vec<T> y = ((polynomial(c, f) * f * square) + ... + more);
    y = multiply_add(exponent, vec<T>(-2.12194440e-4f), y);
    y = multiply_add(square, vec<T>(-0.5f), y);
    return multiply_add(exponent, vec<T>(0.693359375f), f + y);
  } else {
    // With s = f / (2 + f): log(1 + f) = 2 s + s R(s^2), after fdlibm's e_log.c.
    static constexpr double c[] = {6.666666666666735130e-01, 3.999999999940941908e-01,
                                   2.857142874366239149e-01, 2.222219843214978396e-01,
                                   1.818357216161805012e-01, 1.531383769920937332e-01,
                                   1.479819860511658591e-01};
    const vec<T> s = f / (vec<T>(2.0) + f);
    const vec<T> z = s * s;
    const vec<T> half_square = vec<T>(0.5) * f * f;
    const vec<T> rest = polynomial(c, z) * z + half_square;
    const vec<T> low =
        (multiply_add(s, rest, exponent * vec<T>(1.90821492927058770002e-10)) + ... + more);
    return multiply_add(exponent, vec<T>(6.93147180369123816490e-01), f - (half_square - low));
  }
}
/// Up to which fraction logarithm_of_parts is best.
template <class T>
inline constexpr T largest_fraction = T(1.4140625);

/// e^x = 2^exponent (1 + rest), |rest| < 0.42. With `low`, which is added to x and less than its
/// last digit, what the reduction has lost is not: 1 + rest is as right as rest has digits.
template <class T>
struct parts_of_exponential {
  vec<T> exponent, rest;
};
template <class T, class... Low>
[[gnu::always_inline]] inline parts_of_exponential<T> exponential_in_parts(vec<T> x, Low... low) {
  // rest = r + r^2 Q(r), a minimax fit, with the remainder r of a division by ln 2, in two parts.
  const vec<T> n = nearest(x * vec<T>(T(1.44269504088896340736)));
  const auto rest = [&](const auto& c, T ln2_high, T ln2_low) {
    const vec<T> start = multiply_add(n, vec<T>(-ln2_high), x);
    if constexpr (sizeof...(Low) == 0) {
      const vec<T> r = multiply_add(n, vec<T>(-ln2_low), start);
      return multiply_add(polynomial(c, r), r * r, r);
    } else {
      const vec<T> step = rounded<T>(n * vec<T>(ln2_low)), r = start - step;
      const vec<T> lost = (((start - r) - step) + ... + low);
      const vec<T> curve = polynomial(c, r) * r * r;
      return r + (curve + multiply_add(lost, r + curve, lost));
    }
  };
  if constexpr (std::is_same_v<T, float>) {
    static constexpr float c[] = {0.5f, 0.166665435f, 0.0416662805f, 0.00836660154f, 0.0013946481f};
    return {n, rest(c, 0.693359375f, -2.12194440e-4f)};
  } else {
    static constexpr double c[] = {0.5,
                                   0.1666666666666667,
                                   0.04166666666666667,
                                   0.008333333333326112,
                                   0.001388888888888373,
                                   0.0001984126987490126,
                                   2.4801587325605324e-05,
                                   2.7557255297969643e-06,
                                   2.755727357010214e-07,
                                   2.5105259538448494e-08,
                                   2.0914717341716378e-09};
    return {n, rest(c, 6.93147180369123816490e-01, 1.90821492927058770002e-10)};
  }
}

/// 2^f for |f| <= 1/2.
inline constexpr float power_fit[] = {1.0f,          6.9314720e-1f, 2.4022648e-1f, 5.5503324e-2f,
                                      9.6184373e-3f, 1.3398874e-3f, 1.5353362e-4f};

/// e^x for x up to `exponential_bound`, where it overflows.
template <class T>
inline constexpr T exponential_bound = std::is_same_v<T, float> ? T(150) : T(1100);
template <class T>
[[gnu::always_inline]] inline vec<T> bounded_exponential(vec<T> x) {
  if constexpr (std::is_same_v<T, float>) {
    // 2^(n + f) with |f| <= 1/2; log2(e), or ln(2), in two parts.
    constexpr float log2e = 1.44269502f;
    const vec<T> n = nearest(x * vec<T>(log2e));
#if defined(__AVX512F__)
    const vec<T> rest = multiply_add(x, vec<T>(log2e), -n);
    const vec<T> f = multiply_add(x, vec<T>(1.925963e-8f), rest);
#else
    // Right without a fused multiply-add, too: the first product is exact.
    const vec<T> rest = (x - n * vec<T>(0.693359375f)) - n * vec<T>(-2.12194440e-4f);
    const vec<T> f = rest * vec<T>(log2e);
#endif
    return times_power_unless_below(polynomial(power_fit, f), n, x);
  } else {
    const auto [n, rest] = exponential_in_parts<T>(x);
    return times_power_unless_below(vec<T>(T(1)) + rest, n, x);
  }
}

}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> exponential(vec<T> x) {
  // The bound stands first, so that NaN is what remains.
  return detail::bounded_exponential<T>(minimum(vec<T>(detail::exponential_bound<T>), x));
}

inline vec<float> binary_exponential(vec<float> x) {
  // Beyond the bounds, which stand first so that NaN remains, it is 0, or infinite.
  const vec<float> bounded = minimum(vec<float>(200.0f), maximum(vec<float>(-200.0f), x));
  const vec<float> n = detail::nearest(bounded);
  return detail::times_power_of_two(detail::polynomial(detail::power_fit, bounded - n), n);
}

namespace detail {
/// A logarithm of x: y for positive numbers.
template <class T>
[[gnu::always_inline]] inline vec<T> logarithm_or_special(vec<T> x, vec<T> y) {
  constexpr T infinity = std::numeric_limits<T>::infinity();
  // Infinity and NaN are their own logarithms.
  const vec<T> zero(T(0));
  const vec<T> below =
      xsimd::select(x == zero, vec<T>(-infinity), vec<T>(std::numeric_limits<T>::quiet_NaN()));
  return xsimd::select(x > zero, xsimd::select(x < vec<T>(infinity), y, x),
                       xsimd::select(x <= zero, below, x));
}
}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> logarithm(vec<T> x) {
  const auto p = detail::take_apart(x, detail::largest_fraction<T>);
  return detail::logarithm_or_special<T>(
      x, detail::logarithm_of_parts<T>(p.exponent, p.fraction - vec<T>(T(1))));
}

template <class T>
[[gnu::always_inline]] inline vec<T> binary_logarithm(vec<T> x) {
  const auto p = detail::take_apart(x, detail::largest_fraction<T>);
  const vec<T> rest = detail::logarithm_of_parts<T>(vec<T>(T(0)), p.fraction - vec<T>(T(1)));
  return detail::logarithm_or_special<T>(
      x, multiply_add(rest, vec<T>(T(1.44269504088896340736)), p.exponent));
}

template <class T>
[[gnu::always_inline]] inline vec<T> logarithm_of_successor(vec<T> x, vec<T> low) {
  // The logarithm of u = 1 + x, and what the rounding of u has lost, over u; where u needs no
  // exponent its fraction is x itself.
  const vec<T> one(T(1));
  const vec<T> u = one + x;
  const vec<T> lost = xsimd::select(xsimd::abs(x) > one, one - (u - x), x - (u - one));
  const auto p = detail::take_apart(u, detail::largest_fraction<T>);
  const auto near = p.exponent == vec<T>(T(0));
  const vec<T> f = xsimd::select(near, x, p.fraction - one);
  const vec<T> more = xsimd::select(near, low, lost + low) / u;
  const vec<T> y =
      detail::logarithm_or_special<T>(u, detail::logarithm_of_parts<T>(p.exponent, f, more));
  // The sum would lose the sign of -0.
  return xsimd::select(x == vec<T>(T(0)), x, y);
}

template <class T>
[[gnu::always_inline]] inline vec<T> logistic(vec<T> x) {
  // Where e^-x does not count in the sum: y is 1 above, and no normal number below.
  constexpr T most = std::is_same_v<T, float> ? T(87) : T(708);
  constexpr T least = detail::least_exponent<T>;
  const vec<T> one(T(1));
  const vec<T> bounded = maximum(vec<T>(least), minimum(vec<T>(most), x));
  const auto [n, rest] = detail::exponential_in_parts<T>(-bounded);
  const vec<T> power = detail::power_of_two<T>(n);
  // 1 + power (1 + rest), the largest term last.
  const vec<T> sum = multiply_add(power, rest, minimum(power, one)) + maximum(power, one);
  return xsimd::select(x < vec<T>(least), vec<T>(T(0)), one / sum);
}

template <class T>
[[gnu::always_inline]] inline vec<T> hyperbolic_tangent(vec<T> x) {
  const vec<T> one(T(1));
  const vec<T> size = xsimd::abs(x);
  if constexpr (std::is_same_v<T, float> && detail::has_piecewise)
    return xsimd::copysign(detail::piecewise<T>(detail::tanh_fit, minimum(vec<T>(T(12)), size)), x);
  const vec<T> square = x * x;
  // Near 0 a polynomial, or a quotient of two (Cephes); elsewhere 1 - 2 e / (1 + e) with
  // e = e^-2|x|.
  vec<T> near;
  if constexpr (std::is_same_v<T, float>) {
    static constexpr float c[] = {-3.33332819422e-1f, 1.33314422036e-1f, -5.37397155531e-2f,
                                  2.06390887954e-2f, -5.70498872745e-3f};
    near = detail::polynomial(c, square);
  } else {
    static constexpr double p[] = {-1.61468768441708447952e3, -9.92877231001918586564e1,
                                   -9.64399179425052238628e-1};
    static constexpr double q[] = {4.84406305325125486048e3, 2.23548839060100448583e3,
                                   1.12811678491632931402e2, 1.0};
    near = detail::polynomial(p, square) / detail::polynomial(q, square);
  }
  near = multiply_add(near * square, size, size);
  const vec<T> e = detail::bounded_exponential<T>(vec<T>(T(-2)) * size);
  const vec<T> far = one - (e + e) / (one + e);
  return xsimd::copysign(xsimd::select(size < vec<T>(T(0.625)), near, far), x);
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace cella::cpu
