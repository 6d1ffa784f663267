// Circular and hyperbolic functions, and their inverses.
#pragma once

#include <cella/ops/exponential.hpp>
#include <cmath>
#include <limits>

namespace cella {

constexpr var sin(operand x);
constexpr var cos(operand x);
constexpr var tan(operand x);
constexpr var asin(operand x);
constexpr var acos(operand x);
constexpr var atan(operand x);
constexpr var sinh(operand x);
constexpr var cosh(operand x);
constexpr var asinh(operand x);
constexpr var acosh(operand x);
constexpr var atanh(operand x);

namespace detail {

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
    return detail::with_more_digits(x, [](auto v) { return acosh(v); });
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

constexpr var sin(operand x) { return detail::unary<sin_op>(x); }
constexpr var cos(operand x) { return detail::unary<cos_op>(x); }
constexpr var tan(operand x) { return detail::unary<tan_op>(x); }
constexpr var asin(operand x) { return detail::unary<asin_op>(x); }
constexpr var acos(operand x) { return detail::unary<acos_op>(x); }
constexpr var atan(operand x) { return detail::unary<atan_op>(x); }
constexpr var sinh(operand x) { return detail::unary<sinh_op>(x); }
constexpr var cosh(operand x) { return detail::unary<cosh_op>(x); }
constexpr var asinh(operand x) { return detail::unary<asinh_op>(x); }
constexpr var acosh(operand x) { return detail::unary<acosh_op>(x); }
constexpr var atanh(operand x) { return detail::unary<atanh_op>(x); }

/// d/da = b / r, d/db = -a / r, where r = a^2 + b^2; and 0 at (0, 0), as in PyTorch.
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
    const var squares = square(x) + square(y);
    // Divided by infinity derivatives of any order are 0.
    const var r = select(equal(squares, 0), std::numeric_limits<double>::infinity(), squares);
    return i == 0 ? x / r : -(y / r);
  }
};
/// Angle of the point (x, y). The derivative at (0, 0) is taken to be 0.
constexpr var atan2(operand y, operand x) { return detail::binary<atan2_op>(y, x); }

}  // namespace cella
