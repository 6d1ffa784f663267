// Exponentials of whole vectors, and what is made of them. Units in the last place
// (ulp) are those of the exact result.
#pragma once

#include <cella/backend/cpu/simd/numbers_in_parts.hpp>
#include <cella/backend/cpu/simd/piecewise_fits.hpp>
#include <cella/backend/cpu/simd/rounding_errors.hpp>
#include <limits>
#include <numbers>

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
template <std::same_as<float> T>
[[gnu::always_inline]] inline vec<T> binary_exponential(vec<T> x);

/// 1 / (1 + e^-x), within 2 ulp. Results below the smallest normal number are 0.
template <class T>
[[gnu::always_inline]] inline vec<T> logistic(vec<T> x);

/// Hyperbolic tangent, within 2 ulp; +-1 far out, NaN for NaN.
template <class T>
[[gnu::always_inline]] inline vec<T> hyperbolic_tangent(vec<T> x);

namespace detail {

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

/// 2^x for |x| <= 126.
template <std::same_as<float> T>
[[gnu::always_inline]] inline vec<T> ordinary_power_of_two(vec<T> x) {
  const vec<float> n = nearest(x), y = polynomial(power_fit, x - n);
#if defined(__AVX512F__)
  return times_power_of_two<float>(y, n);
#else
  return y * power_of_digits<float>(n);
#endif
}

#if !defined(__AVX512F__)
/// e^x = 2^n fraction, with n in a sum as `power_of_sum` has it.
struct power_in_parts {
  vec<float> fraction, sum;
};
template <std::same_as<float> T>
[[gnu::always_inline]] inline power_in_parts power_of_e(vec<T> x) {
  constexpr float log2e = 1.44269502f;
  const vec<float> large(large_number<float>), sum = multiply_add(x, vec<float>(log2e), large);
  const vec<float> n = sum - large;
  // ln(2) in two parts; right without a fused multiply-add, too: the first product is exact.
  const vec<float> rest = (x - n * vec<float>(0.693359375f)) - n * vec<float>(-2.12194440e-4f);
  return {polynomial(power_fit, rest * vec<float>(log2e)), sum};
}
#endif

/// e^x for x up to `exponential_bound`, where it overflows, or for single precision, where
/// processors do not scale by powers of 2, up to 88.
template <class T>
inline constexpr T exponential_bound = std::is_same_v<T, float> ? T(150) : T(1100);
template <class T>
[[gnu::always_inline]] inline vec<T> bounded_exponential(vec<T> x) {
  if constexpr (std::is_same_v<T, float>) {
#if defined(__AVX512F__)
    // 2^(n + f) with |f| <= 1/2; log2(e) in two parts.
    constexpr float log2e = 1.44269502f;
    const vec<T> n = nearest(x * vec<T>(log2e));
    const vec<T> rest = multiply_add(x, vec<T>(log2e), -n);
    const vec<T> f = multiply_add(x, vec<T>(1.925963e-8f), rest);
    return times_power_unless_below(polynomial(power_fit, f), n, x);
#else
    const auto [fraction, sum] = power_of_e(x);
    return xsimd::select(x < vec<T>(least_exponent<T>), vec<T>(T(0)),
                         fraction * power_of_sum<T>(sum));
#endif
  } else {
    const auto [n, rest] = exponential_in_parts<T>(x);
    return times_power_unless_below(vec<T>(T(1)) + rest, n, x);
  }
}

}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> exponential(vec<T> x) {
#if !defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) {
    // n is added to the exponent of the fraction, which is about 1: 2^n alone may be too large.
    using integers = vec<std::uint32_t>;
    const auto [fraction, sum] = detail::power_of_e(x);
    const integers n = xsimd::bitwise_cast<integers>(sum - vec<T>(T(detail::format<T>::bias)));
    const vec<T> y = xsimd::bitwise_cast<vec<T> >(xsimd::bitwise_cast<integers>(fraction) +
                                                  (n << detail::format<T>::digits));
    // Above the bound this sum is infinite, and NaN for NaN.
    return xsimd::select(x <= vec<T>(88.7228317f),
                         xsimd::select(x < vec<T>(detail::least_exponent<T>), vec<T>(T(0)), y),
                         x + vec<T>(std::numeric_limits<T>::infinity()));
  }
#endif
  // The bound stands first, so that NaN is what remains.
  return detail::bounded_exponential<T>(minimum(vec<T>(detail::exponential_bound<T>), x));
}

template <std::same_as<float> T>
inline vec<T> binary_exponential(vec<T> x) {
#if !defined(__AVX512F__)
  if (xsimd::all(xsimd::abs(x) <= vec<float>(126.0f))) return detail::ordinary_power_of_two(x);
#endif
  // Beyond the bounds, which stand first so that NaN remains, it is 0, or infinite.
  const vec<float> bounded = minimum(vec<float>(200.0f), maximum(vec<float>(-200.0f), x));
  const vec<float> n = detail::nearest(bounded);
  return detail::times_power_of_two(detail::polynomial(detail::power_fit, bounded - n), n);
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
  const vec<T> sign = x & vec<T>(-T(0)), size = x ^ sign;
  if constexpr (std::is_same_v<T, float> && detail::has_pieces_in_registers)
    return detail::piecewise<detail::tanh_fit, T>(minimum(vec<T>(T(12)), size)) | sign;
  // With |x| = n ln 2 / 2 + v, 0 <= v < ln 2 / 2, and u = tanh v it is the quotient of
  // 2^n (1 + u) - (1 - u) and 2^n (1 + u) + (1 - u), and so u itself near 0. It is 1 behind the
  // bound, which stands first, so that NaN is what remains.
  constexpr bool single = std::is_same_v<T, float>;
  const vec<T> bounded = minimum(vec<T>(T(single ? 12 : 40)), size);
  const vec<T> n =
      detail::nearest(multiply_add(bounded, vec<T>(T(2 * std::numbers::log2e)), vec<T>(T(-0.5))));
  const auto rest = [&](T high, T low) __attribute__((always_inline)) {
    return multiply_add(n, vec<T>(-low), multiply_add(n, vec<T>(-high), bounded));
  };
  // u = v + v^3 P(v^2), minimax fits to 2^-31 and 2^-56 of it.
  vec<T> v, p;
  if constexpr (single) {
    static constexpr float c[] = {-0.333333219f, 0.133324006f, -0.0537311903f, 0.0194628694f};
    v = rest(0.3466796875f, -1.06097220e-4f);
    p = detail::polynomial(c, v * v);
  } else {
    static constexpr double c[] = {-0.333333333333326267,   0.133333333331424312,
                                   -0.0539682537917445185,  0.0218694806301838905,
                                   -0.00886303912379286743, 0.00358927229662180912,
                                   -0.0014315397723811856,  0.000476515021265625938};
    v = rest(3.46573590184561908245e-01, 9.54107464635293850010e-11);
    p = detail::long_polynomial(c, v * v);
  }
  const vec<T> u = multiply_add(p, v * v * v, v);
  // Both are scaled, so that they are rounded in fewer places less; the first is made of the
  // second, so that they are rounded alike where they are nearly the same.
  constexpr T scale = T(1.25);
  const vec<T> power = detail::power_of_two<T>(n), twice(2 * scale);
  const vec<T> more = multiply_add(power, vec<T>(scale), vec<T>(scale));
  const vec<T> less = multiply_add(power, vec<T>(scale), vec<T>(-scale));
  const vec<T> divisor = multiply_add(u, less, more);
  return (multiply_add(u, twice, divisor - twice) / divisor) | sign;
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace cella::cpu
