// Logarithms of whole vectors. Units in the last place (ulp) are those of the exact result.
#pragma once

#include <cella/backend/cpu/simd/numbers_in_parts.hpp>
#include <cella/backend/cpu/simd/piecewise.hpp>
#include <cella/backend/cpu/simd/rounding_errors.hpp>

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

#if defined(__AVX512F__)
/// log(x) = exponent log(2) - log(c) + log(c m) for the fraction m, of x taken apart: c is a number
/// for each of 32 pieces of [0.75, 1.5), near to 1 / m, whose logarithm has 17 digits behind the
/// point and is as exact as c; 1 on both sides of 1. Both are looked up in registers.
struct logarithm_pieces {
  alignas(64) float c[32], minus_log[32];
};
inline constexpr logarithm_pieces natural_pieces = {
    {1.0f,         0.960942507f, 0.930723906f, 0.895908773f, 0.880667448f, 0.853800118f,
     0.832038939f, 0.815242708f, 0.788077235f, 0.76979208f,  0.755646288f, 0.735432327f,
     0.716884911f, 0.699658811f, 0.685885429f, 0.674566925f, 1.31378341f,  1.28796959f,
     1.26721811f,  1.24273634f,  1.22359085f,  1.20136261f,  1.16913629f,  1.15293527f,
     1.13146389f,  1.1174376f,   1.0942955f,   1.07190251f,  1.05683923f,  1.04208302f,
     1.02655339f,  1.0f},
    {0.0f,           0.0398406982f, 0.0717926025f,  0.109916687f,   0.127075195f,   0.158058167f,
     0.183876038f,   0.204269409f,  0.23815918f,    0.261634827f,   0.280181885f,   0.307296753f,
     0.332839966f,   0.357162476f,  0.377044678f,   0.393684387f,   -0.272911072f,  -0.253067017f,
     -0.236824036f,  -0.217315674f, -0.201789856f,  -0.183456421f,  -0.156265259f,  -0.142311096f,
     -0.123512268f,  -0.111038208f, -0.0901107788f, -0.0694351196f, -0.0552825928f, -0.0412216187f,
     -0.0262069702f, 0.0f}};
inline constexpr logarithm_pieces binary_pieces = {
    {1.0f,         0.95180732f,  0.928431928f, 0.898717523f, 0.877072573f, 0.856723309f,
     0.82906276f,  0.812817872f, 0.790561557f, 0.771085024f, 0.750669777f, 0.733016729f,
     0.716411233f, 0.705728292f, 0.688480079f, 0.674921989f, 1.32086372f,  1.29299104f,
     1.26728046f,  1.24656892f,  1.22265399f,  1.1949501f,   1.17060697f,  1.1538893f,
     1.13551724f,  1.11143816f,  1.09389818f,  1.07547414f,  1.05881524f,  1.04306507f,
     1.02390945f,  1.0f},
    {0.0f,           0.0712585449f, 0.107131958f,  0.154060364f,  0.189231873f,   0.223098755f,
     0.270446777f,   0.298995972f,  0.339050293f,  0.375038147f,  0.413749695f,   0.44808197f,
     0.481140137f,   0.502815247f,  0.538513184f,  0.567207336f,  -0.401481628f,  -0.37071228f,
     -0.34173584f,   -0.317962646f, -0.290016174f, -0.256950378f, -0.227256775f,  -0.206504822f,
     -0.183349609f,  -0.152427673f, -0.129478455f, -0.104972839f, -0.0824508667f, -0.0608291626f,
     -0.0340881348f, 0.0f}};
/// exponent and -log(c), c m - 1, and c.
struct parts_of_logarithm {
  vec<float> exponent, minus_log, rest, c;
};
template <const logarithm_pieces& Pieces>
[[gnu::always_inline]] inline parts_of_logarithm logarithm_in_parts(vec<float> x) {
  const __m512 m = _mm512_maskz_getmant_ps(0xffff, x, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_src);
  // The first five digits behind the point.
  const __m512i piece = _mm512_maskz_srli_epi32(0xffff, _mm512_castps_si512(m), 18);
  const auto of = [&](const float* all) __attribute__((always_inline)) {
    return vec<float>(
        _mm512_maskz_permutex2var_ps(0xffff, load(all), piece, load(all + lanes<float>)));
  };
  const vec<float> c = of(Pieces.c);
  const vec<float> exponent =
      vec<float>(_mm512_maskz_getexp_ps(0xffff, x)) - vec<float>(_mm512_maskz_getexp_ps(0xffff, m));
  return {exponent, of(Pieces.minus_log), multiply_add(vec<float>(m), c, vec<float>(-1.0f)), c};
}
/// (log(1 + r) - r) / r^2 for -1/42 <= r <= 1/32: a minimax fit to 2^-32 of r.
inline constexpr float short_fit[] = {-0.49999998f, 0.33333457f, -0.250129716f, 0.197342268f};
/// The natural logarithm of parts, and `more`, which is small.
template <class... More>
[[gnu::always_inline]] inline vec<float> logarithm_of(const parts_of_logarithm& p, More... more) {
  // Where log(2) has few digits this sum is exact.
  const vec<float> start = multiply_add(p.exponent, vec<float>(0.693359375f), p.minus_log);
  const vec<float> rest = multiply_add(p.exponent, vec<float>(-2.12194440e-4f), p.rest);
  const vec<float> curve = polynomial(short_fit, p.rest);
  const vec<float> square = p.rest * p.rest;
  if constexpr (sizeof...(More) == 0)
    return start + multiply_add(curve, square, rest);
  else
    return start + (rest + multiply_add(curve, square, (more + ...)));
}
/// y where x is a positive number; otherwise its logarithm: infinities, NaN.
[[gnu::always_inline]] inline vec<float> unless_special(vec<float> x, vec<float> y) {
  // A digit for each kind of number, the first one for NaN.
  return _mm512_maskz_fixupimm_ps(0xffff, y, x, _mm512_set1_epi32(0x03530422), 0);
}
#endif

}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> logarithm(vec<T> x) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) {
    const auto p = detail::logarithm_in_parts<detail::natural_pieces>(x);
    return detail::unless_special(x, detail::logarithm_of(p));
  }
#endif
  return detail::with_ordinary(
      x, [&](auto ordinary) __attribute__((always_inline)) {
        const auto p = detail::take_apart<ordinary()>(x, detail::largest_fraction<T>);
        const vec<T> y = detail::logarithm_of_parts<T>(p.exponent, p.fraction - vec<T>(T(1)));
        return ordinary() ? y : detail::logarithm_or_special<T>(x, y);
      });
}

template <class T>
[[gnu::always_inline]] inline vec<T> binary_logarithm(vec<T> x) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) {
    static constexpr float fit[] = {-0.721347491f, 0.480900131f, -0.360860901f, 0.284704712f};
    const auto p = detail::logarithm_in_parts<detail::binary_pieces>(x);
    const vec<T> curve = detail::polynomial(fit, p.rest) * p.rest;
    const vec<T> rest = multiply_add(curve, p.rest, p.rest * vec<T>(1.92596299e-08f));
    const vec<T> y = (p.exponent + p.minus_log) + multiply_add(p.rest, vec<T>(1.44269502f), rest);
    return detail::unless_special(x, y);
  }
#endif
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
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) {
    const auto p = detail::logarithm_in_parts<detail::natural_pieces>(u);
    // 1 / u is c (1 - rest) / 2^exponent, near enough.
    const vec<T> near =
        detail::times_power_of_two((lost + low) * p.c, detail::negated<T>(p.exponent));
    const vec<T> more = multiply_add(detail::negated<T>(near), p.rest, near);
    const vec<T> of_parts = detail::unless_special(u, detail::logarithm_of(p, more));
    return xsimd::select(x == vec<T>(T(0)), x, of_parts);
  }
#endif
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
