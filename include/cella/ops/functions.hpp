// Mathematical functions of one operand, and the two-operand functions made of them.
#pragma once

#include <cella/ops/elementwise.hpp>
#include <cmath>
#include <numbers>

namespace cella {

namespace detail {
/// abs of complex numbers.
constexpr var magnitude(operand x, var v);
}  // namespace detail

constexpr var square(operand x);
constexpr var sqrt(operand x);
constexpr var rsqrt(operand x);
constexpr var exp(operand x);
constexpr var expm1(operand x);
constexpr var log(operand x);
constexpr var log1p(operand x);
constexpr var log2(operand x);
constexpr var sin(operand x);
constexpr var cos(operand x);
constexpr var tan(operand x);
constexpr var asin(operand x);
constexpr var acos(operand x);
constexpr var atan(operand x);
constexpr var sinh(operand x);
constexpr var cosh(operand x);
constexpr var tanh(operand x);
constexpr var asinh(operand x);
constexpr var acosh(operand x);
constexpr var atanh(operand x);
constexpr var erf(operand x);
constexpr var erfc(operand x);
constexpr var abs(operand x);
constexpr var sign(operand x);
constexpr var floor(operand x);
constexpr var ceil(operand x);
constexpr var round(operand x);
constexpr var trunc(operand x);
constexpr var sigmoid(operand x);

namespace detail {

/// Of a function that falls until `bottom` and rises behind it.
template <class Op>
constexpr interval bounds_of_valley(const interval& x, double bottom) {
  const double low = Op::apply(x.low), high = Op::apply(x.high);
  return {x.contains(bottom) ? Op::apply(bottom) : std::min(low, high), std::max(low, high)};
}
/// Whether an interval holds `place`, or what is whole periods away from it. Of large numbers,
/// whose place in a period rounding hides, it may.
inline bool may_reach(const interval& x, double place, double period) {
  if (!(x.magnitude() < 1e6)) return true;
  return std::floor((x.high - place) / period) >= std::ceil((x.low - place) / period);
}
/// Of sine and cosine, which are -1 at `bottom`.
template <class Function>
interval bounds_of_wave(const interval& x, double bottom, Function f) {
  constexpr double pi = std::numbers::pi;
  const bool lowest = may_reach(x, bottom, 2 * pi), highest = may_reach(x, bottom + pi, 2 * pi);
  return {lowest ? -1 : std::min(f(x.low), f(x.high)), highest ? 1 : std::max(f(x.low), f(x.high))};
}

}  // namespace detail

/// x^2.  d/dx = 2x
struct square_op : elementwise<square_op>, keeps_zero, foldable, takes_complex {
  static constexpr std::string_view name = "square";
  static constexpr std::string_view numpy = "np.square";
  static constexpr std::string_view torch = "torch.square";
  static constexpr std::string_view formula = "y = x^2";
  static constexpr bool integral = true;
  static constexpr auto apply(auto x) { return mul_op::apply(x, x); }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type>,
                                   const attributes&) {
    return detail::bounds_of_valley<square_op>(in[0], 0);
  }
  static constexpr var partial(node_ref n, int) { return 2 * n.operand(0); }
};
/// Square root.  d/dx = 1 / (2y)
struct sqrt_op : elementwise<sqrt_op>, keeps_zero, takes_complex, nondecreasing {
  static constexpr std::string_view name = "sqrt";
  static constexpr std::string_view numpy = "np.sqrt";
  static constexpr std::string_view torch = "torch.sqrt";
  static constexpr std::string_view formula = "y = x^(1/2)";
  static constexpr onnx_operator onnx{"Sqrt", 6};
  static constexpr interval domain{0, interval::infinity};
  static constexpr auto apply(auto x) {
    using std::sqrt;
    return sqrt(x);
  }
  static constexpr var partial(node_ref n, int) { return 0.5 / n.output(); }
};
/// 1 / sqrt(x).  d/dx = -y / (2x)
struct rsqrt_op : elementwise<rsqrt_op> {
  static constexpr std::string_view name = "rsqrt";
  static constexpr std::string_view torch = "torch.rsqrt";
  static constexpr std::string_view formula = "y = x^(-1/2)";
  static constexpr interval domain{0, interval::infinity};
  static constexpr auto apply(auto x) {
    using std::sqrt;
    return like(x, 1) / sqrt(x);
  }
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes&) {
    if (in[0].low <= 0) return {};  // zeros have signs
    return {apply(in[0].high), apply(in[0].low)};
  }
  static constexpr var partial(node_ref n, int) { return -0.5 * n.output() / n.operand(0); }
};
/// e^x.  d/dx = y
struct exp_op : elementwise<exp_op>, transcendental, monotone, takes_complex {
  static constexpr std::string_view name = "exp";
  static constexpr std::string_view numpy = "np.exp";
  static constexpr std::string_view torch = "torch.exp";
  static constexpr std::string_view formula = "y = e^x";
  static constexpr onnx_operator onnx{"Exp", 6};
  static constexpr auto apply(auto x) {
    using std::exp;
    return exp(x);
  }
  static constexpr var partial(node_ref n, int) { return n.output(); }
};
/// e^x - 1, exact near 0.  d/dx = y + 1
struct expm1_op : elementwise<expm1_op>, transcendental, keeps_zero, nondecreasing {
  static constexpr std::string_view name = "expm1";
  static constexpr std::string_view numpy = "np.expm1";
  static constexpr std::string_view torch = "torch.expm1";
  static constexpr std::string_view formula = "y = e^x - 1";
  static constexpr auto apply(auto x) {
    using std::expm1;
    return expm1(x);
  }
  static constexpr var partial(node_ref n, int) { return n.output() + 1; }
};
/// Natural logarithm.  d/dx = 1 / x
struct log_op : elementwise<log_op>, transcendental, takes_complex, nondecreasing {
  static constexpr std::string_view name = "log";
  static constexpr std::string_view numpy = "np.log";
  static constexpr std::string_view torch = "torch.log";
  static constexpr std::string_view formula = "y = ln x";
  static constexpr onnx_operator onnx{"Log", 6};
  static constexpr interval domain{0, interval::infinity};
  static constexpr auto apply(auto x) {
    using std::log;
    return log(x);
  }
  static constexpr var partial(node_ref n, int) { return 1 / n.operand(0); }
};
/// log(1 + x), exact near 0.  d/dx = 1 / (1 + x)
struct log1p_op : elementwise<log1p_op>, transcendental, keeps_zero, nondecreasing {
  static constexpr std::string_view name = "log1p";
  static constexpr std::string_view numpy = "np.log1p";
  static constexpr std::string_view torch = "torch.log1p";
  static constexpr std::string_view formula = "y = ln(1 + x)";
  static constexpr interval domain{-1, interval::infinity};
  static constexpr auto apply(auto x) {
    using std::log1p;
    return log1p(x);
  }
  static constexpr var partial(node_ref n, int) { return 1 / (n.operand(0) + 1); }
};
/// Logarithm to base 2.  d/dx = 1 / (x ln 2)
struct log2_op : elementwise<log2_op>, transcendental, nondecreasing {
  static constexpr std::string_view name = "log2";
  static constexpr std::string_view numpy = "np.log2";
  static constexpr std::string_view torch = "torch.log2";
  static constexpr std::string_view formula = "y = ln x / ln 2";
  static constexpr interval domain{0, interval::infinity};
  static constexpr auto apply(auto x) {
    using std::log2;
    return log2(x);
  }
  static constexpr var partial(node_ref n, int) { return (1 / std::numbers::ln2) / n.operand(0); }
};
/// Sine.  d/dx = cos x
struct sin_op : elementwise<sin_op>, transcendental, keeps_zero, takes_complex {
  static constexpr std::string_view name = "sin";
  static constexpr std::string_view numpy = "np.sin";
  static constexpr std::string_view torch = "torch.sin";
  static constexpr std::string_view formula = "y = sin x";
  static constexpr onnx_operator onnx{"Sin", 7};
  static constexpr auto apply(auto x) {
    using std::sin;
    return sin(x);
  }
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes&) {
    return detail::bounds_of_wave(in[0], -std::numbers::pi / 2, [](double x) { return apply(x); });
  }
  static constexpr var partial(node_ref n, int) { return cos(n.operand(0)); }
};
/// Cosine.  d/dx = -sin x
struct cos_op : elementwise<cos_op>, transcendental, takes_complex {
  static constexpr std::string_view name = "cos";
  static constexpr std::string_view numpy = "np.cos";
  static constexpr std::string_view torch = "torch.cos";
  static constexpr std::string_view formula = "y = cos x";
  static constexpr onnx_operator onnx{"Cos", 7};
  static constexpr auto apply(auto x) {
    using std::cos;
    return cos(x);
  }
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes&) {
    return detail::bounds_of_wave(in[0], std::numbers::pi, [](double x) { return apply(x); });
  }
  static constexpr var partial(node_ref n, int) { return -sin(n.operand(0)); }
};
/// Tangent.  d/dx = 1 + y^2
struct tan_op : elementwise<tan_op>, transcendental, keeps_zero, takes_complex {
  static constexpr std::string_view name = "tan";
  static constexpr std::string_view numpy = "np.tan";
  static constexpr std::string_view torch = "torch.tan";
  static constexpr std::string_view formula = "y = tan x";
  static constexpr onnx_operator onnx{"Tan", 7};
  static constexpr auto apply(auto x) {
    using std::tan;
    return tan(x);
  }
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes&) {
    if (detail::may_reach(in[0], std::numbers::pi / 2, std::numbers::pi)) return {};
    return {apply(in[0].low), apply(in[0].high)};
  }
  static constexpr var partial(node_ref n, int) { return 1 + square(n.output()); }
};
/// Arc sine.  d/dx = 1 / sqrt(1 - x^2)
struct asin_op : elementwise<asin_op>, transcendental, keeps_zero, nondecreasing {
  static constexpr std::string_view name = "asin";
  static constexpr std::string_view numpy = "np.arcsin";
  static constexpr std::string_view torch = "torch.asin";
  static constexpr std::string_view formula = "y = arcsin x";
  static constexpr onnx_operator onnx{"Asin", 7};
  static constexpr interval domain{-1, 1};
  static constexpr auto apply(auto x) {
    using std::asin;
    return asin(x);
  }
  static constexpr var partial(node_ref n, int) { return 1 / sqrt(1 - square(n.operand(0))); }
};
/// Arc cosine.  d/dx = -1 / sqrt(1 - x^2)
struct acos_op : elementwise<acos_op>, transcendental {
  static constexpr std::string_view name = "acos";
  static constexpr std::string_view numpy = "np.arccos";
  static constexpr std::string_view torch = "torch.acos";
  static constexpr std::string_view formula = "y = arccos x";
  static constexpr onnx_operator onnx{"Acos", 7};
  static constexpr interval domain{-1, 1};
  static constexpr auto apply(auto x) {
    using std::acos;
    return acos(x);
  }
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes&) {
    const interval x = intersection(in[0], domain);
    return {apply(x.high), apply(x.low)};
  }
  static constexpr var partial(node_ref n, int) { return -1 / sqrt(1 - square(n.operand(0))); }
};
/// Arc tangent.  d/dx = 1 / (1 + x^2)
struct atan_op : elementwise<atan_op>, transcendental, keeps_zero, nondecreasing {
  static constexpr std::string_view name = "atan";
  static constexpr std::string_view numpy = "np.arctan";
  static constexpr std::string_view torch = "torch.atan";
  static constexpr std::string_view formula = "y = arctan x";
  static constexpr onnx_operator onnx{"Atan", 7};
  static constexpr auto apply(auto x) {
    using std::atan;
    return atan(x);
  }
  static constexpr var partial(node_ref n, int) { return 1 / (1 + square(n.operand(0))); }
};
/// Hyperbolic sine.  d/dx = cosh x
struct sinh_op : elementwise<sinh_op>, transcendental, keeps_zero, takes_complex, nondecreasing {
  static constexpr std::string_view name = "sinh";
  static constexpr std::string_view numpy = "np.sinh";
  static constexpr std::string_view torch = "torch.sinh";
  static constexpr std::string_view formula = "y = (e^x - e^-x) / 2";
  static constexpr onnx_operator onnx{"Sinh", 9};
  static constexpr auto apply(auto x) {
    using std::sinh;
    return sinh(x);
  }
  static constexpr var partial(node_ref n, int) { return cosh(n.operand(0)); }
};
/// Hyperbolic cosine.  d/dx = sinh x
struct cosh_op : elementwise<cosh_op>, transcendental, takes_complex {
  static constexpr std::string_view name = "cosh";
  static constexpr std::string_view numpy = "np.cosh";
  static constexpr std::string_view torch = "torch.cosh";
  static constexpr std::string_view formula = "y = (e^x + e^-x) / 2";
  static constexpr onnx_operator onnx{"Cosh", 9};
  static constexpr auto apply(auto x) {
    using std::cosh;
    return cosh(x);
  }
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes&) {
    return detail::bounds_of_valley<cosh_op>(in[0], 0);
  }
  static constexpr var partial(node_ref n, int) { return sinh(n.operand(0)); }
};
/// Hyperbolic tangent.  d/dx = 1 - y^2
struct tanh_op : elementwise<tanh_op>, transcendental, keeps_zero, monotone, takes_complex {
  static constexpr std::string_view name = "tanh";
  static constexpr std::string_view numpy = "np.tanh";
  static constexpr std::string_view torch = "torch.tanh";
  static constexpr std::string_view formula = "y = (e^x - e^-x) / (e^x + e^-x)";
  static constexpr onnx_operator onnx{"Tanh", 6};
  static constexpr auto apply(auto x) {
    using std::tanh;
    return tanh(x);
  }
  static constexpr var partial(node_ref n, int) { return 1 - square(n.output()); }
};
/// d/dx = 1 / sqrt(x^2 + 1)
struct asinh_op : elementwise<asinh_op>, transcendental, keeps_zero, nondecreasing {
  static constexpr std::string_view name = "asinh";
  static constexpr std::string_view numpy = "np.arcsinh";
  static constexpr std::string_view torch = "torch.asinh";
  static constexpr std::string_view formula = "y = ln(x + sqrt(x^2 + 1))";
  static constexpr onnx_operator onnx{"Asinh", 9};
  static constexpr auto apply(auto x) {
    using std::asinh;
    return asinh(x);
  }
  static constexpr var partial(node_ref n, int) { return 1 / sqrt(square(n.operand(0)) + 1); }
};
/// d/dx = 1 / sqrt(x^2 - 1)
struct acosh_op : elementwise<acosh_op>, transcendental, nondecreasing {
  static constexpr std::string_view name = "acosh";
  static constexpr std::string_view numpy = "np.arccosh";
  static constexpr std::string_view torch = "torch.acosh";
  static constexpr std::string_view formula = "y = ln(x + sqrt(x^2 - 1))";
  static constexpr onnx_operator onnx{"Acosh", 9};
  static constexpr interval domain{1, interval::infinity};
  static constexpr auto apply(auto x) {
    using std::acosh;
    return acosh(x);
  }
  static constexpr var partial(node_ref n, int) { return 1 / sqrt(square(n.operand(0)) - 1); }
};
/// d/dx = 1 / (1 - x^2)
struct atanh_op : elementwise<atanh_op>, transcendental, keeps_zero, nondecreasing {
  static constexpr std::string_view name = "atanh";
  static constexpr std::string_view numpy = "np.arctanh";
  static constexpr std::string_view torch = "torch.atanh";
  static constexpr std::string_view formula = "y = ln((1 + x) / (1 - x)) / 2";
  static constexpr onnx_operator onnx{"Atanh", 9};
  static constexpr interval domain{-1, 1};
  static constexpr auto apply(auto x) {
    using std::atanh;
    return atanh(x);
  }
  static constexpr var partial(node_ref n, int) { return 1 / (1 - square(n.operand(0))); }
};
/// Error function.  d/dx = 2 / sqrt(pi) e^(-x^2)
struct erf_op : elementwise<erf_op>, transcendental, keeps_zero, nondecreasing {
  static constexpr std::string_view name = "erf";
  static constexpr std::string_view numpy = "scipy.special.erf";
  static constexpr std::string_view torch = "torch.erf";
  static constexpr std::string_view formula = "y = 2 / sqrt(pi) integral from 0 to x of e^(-t^2)";
  static constexpr onnx_operator onnx{"Erf", 9};
  static constexpr auto apply(auto x) {
    using std::erf;
    return erf(x);
  }
  static constexpr var partial(node_ref n, int) {
    return 2 * std::numbers::inv_sqrtpi * exp(-square(n.operand(0)));
  }
};
/// 1 - erf(x), exact for large x.
struct erfc_op : elementwise<erfc_op>, transcendental {
  static constexpr std::string_view name = "erfc";
  static constexpr std::string_view numpy = "scipy.special.erfc";
  static constexpr std::string_view torch = "torch.erfc";
  static constexpr std::string_view formula = "y = 1 - erf x";
  static constexpr auto apply(auto x) {
    using std::erfc;
    return erfc(x);
  }
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes&) {
    return {apply(in[0].high), apply(in[0].low)};
  }
  static constexpr var partial(node_ref n, int) {
    return -2 * std::numbers::inv_sqrtpi * exp(-square(n.operand(0)));
  }
};
/// |x|; the derivative at 0 is 0.
struct abs_op : elementwise<abs_op>, keeps_zero {
  static constexpr std::string_view name = "abs";
  static constexpr std::string_view numpy = "np.abs";
  static constexpr std::string_view torch = "torch.abs";
  static constexpr std::string_view formula = "y = the larger of x and -x";
  static constexpr onnx_operator onnx{"Abs", 6};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x) {
    using std::abs;
    if constexpr (std::is_unsigned_v<decltype(x)>)
      return x;
    else if constexpr (detail::is_whole<decltype(x)>)
      return x < 0 ? neg_op::apply(x) : x;
    else
      return abs(x);
  }
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes&) {
    return detail::bounds_of_valley<abs_op>(in[0], 0);
  }
  static constexpr var partial(node_ref n, int) { return sign(n.operand(0)); }
};
/// -1, 0 or 1.  Derivative zero.
struct sign_op : elementwise<sign_op>, keeps_zero, zero_derivative, nondecreasing {
  static constexpr std::string_view name = "sign";
  static constexpr std::string_view numpy = "np.sign";
  static constexpr std::string_view torch = "torch.sign";
  static constexpr std::string_view formula = "y = -1, 0 or 1";
  static constexpr onnx_operator onnx{"Sign", 9};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x) {
    return select(x > like(x, 0), like(x, 1), select(x < like(x, 0), like(x, -1), like(x, 0)));
  }
};
/// Rounds down.  Derivative zero.
struct floor_op : elementwise<floor_op>, zero_derivative, nondecreasing {
  static constexpr std::string_view name = "floor";
  static constexpr std::string_view numpy = "np.floor";
  static constexpr std::string_view torch = "torch.floor";
  static constexpr std::string_view formula = "y = the largest integer that is not above x";
  static constexpr onnx_operator onnx{"Floor", 6};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x) {
    using std::floor;
    if constexpr (detail::is_whole<decltype(x)>)
      return x;
    else
      return floor(x);
  }
};
/// Rounds up.  Derivative zero.
struct ceil_op : elementwise<ceil_op>, zero_derivative, nondecreasing {
  static constexpr std::string_view name = "ceil";
  static constexpr std::string_view numpy = "np.ceil";
  static constexpr std::string_view torch = "torch.ceil";
  static constexpr std::string_view formula = "y = the smallest integer that is not below x";
  static constexpr onnx_operator onnx{"Ceil", 6};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x) {
    using std::ceil;
    if constexpr (detail::is_whole<decltype(x)>)
      return x;
    else
      return ceil(x);
  }
};
/// To the nearest integer, ties to even.  Derivative zero.
struct round_op : elementwise<round_op>, zero_derivative, nondecreasing {
  static constexpr std::string_view name = "round";
  static constexpr std::string_view numpy = "np.round";
  static constexpr std::string_view torch = "torch.round";
  static constexpr std::string_view formula = "y = the nearest integer, of two the even one";
  static constexpr onnx_operator onnx{"Round", 11};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x) {
    using std::nearbyint;
    if constexpr (detail::is_whole<decltype(x)>)
      return x;
    else
      return nearbyint(x);
  }
};
/// Rounds towards zero.  Derivative zero.
struct trunc_op : elementwise<trunc_op>, zero_derivative, nondecreasing {
  static constexpr std::string_view name = "trunc";
  static constexpr std::string_view numpy = "np.trunc";
  static constexpr std::string_view torch = "torch.trunc";
  static constexpr std::string_view formula = "y = x without its fraction";
  static constexpr bool integral = true;
  static constexpr auto apply(auto x) {
    using std::trunc;
    if constexpr (detail::is_whole<decltype(x)>)
      return x;
    else
      return trunc(x);
  }
};
/// 1 / (1 + e^-x).  d/dx = y - y^2
struct sigmoid_op : elementwise<sigmoid_op>, transcendental, monotone {
  static constexpr std::string_view name = "sigmoid";
  static constexpr std::string_view numpy = "scipy.special.expit";
  static constexpr std::string_view torch = "torch.sigmoid";
  static constexpr std::string_view formula = "y = 1 / (1 + e^-x)";
  static constexpr onnx_operator onnx{"Sigmoid", 6};
  static constexpr auto apply(auto x) {
    using std::exp;
    return like(x, 1) / (like(x, 1) + exp(-x));
  }
  static constexpr var partial(node_ref n, int) { return n.output() - square(n.output()); }
};

constexpr var square(operand x) { return detail::unary<square_op>(x); }
constexpr var sqrt(operand x) { return detail::unary<sqrt_op>(x); }
constexpr var rsqrt(operand x) { return detail::unary<rsqrt_op>(x); }
constexpr var exp(operand x) { return detail::unary<exp_op>(x); }
constexpr var expm1(operand x) { return detail::unary<expm1_op>(x); }
constexpr var log(operand x) { return detail::unary<log_op>(x); }
constexpr var log1p(operand x) { return detail::unary<log1p_op>(x); }
constexpr var log2(operand x) { return detail::unary<log2_op>(x); }
constexpr var sin(operand x) { return detail::unary<sin_op>(x); }
constexpr var cos(operand x) { return detail::unary<cos_op>(x); }
constexpr var tan(operand x) { return detail::unary<tan_op>(x); }
constexpr var asin(operand x) { return detail::unary<asin_op>(x); }
constexpr var acos(operand x) { return detail::unary<acos_op>(x); }
constexpr var atan(operand x) { return detail::unary<atan_op>(x); }
constexpr var sinh(operand x) { return detail::unary<sinh_op>(x); }
constexpr var cosh(operand x) { return detail::unary<cosh_op>(x); }
constexpr var tanh(operand x) { return detail::unary<tanh_op>(x); }
constexpr var asinh(operand x) { return detail::unary<asinh_op>(x); }
constexpr var acosh(operand x) { return detail::unary<acosh_op>(x); }
constexpr var atanh(operand x) { return detail::unary<atanh_op>(x); }
constexpr var erf(operand x) { return detail::unary<erf_op>(x); }
constexpr var erfc(operand x) { return detail::unary<erfc_op>(x); }
constexpr var abs(operand x) {
  const var v = x.in(*x.owner());
  return is_complex(v.element()) ? detail::magnitude(x, v) : emit<abs_op>({}, x.at(), v);
}
constexpr var sign(operand x) { return detail::unary<sign_op>(x); }
constexpr var floor(operand x) { return detail::unary<floor_op>(x); }
constexpr var ceil(operand x) { return detail::unary<ceil_op>(x); }
constexpr var round(operand x) { return detail::unary<round_op>(x); }
constexpr var trunc(operand x) { return detail::unary<trunc_op>(x); }
constexpr var sigmoid(operand x) { return detail::unary<sigmoid_op>(x); }

constexpr var reciprocal(operand x) { return detail::binary<div_op>(1, x); }

struct pow_op : elementwise<pow_op>, transcendental {
  static constexpr std::string_view name = "pow";
  static constexpr std::string_view numpy = "np.power";
  static constexpr std::string_view torch = "torch.pow";
  static constexpr std::string_view formula = "y = a^b";
  static constexpr onnx_operator onnx{"Pow", 7};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x, auto y) {
    using std::pow;
    if constexpr (detail::is_whole<decltype(x)>)
      return detail::wrapping_power(x, y);
    else
      return pow(x, y);
  }
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes&) {
    const interval x = in[0], y = in[1];
    if (x.low > 0 || (x.low == 0 && y.low >= 0)) {
      const auto [low, high] = std::minmax(
          {apply(x.low, y.low), apply(x.low, y.high), apply(x.high, y.low), apply(x.high, y.high)});
      return {low, high};
    }
    // Of a base with either sign only powers by one whole number are told.
    if (y.low != y.high || y.low < 0 || std::fmod(y.low, 1) != 0) return {};
    const double low = apply(x.low, y.low), high = apply(x.high, y.low);
    if (std::fmod(y.low, 2) != 0) return {low, high};
    return {x.contains(0) && y.low > 0 ? 0 : std::min(low, high), std::max(low, high)};
  }
  static constexpr var partial(node_ref n, int i);
};
/// x^y; at x = 0 the derivative by y is taken to be 0.
constexpr var pow(operand x, operand y) { return detail::binary<pow_op>(x, y); }
constexpr var pow_op::partial(node_ref n, int i) {
  const var x = n.operand(0);
  const var y = n.operand(1);
  const node& exponent = n.b->g.nodes[std::size_t(y.id)];
  if (i == 0 && is<constant_op>(exponent)) {
    const double c = exponent.attributes.as<constant_op::options>().value;
    if (c == 0) return zero_partial;
    if (c == 1) return one_partial;
    return c == 2 ? 2 * x : c * pow(x, c - 1);
  }
  // Selects keep 0 * infinity out of both partials and of their own derivatives.
  if (i == 0) {
    const var none = equal(y, 0);
    return select(none, zeros_like(x), y * pow(x, select(none, ones_like(y), y) - 1));
  }
  const var zero = equal(x, 0);
  return select(zero, zeros_like(x), n.output() * log(select(zero, ones_like(x), x)));
}
struct atan2_op : elementwise<atan2_op>, transcendental {
  static constexpr std::string_view name = "atan2";
  static constexpr std::string_view numpy = "np.arctan2";
  static constexpr std::string_view torch = "torch.atan2";
  static constexpr std::string_view formula = "y = the angle of the point (b, a)";
  static constexpr auto apply(auto y, auto x) {
    using std::atan2;
    return atan2(y, x);
  }
  static constexpr interval bounds(span<const interval>, span<const tensor_type>,
                                   const attributes&) {
    return {-std::numbers::pi, std::numbers::pi};
  }
  static constexpr var partial(node_ref n, int i) {
    const var y = n.operand(0);
    const var x = n.operand(1);
    const var r = square(x) + square(y);
    return i == 0 ? x / r : -(y / r);
  }
};
/// Angle of the point (x, y).
constexpr var atan2(operand y, operand x) { return detail::binary<atan2_op>(y, x); }

/// Quotient rounded down. Derivative zero. Integers: 0 where the divisor is 0.
struct floor_div_op : elementwise<floor_div_op>, zero_derivative {
  static constexpr std::string_view name = "floor_div";
  static constexpr std::string_view numpy = "np.floor_divide";
  static constexpr std::string_view torch = "torch.floor_divide";
  static constexpr std::string_view formula = "y = floor(a / b)";
  static constexpr bool integral = true;
  static constexpr auto apply(auto x, auto y) {
    if constexpr (std::is_unsigned_v<decltype(x)>) {
      return div_op::apply(x, y);
    } else if constexpr (std::is_integral_v<decltype(x)>) {
      const auto q = div_op::apply(x, y);
      return y != 0 && (x < 0) != (y < 0) && mul_op::apply(q, y) != x ? q - 1 : q;
    } else {
      using std::floor;
      return floor(x / y);
    }
  }
  static interval bounds(span<const interval> in, span<const tensor_type> types,
                         const attributes&) {
    auto down = [](double x) { return std::floor(x); };
    if (!is_floating(types[0].element)) return detail::bounds_of_quotient(in[0], in[1], down);
    const interval quotient = in[0] / in[1];
    return {down(quotient.low), down(quotient.high)};
  }
};
constexpr var floor_div(operand x, operand y) { return detail::binary<floor_div_op>(x, y); }
/// Remainder with the sign of y (Python's %).
constexpr var mod(operand x, operand y) {
  return detail::binary<sub_op>(x, detail::binary<mul_op>(floor_div(x, y), y));
}
/// Remainder with the sign of x (C's fmod).
constexpr var fmod(operand x, operand y) {
  return detail::binary<sub_op>(x, detail::binary<mul_op>(trunc(detail::binary<div_op>(x, y)), y));
}
constexpr var squared_difference(operand x, operand y) {
  return square(detail::binary<sub_op>(x, y));
}
/// x + t (y - x)
constexpr var lerp(operand x, operand y, operand t) {
  return detail::binary<add_op>(x, detail::binary<mul_op>(detail::binary<sub_op>(y, x), t));
}

}  // namespace cella

#include <cella/ops/polar.hpp>
