// The logarithm of the gamma function and its derivative, scaled Bessel functions and the inverse
// of the error function, of whole vectors. Single precision is computed in double.
#pragma once

#include <cella/backend/cpu/simd/error_functions.hpp>
#include <cella/backend/cpu/simd/logarithms.hpp>
#include <cella/backend/cpu/simd/trigonometry.hpp>

namespace cella::cpu {

namespace detail {

using doubles = vec<double>;

/// Sum of c[k] T_k(t) over Chebyshev's polynomials, |t| <= 1, by Clenshaw's recurrence.
template <std::size_t N>
inline doubles chebyshev_sum(const double (&c)[N], doubles t) {
  const doubles twice = t + t;
  doubles next(0.0), sum(c[N - 1]);
  for (std::size_t k = N - 2; k > 0; --k) {
    const doubles before = multiply_add(twice, sum, doubles(c[k]) - next);
    next = sum;
    sum = before;
  }
  return multiply_add(t, sum, doubles(c[0]) - next);
}

/// Coefficients of I_n(x) / (x / 2)^n as a polynomial of (x / 2)^2, which is long enough for x <=
/// 8: 1 / (k! (k + n)!).
template <int Order>
inline constexpr auto bessel_near = [] {
  struct {
    double c[28];
  } all{};
  double c = 1;
  for (int k = 0; k < 28; ++k) {
    all.c[k] = c;
    c /= double(k + 1) * (k + 1 + Order);
  }
  return all;
}();
/// Of sqrt(x) e^-x I_n(x) in t = 16 / x - 1 for x >= 8, computed with 50 digits.
template <int Order>
struct bessel_series;
template <>
struct bessel_series<0> {
  static constexpr double far[] = {
      0.4022452055070544,      0.0033691164782556943,   6.889758346916825e-05,
      2.8913705208347567e-06,  2.0489185894690638e-07,  2.266668990498178e-08,
      3.3962320257083865e-09,  4.94060238822497e-10,    1.1889147107846439e-11,
      -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
      7.180124451383666e-13,   3.8527783827421426e-13,  1.54008621752141e-14,
      -4.150569347287222e-14,  -9.554846698828307e-15,  3.8116806693526224e-15,
      1.7725601330565263e-15,  -3.425485619677219e-16,  -2.8276239805165836e-16,
      3.461222867697461e-17,   4.46562142029676e-17,    -4.830504485944182e-18,
      -7.233180487874754e-18};
};
template <>
struct bessel_series<1> {
  static constexpr double far[] = {
      0.38928811750914005,     -0.009761097491361469,   -0.00011058893876262371,
      -3.882564808877691e-06,  -2.512236237870209e-07,  -2.6314688468895196e-08,
      -3.835380385964237e-09,  -5.589743462196584e-10,  -1.8974958123505413e-11,
      3.2526035830154884e-11,  1.4125807436613782e-11,  2.0356285441470896e-12,
      -7.198551776245908e-13,  -4.0835511110921974e-13, -2.1015418427726643e-14,
      4.272440016711951e-14,   1.0420276984128802e-14,  -3.8144030724370075e-15,
      -1.8803547755107825e-15, 3.3082023109209285e-16,  2.96262899764595e-16,
      -3.209525921993424e-17,  -4.6503053684893586e-17, 4.414348323071708e-18,
      7.517296310842105e-18};
};
template <int Order>
inline doubles bessel_of(doubles x) {
  const doubles size = xsimd::abs(x), end(8.0);
  const auto is_near = size < end;
  const doubles near_size = minimum(end, size), x_half = near_size * doubles(0.5);
  const doubles beyond = xsimd::select(is_near, end, size);
  const doubles u = doubles(16.0) / beyond - doubles(1.0);
  const doubles far = chebyshev_sum(bessel_series<Order>::far, u) / xsimd::sqrt(beyond);
  const doubles near =
      exponential<double>(-near_size) * polynomial(bessel_near<Order>.c, x_half * x_half);
  if constexpr (Order == 0)
    return xsimd::select(is_near, near, far);
  else
    return xsimd::select(is_near, near * (doubles(0.5) * x), xsimd::copysign(far, x));
}

/// x moved up by whole steps to 8 or more, and what the recurrences have gathered on the way: the
/// product of the numbers passed, and the sum of their reciprocals times that.
struct moved_up {
  doubles to, product, sum;
};
template <std::same_as<double> T>
inline moved_up to_eight(vec<T> x) {
  const doubles one(1.0), zero(0.0), end(8.0);
  doubles product = one, sum = zero;
  for (int step = 0; step < 8; ++step) {
    const auto below = x < end;
    const doubles factor = xsimd::select(below, x, one);
    sum = multiply_add(sum, factor, xsimd::select(below, product, zero));
    product = product * factor;
    x = x + xsimd::select(below, one, zero);
  }
  return {x, product, sum};
}

/// ln |gamma(x)| to 3e-15 of the larger of it and 1, and of it near its zeros 1 and 2: enough for
/// single precision. Series: Abramowitz and Stegun 1964, 6.1.33 and 6.1.41.
template <std::same_as<double> T>
inline vec<T> log_gamma(vec<T> x) {
  // P of ln gamma(2 + w) = w P(w), |w| <= 1/2.
  static constexpr double c[] = {
      0.42278433509846713,     0.3224670334241132,     -0.0673523010531981,
      0.020580808427784546,    -0.007385551028673986,  0.0028905103307415234,
      -0.001192753911703261,   0.0005096695247430425,  -0.00022315475845357939,
      9.945751278180853e-05,   -4.492623673813314e-05, 2.050721277567069e-05,
      -9.439488275268397e-06,  4.374866789907488e-06,  -2.039215753801366e-06,
      9.55141213040742e-07,    -4.492469198764566e-07, 2.1207184805554665e-07,
      -1.0043224823968099e-07, 4.7698101693639804e-08, -2.2711094608943164e-08,
      1.0838659214896955e-08,  -5.183475041970047e-09, 2.4836745438024785e-09,
      -1.1921401405860912e-09};
  // Of the reciprocals of odd powers.
  static constexpr double s[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188};
  const doubles one(1.0), half(0.5), two(2.0), infinite(std::numeric_limits<double>::infinity());
  const auto negative = x < doubles(0.0);
  const doubles y = xsimd::select(negative, one - x, x);
  // Up to 2.5: of 2 + w, by one or two steps of the recurrence.
  const auto first = y < half, second = y < doubles(1.5), is_near = y < doubles(2.5);
  const doubles w = y - xsimd::select(first, doubles(0.0), xsimd::select(second, one, two));
  const doubles near = w * long_polynomial(c, xsimd::select(is_near, w, doubles(0.0)));
  const doubles steps = xsimd::select(first, y * (one + y), xsimd::select(second, y, one));
  // Beyond: Stirling's series.
  const moved_up up = to_eight(xsimd::select(is_near, doubles(3.0), y));
  const doubles log_of = logarithm<double>(xsimd::select(is_near, steps, up.to));
  const doubles r = one / up.to;
  const doubles series = polynomial(s, r * r) * r + doubles(0.91893853320467274178);
  const doubles far =
      multiply_add(up.to - half, log_of, series - up.to) - logarithm<double>(up.product);
  const doubles upper = xsimd::select(is_near, near - log_of, xsimd::select(y == infinite, y, far));
  // Of negative x: gamma(x) gamma(1 - x) = pi / sin(pi x).
  const doubles pi(std::numbers::pi), rest = x - nearest(x);
  const doubles sine_of = xsimd::abs(sine<double>(pi * rest));
  const doubles lower = logarithm<double>(pi / sine_of) - upper;
  const doubles value = xsimd::select(negative, lower, upper);
  return xsimd::select(x == -infinite || (negative && rest == doubles(0.0)), infinite, value);
}

/// The derivative of ln gamma(x), as well. 6.3.18.
template <std::same_as<double> T>
inline vec<T> digamma_of(vec<T> x) {
  static constexpr double s[] = {1.0 / 12,   -1.0 / 120, 1.0 / 252,
                                 -1.0 / 240, 1.0 / 132,  -691.0 / 32760};
  const doubles one(1.0), zero(0.0), infinite(std::numeric_limits<double>::infinity());
  const auto negative = x < zero;
  const doubles y = xsimd::select(negative, one - x, x);
  const moved_up up = to_eight(y);
  const doubles r = one / up.to, square = r * r;
  const doubles series = multiply_add(polynomial(s, square), square, doubles(0.5) * r);
  const doubles upper = logarithm<double>(up.to) - series - up.sum / up.product;
  const doubles pi(std::numbers::pi), rest = x - nearest(x);
  const doubles turned = pi * rest;
  const doubles lower = upper - pi * cosine<double>(turned) / sine<double>(turned);
  const doubles value = xsimd::select(y == infinite, y, xsimd::select(negative, lower, upper));
  const auto none = (x == zero) || (x == -infinite) || (negative && rest == zero);
  return xsimd::select(none, doubles(std::numeric_limits<double>::quiet_NaN()), value);
}

/// As the scalar one: a first guess and steps of Halley's method.
template <std::same_as<double> T>
inline vec<T> inverse_error(vec<T> x) {
  const doubles one(1.0), two(2.0), half(0.5), size = xsimd::abs(x);
  const double a = 0.147;
  const doubles w = logarithm_of_successor<double>(-x * x);
  const doubles p = doubles(2 / (std::numbers::pi * a)) + w * half;
  doubles y = xsimd::sqrt(xsimd::sqrt(p * p - w * doubles(1 / a)) - p);
  const auto is_near = size < half;
  for (int step = 0; step < 3; ++step) {
    const doubles off = xsimd::select(is_near, error_function<double>(y) - size,
                                      (one - size) - complementary_error_function<double>(y));
    const doubles slope = doubles(2 * std::numbers::inv_sqrtpi) * exponential<double>(-y * y);
    y = y - off / multiply_add(y, off, slope);
  }
  const doubles infinite(std::numeric_limits<double>::infinity());
  const doubles ends =
      xsimd::select(size == one, infinite, doubles(std::numeric_limits<double>::quiet_NaN()));
  return xsimd::copysign(xsimd::select(size < one, y, ends), x);
}

/// finish(x, the fit's value in parts at `size`), if all of that lie between `least` and the fit's
/// end; else, and where there are no fits, f in double precision.
template <const auto& Fit, class T, class Finish, class F>
[[gnu::always_inline]] inline vec<T> in_pieces_or_doubles(vec<T> x, vec<T> size, T least,
                                                          Finish finish, F f) {
  if constexpr (has_piecewise) {
    const vec<T> end(Fit.end());
    if ((greater(size, end) | greater(vec<T>(least), size)) == 0)
      return finish(x, piecewise_in_parts<Fit, T>(size));
  }
  return in_doubles(x, f);
}

/// The inverse of the error function of single precision in two steps: it is x times a function of
/// w = -log(1 - x^2). Where there are no fits, nothing is done in the first step.
template <std::same_as<float> T>
[[gnu::always_inline]] inline vec<T> inverse_error_argument(vec<T> x) {
  if constexpr (has_piecewise) {
    const vec<float> square = rounded<float>(x * x);
    return -logarithm_of_successor<float>(-square, -product_error<float>(x, x, square));
  } else {
    return x;
  }
}
template <class T>
[[gnu::always_inline]] inline vec<T> inverse_error_at(vec<T> x, [[maybe_unused]] vec<T> w) {
  if constexpr (has_piecewise) {
    const vec<T> infinite(std::numeric_limits<T>::infinity());
    const vec<T> y = x * piecewise<erfinv_fit, T>(w);
    return xsimd::select(xsimd::abs(x) == vec<T>(1.0f), xsimd::copysign(infinite, x), y);
  } else {
    return in_doubles(x, inverse_error<double>);
  }
}

}  // namespace detail

/// ln |gamma(x)| and its derivative, within 2 ulp. (In double precision they are the operations'
/// own, number by number.)
template <std::same_as<float> T>
inline vec<T> log_gamma(vec<T> x) {
  return detail::in_pieces_or_doubles<detail::log_gamma_fit>(
      x, x, 0.0625f,
      [](vec<float> v, const auto& y) {
        // (x - 1) (x - 2), with what is lost of it, times the fit.
        const vec<float> one(1.0f), two(2.0f), a = v - one, b = v - two;
        const vec<float> a_lost = v - (a + one), b_lost = v - (b + two);
        const vec<float> product = detail::rounded<float>(a * b);
        const vec<float> lost =
            detail::product_error<float>(a, b, product) + multiply_add(a, b_lost, a_lost * b);
        const vec<float> more = multiply_add(product, y.slope * y.step, lost * y.start);
        return multiply_add(product, y.start, more) + vec<float>(0.0f);
      },
      detail::log_gamma<double>);
}
template <std::same_as<float> T>
inline vec<T> digamma(vec<T> x) {
  return detail::in_doubles(x, detail::digamma_of<double>);
}
/// e^-|x| I_n(x) for n = 0 and 1: single precision within 2 ulp, double within 4.
template <int Order, class T>
vec<T> bessel_ie(vec<T> x) {
  if constexpr (std::is_same_v<T, float>)
    return detail::in_pieces_or_doubles<detail::bessel_fit<Order>>(
        x, xsimd::abs(x), 0.0f,
        [](vec<float> v, const auto& in_parts) {
          const vec<float> y = in_parts.value();
          return Order == 0 ? y : xsimd::copysign(y, v);
        },
        detail::bessel_of<Order>);
  else
    return detail::bessel_of<Order>(x);
}
/// The number whose error function is x: single precision within 2 ulp, double within 4.
template <class T>
inline vec<T> inverse_error_function(vec<T> x) {
  if constexpr (std::is_same_v<T, float>)
    return detail::inverse_error_at<T>(x, detail::inverse_error_argument(x));
  else
    return detail::inverse_error(x);
}

}  // namespace cella::cpu
