// Logarithms of whole vectors. Units in the last place (ulp) are those of the exact result.
#pragma once

#include <cella/backend/cpu/simd/numbers_in_parts.hpp>

namespace cella::cpu {

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

namespace detail {

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
/// of(whether all numbers are ordinary, as a constant): most are, and where processors have no
/// instructions for the others it takes many.
template <class T, class F>
[[gnu::always_inline]] inline vec<T> with_ordinary([[maybe_unused]] vec<T> x, F of) {
#if !defined(__AVX512F__)
  if (are_ordinary(x)) [[likely]]
    return of(std::true_type{});
#endif
  return of(std::false_type{});
}

}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> logarithm(vec<T> x) {
  return detail::with_ordinary(
      x, [&](auto ordinary) __attribute__((always_inline)) {
        const auto p = detail::take_apart<ordinary()>(x, detail::largest_fraction<T>);
        const vec<T> y = detail::logarithm_of_parts<T>(p.exponent, p.fraction - vec<T>(T(1)));
        return ordinary() ? y : detail::logarithm_or_special<T>(x, y);
      });
}

template <class T>
[[gnu::always_inline]] inline vec<T> binary_logarithm(vec<T> x) {
  return detail::with_ordinary(
      x, [&](auto ordinary) __attribute__((always_inline)) {
        const auto p = detail::take_apart<ordinary()>(x, detail::largest_fraction<T>);
        const vec<T> rest = detail::logarithm_of_parts<T>(vec<T>(T(0)), p.fraction - vec<T>(T(1)));
        const vec<T> y = multiply_add(rest, vec<T>(T(1.44269504088896340736)), p.exponent);
        return ordinary() ? y : detail::logarithm_or_special<T>(x, y);
      });
}

template <class T>
[[gnu::always_inline]] inline vec<T> logarithm_of_successor(vec<T> x, vec<T> low) {
  // The logarithm of u = 1 + x, and what the rounding of u has lost, over u; where u needs no
  // exponent its fraction is x itself.
  const vec<T> one(T(1));
  const vec<T> u = one + x;
  const vec<T> lost = xsimd::select(xsimd::abs(x) > one, one - (u - x), x - (u - one));
  const vec<T> y = detail::with_ordinary(
      u, [&](auto ordinary) __attribute__((always_inline)) {
        const auto p = detail::take_apart<ordinary()>(u, detail::largest_fraction<T>);
        const auto near = p.exponent == vec<T>(T(0));
        const vec<T> f = xsimd::select(near, x, p.fraction - one);
        const vec<T> more = xsimd::select(near, low, lost + low) / u;
        const vec<T> of_parts = detail::logarithm_of_parts<T>(p.exponent, f, more);
        return ordinary() ? of_parts : detail::logarithm_or_special<T>(u, of_parts);
      });
  // The sum would lose the sign of -0.
  return xsimd::select(x == vec<T>(T(0)), x, y);
}

}  // namespace cella::cpu
