// Circular functions of whole vectors, and their inverses; what has no form here is the SIMD
// library's.
#pragma once

#include <cella/backend/cpu/simd/exponentials.hpp>
#include <cmath>

namespace cella::cpu {

/// Sine and cosine, within 2 ulp for all numbers; NaN for infinities. Numbers beyond 10^6 are
/// handed to the standard library one by one.
template <class T>
[[gnu::always_inline]] inline vec<T> sine(vec<T> x);
template <class T>
[[gnu::always_inline]] inline vec<T> cosine(vec<T> x);
/// Tangent, the same.
template <class T>
[[gnu::always_inline]] inline vec<T> tangent(vec<T> x);

/// Arc sine, within 2 ulp; NaN beyond +-1. In double precision it is the SIMD library's.
template <class T>
[[gnu::always_inline]] inline vec<T> inverse_sine(vec<T> x);
/// Arc cosine, the same.
template <class T>
[[gnu::always_inline]] inline vec<T> inverse_cosine(vec<T> x);
/// Arc tangent, within 2 ulp.
template <class T>
[[gnu::always_inline]] inline vec<T> inverse_tangent(vec<T> x);
/// sqrt(x^2 + y^2), within 2 ulp, without overflow. Single precision.
template <std::same_as<float> T>
[[gnu::always_inline]] inline vec<T> hypotenuse(vec<T> x, vec<T> y);
/// Angle of the points (x, y), within 2 ulp; zeros and infinities of either sign as
/// std::atan2 has them.
template <class T>
[[gnu::always_inline]] inline vec<T> angle_of_points(vec<T> y, vec<T> x);

namespace detail {

/// Up to which size angles are reduced here: multiples of pi / 2 must have few digits.
inline constexpr double largest_angle = 1e6;

/// x = quarters * pi / 2 + rest + low, |rest| <= pi / 4 or somewhat more; `low` is what the
/// rounding of `rest` has lost. The lowest bits of `sum` are quarters.
template <class T>
struct reduced_angle {
  vec<T> sum, rest, low;
};
/// A number without a fraction: of an integer that is added to it the lowest bits are its own.
template <class T>
inline constexpr T no_fraction = T(1.5) * T(typename format<T>::integer{1} << format<T>::digits);

template <std::same_as<double> T>
[[gnu::always_inline]] inline reduced_angle<T> reduce_angle(vec<T> x) {
  // pi / 2 in parts of 33 digits (fdlibm's e_rem_pio2.c), whose multiples are exact.
  const vec<double> large(no_fraction<double>);
  const vec<double> sum = multiply_add(x, vec<double>(6.36619772367581382433e-01), large);
  const vec<double> n = sum - large;
  const vec<double> start = multiply_add(n, vec<double>(-1.57079632673412561417e+00), x);
  const vec<double> step = n * vec<double>(6.07710050630396597660e-11);
  const vec<double> r = start - step;
  // What that has lost goes with the last parts.
  const vec<double> lost = (start - r) - step;
  const vec<double> small = multiply_add(n, vec<double>(8.47842766036889956997e-32),
                                         n * vec<double>(2.02226624871116645580e-21));
  const vec<double> last = small - lost, rest = r - last;
  return {sum, rest, (r - rest) - last};
}
/// A float may be as near to a multiple of pi / 2 as it has digits. Without fused operations it
/// takes doubles.
template <std::same_as<float> T>
[[gnu::always_inline]] inline reduced_angle<T> reduce_angle(vec<T> x) {
  const vec<float> large(no_fraction<float>);
  if constexpr (has_fused_multiply_add) {
    // pi / 2 in three parts. What the first leaves ends, as x or the multiple does, with the digit
    // 2^-23 and is less than 1, so that nothing is rounded; the second's multiple, which has digits
    // behind that one only, is added as Dekker (1971) adds the smaller of two numbers.
    const vec<float> sum = multiply_add(x, vec<float>(0.636619747f), large), n = sum - large;
    const vec<float> start = multiply_add(n, vec<float>(-1.57079637f), x), second(4.37113883e-8f);
    const vec<float> more = rounded<float>(n * second), rest = start + more;
    const vec<float> small =
        multiply_add(n, vec<float>(1.71512451e-15f), product_error<float>(n, second, more));
    return {sum, rest, (more - (rest - start)) + small};
  }
  const wide_lanes wide = widen(x);
  const auto low = reduce_angle(wide.low), high = reduce_angle(wide.high);
  const vec<double> large_double(no_fraction<double>);
  const vec<float> rest = narrow({low.rest, high.rest});
  const wide_lanes again = widen(rest);
  return {narrow({low.sum - large_double, high.sum - large_double}) + large, rest,
          narrow({low.rest - again.low, high.rest - again.high})};
}

/// (sin(r) - r) / r^3 as a polynomial of r^2, and (cos(r) - 1 + r^2 / 2) / r^4: minimax fits to
/// 2^-32, or fdlibm's k_sin.c and k_cos.c.
template <class T>
inline constexpr T sine_fit[] = {-0.166666672f, 0.0083333794f, -0.000198530659f, 2.83254872e-06f};
template <>
inline constexpr double sine_fit<double>[] = {
    -1.66666666666666324348e-01, 8.33333333332248946124e-03,  -1.98412698298579493134e-04,
    2.75573137070700676789e-06,  -2.50507602534068634195e-08, 1.58969099521155010221e-10};
template <class T>
inline constexpr T cosine_fit[] = {0.0416666679f, -0.001388898f, 2.48220204e-05f, -2.88808877e-07f};
template <>
inline constexpr double cosine_fit<double>[] = {
    4.16666666666666019037e-02,  -1.38888888888741095749e-03, 2.48015872894767294178e-05,
    -2.75573143513906633035e-07, 2.08757232129817482790e-09,  -1.13596475577881948265e-11};

/// Sine and cosine for |rest| <= pi / 4. Doubles do without `low`.
template <class T>
[[gnu::always_inline]] inline vec<T> short_sine(const reduced_angle<T>& a) {
  const vec<T> r = a.rest, z = r * r, curve = polynomial(sine_fit<T>, z) * z;
  if constexpr (std::is_same_v<T, float>)
    return r + multiply_add(curve, r, a.low);
  else
    return multiply_add(curve, r, r);
}
template <class T>
[[gnu::always_inline]] inline vec<T> short_cosine(const reduced_angle<T>& a) {
  // 1 - z / 2 has lost what is added again.
  const vec<T> z = a.rest * a.rest, half(T(0.5)), one(T(1)), start = one - z * half;
  vec<T> lost = (one - start) - z * half;
  if constexpr (std::is_same_v<T, float>) lost = multiply_add(negated<T>(a.rest), a.low, lost);
  return start + multiply_add(polynomial(cosine_fit<T>, z) * z, z, lost);
}

/// The bits that say how often an angle was turned: the lowest, and the one before it, as signs.
template <class T>
struct quarter_turns {
  vec<T> odd, half;
};
/// Of the quarters and so many more.
template <class T>
[[gnu::always_inline]] inline quarter_turns<T> turns_of(vec<T> sum, int more = 0) {
  using integer = typename format<T>::integer;
  constexpr int top = int(sizeof(T)) * 8 - 1;
  vec<integer> n = xsimd::bitwise_cast<vec<integer> >(sum);
  if (more) n = n + vec<integer>(integer(more));
  return {xsimd::bitwise_cast<vec<T> >(n << top), xsimd::bitwise_cast<vec<T> >(n << (top - 1))};
}
/// y, with the sign changed by those of `signs`.
template <class T>
[[gnu::always_inline]] inline vec<T> turned(vec<T> y, vec<T> signs) {
  return y ^ (signs & vec<T>(-T(0)));
}

template <class T>
[[gnu::noinline]] vec<T> lane_by_lane(vec<T> x, T (*f)(T)) {
  alignas(64) T y[lanes<T>];
  store(y, x);
  for (T& v : y) v = f(v);
  return load(y);
}
template <class T>
[[gnu::always_inline]] inline bool is_large_angle(vec<T> size) {
  return greater(size, vec<T>(T(largest_angle))) != 0;
}

}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> sine(vec<T> x) {
  // Of |x|, with the sign of x: that of -0 would be lost.
  const vec<T> size = xsimd::abs(x);
  if (detail::is_large_angle<T>(size))
    return detail::lane_by_lane<T>(x, [](T v) { return std::sin(v); });
  const auto a = detail::reduce_angle(size);
  const auto turns = detail::turns_of<T>(a.sum);
  const vec<T> y = select_negative(turns.odd, detail::short_cosine<T>(a), detail::short_sine<T>(a));
  return detail::turned<T>(y, turns.half ^ x);
}

template <class T>
[[gnu::always_inline]] inline vec<T> cosine(vec<T> x) {
  const vec<T> size = xsimd::abs(x);
  if (detail::is_large_angle<T>(size))
    return detail::lane_by_lane<T>(x, [](T v) { return std::cos(v); });
  // A sine, a quarter further on.
  const auto a = detail::reduce_angle(size);
  const auto turns = detail::turns_of<T>(a.sum, 1);
  const vec<T> y = select_negative(turns.odd, detail::short_cosine<T>(a), detail::short_sine<T>(a));
  return detail::turned<T>(y, turns.half);
}

namespace detail {

/// The tangent of rest + low, or the cotangent where `odd` has a sign: in double precision a
/// quotient of sine and cosine, each with what its rounding has lost.
template <std::same_as<double> T>
[[gnu::always_inline]] inline vec<T> tangent_of(const reduced_angle<T>& a, vec<T> odd) {
  using v = vec<double>;
  const v z = a.rest * a.rest, one(1.0), half = z * v(0.5);
  const v sine_rest = multiply_add(polynomial(sine_fit<double>, z) * z, a.rest, a.low);
  const v sine = a.rest + sine_rest, sine_lost = (a.rest - sine) + sine_rest;
  const v start = one - half;
  const v cosine_rest =
      multiply_add(polynomial(cosine_fit<double>, z) * z, z, (one - start) - half - a.rest * a.low);
  const v cosine = start + cosine_rest, cosine_lost = (start - cosine) + cosine_rest;
  const v top = select_negative(odd, cosine, sine), bottom = select_negative(odd, sine, cosine);
  const v top_lost = select_negative(odd, cosine_lost, sine_lost);
  const v bottom_lost = select_negative(odd, sine_lost, cosine_lost);
  const v quotient = top / bottom, back = rounded<double>(quotient * bottom);
  const v missing =
      (top - back) - product_error(quotient, bottom, back) + (top_lost - quotient * bottom_lost);
  return quotient + missing / bottom;
}
/// In single precision a minimax fit of (tan(r) - r) / r^3 up to 0.826, to 2^-28 of the tangent, or
/// its reciprocal with what that and the tangent have lost.
template <std::same_as<float> T>
[[gnu::always_inline]] inline vec<T> tangent_of(const reduced_angle<T>& a, vec<T> odd) {
  static constexpr float c[] = {0.333333701f,  0.133319601f,    0.0541389212f, 0.0208802484f,
                                0.0118585089f, -0.00117994903f, 0.00498839002f};
  const vec<T> z = a.rest * a.rest, one(T(1));
  // The derivative, by which `low` counts, is about 1 + z.
  const vec<T> low = multiply_add(a.low, z, a.low);
  const vec<T> more = multiply_add(polynomial(c, z) * z, a.rest, low);
  const vec<T> y = a.rest + more, lost = more - (y - a.rest), reciprocal = one / y;
  const vec<T> excess = multiply_add(reciprocal, lost, product_error<T>(reciprocal, y, one));
  return select_negative(odd, multiply_add(negated<T>(reciprocal), excess, reciprocal), y);
}

}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> tangent(vec<T> x) {
  const vec<T> size = xsimd::abs(x);
  if (detail::is_large_angle<T>(size))
    return detail::lane_by_lane<T>(x, [](T v) { return std::tan(v); });
  // tan(r + pi / 2) = -cot r.
  const auto a = detail::reduce_angle(size);
  const vec<T> odd = detail::turns_of<T>(a.sum).odd;
  return detail::turned<T>(detail::tangent_of<T>(a, odd), odd ^ x);
}

namespace detail {
/// (asin(s) - s) / s^3 as a polynomial of s^2, s <= 0.65: a minimax fit to 2^-28 of asin(s).
inline constexpr float arc_sine_fit[] = {0.166667155f,  0.074972034f,  0.0451806349f, 0.0255448437f,
                                         0.0450518525f, -0.038066284f, 0.0749597132f};
inline constexpr float end_of_arc_sine = 0.65f;
}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> inverse_sine(vec<T> x) {
  if constexpr (std::is_same_v<T, float>) {
    // Up to `border` a polynomial; behind, pi / 2 - 2 asin(s) with s^2 = (1 - |x|) / 2, which is
    // exact.
    const vec<float> border(detail::end_of_arc_sine), one(1.0f), size = xsimd::abs(x);
    const auto far = size > border;
    const vec<float> square = xsimd::select(far, (one - size) * vec<float>(0.5f), size * size);
    const vec<float> s = xsimd::select(far, xsimd::sqrt(square), size);
    const vec<float> curve = detail::polynomial(detail::arc_sine_fit, square) * square * s;
    const vec<float> half_pi(1.57079637f), half_pi_low(-4.37113883e-8f);
    const vec<float> twice = s + s, start = half_pi - twice, lost = (half_pi - start) - twice;
    const vec<float> beside_1 = start + ((lost + half_pi_low) - (curve + curve));
    return xsimd::copysign(xsimd::select(far, beside_1, s + curve), x);
  } else {
    return xsimd::asin(x);
  }
}

template <class T>
[[gnu::always_inline]] inline vec<T> inverse_cosine(vec<T> x) {
  if constexpr (std::is_same_v<T, float>) {
    // pi / 2 - asin(x) up to the border; behind, 2 asin(s), of negative numbers pi - 2 asin(s). All
    // are an angle in two parts and a multiple of the arc sine of s with the sign of x.
    const vec<float> one(1.0f), zero(0.0f), size = xsimd::abs(x), sign = x & vec<float>(-0.0f);
    const auto far = size > vec<float>(detail::end_of_arc_sine);
    const vec<float> square = xsimd::select(far, (one - size) * vec<float>(0.5f), size * size);
    const vec<float> s = xsimd::select(far, xsimd::sqrt(square), size) ^ sign;
    const vec<float> arc = s * xsimd::select(far, vec<float>(2.0f), vec<float>(-1.0f));
    const vec<float> curve = detail::polynomial(detail::arc_sine_fit, square) * square * arc;
    const vec<float> beside = select_negative(x, vec<float>(3.14159274f), zero);
    const vec<float> beside_low = select_negative(x, vec<float>(-8.74227766e-8f), zero);
    const vec<float> angle = xsimd::select(far, beside, vec<float>(1.57079637f));
    const vec<float> low = xsimd::select(far, beside_low, vec<float>(-4.37113883e-8f));
    const vec<float> start = angle + arc, lost = (angle - start) + arc;
    return start + ((lost + low) + curve);
  } else {
    return xsimd::acos(x);
  }
}

namespace detail {
/// (atan(t) - t) / t^3 as a polynomial of t^2, |t| <= 1: a minimax fit to 2^-28; pi / 2 in two
/// parts.
inline constexpr float arc_fit[] = {-0.333333019f,  0.199986387f,   -0.142652457f,
                                    0.109575767f,   -0.0841945871f, 0.0582345197f,
                                    -0.0314556546f, 0.0110644091f,  -0.0018272047f};
inline constexpr float right_angle = 1.57079637f, right_angle_rest = -4.37113883e-8f;
}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> inverse_tangent(vec<T> x) {
  // A polynomial up to 1; behind, pi / 2 - atan(1 / x), pi / 2 in two parts.
  const auto of = [&](const auto& c, T high, T low) {
    const vec<T> one(T(1)), size = xsimd::abs(x);
    const auto far = size > one;
    const vec<T> t = xsimd::select(far, one / size, size), z = t * t;
    const vec<T> curve = detail::polynomial(c, z) * z * t;
    const vec<T> y = xsimd::select(far, (vec<T>(high) - t) - (curve - vec<T>(low)), t + curve);
    return xsimd::copysign(y, x);
  };
  if constexpr (std::is_same_v<T, float>) {
    return of(detail::arc_fit, detail::right_angle, detail::right_angle_rest);
  } else {
    // A minimax fit to 2^-57.
    static constexpr double c[] = {
        -0.33333333333333093,    0.19999999999955436,    -0.14285714282802266,
        0.11111111013651146,     -0.090909071192443533,  0.076922811864321833,
        -0.06666414993407663,    0.058805925237288523,   -0.052538053938708125,
        0.047232927556362916,    -0.042217160562838866,  0.036693486983194942,
        -0.029985498794729668,   0.022085054022317819,   -0.01399489006577489,
        0.0072632871045639124,   -0.0029193053064715907, 0.00084347174280676916,
        -0.00015479430134980896, 1.3489008272466459e-5};
    return of(c, 1.57079632679489655800, 6.12323399573676603587e-17);
  }
}

namespace detail {
template <class T>
[[gnu::noinline]] vec<T> wide_hypotenuse(vec<T> x, vec<T> y) {
  const wide_lanes v = widen(x), w = widen(y);
  return narrow(
      {xsimd::sqrt(v.low * v.low + w.low * w.low), xsimd::sqrt(v.high * v.high + w.high * w.high)});
}
}  // namespace detail

template <std::same_as<float> T>
inline vec<T> hypotenuse(vec<T> x, vec<T> y) {
  const vec<float> squares = multiply_add(x, x, y * y);
  if (xsimd::all((squares >= vec<float>(1e-30f)) && (squares <= vec<float>(1e38f)))) [[likely]]
    return xsimd::sqrt(squares);
  return detail::wide_hypotenuse<float>(x, y);
}

namespace detail {

/// The angle of points of single precision in double precision.
template <class T>
[[gnu::noinline]] vec<T> wide_angle_of_points(vec<T> y, vec<T> x) {
  const wide_lanes v = widen(y), w = widen(x);
  return narrow({angle_of_points<double>(v.low, w.low), angle_of_points<double>(v.high, w.high)});
}
/// The same where a + b, the sizes of y and x, is neither large nor small.
template <std::same_as<float> T>
[[gnu::always_inline]] inline vec<T> short_angle_of_points(vec<T> y, vec<T> x) {
  using v = vec<float>;
  const v one(1.0f), zero(0.0f), a = xsimd::abs(y), b = xsimd::abs(x);
  const v more = maximum(a, b), less = minimum(a, b);
  // t = less / more, and what its rounding has lost.
  const v share = one / more, t = rounded<float>(less * share);
  const v lost = -product_error<float>(t, more, less) * share, z = t * t;
  const v rest =
      multiply_add(polynomial(arc_fit, z) * z, t, multiply_add(z * v(-0.5f), lost, lost));
  // A multiple of the right angle, and the arc of t on one side of it.
  const auto steep = a > b, left = xsimd::copysign(one, x) < zero;
  const v base = xsimd::select(steep, one, xsimd::select(left, v(2.0f), zero));
  const v side = xsimd::select(steep, -one, one) * xsimd::copysign(one, x);
  const v angle = base * v(right_angle), arc = side * t;
  const v start = angle + arc, start_lost = (angle - start) + arc;
  const v all = start + (multiply_add(base, v(right_angle_rest), start_lost) + side * rest);
  return xsimd::copysign(all, y);
}

}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> angle_of_points(vec<T> y, vec<T> x) {
  if constexpr (std::is_same_v<T, float>) {
    const vec<T> a = xsimd::abs(y), b = xsimd::abs(x), size = a + b;
    auto ordinary = (size >= vec<T>(1e-30f)) && (size <= vec<T>(1e30f));
    // Where nothing is fused rounding errors are computed in steps, none of which may be denormal.
    if constexpr (!detail::has_fused_multiply_add) {
      const vec<T> less = minimum(a, b);
      ordinary = ordinary && ((less >= vec<T>(1e-28f)) || (less == vec<T>(0.0f)));
    }
    if (xsimd::all(ordinary)) [[likely]]
      return detail::short_angle_of_points(y, x);
    return detail::wide_angle_of_points<T>(y, x);
  } else {
    const vec<T> zero(0.0), one(1.0), a = xsimd::abs(y), b = xsimd::abs(x);
    const auto steep = a > b;
    const vec<T> less = xsimd::select(steep, b, a), more = xsimd::select(steep, a, b);
    // Two zeros, and two infinities, have no quotient.
    const vec<T> slope =
        xsimd::select(less == more, xsimd::select(more == zero, zero, one), less / more);
    const vec<T> r = inverse_tangent<T>(slope);
    // pi / 2 in two parts.
    const vec<T> high(1.57079632679489655800), low(6.12323399573676603587e-17);
    const vec<T> right = xsimd::select(steep, (high - r) + low, r);
    const auto left = xsimd::copysign(one, x) < zero;
    const vec<T> all = xsimd::select(left, (high + high - right) + (low + low), right);
    return xsimd::copysign(all, y);
  }
}

}  // namespace cella::cpu
