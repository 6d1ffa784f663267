// What each elementwise function of one argument is, computed with more digits than any element
// type has: by MPFR where the tests are built with it, else in long double.
#pragma once

#include <cella/ops/list.hpp>
#include <cmath>
#include <concepts>
#include <numbers>
#ifdef CELLA_TESTS_HAVE_MPFR
#include <mpfr.h>
#endif

namespace cella::test {

#ifdef CELLA_TESTS_HAVE_MPFR

/// A number of 160 binary digits, with exponents beyond those of any element type.
class exact_number {
 public:
  exact_number(long double x) : exact_number() { mpfr_set_ld(value_, x, MPFR_RNDN); }
  exact_number(const exact_number& x) : exact_number() { mpfr_set(value_, x.value_, MPFR_RNDN); }
  exact_number& operator=(const exact_number& x) {
    mpfr_set(value_, x.value_, MPFR_RNDN);
    return *this;
  }
  ~exact_number() { mpfr_clear(value_); }

  explicit operator long double() const { return mpfr_get_ld(value_, MPFR_RNDN); }
  friend exact_number operator+(const exact_number& x, const exact_number& y) {
    return of(mpfr_add, x, y);
  }
  friend exact_number operator-(const exact_number& x, const exact_number& y) {
    return of(mpfr_sub, x, y);
  }
  friend exact_number operator*(const exact_number& x, const exact_number& y) {
    return of(mpfr_mul, x, y);
  }
  friend exact_number operator/(const exact_number& x, const exact_number& y) {
    return of(mpfr_div, x, y);
  }
  friend exact_number operator-(const exact_number& x) { return of(mpfr_neg, x); }
  friend bool operator<(const exact_number& x, const exact_number& y) {
    return mpfr_less_p(x.value_, y.value_) != 0;
  }
  friend exact_number abs(const exact_number& x) { return of(mpfr_abs, x); }
  friend exact_number sqrt(const exact_number& x) { return of(mpfr_sqrt, x); }
  friend exact_number exp(const exact_number& x) { return of(mpfr_exp, x); }
  friend exact_number expm1(const exact_number& x) { return of(mpfr_expm1, x); }
  friend exact_number log(const exact_number& x) { return of(mpfr_log, x); }
  friend exact_number log1p(const exact_number& x) { return of(mpfr_log1p, x); }
  friend exact_number log2(const exact_number& x) { return of(mpfr_log2, x); }
  friend exact_number sin(const exact_number& x) { return of(mpfr_sin, x); }
  friend exact_number cos(const exact_number& x) { return of(mpfr_cos, x); }
  friend exact_number tan(const exact_number& x) { return of(mpfr_tan, x); }
  friend exact_number asin(const exact_number& x) { return of(mpfr_asin, x); }
  friend exact_number acos(const exact_number& x) { return of(mpfr_acos, x); }
  friend exact_number atan(const exact_number& x) { return of(mpfr_atan, x); }
  friend exact_number sinh(const exact_number& x) { return of(mpfr_sinh, x); }
  friend exact_number cosh(const exact_number& x) { return of(mpfr_cosh, x); }
  friend exact_number tanh(const exact_number& x) { return of(mpfr_tanh, x); }
  friend exact_number asinh(const exact_number& x) { return of(mpfr_asinh, x); }
  friend exact_number acosh(const exact_number& x) { return of(mpfr_acosh, x); }
  friend exact_number atanh(const exact_number& x) { return of(mpfr_atanh, x); }
  friend exact_number erf(const exact_number& x) { return of(mpfr_erf, x); }
  friend exact_number erfc(const exact_number& x) { return of(mpfr_erfc, x); }
  friend exact_number digamma(const exact_number& x) { return of(mpfr_digamma, x); }
  friend exact_number lgamma(const exact_number& x) {
    exact_number y;
    int sign = 0;
    mpfr_lgamma(y.value_, &sign, x.value_, MPFR_RNDN);
    return y;
  }

 private:
  exact_number() { mpfr_init2(value_, 160); }
  template <class F, class... X>
  static exact_number of(F f, const X&... x) {
    exact_number y;
    f(y.value_, x.value_..., MPFR_RNDN);
    return y;
  }
  mpfr_t value_;
};
inline exact_number pi() { return exact_number(4) * atan(exact_number(1)); }

#else

using exact_number = long double;
using std::abs, std::sqrt, std::exp, std::expm1, std::log, std::log1p, std::log2, std::sin,
    std::cos, std::tan, std::asin, std::acos, std::atan, std::sinh, std::cosh, std::tanh,
    std::asinh, std::acosh, std::atanh, std::erf, std::erfc;
inline exact_number pi() { return std::numbers::pi_v<long double>; }

#endif

/// Whether an operation makes one floating-point number of one, without options.
template <class Op>
inline constexpr bool is_function = [] {
  if constexpr (requires { typename Op::options; })
    return false;
  else
    return requires(double x) {
      { Op::apply(x) } -> std::same_as<double>;
    };
}();

// The function of each operation of `is_function`: whose line is missing does not compile.

inline exact_number exact(neg_op, exact_number x) { return -x; }
inline exact_number exact(identity_op, exact_number x) { return x; }
inline exact_number exact(stop_gradient_op, exact_number x) { return x; }
inline exact_number exact(square_op, exact_number x) { return x * x; }
inline exact_number exact(sqrt_op, exact_number x) { return sqrt(x); }
inline exact_number exact(rsqrt_op, exact_number x) { return exact_number(1) / sqrt(x); }
inline exact_number exact(exp_op, exact_number x) { return exp(x); }
inline exact_number exact(expm1_op, exact_number x) { return expm1(x); }
inline exact_number exact(log_op, exact_number x) { return log(x); }
inline exact_number exact(log1p_op, exact_number x) { return log1p(x); }
inline exact_number exact(log2_op, exact_number x) { return log2(x); }
inline exact_number exact(sin_op, exact_number x) { return sin(x); }
inline exact_number exact(cos_op, exact_number x) { return cos(x); }
inline exact_number exact(tan_op, exact_number x) { return tan(x); }
inline exact_number exact(asin_op, exact_number x) { return asin(x); }
inline exact_number exact(acos_op, exact_number x) { return acos(x); }
inline exact_number exact(atan_op, exact_number x) { return atan(x); }
inline exact_number exact(sinh_op, exact_number x) { return sinh(x); }
inline exact_number exact(cosh_op, exact_number x) { return cosh(x); }
inline exact_number exact(tanh_op, exact_number x) { return tanh(x); }
inline exact_number exact(asinh_op, exact_number x) { return asinh(x); }
inline exact_number exact(acosh_op, exact_number x) { return acosh(x); }
inline exact_number exact(atanh_op, exact_number x) { return atanh(x); }
inline exact_number exact(erf_op, exact_number x) { return erf(x); }
inline exact_number exact(erfc_op, exact_number x) { return erfc(x); }
inline exact_number exact(abs_op, exact_number x) { return abs(x); }
inline exact_number exact(sign_op, exact_number x) {
  return x < 0 ? exact_number(-1) : exact_number(0) < x ? exact_number(1) : x + exact_number(0);
}
inline exact_number exact(floor_op, exact_number x) {
  return std::floor(static_cast<long double>(x));
}
inline exact_number exact(ceil_op, exact_number x) {
  return std::ceil(static_cast<long double>(x));
}
inline exact_number exact(round_op, exact_number x) {
  return std::nearbyint(static_cast<long double>(x));
}
inline exact_number exact(trunc_op, exact_number x) {
  return std::trunc(static_cast<long double>(x));
}
inline exact_number exact(relu_op, exact_number x) { return x < 0 ? exact_number(0) : x; }
inline exact_number exact(sigmoid_op, exact_number x) {
  return exact_number(1) / (exact_number(1) + exp(-x));
}
inline exact_number exact(softplus_op, exact_number x) {
  // Without overflow, which even MPFR has.
  return exact_number(0) < x ? x + log1p(exp(-x)) : log1p(exp(x));
}
// Infinity times 0 is no number: far out gelu and its slope are their limits.
inline exact_number normal_distribution(const exact_number& x) {
  return erfc(-x / sqrt(exact_number(2))) / exact_number(2);
}
inline exact_number exact(gelu_op, exact_number x) {
  return x < -1e5 ? exact_number(-0.0L) : x * normal_distribution(x);
}
inline exact_number exact(gelu_slope_op, exact_number x) {
  if (exact_number(1e5) < abs(x)) return x < 0 ? exact_number(0) : exact_number(1);
  const exact_number two(2), density = exp(-x * x / two) / sqrt(two * pi());
  return normal_distribution(x) + x * density;
}

/// w of gelu_tanh, which is x sigmoid(w), and dw/dx.
inline exact_number gelu_exponent(const exact_number& x) {
  const exact_number cubic = exact_number(44715) / exact_number(1000000);
  return exact_number(2) * sqrt(exact_number(2) / pi()) * (x + cubic * x * x * x);
}
inline exact_number slope_of_gelu_exponent(const exact_number& x) {
  const exact_number cubic = exact_number(3 * 44715) / exact_number(1000000);
  return exact_number(2) * sqrt(exact_number(2) / pi()) * (exact_number(1) + cubic * x * x);
}
inline exact_number exact(gelu_tanh_op, exact_number x) {
  return x < -1e5 ? exact_number(-0.0L) : x * exact(sigmoid_op{}, gelu_exponent(x));
}
inline exact_number exact(gelu_tanh_slope_op, exact_number x) {
  if (x < -1e5) return exact_number(-0.0L);
  if (exact_number(1e5) < x) return 1;
  const exact_number w = gelu_exponent(x), gate = exact(sigmoid_op{}, w);
  return gate + x * gate * exact(sigmoid_op{}, -w) * slope_of_gelu_exponent(x);
}

}  // namespace cella::test
