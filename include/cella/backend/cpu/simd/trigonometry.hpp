// Sine and cosine of whole vectors.
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

namespace detail {

/// Up to which size angles are reduced here: multiples of pi / 2 must have few digits.
inline constexpr double largest_angle = 1e6;

/// x = quarters * pi / 2 + rest, |rest| <= pi / 4.
template <class T>
struct reduced_angle {
  vec<T> quarters, rest;
};
[[gnu::always_inline]] inline reduced_angle<double> reduce_angle(vec<double> x) {
  // pi / 2 in parts of 33 digits (fdlibm's e_rem_pio2.c), whose multiples are exact.
  const vec<double> n = nearest(x * vec<double>(6.36619772367581382433e-01));
  const vec<double> start = multiply_add(n, vec<double>(-1.57079632673412561417e+00), x);
  const vec<double> step = n * vec<double>(6.07710050630396597660e-11);
  const vec<double> r = start - step;
  // What that has lost goes with the last parts.
  const vec<double> lost = (start - r) - step;
  const vec<double> small = multiply_add(n, vec<double>(8.47842766036889956997e-32),
                                         n * vec<double>(2.02226624871116645580e-21));
  return {n, r - (small - lost)};
}
/// In doubles: a float may be as near to a multiple of pi / 2 as it has digits.
[[gnu::always_inline]] inline reduced_angle<float> reduce_angle(vec<float> x) {
  const wide_lanes wide = widen(x);
  const auto low = reduce_angle(wide.low), high = reduce_angle(wide.high);
  return {narrow({low.quarters, high.quarters}), narrow({low.rest, high.rest})};
}

/// Sine and cosine for |r| <= pi / 4.
template <class T>
[[gnu::always_inline]] inline vec<T> short_sine(vec<T> r) {
  const vec<T> z = r * r;
  if constexpr (std::is_same_v<T, float>) {
    // A minimax fit to 2^-32.
    static constexpr float c[] = {-0.166666672f, 0.0083333794f, -0.000198530659f, 2.83254872e-06f};
    return multiply_add(polynomial(c, z) * z, r, r);
  } else {
    // fdlibm's k_sin.c.
    static constexpr double c[] = {-1.66666666666666324348e-01, 8.33333333332248946124e-03,
                                   -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                                   -2.50507602534068634195e-08, 1.58969099521155010221e-10};
    return multiply_add(polynomial(c, z) * z, r, r);
  }
}
template <class T>
[[gnu::always_inline]] inline vec<T> short_cosine(vec<T> r) {
  const vec<T> z = r * r, half = z * vec<T>(T(0.5)), one(T(1));
  // 1 - z / 2 has lost what is added again.
  const vec<T> start = one - half, lost = (one - start) - half;
  if constexpr (std::is_same_v<T, float>) {
    static constexpr float c[] = {0.0416666679f, -0.001388898f, 2.48220204e-05f, -2.88808877e-07f};
    return start + multiply_add(polynomial(c, z) * z, z, lost);
  } else {
    // fdlibm's k_cos.c.
    static constexpr double c[] = {4.16666666666666019037e-02, -1.38888888888741095749e-03,
                                   2.48015872894767294178e-05, -2.75573143513906633035e-07,
                                   2.08757232129817482790e-09, -1.13596475577881948265e-11};
    return start + multiply_add(polynomial(c, z) * z, z, lost);
  }
}

/// sin(rest + quarters pi / 2).
template <class T>
[[gnu::always_inline]] inline vec<T> sine_of(vec<T> quarters, vec<T> rest) {
  // -2 to 2; 2 and -2 are the same.
  const vec<T> turn = multiply_add(nearest(quarters * vec<T>(T(0.25))), vec<T>(T(-4)), quarters);
  const vec<T> size = xsimd::abs(turn);
  const vec<T> y = xsimd::select(size == vec<T>(T(1)), short_cosine<T>(rest), short_sine<T>(rest));
  const auto negative = (size == vec<T>(T(2))) || (turn == vec<T>(T(-1)));
  return xsimd::select(negative, -y, y);
}

template <class T>
[[gnu::noinline]] vec<T> lane_by_lane(vec<T> x, T (*f)(T)) {
  alignas(64) T y[lanes<T>];
  store(y, x);
  for (T& v : y) v = f(v);
  return load(y);
}
template <class T>
[[gnu::always_inline]] inline bool has_large_angle(vec<T> x) {
  return greater(xsimd::abs(x), vec<T>(T(largest_angle))) != 0;
}

}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> sine(vec<T> x) {
  if (detail::has_large_angle(x))
    return detail::lane_by_lane<T>(x, [](T v) { return std::sin(v); });
  const auto r = detail::reduce_angle(x);
  // The sine of -0 is -0, which the reduction would lose.
  return xsimd::select(x == vec<T>(T(0)), x, detail::sine_of<T>(r.quarters, r.rest));
}

template <class T>
[[gnu::always_inline]] inline vec<T> cosine(vec<T> x) {
  if (detail::has_large_angle(x))
    return detail::lane_by_lane<T>(x, [](T v) { return std::cos(v); });
  const auto r = detail::reduce_angle(x);
  return detail::sine_of<T>(r.quarters + vec<T>(T(1)), r.rest);
}

}  // namespace cella::cpu
