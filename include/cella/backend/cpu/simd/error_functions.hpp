// The error function, its complement, and gelu, of whole vectors.
#pragma once

#include <cella/backend/cpu/simd/exponentials.hpp>
#include <cella/backend/cpu/simd/rounding_errors.hpp>

namespace cella::cpu {

/// Error function, within 2 ulp; +-1 far out, NaN for NaN.
template <class T>
[[gnu::always_inline]] inline vec<T> error_function(vec<T> x);

/// 1 - erf(x), within 2 ulp, also where that is small. Results below the smallest normal number are
/// 0.
template <class T>
[[gnu::always_inline]] inline vec<T> complementary_error_function(vec<T> x);

/// x Phi(x) and its derivative, Phi(x) + x phi(x), with the normal distribution's Phi and phi:
/// within 2 ulp of x, and of 1.
template <class T>
[[gnu::always_inline]] inline vec<T> exact_gelu(vec<T> x);
template <class T>
[[gnu::always_inline]] inline vec<T> exact_gelu_slope(vec<T> x);

namespace detail {
/// erf(x) / x - 1 as a polynomial of x^2, |x| <= 1: a minimax fit to 2^-57.
inline constexpr double error_fit[] = {
    0.12837916709551257,   -0.37612638903183547,   0.11283791670945253,    -0.026866170643276172,
    0.0052239776074231429, -0.0008548325989684064, 0.00012055295320198352, -1.4924744659133547e-5,
    1.6447517642377853e-6, -1.6209175749589099e-7, 1.372297597471211e-8,   -7.8011889874131477e-10};
/// x + x p(x^2).
template <class T, std::size_t N>
[[gnu::always_inline]] inline vec<T> near_error_function(const T (&p)[N], vec<T> x) {
  const vec<T> y = std::is_same_v<T, float> ? polynomial(p, x * x) : long_polynomial(p, x * x);
  if constexpr (has_fused_multiply_add) return multiply_add(y, x, x);
  // Of the least numbers, the product by itself would be no normal number.
  constexpr T up = 1 << 24;
  const vec<T> large = x * vec<T>(up);
  return (large + large * y) * vec<T>(1 / up);
}

}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> error_function(vec<T> x) {
  // Near 0 a polynomial; elsewhere 1 - P(t)^4 or 1 - e^(t P(t) - t), t = |x|, which is 1 behind
  // the bound. That stands first, so that NaN is what remains.
  const vec<T> one(T(1));
  if constexpr (std::is_same_v<T, float> && detail::has_pieces_in_registers) {
    return xsimd::copysign(
        detail::piecewise<detail::erf_fit, T>(minimum(vec<T>(4.0f), xsimd::abs(x))), x);
  } else if constexpr (std::is_same_v<T, float>) {
    // Minimax fits to 2^-25 of erf, the second of t less the place where the first ends. It is of
    // the fourth root of erfc(t), which falls so slowly that it needs no exponential.
    constexpr float near_end = 0.96875f;
    static constexpr float near_0[] = {0.128379136f,   -0.376124069f,  0.112809351f,
                                       -0.0267357215f, 0.00494942366f, -0.000577579562f};
    static constexpr float root_of_rest[] = {0.642756112f,   -0.415608266f,   -0.000429072323f,
                                             0.0510447912f,  -0.0023729392f,  -0.00640545003f,
                                             0.00180916452f, -0.000148795466f};
    const vec<T> sign = x & vec<T>(-0.0f), t = minimum(vec<T>(3.93f), x ^ sign);
    const vec<T> near = detail::near_error_function(near_0, t), behind = t - vec<T>(near_end);
    const vec<T> root = detail::polynomial(root_of_rest, behind), square = root * root;
    return select_negative(behind, near, one - square * square) | sign;
  } else {
    // A minimax fit, to 2^-55 of the result.
    static constexpr double far_out[] = {
        -0.1283791167923444,    -0.63662020345120059,    -0.10277101198267331,
        0.019125377953109655,   0.00021143208357705711,  -0.0016920171223444876,
        0.00057429726419394508, 1.0581992866156785e-6,   -9.5405786043966952e-5,
        5.5930987772715206e-5,  -2.0282454260400734e-5,  5.3557735535430325e-6,
        -1.0691337175162074e-6, 1.6104404135227499e-7,   -1.7822360386106049e-8,
        1.3701035670175287e-9,  -6.5401293535242081e-11, 1.4596847315934066e-12};
    const vec<T> t = minimum(vec<T>(6.0), xsimd::abs(x));
    const vec<T> near = detail::near_error_function(detail::error_fit, t);
    const vec<T> exponent = multiply_add(detail::long_polynomial(far_out, t), t, -t);
    const auto [n, rest] = detail::exponential_in_parts<T>(exponent);
    const vec<T> power = detail::power_of_two<T>(n);
    const vec<T> far = (one - power) - power * rest;
    return xsimd::copysign(xsimd::select(t < one, near, far), x);
  }
}

namespace detail {

template <std::same_as<double> T>
[[gnu::always_inline]] inline vec<T> complement_of_error(vec<T> x) {
  using v = vec<double>;
  const v one(1.0), size = xsimd::abs(x);
  // Behind this it is no normal number. The bound stands first, so that NaN is what remains.
  const v most(26.6), t = minimum(most, size);
  // e^(t^2) erfc(t) (1 + 2 t) is a polynomial of (t - 4) / (t + 4), a minimax fit to 2^-56. The
  // form is that of Shepherd and Laframboise, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x
  // in 0 <= x < infinity", Mathematics of Computation 36 (1981).
  static constexpr double c[] = {
      -0.13962111684056282,    0.015379652102620546,   0.068097054254729454,
      -0.10103906603634683,    0.093732834997038434,   -0.06633036581150571,
      0.037167515559065829,    -0.016197734061063338,  0.0050319697815386708,
      -0.00075777331754550722, -0.0001992556165686901, 0.00015062210483793051,
      -2.4402909905017357e-5,  -1.1224341167484416e-5, 5.7175969286705906e-6,
      3.0054151163872078e-7,   -8.3517684168392193e-7, 6.3455157996647626e-8,
      1.1569455093717265e-7,   -7.9506806561427315e-9, -1.3901017523949354e-8,
      -1.8724148239256629e-9};
  const v at = (t - v(4.0)) / (t + v(4.0));
  // The polynomial, e^(-t^2) and 1 + 2 t, each with what its rounding has lost.
  const v first(1.2329951186255525), others = rounded<double>(long_polynomial(c, at) * at);
  const v p = first + others, p_lost = (first - p) + others;
  const v square = rounded<double>(t * t);
  const auto [n, rest] = exponential_in_parts<double>(-square, -product_error(t, t, square));
  const v power = one + rest, power_lost = (one - power) + rest;
  const v twice = t + t, divisor = one + twice;
  const v divisor_lost = (maximum(one, twice) - divisor) + minimum(one, twice);
  const v product = rounded<double>(power * p);
  const v product_lost =
      multiply_add(power_lost, p, multiply_add(power, p_lost, product_error(power, p, product)));
  // A quotient, and what is missing from it.
  const v quotient = product / divisor, back = rounded<double>(quotient * divisor);
  const v missing = (product - back) - product_error(quotient, divisor, back) +
                    (product_lost - quotient * divisor_lost);
  const v y = times_power_of_two<double>(quotient + missing / divisor, n);
  const v complement = xsimd::select(size > most, v(0.0), y);
  const v far = xsimd::select(x < v(0.0), v(2.0) - complement, complement);
  // Near 0, where the polynomial would have to be right in more digits than it has.
  return xsimd::select(size < v(0.45), one - near_error_function(error_fit, x), far);
}

/// The same of 0 <= x <= 10 to 2^-27, for single precision: e^(x^2) erfc(x) as a quotient of
/// polynomials without a difference in them, and e^(-x^2), both minimax fits.
template <std::same_as<double> T>
[[gnu::always_inline]] inline vec<T> rough_complement_of_error(vec<T> x) {
  using v = vec<double>;
  static constexpr double p[] = {1.0000000048497169, 1.2313298733338405, 0.7242094253411825,
                                 0.22570167665971708, 0.03206086524119534};
  static constexpr double q[] = {1.0,
                                 2.3597095360541935,
                                 2.3868483962322378,
                                 1.3115669696847894,
                                 0.4000758542509605,
                                 0.056825574891960606};
  static constexpr double of_exponential[] = {
      1.0000000005589751,   1.0000000365317461,    0.49999992023577343,  0.16666419205528637,
      0.041668233596549264, 0.0083748976930937758, 0.0013836651836242903};
  const v square = x * x, n = nearest(square * v(-std::numbers::log2e));
  const v rest = multiply_add(n, v(-std::numbers::ln2), -square);
  const v power = polynomial(of_exponential, rest) * power_of_two<double>(n);
  return polynomial(p, x) / polynomial(q, x) * power;
}

}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> complementary_error_function(vec<T> x) {
  if constexpr (std::is_same_v<T, float> && detail::has_pieces_in_registers) {
    // e^(t^2) erfc(t) times e^(-t^2), with what the square has lost; behind the bound it is no
    // normal number.
    const vec<T> size = xsimd::abs(x), t = minimum(vec<T>(10.0f), size);
    const vec<T> square = detail::rounded<T>(t * t);
    const auto [n, rest] =
        detail::exponential_in_parts<T>(-square, -detail::product_error<T>(t, t, square));
    const auto [start, slope, step] = detail::piecewise_in_parts<detail::erfc_fit, T>(t);
    const vec<T> more = slope * step;
    const vec<T> product = start + multiply_add(start + more, rest, more);
    const vec<T> y = detail::times_power_unless_below<T>(product, n, -square);
    return xsimd::select(x < vec<T>(0.0f), vec<T>(2.0f) - y, y);
  } else if constexpr (std::is_same_v<T, float>) {
    // Behind the bound it is no normal number. The other one stands first, so that NaN remains.
    const vec<T> size = xsimd::abs(x), t = minimum(vec<T>(10.0f), size);
    const vec<T> far =
        detail::in_doubles(t, [](vec<double> v) { return detail::rough_complement_of_error(v); });
    const vec<T> y = xsimd::select(size > vec<T>(9.19454f), vec<T>(0.0f), far);
    return select_negative(x, vec<T>(2.0f) - y, y);
  } else {
    return detail::complement_of_error(x);
  }
}

namespace detail {
/// A function of which those of x and -x make 1, where that of -|x| is `lower`.
[[gnu::always_inline]] inline vec<float> of_either_sign(vec<float> x, vec<float> lower) {
  return select_negative(x, lower, vec<float>(1.0f) - lower);
}
/// Phi(x) in double precision.
template <std::same_as<double> T>
[[gnu::always_inline]] inline vec<T> normal_distribution(vec<T> x) {
  const vec<double> half(0.5), up(1 / std::numbers::sqrt2);
  return multiply_add(half, error_function<double>(x * up), half);
}
}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> exact_gelu(vec<T> x) {
  if constexpr (std::is_same_v<T, float>) {
    // Phi(-t) is 2^(t P(t) - 1): a minimax fit to 2^-27. Where it ends Phi(-t) is 0 in the places
    // of t. The bound on x stands first, so that NaN is what remains.
    static constexpr float c[] = {-1.15110517f,   -0.45920819f,     -0.0524961799f,
                                  0.00706342002f, -0.000136936389f, -0.00018618023f,
                                  3.937769e-05f,  -2.83491272e-06f};
    constexpr float end = 5.75f;
    const vec<T> t = xsimd::abs(x);
    const vec<T> exponent = multiply_add(detail::polynomial(c, t), t, vec<T>(-1.0f));
    return maximum(vec<T>(-end), x) *
           detail::of_either_sign(
               x, xsimd::select(t < vec<T>(end), detail::ordinary_power_of_two(exponent),
                                vec<T>(0.0f)));
  } else {
    // From the bound on Phi(x) is 0.
    const vec<T> v = maximum(vec<T>(-9.0), x);
    return v * detail::normal_distribution(v);
  }
}

template <class T>
[[gnu::always_inline]] inline vec<T> exact_gelu_slope(vec<T> x) {
  if constexpr (std::is_same_v<T, float>) {
    // Of -t: Phi(-t) - t phi(t) = e^(-t^2 / 2) R(t), a minimax fit to 2^-24; of t what is missing
    // to 1.
    static constexpr float c[] = {0.49999994f,    -0.797878802f,    0.249916792f,   -0.132513791f,
                                  0.0611548759f,  -0.0243139211f,   0.00793938525f, -0.00197462505f,
                                  0.00033973789f, -3.52077113e-05f, 1.6316859e-06f};
    const vec<T> t = xsimd::abs(x), exponent = t * t * vec<T>(-0.72134752f);
    const vec<T> y = detail::ordinary_power_of_two(exponent) * detail::polynomial(c, t);
    return detail::of_either_sign(x, xsimd::select(t > vec<T>(6.0f), vec<T>(0.0f), y));
  } else {
    // From the bounds on phi(x) is 0.
    const vec<T> v = minimum(vec<T>(40.0), maximum(vec<T>(-40.0), x));
    const vec<T> density = vec<T>(0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2) *
                           exponential<T>(vec<T>(-0.5) * v * v);
    return multiply_add(v, density, detail::normal_distribution(v));
  }
}

}  // namespace cella::cpu
