// Activation functions. Most are compositions: their gradients and their fusion follow.
#pragma once

#include <cella/ops/exponential.hpp>
#include <cella/ops/rounding.hpp>

namespace cella {

/// dy where y > 0, else 0: the transpose of relu at the point where its result is y.
struct relu_gradient_op : elementwise<relu_gradient_op>, zero_derivative, foldable, keeps_zero {
  static constexpr std::string_view name = "relu_gradient";
  static constexpr std::string_view formula = "dx = dy where y > 0, else 0";
  static constexpr op_kind kind = op_kind::linear;
  static constexpr unsigned linear_in = 1;
  static constexpr unsigned zero_where = 0b11;
  static constexpr auto apply(auto dy, auto y) { return select(y > like(y, 0), dy, like(dy, 0)); }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type>,
                                   const attributes&) {
    return hull(in[0], {0, 0});
  }
  static constexpr var transpose(node_ref n, int, var dy) {
    return emit<relu_gradient_op>({}, std::source_location::current(), dy, n.operand(1));
  }
};

/// max(x, 0); the derivative at 0 is 0. It selects rather than multiplies, so that an infinite
/// cotangent does not become NaN.
struct relu_op : elementwise<relu_op>, keeps_zero, foldable, monotone {
  static constexpr std::string_view name = "relu";
  static constexpr std::string_view torch = "torch.relu";
  static constexpr std::string_view formula = "y = max(x, 0)";
  static constexpr onnx_operator onnx{"Relu", 6};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x) { return select(x < like(x, 0), like(x, 0), x); }
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    dx[0] = emit<relu_gradient_op>({}, std::source_location::current(), dy[0], n.output());
  }
};
constexpr var relu(operand x) { return detail::unary<relu_op>(x); }

/// log(1 + e^x), without overflow. d/dx = sigmoid(x)
struct softplus_op : elementwise<softplus_op>, transcendental, monotone {
  static constexpr std::string_view name = "softplus";
  static constexpr std::string_view torch = "F.softplus";
  static constexpr std::string_view formula = "y = ln(1 + e^x)";
  static constexpr onnx_operator onnx{"Softplus", 1};
  static constexpr auto apply(auto x) {
    using std::abs;
    using std::exp;
    using std::log1p;
    return select(x < like(x, 0), like(x, 0), x) + log1p(exp(-abs(x)));
  }
  static constexpr var partial(node_ref n, int) { return sigmoid(n.operand(0)); }
};
constexpr var softplus(operand x) { return detail::unary<softplus_op>(x); }
/// log(1 / (1 + e^-x))
constexpr var log_sigmoid(operand x) { return -softplus(-x.in(*x.owner())); }

/// min(max(x, 0), 6), with derivative 0 at both bounds as in PyTorch.
constexpr var relu6(operand x) {
  const var v = x.in(*x.owner());
  return select(v >= 6, 6, relu(v));
}

/// x for x > 0, else slope * x.
constexpr var leaky_relu(operand x, double slope = 0.01) {
  const var v = x.in(*x.owner());
  return select({v > operand(0, x.at())}, v, v * operand(slope, x.at()));
}
/// x for x > 0, else slope * x with a learned slope that broadcasts against x.
constexpr var prelu(operand x, operand slope) {
  const var v = x.in(*x.owner());
  return select(v > 0, v, v * slope);
}
/// x for x > 0, else alpha (e^x - 1).  Clevert et al. 2016
constexpr var elu(operand x, double alpha = 1) {
  const var v = x.in(*x.owner());
  const var positive = v > 0;
  // The exponential sees 0 where x is positive: it must not overflow, nor make the derivative NaN.
  return select(positive, v, alpha * expm1(select(positive, zeros_like(v), v)));
}
/// Klambauer et al. 2017
constexpr var selu(operand x) {
  return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717);
}
/// x / (1 + |x|)
constexpr var softsign(operand x) {
  const var v = x.in(*x.owner());
  return v / (1 + abs(v));
}
/// x sigmoid(x), also called swish.
constexpr var silu(operand x) {
  const var v = x.in(*x.owner());
  return v * sigmoid(v);
}
/// x tanh(softplus(x)).  Misra 2019
constexpr var mish(operand x) {
  const var v = x.in(*x.owner());
  return v * tanh(softplus(v));
}
namespace detail {
/// Behind it the density of the normal distribution is 0 in all element types.
constexpr double normal_bound = 40;
constexpr double normal_density_at_0 = 0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2;
/// Phi(x), the distribution function of the normal distribution.
constexpr auto normal_distribution(auto x) {
  using std::erfc;
  return like(x, 0.5) * erfc(x * like(x, -1 / std::numbers::sqrt2));
}
}  // namespace detail

/// The derivative of `gelu`: Phi(x) + x phi(x).
struct gelu_slope_op : elementwise<gelu_slope_op>, transcendental {
  static constexpr std::string_view name = "gelu_slope";
  static constexpr std::string_view formula = "the derivative of gelu";
  static constexpr auto apply(auto x) {
    using std::exp;
    const auto most = like(x, detail::normal_bound);
    const auto low = select(x < -most, -most, x), v = select(low > most, most, low);
    const auto density = like(v, detail::normal_density_at_0) * exp(like(v, -0.5) * v * v);
    return detail::normal_distribution(v) + v * density;
  }
  static constexpr interval bounds(span<const interval>, span<const tensor_type>,
                                   const attributes&) {
    return {-0.1291, 1.1291};
  }
  /// phi(x) (2 - x^2)
  static constexpr var partial(node_ref n, int) {
    const var square_of = square(clamp(n.operand(0), -detail::normal_bound, detail::normal_bound));
    return detail::normal_density_at_0 * exp(-0.5 * square_of) * (2 - square_of);
  }
};
/// x Phi(x), exact.  Hendrycks and Gimpel 2016
struct gelu_op : elementwise<gelu_op>, transcendental, keeps_zero {
  static constexpr std::string_view name = "gelu";
  static constexpr std::string_view torch = "F.gelu";
  static constexpr std::string_view formula = "y = x (1 + erf(x / sqrt(2))) / 2";
  static constexpr auto apply(auto x) {
    const auto least = like(x, -detail::normal_bound), v = select(x < least, least, x);
    return v * detail::normal_distribution(v);
  }
  /// Its least value is -0.16997, at -0.7518.
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes&) {
    return {in[0].low >= 0 ? apply(in[0].low) : -0.17, std::max(in[0].high, 0.0)};
  }
  static constexpr var partial(node_ref n, int) {
    return detail::unary<gelu_slope_op>(n.operand(0));
  }
};
/// x Phi(x), exact: Phi is the distribution function of the normal distribution.
constexpr var gelu(operand x) { return detail::unary<gelu_op>(x); }

namespace detail {
/// The tanh approximation of gelu is x sigmoid(w), w = 2 sqrt(2 / pi) (x + 0.044715 x^3): here half
/// of w.
constexpr double gelu_cubic = 0.044715;
constexpr double gelu_factor = std::numbers::inv_sqrtpi * std::numbers::sqrt2;
constexpr auto gelu_argument(auto x) {
  return like(x, gelu_factor) * (x + like(x, gelu_cubic) * x * x * x);
}
/// Behind it the gate is 0 or 1 in all element types, while x may be infinite.
constexpr double gelu_bound = 22;
}  // namespace detail

/// The derivative of `gelu_tanh`: s + x s (1 - s) w' with s = sigmoid(w).
struct gelu_tanh_slope_op : elementwise<gelu_tanh_slope_op>, transcendental {
  static constexpr std::string_view name = "gelu_tanh_slope";
  static constexpr std::string_view formula = "the derivative of gelu_tanh";
  static constexpr auto apply(auto x) {
    // Of |x|: those of x and -x make 1. So no power is infinite.
    using std::abs;
    using std::exp;
    const auto most = like(x, detail::gelu_bound), one = like(x, 1), size = abs(x);
    const auto v = select(size > most, most, size);
    const auto power = exp(like(x, -2) * detail::gelu_argument(v));
    const auto gate = one / (one + power);
    const auto slope =
        like(x, 2 * detail::gelu_factor) * (one + like(x, 3 * detail::gelu_cubic) * v * v);
    const auto y = gate + gate * (power * gate) * v * slope;
    return select(x < like(x, 0), one - y, y);
  }
  static constexpr interval bounds(span<const interval>, span<const tensor_type>,
                                   const attributes&) {
    return {-0.1291, 1.1291};
  }
  /// s (1 - s) (2 w' + x w'' + x w'^2 (1 - 2 s))
  static constexpr var partial(node_ref n, int) {
    using detail::gelu_cubic, detail::gelu_factor;
    const var x = clamp(n.operand(0), -detail::gelu_bound, detail::gelu_bound);
    const var s = sigmoid(2 * gelu_factor * (x + gelu_cubic * x * square(x)));
    const var first = 2 * gelu_factor * (1 + 3 * gelu_cubic * square(x));
    const var second = 12 * gelu_factor * gelu_cubic * x;
    return s * (1 - s) * (2 * first + x * second + x * square(first) * (1 - 2 * s));
  }
};
/// x (1 + tanh(...)) / 2, which one kernel computes without storing what is between.
struct gelu_tanh_op : elementwise<gelu_tanh_op>, transcendental, keeps_zero {
  static constexpr std::string_view name = "gelu_tanh";
  static constexpr std::string_view torch = "F.gelu(approximate=\"tanh\")";
  static constexpr std::string_view formula =
      "y = x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2";
  static constexpr auto apply(auto x) {
    using std::exp;
    const auto least = like(x, -detail::gelu_bound), one = like(x, 1);
    const auto v = select(x < least, least, x);
    return v * (one / (one + exp(like(x, -2) * detail::gelu_argument(v))));
  }
  /// Its least value is -0.17004, at -0.7525.
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes&) {
    return {in[0].low >= 0 ? apply(in[0].low) : -0.1701, std::max(in[0].high, 0.0)};
  }
  static constexpr var partial(node_ref n, int) {
    return detail::unary<gelu_tanh_slope_op>(n.operand(0));
  }
};
/// The tanh approximation of gelu.
constexpr var gelu_tanh(operand x) { return detail::unary<gelu_tanh_op>(x); }
/// min(max(x + 3, 0), 6) / 6
constexpr var hard_sigmoid(operand x) { return relu6(x.in(*x.owner()) + 3) * (1.0 / 6); }
/// x min(max(x + 3, 0), 6) / 6
constexpr var hard_swish(operand x) {
  const var v = x.in(*x.owner());
  return v * hard_sigmoid(v);
}

}  // namespace cella
