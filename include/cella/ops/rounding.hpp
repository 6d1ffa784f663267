// Absolute value and sign, rounding, and division with a remainder.
#pragma once

#include <cella/ops/exponential.hpp>
#include <cella/ops/magnitude.hpp>
#include <cmath>

namespace cella {

constexpr var abs(operand x);
constexpr var sign(operand x);
constexpr var floor(operand x);
constexpr var ceil(operand x);
constexpr var round(operand x);
constexpr var trunc(operand x);

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
/// -1, 0 or 1; NaN of NaN.  Derivative zero.
struct sign_op : elementwise<sign_op>, keeps_zero, zero_derivative, nondecreasing {
  static constexpr std::string_view name = "sign";
  static constexpr std::string_view numpy = "np.sign";
  static constexpr std::string_view torch = "torch.sign";
  static constexpr std::string_view formula = "y = -1, 0 or 1";
  static constexpr onnx_operator onnx{"Sign", 9};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x) {
    return select(x > like(x, 0), like(x, 1), select(x < like(x, 0), like(x, -1), x + like(x, 0)));
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

constexpr var abs(operand x) {
  const var v = x.in(*x.owner());
  return is_complex(v.element()) ? emit<magnitude_op>({}, x.at(), v) : emit<abs_op>({}, x.at(), v);
}
constexpr var sign(operand x) { return detail::unary<sign_op>(x); }
constexpr var floor(operand x) { return detail::unary<floor_op>(x); }
constexpr var ceil(operand x) { return detail::unary<ceil_op>(x); }
constexpr var round(operand x) { return detail::unary<round_op>(x); }
constexpr var trunc(operand x) { return detail::unary<trunc_op>(x); }

/// Quotient rounded down: of the exact quotient, also where the nearest number is a larger integer
/// (1 / 0.1). Derivative zero. Integers: 0 where the divisor is 0.
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
      using T = decltype(x);
      const T quotient = x / y;
      if (!(y < 0) && !(y > 0)) return quotient;
      const T rest = std::fmod(x, y);
      const T q = (x - rest) / y - T(rest != 0 && (rest < 0) != (y < 0));
      const T down = std::floor(q);
      return q == 0 ? std::copysign(T(0), quotient) : down + T(q - down > T(0.5));
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

/// What is left of x when y is taken from it a whole number of times, with the sign of x: exact.
/// Integers: x where the divisor is 0.
struct fmod_op : elementwise<fmod_op> {
  static constexpr std::string_view name = "fmod";
  static constexpr std::string_view numpy = "np.fmod";
  static constexpr std::string_view torch = "torch.fmod";
  static constexpr std::string_view formula = "y = a - trunc(a / b) b";
  static constexpr bool integral = true;
  static constexpr auto apply(auto x, auto y) {
    if constexpr (std::is_integral_v<decltype(x)>)
      return sub_op::apply(x, mul_op::apply(div_op::apply(x, y), y));
    else
      return std::fmod(x, y);
  }
  /// No larger than either operand; of integers than the first, which is what 0 leaves.
  static interval bounds(span<const interval> in, span<const tensor_type> types,
                         const attributes&) {
    const auto size = [](const interval& x) { return std::max(std::abs(x.low), std::abs(x.high)); };
    const double most =
        is_floating(types[0].element) ? std::min(size(in[0]), size(in[1])) : size(in[0]);
    return {in[0].low < 0 ? -most : 0, in[0].high > 0 ? most : 0};
  }
  static constexpr var partial(node_ref n, int i) {
    return i == 0 ? ones_like(n.operand(0)) : -trunc(n.operand(0) / n.operand(1));
  }
};
/// Remainder with the sign of x (C's fmod), exact.
constexpr var fmod(operand x, operand y) { return detail::binary<fmod_op>(x, y); }
/// Remainder with the sign of y (Python's %).
constexpr var mod(operand x, operand y) {
  builder& b = owner_of(x, y);
  const auto is_whole = [&](operand v) { return v.is_number() || is_integer(v.in(b).element()); };
  if (is_whole(x) && is_whole(y))
    return detail::binary<sub_op>(x, detail::binary<mul_op>(floor_div(x, y), y));
  const var rest = fmod(x, y);
  const var divisor = y.is_number() ? full_like(rest, y.number()) : y.in(b);
  return select(sign(rest) * sign(divisor) < 0, rest + divisor, rest);
}

}  // namespace cella
