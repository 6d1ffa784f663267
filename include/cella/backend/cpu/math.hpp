// Mathematical functions of whole vectors, for the operations that fused expressions use most. What
// has no form here runs on the SIMD library's.
#pragma once

#include <cella/backend/cpu/simd.hpp>
#include <cella/ops/activation.hpp>
#include <limits>

namespace cella::cpu {

#if defined(__GNUC__) && !defined(__clang__)
// g++ 12 warns of the undefined registers from which its own AVX-512 intrinsics start.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

/// e^x, within 2 units in the last place; infinity above the range, 0 below it, NaN for NaN.
/// Results below the smallest normal number may be 0.
template <class T>
[[gnu::always_inline]] inline vec<T> exponential(vec<T> x);

/// Hyperbolic tangent, within 2 units in the last place; +-1 far out, NaN for NaN.
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

}  // namespace detail

template <class T>
[[gnu::always_inline]] inline vec<T> exponential(vec<T> x) {
  if constexpr (std::is_same_v<T, float>) {
    // 2^(n + f) with |f| <= 1/2; log2(e), or ln(2), in two parts. Out of range n is cut off, where
    // 2^n overflows or vanishes anyway; an infinite n would make f NaN. The bounds stand first, so
    // that NaN is what remains.
    constexpr float log2e = 1.44269502f;
    static constexpr float c[] = {1.0f,          6.9314720e-1f, 2.4022648e-1f, 5.5503324e-2f,
                                  9.6184373e-3f, 1.3398874e-3f, 1.5353362e-4f};
    x = minimum(vec<T>(150.0f), maximum(vec<T>(-150.0f), x));
#if defined(__AVX512F__)
    constexpr __mmask16 all = 0xffff;
    const vec<T> n = _mm512_maskz_roundscale_ps(all, x * vec<T>(log2e), 8);
    const vec<T> rest = multiply_add(x, vec<T>(log2e), -n);
    const vec<T> f = multiply_add(x, vec<T>(1.925963e-8f), rest);
#else
    // Right without a fused multiply-add, too: the first product is exact.
    const vec<T> n = xsimd::nearbyint(x * vec<T>(log2e));
    const vec<T> rest = (x - n * vec<T>(0.693359375f)) - n * vec<T>(-2.12194440e-4f);
    const vec<T> f = rest * vec<T>(log2e);
#endif
    const vec<T> power = detail::polynomial(c, f);
#if defined(__AVX512F__)
    return _mm512_maskz_scalef_ps(all, power, n);
#else
    // In two steps: the factor itself may lie outside the range of the result.
    const auto whole = xsimd::to_int(n), half = whole >> 1;
    const auto power_of_two = [](auto k) { return xsimd::bitwise_cast<vec<T> >((k + 127) << 23); };
    return power * power_of_two(half) * power_of_two(whole - half);
#endif
  } else {
    return xsimd::exp(x);
  }
}

template <class T>
[[gnu::always_inline]] inline vec<T> hyperbolic_tangent(vec<T> x) {
  if constexpr (std::is_same_v<T, float>) {
    // Near 0 a polynomial (Cephes); elsewhere 1 - 2 / (e^2|x| + 1).
    static constexpr float c[] = {-3.33332819422e-1f, 1.33314422036e-1f, -5.37397155531e-2f,
                                  2.06390887954e-2f, -5.70498872745e-3f};
    const vec<T> size = xsimd::abs(x);
    const vec<T> square = x * x;
    const vec<T> near = multiply_add(detail::polynomial(c, square) * square, x, x);
    const vec<T> far = vec<T>(1) - vec<T>(2) / (exponential<T>(size + size) + vec<T>(1));
    const vec<T> signed_far = xsimd::select(x < vec<T>(0), -far, far);
    return xsimd::select(size < vec<T>(0.625f), near, signed_far);
  } else {
    return xsimd::tanh(x);
  }
}

namespace detail {
/// 1 / (1 + e^-w) for w = 2 sqrt(2 / pi) (x + 0.044715 x^3).
template <class T>
[[gnu::always_inline]] inline vec<T> gelu_gate(vec<T> x) {
  constexpr double linear = -2 * cella::detail::gelu_factor;
  const vec<T> factor =
      multiply_add(x * x, vec<T>(T(linear * cella::detail::gelu_cubic)), vec<T>(T(linear)));
  return vec<T>(T(1)) / (vec<T>(T(1)) + exponential<T>(x * factor));
}
}  // namespace detail

/// The vector form of an operation, where it is not the SIMD library's: `apply`, on vectors.
template <class Op>
struct vector_form {};

template <>
struct vector_form<exp_op> {
  template <class T>
  static vec<T> apply(const vec<T>& x) {
    return exponential<T>(x);
  }
};
/// Within 3e-6 max(1, |x|): rounding of the argument is what remains.
template <>
struct vector_form<gelu_tanh_op> {
  template <class T>
  static vec<T> apply(const vec<T>& x) {
    // Far below 0 the gate is 0 and x may be minus infinity.
    return xsimd::select(x < vec<T>(T(-20)), vec<T>(T(0)), x * detail::gelu_gate<T>(x));
  }
};
/// Within 3e-6.
template <>
struct vector_form<gelu_tanh_slope_op> {
  template <class T>
  static vec<T> apply(const vec<T>& x) {
    constexpr double linear = 2 * cella::detail::gelu_factor;
    const vec<T> s = detail::gelu_gate<T>(x);
    const vec<T> one(T(1));
    const vec<T> slope = x * multiply_add(x * x, vec<T>(T(3 * linear * cella::detail::gelu_cubic)),
                                          vec<T>(T(linear)));
    const vec<T> y = multiply_add(s * (one - s), slope, s);
    // Far out the gate is constant, and infinity times 0 is avoided.
    return xsimd::select(x < vec<T>(T(-20)), vec<T>(T(0)),
                         xsimd::select(x > vec<T>(T(20)), one, y));
  }
};
template <>
struct vector_form<tanh_op> {
  template <class T>
  static vec<T> apply(const vec<T>& x) {
    return hyperbolic_tangent<T>(x);
  }
};

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

}  // namespace cella::cpu
