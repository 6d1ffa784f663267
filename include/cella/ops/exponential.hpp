// Powers, roots, exponentials, logarithms, and what is made of them.
#pragma once

#include <cella/ops/elementwise.hpp>
#include <cmath>
#include <numbers>

namespace cella {

constexpr var square(operand x);
constexpr var sqrt(operand x);
constexpr var rsqrt(operand x);
constexpr var exp(operand x);
constexpr var expm1(operand x);
constexpr var log(operand x);
constexpr var log1p(operand x);
constexpr var log2(operand x);
constexpr var sigmoid(operand x);
constexpr var tanh(operand x);
constexpr var erf(operand x);
constexpr var erfc(operand x);

namespace detail {

/// f(x), computed with more digits than a floating-point number x has: for functions that a
/// standard library does not make right to two units in the last place. Others are given to f as
/// they are.
constexpr auto with_more_digits(auto x, auto f) {
  using number = decltype(x);
  if constexpr (std::is_same_v<number, float>)
    return static_cast<float>(f(static_cast<double>(x)));
  else if constexpr (std::is_same_v<number, double>)
    return static_cast<double>(f(static_cast<long double>(x)));
  else
    return f(x);
}
/// x, or 0 if x is a denormal number and the processor is told to take such for 0: standard
/// libraries take logarithms of their bits and are lost then.
constexpr auto as_computed_with(auto x) {
  if constexpr (std::is_floating_point_v<decltype(x)>)
    return x + like(x, 0);
  else
    return x;
}

/// Of a function that falls until `bottom` and rises behind it.
template <class Op>
constexpr interval bounds_of_valley(const interval& x, double bottom) {
  const double low = Op::apply(x.low), high = Op::apply(x.high);
  return {x.contains(bottom) ? Op::apply(bottom) : std::min(low, high), std::max(low, high)};
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
    return log(detail::as_computed_with(x));
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
    return log2(detail::as_computed_with(x));
  }
  static constexpr var partial(node_ref n, int) { return (1 / std::numbers::ln2) / n.operand(0); }
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
    return detail::with_more_digits(x, [](auto v) { return like(v, 1) / (like(v, 1) + exp(-v)); });
  }
  static constexpr var partial(node_ref n, int) { return n.output() - square(n.output()); }
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
    return detail::with_more_digits(x, [](auto v) { return tanh(v); });
  }
  static constexpr var partial(node_ref n, int) { return 1 - square(n.output()); }
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
    return detail::with_more_digits(x, [](auto v) { return erfc(v); });
  }
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes&) {
    return {apply(in[0].high), apply(in[0].low)};
  }
  static constexpr var partial(node_ref n, int) {
    return -2 * std::numbers::inv_sqrtpi * exp(-square(n.operand(0)));
  }
};

constexpr var square(operand x) { return detail::unary<square_op>(x); }
constexpr var sqrt(operand x) { return detail::unary<sqrt_op>(x); }
constexpr var rsqrt(operand x) { return detail::unary<rsqrt_op>(x); }
constexpr var exp(operand x) { return detail::unary<exp_op>(x); }
constexpr var expm1(operand x) { return detail::unary<expm1_op>(x); }
constexpr var log(operand x) { return detail::unary<log_op>(x); }
constexpr var log1p(operand x) { return detail::unary<log1p_op>(x); }
constexpr var log2(operand x) { return detail::unary<log2_op>(x); }
constexpr var sigmoid(operand x) { return detail::unary<sigmoid_op>(x); }
constexpr var tanh(operand x) { return detail::unary<tanh_op>(x); }
constexpr var erf(operand x) { return detail::unary<erf_op>(x); }
constexpr var erfc(operand x) { return detail::unary<erfc_op>(x); }

/// (x - y)^2
constexpr var squared_difference(operand x, operand y) {
  return square(detail::binary<sub_op>(x, y));
}

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
  static interval bounds(span<const interval> in, span<const tensor_type> types,
                         const attributes&) {
    const interval y = bounds_of_power(in[0], in[1]);
    return is_integer(types[0].element) ? interval{std::trunc(y.low), std::trunc(y.high)} : y;
  }
  static interval bounds_of_power(const interval& x, const interval& y) {
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

}  // namespace cella
