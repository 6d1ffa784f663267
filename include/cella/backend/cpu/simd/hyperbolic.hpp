// Hyperbolic sine and cosine of whole vectors, the inverses, and e^x - 1.
#pragma once

#include <cella/backend/cpu/simd/exponentials.hpp>
#include <cella/backend/cpu/simd/logarithms.hpp>
#include <cella/backend/cpu/simd/rounding_errors.hpp>

namespace cella::cpu {

/// e^x - 1, within 2 ulp, also near 0.
template <class T>
[[gnu::always_inline]] inline vec<T> exponential_less_one(vec<T> x);

/// Hyperbolic sine and cosine, within 2 ulp.
template <class T>
[[gnu::always_inline]] inline vec<T> hyperbolic_sine(vec<T> x);
template <class T>
[[gnu::always_inline]] inline vec<T> hyperbolic_cosine(vec<T> x);

/// Their inverses, within 2 ulp; that of the cosine is NaN below 1.
template <class T>
[[gnu::always_inline]] inline vec<T> inverse_hyperbolic_sine(vec<T> x);
template <class T>
[[gnu::always_inline]] inline vec<T> inverse_hyperbolic_cosine(vec<T> x);

template <class T>
[[gnu::always_inline]] inline vec<T> exponential_less_one(vec<T> x) {
  // Beyond the bounds it is -1, or infinite. They stand first, so that NaN is what remains.
  constexpr T least = std::is_same_v<T, float> ? T(-20) : T(-40);
  constexpr T most = std::is_same_v<T, float> ? T(88.8) : T(709.9);
  const vec<T> one(T(1)), largest(T(std::numeric_limits<T>::max_exponent - 1));
  const vec<T> bounded = minimum(vec<T>(most), maximum(vec<T>(least), x));
  const auto [n, rest] = detail::exponential_in_parts<T>(bounded, vec<T>(T(0)));
  // 2^n rest + (2^n - 1); the last power of 2 in two steps, since it is no number itself.
  const vec<T> bounded_n = minimum(largest, n);
  const vec<T> power = detail::power_of_two<T>(bounded_n);
  const vec<T> y = multiply_add(power, rest, power - one) * (one + (n - bounded_n));
  return xsimd::copysign(y, x);
}

namespace detail {

/// (e^size + e^-size) / 2, or with `sign` = -1 the difference, for numbers that are not negative.
template <std::same_as<double> T>
[[gnu::always_inline]] inline vec<T> half_of_exponentials(vec<T> size, double sign) {
  using v = vec<double>;
  const v one(1.0);
  // The bound, where they are infinite, stands first, so that NaN is what remains.
  const auto [n, rest] = exponential_in_parts<double>(minimum(v(710.6), size), v(0.0));
  const v power = one + rest, power_lost = (one - power) + rest;
  // A quarter of what is wanted: e^size itself may be infinite.
  const v quarter = power_of_two<double>(n - v(2.0)), large = quarter * power;
  const v y = large + multiply_add(quarter, power_lost, v(sign / 16) / large);
  return y + y;
}

}  // namespace detail

namespace detail {

/// Hyperbolic sine and cosine of numbers that are not negative, the sine from 1 on.
struct hyperbolic_pair {
  vec<float> sine, cosine;
};
template <std::same_as<float> T>
[[gnu::always_inline]] inline hyperbolic_pair hyperbolic_functions(vec<T> size) {
  using v = vec<float>;
  // Of the rest r of a division by ln 2, cosh and sinh to 2^-27 and 2^-32 by Taylor's series. The
  // bound, where they are infinite, stands first, so that NaN is what remains.
  static constexpr float even[] = {0.5f, 1.0f / 24, 1.0f / 720};
  static constexpr float odd[] = {1.0f / 6, 1.0f / 120, 1.0f / 5040};
  const v x = minimum(v(89.5f), size), n = nearest(x * v(1.44269502f)), two(2.0f);
  const v r = multiply_add(n, v(2.12194440e-4f), multiply_add(n, v(-0.693359375f), x));
  const v square = r * r, half_cosine = polynomial(even, square) * square;
  const v sine = multiply_add(polynomial(odd, square) * square, r, r);
  // e^x = 2^n (cosh r + sinh r), in fourths: e^x itself may be infinite.
  const v up = power_of_two<float>(n - two),
          down = power_of_two<float>(maximum(v(-126.0f), -n - two));
  const v sum = up + down, sum_lost = (up - sum) + down;
  const v difference = up - down, difference_lost = (up - difference) - down;
  const v to_cosine =
      sum + multiply_add(sine, difference, multiply_add(half_cosine, sum, sum_lost));
  const v to_sine =
      difference + multiply_add(sine, sum, multiply_add(half_cosine, difference, difference_lost));
  return {to_sine + to_sine, to_cosine + to_cosine};
}

}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> hyperbolic_sine(vec<T> x) {
  if constexpr (std::is_same_v<T, float> && detail::has_fused_multiply_add) {
    // Below 1 Taylor's series, whose first term left out is 2^-32.
    static constexpr T c[] = {1.0f / 6, 1.0f / 120, 1.0f / 5040, 1.0f / 362880, 1.0f / 39916800};
    const vec<T> size = xsimd::abs(x), square = size * size;
    const vec<T> near = multiply_add(detail::polynomial(c, square) * square, size, size);
    const vec<T> far = detail::hyperbolic_functions(size).sine;
    return xsimd::copysign(xsimd::select(size < vec<T>(1.0f), near, far), x);
  } else if constexpr (std::is_same_v<T, float>) {
    return detail::in_doubles(x, [](vec<double> v) { return hyperbolic_sine<double>(v); });
  } else {
    // Below 1 Taylor's series, whose first term left out is 2^-65.
    static constexpr double c[] = {1.0 / 6,
                                   1.0 / 120,
                                   1.0 / 5040,
                                   1.0 / 362880,
                                   1.0 / 39916800,
                                   1.0 / 6227020800,
                                   1.0 / 1307674368000,
                                   1.0 / 355687428096000,
                                   1.0 / 121645100408832000};
    const vec<T> size = xsimd::abs(x), square = size * size;
    const vec<T> near = multiply_add(detail::polynomial(c, square) * square, size, size);
    const vec<T> far = detail::half_of_exponentials(size, -1);
    return xsimd::copysign(xsimd::select(size < vec<T>(1.0), near, far), x);
  }
}

template <class T>
[[gnu::always_inline]] inline vec<T> hyperbolic_cosine(vec<T> x) {
  if constexpr (std::is_same_v<T, float> && detail::has_fused_multiply_add)
    return detail::hyperbolic_functions(xsimd::abs(x)).cosine;
  else if constexpr (std::is_same_v<T, float>)
    return detail::in_doubles(x, [](vec<double> v) { return hyperbolic_cosine<double>(v); });
  else
    return detail::half_of_exponentials(xsimd::abs(x), 1);
}

namespace detail {

/// log(1 + u + lost), or log(2 size) where `size` is so large that its square might overflow, and 1
/// does not count.
template <class T>
[[gnu::always_inline]] inline vec<T> inverse_hyperbolic(vec<T> size, vec<T> u, vec<T> lost) {
  const vec<T> ln2(T(0.693147180559945309417)), zero(T(0));
  const auto far = size > vec<T>(std::is_same_v<T, float> ? T(1e9) : T(1e18));
  const vec<T> y =
      logarithm_of_successor<T>(xsimd::select(far, size, u), xsimd::select(far, zero, lost));
  return y + xsimd::select(far, ln2, zero);
}

}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> inverse_hyperbolic_sine(vec<T> x) {
  const vec<T> one(T(1)), size = xsimd::abs(x), square = size * size;
  const vec<T> rest = square / (one + xsimd::sqrt(one + square)), u = size + rest;
  return xsimd::copysign(detail::inverse_hyperbolic<T>(size, u, (size - u) + rest), x);
}

template <class T>
[[gnu::always_inline]] inline vec<T> inverse_hyperbolic_cosine(vec<T> x) {
  const vec<T> one(T(1)), t = x - one, root = xsimd::sqrt(multiply_add(t, t, t + t)), u = root + t;
  const vec<T> y = detail::inverse_hyperbolic<T>(x, u, (root - u) + t);
  return xsimd::select(x < one, vec<T>(std::numeric_limits<T>::quiet_NaN()), y);
}

}  // namespace cella::cpu
