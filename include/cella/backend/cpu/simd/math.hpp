// Mathematical functions of whole vectors, for the operations that fused expressions use; what has
// no form here runs on the SIMD library's. Every function says its error; units in the last place
// (ulp) are those of the exact result, where that is a normal number.
#pragma once

#include <cella/backend/cpu/simd/error_functions.hpp>
#include <cella/backend/cpu/simd/hyperbolic.hpp>
#include <cella/backend/cpu/simd/trigonometry.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/names.hpp>

namespace cella::cpu {

/// x^y as std::pow has it, also for negative x and whole y, zeros, infinities and NaNs: single
/// precision within 2 ulp; double is the standard library's, lane by lane.
template <class T>
[[gnu::always_inline]] inline vec<T> power(vec<T> x, vec<T> y);

/// 1 / sqrt(x), within 2 ulp; infinity for 0, 0 for infinity.
template <class T>
[[gnu::always_inline]] inline vec<T> reciprocal_root(vec<T> x) {
  return vec<T>(T(1)) / xsimd::sqrt(x);
}

namespace detail {
/// The logarithm of 1 + f to base 2 for |f| < 0.42: a minimax fit to 2^-37.
template <std::same_as<double> T>
[[gnu::always_inline]] inline vec<T> short_binary_logarithm(vec<T> f) {
  static constexpr double c[] = {2.8853900817897156, 0.96179667348728271, 0.57708356991442078,
                                 0.41167327650914887, 0.34072356437280726};
  const vec<double> s = f / (vec<double>(2.0) + f);
  return polynomial(c, s * s) * s;
}
}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> power(vec<T> x, vec<T> y) {
  if constexpr (std::is_same_v<T, float>) {
    if (xsimd::all(x == vec<T>(2.0f))) return binary_exponential(y);
    // In doubles: an error of y log(x) is multiplied by as much as 90.
    const wide_lanes exponent = widen(y);
    if (detail::are_ordinary(x)) [[likely]] {
      const auto [fraction, whole] = detail::take_apart<true>(x, detail::largest_fraction<T>);
      const wide_lanes f = widen(fraction - vec<T>(1.0f)), n = widen(whole);
      const vec<double> low = (detail::short_binary_logarithm(f.low) + n.low) * exponent.low;
      const vec<double> high = (detail::short_binary_logarithm(f.high) + n.high) * exponent.high;
      const vec<double> most(126.0);
      if (xsimd::all((xsimd::abs(low) <= most) && (xsimd::abs(high) <= most))) [[likely]] {
        const vec<double> low_n = detail::nearest(low), high_n = detail::nearest(high);
        return detail::polynomial(detail::power_fit, narrow({low - low_n, high - high_n})) *
               detail::power_of_two<T>(narrow({low_n, high_n}));
      }
    }
    const wide_lanes base = widen(xsimd::abs(x));
    const vec<T> size = narrow({exponential<double>(logarithm<double>(base.low) * exponent.low),
                                exponential<double>(logarithm<double>(base.high) * exponent.high)});
    const vec<T> zero(0.0f), one(1.0f);
    // Negative numbers, and -0, have powers with whole exponents only; odd ones keep the sign.
    const vec<T> sign = xsimd::copysign(one, x);
    const auto whole = xsimd::trunc(y) == y;
    const vec<T> half = y * vec<T>(0.5f);
    const auto odd = whole && (xsimd::trunc(half) != half);
    const vec<T> signed_size = xsimd::select(odd, size * sign, size);
    const auto none = (x < zero) && !whole && (x > vec<T>(-std::numeric_limits<T>::infinity()));
    const vec<T> z = xsimd::select(none, vec<T>(std::numeric_limits<T>::quiet_NaN()), signed_size);
    const auto unit = (y == zero) || (x == one);
    const auto ends = (x == -one) && (xsimd::abs(y) == vec<T>(std::numeric_limits<T>::infinity()));
    return xsimd::select(unit || ends, one, z);
  } else {
    alignas(64) T a[lanes<T>], b[lanes<T>];
    store(a, x);
    store(b, y);
    for (int i = 0; i < lanes<T>; ++i) a[i] = std::pow(a[i], b[i]);
    return load(a);
  }
}

// ---- the operations

/// The vector form of an operation, where it is not the SIMD library's: `apply`, on vectors.
template <class Op>
struct vector_form {};

template <>
struct vector_form<exp_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return exponential<T>(x);
  }
};
template <>
struct vector_form<log_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return logarithm<T>(x);
  }
};
template <>
struct vector_form<log2_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return binary_logarithm<T>(x);
  }
};
template <>
struct vector_form<asinh_op> {
  template <class T>
  static vec<T> apply(const vec<T>& x) {
    return inverse_hyperbolic_sine<T>(x);
  }
};
template <>
struct vector_form<log1p_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return logarithm_of_successor<T>(x);
  }
};
template <>
struct vector_form<softplus_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    const vec<T> zero(T(0));
    return xsimd::select(x < zero, zero, x) +
           logarithm_of_successor<T>(exponential<T>(-xsimd::abs(x)));
  }
};
template <>
struct vector_form<sigmoid_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return logistic<T>(x);
  }
};
template <>
struct vector_form<tanh_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return hyperbolic_tangent<T>(x);
  }
};
template <>
struct vector_form<sin_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return sine<T>(x);
  }
};
template <>
struct vector_form<cos_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return cosine<T>(x);
  }
};
template <>
struct vector_form<erf_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return error_function<T>(x);
  }
};
template <>
struct vector_form<erfc_op> {
  template <class T>
  static vec<T> apply(const vec<T>& x) {
    return complementary_error_function<T>(x);
  }
};
template <>
struct vector_form<expm1_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return exponential_less_one<T>(x);
  }
};
template <>
struct vector_form<sinh_op> {
  template <class T>
  static vec<T> apply(const vec<T>& x) {
    return hyperbolic_sine<T>(x);
  }
};
template <>
struct vector_form<cosh_op> {
  template <class T>
  static vec<T> apply(const vec<T>& x) {
    return hyperbolic_cosine<T>(x);
  }
};
template <>
struct vector_form<acosh_op> {
  template <class T>
  static vec<T> apply(const vec<T>& x) {
    return inverse_hyperbolic_cosine<T>(x);
  }
};
template <>
struct vector_form<tan_op> {
  template <class T>
  static vec<T> apply(const vec<T>& x) {
    return tangent<T>(x);
  }
};
template <>
struct vector_form<asin_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return inverse_sine<T>(x);
  }
};
template <>
struct vector_form<acos_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return inverse_cosine<T>(x);
  }
};
template <>
struct vector_form<atan_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return inverse_tangent<T>(x);
  }
};
/// The SIMD library's loses the sign of zero.
template <>
struct vector_form<neg_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return x ^ vec<T>(-T(0));
  }
};
template <>
struct vector_form<rsqrt_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return reciprocal_root<T>(x);
  }
};
template <>
struct vector_form<pow_op> {
  template <class T>
  static vec<T> apply(const vec<T>& x, const vec<T>& y) {
    return power<T>(x, y);
  }
};
template <>
struct vector_form<atan2_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& y, const vec<T>& x) {
    return angle_of_points<T>(y, x);
  }
};

// ---- remainders

namespace detail {

/// std::fmod. A quotient below 2^(digits - 1) is known up to one, too much, and what it leaves of x
/// is exact: a multiple of y's last digit that is no larger than y. Vectors with other quotients,
/// or with what is not finite, go one by one.
template <class T>
[[gnu::always_inline]] inline vec<T> remainder(const vec<T>& x, const vec<T>& y) {
  constexpr T most = T(std::int64_t{1} << (std::numeric_limits<T>::digits - 1));
  constexpr T largest = std::numeric_limits<T>::max();
  const vec<T> a = xsimd::abs(x), b = xsimd::abs(y), zero(T(0)), sign(-T(0));
  const vec<T> q = xsimd::trunc(a / b), product = rounded<T>(q * b);
  const vec<T> rest = (a - product) - product_error<T>(q, b, product);
  const vec<T> found = xsimd::select(rest < zero, rest + b, rest) | (x & sign);
  if (xsimd::all(q < vec<T>(most) && b <= vec<T>(largest) && a <= vec<T>(largest / 4)))
    return found;
  std::array<T, vec<T>::size> from, by;
  xsimd::store_unaligned(from.data(), x);
  xsimd::store_unaligned(by.data(), y);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = std::fmod(from[i], by[i]);
  return xsimd::load_unaligned(from.data());
}

}  // namespace detail

template <>
struct vector_form<fmod_op> {
  template <class T>
  static vec<T> apply(const vec<T>& x, const vec<T>& y) {
    return detail::remainder<T>(x, y);
  }
};
template <>
struct vector_form<floor_div_op> {
  template <class T>
  static vec<T> apply(const vec<T>& x, const vec<T>& y) {
    const vec<T> zero(T(0)), one(T(1)), sign(-T(0)), quotient = x / y;
    const vec<T> rest = detail::remainder<T>(x, y);
    const auto other_sign = (rest < zero && y > zero) || (rest > zero && y < zero);
    const vec<T> exact = (x - rest) / y, q = xsimd::select(other_sign, exact - one, exact);
    const vec<T> down = xsimd::floor(q);
    const vec<T> nearest = xsimd::select(q - down > vec<T>(T(0.5)), down + one, down);
    const vec<T> found = xsimd::select(q == zero, quotient & sign, nearest);
    return xsimd::select(y < zero || y > zero, found, quotient);
  }
};

// ---- gelu, and its tanh form

namespace detail {

/// For `gelu`, whose lower precision has another one (simd/fast_math.hpp).
struct exact_exponential {
  template <class T>
  [[gnu::always_inline]] static vec<T> of(vec<T> x) {
    return exponential<T>(x);
  }
  template <class T>
  [[gnu::always_inline]] static vec<T> of_negative(vec<T> x) {
    return bounded_exponential<T>(x);
  }
};

/// -w = -2 sqrt(2 / pi) (x + 0.044715 x^3).
template <class T>
[[gnu::always_inline]] inline vec<T> gelu_exponent(vec<T> x) {
  constexpr double linear = -2 * cella::detail::gelu_factor;
  return x * multiply_add(x * x, vec<T>(T(linear * cella::detail::gelu_cubic)), vec<T>(T(linear)));
}
template <class Exponential, class T>
[[gnu::always_inline]] inline vec<T> gelu(vec<T> x) {
  // The bound stands first, so that NaN is what remains.
  x = maximum(vec<T>(T(-cella::detail::gelu_bound)), x);
  const vec<T> one(T(1));
  return x * (one / (one + Exponential::of(gelu_exponent<T>(x))));
}
template <class Exponential, class T>
[[gnu::always_inline]] inline vec<T> gelu_slope(vec<T> x) {
  // Of |x|: those of x and -x make 1. So no power is infinite.
  constexpr double linear = 2 * cella::detail::gelu_factor;
  const vec<T> one(T(1)), size = minimum(vec<T>(T(cella::detail::gelu_bound)), xsimd::abs(x));
  const vec<T> power = Exponential::of_negative(gelu_exponent<T>(size));
  const vec<T> gate = one / (one + power), rest = power * gate;
  const vec<T> slope =
      size * multiply_add(size * size, vec<T>(T(3 * linear * cella::detail::gelu_cubic)),
                          vec<T>(T(linear)));
  const vec<T> y = multiply_add(gate * rest, slope, gate);
  return xsimd::select(x < vec<T>(T(0)), one - y, y);
}

}  // namespace detail

/// Within 2 units in the last place of x, and of a result that is no less than 0.
template <>
struct vector_form<gelu_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return exact_gelu<T>(x);
  }
};
/// Within 2 units in the last place of 1.
template <>
struct vector_form<gelu_slope_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return exact_gelu_slope<T>(x);
  }
};
/// Within 3e-6 max(1, |x|): rounding of the argument is what remains.
template <>
struct vector_form<gelu_tanh_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return detail::gelu<detail::exact_exponential, T>(x);
  }
};
/// Within 3e-6.
template <>
struct vector_form<gelu_tanh_slope_op> {
  template <class T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return detail::gelu_slope<detail::exact_exponential, T>(x);
  }
};

}  // namespace cella::cpu
