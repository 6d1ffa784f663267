// Operations in lower precision, for programs that ask for it (with_fast_math). Every form says its
// error.
#pragma once

#include <cella/backend/cpu/simd/math.hpp>

namespace cella::cpu {

/// An operation in its lower precision, for programs that ask for it (with_fast_math); operations
/// that have none are computed as ever. Single precision only.
template <class Op>
struct fast {};

namespace detail {

/// e^x within 4e-6 of it, for single precision.
template <std::same_as<float> T>
[[gnu::always_inline]] inline vec<T> fast_exponential(vec<T> x) {
  static constexpr float c[] = {1.0f, 0.693124175f, 0.240240917f, 0.0559065118f, 0.00958317332f};
  const vec<float> log2e(1.44269502f);
  x = minimum(vec<float>(exponential_bound<float>), x);
  const vec<float> n = nearest(x * log2e);
  return times_power_unless_below(polynomial(c, multiply_add(x, log2e, -n)), n, x);
}
struct rough_exponential {
  template <std::same_as<float> T>
  [[gnu::always_inline]] static vec<T> of(vec<T> x) {
    return fast_exponential(x);
  }
  template <std::same_as<float> T>
  [[gnu::always_inline]] static vec<T> of_negative(vec<T> x) {
    return of(x);
  }
};

}  // namespace detail

/// Within 8e-6 of the result.
template <>
struct vector_form<fast<exp_op>> {
  template <std::same_as<float> T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return detail::fast_exponential(x);
  }
};
/// Within 1e-5 of the result; infinities, zeros and denormal numbers are not looked for.
template <>
struct vector_form<fast<log_op>> {
  template <std::same_as<float> T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    static constexpr float c[] = {1.0000056f,    -0.499919891f, 0.332437068f,
                                  -0.253180265f, 0.2226713f,    -0.151466057f};
    const auto p = detail::take_apart(x, 1.3984375f);
    const vec<float> f = p.fraction - vec<float>(1.0f);
    return multiply_add(p.exponent, vec<float>(0.693147182f), detail::polynomial(c, f) * f);
  }
};
/// Within 4e-6.
template <>
struct vector_form<fast<sigmoid_op>> {
  template <std::same_as<float> T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return vec<float>(1.0f) / (vec<float>(1.0f) + detail::fast_exponential(-x));
  }
};
/// Within 4e-6.
template <>
struct vector_form<fast<tanh_op>> {
  template <std::same_as<float> T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return vec<float>(1.0f) -
           vec<float>(2.0f) / (vec<float>(1.0f) + detail::fast_exponential(x + x));
  }
};
/// Within 1e-5 max(1, |x|).
template <>
struct vector_form<fast<gelu_tanh_op>> {
  template <std::same_as<float> T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return detail::gelu<detail::rough_exponential, float>(x);
  }
};
/// Within 1e-5.
template <>
struct vector_form<fast<gelu_tanh_slope_op>> {
  template <std::same_as<float> T>
  [[gnu::always_inline]] static vec<T> apply(const vec<T>& x) {
    return detail::gelu_slope<detail::rough_exponential, float>(x);
  }
};

}  // namespace cella::cpu
