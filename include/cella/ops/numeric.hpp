// Further functions of elements, made of others: logarithms of sums, comparisons up to rounding,
// tests for NaN and infinities.
#pragma once

#include <cella/ops/functions.hpp>
#include <cella/ops/reduction.hpp>
#include <limits>
#include <numbers>

namespace cella {

/// Whether it is no number.
constexpr var is_nan(operand x) { return not_equal(x, x); }
/// Whether it is infinity of either sign.
constexpr var is_inf(operand x) { return equal(abs(x), std::numeric_limits<double>::infinity()); }
/// Whether it is neither NaN nor infinite.
constexpr var is_finite(operand x) { return less(abs(x), std::numeric_limits<double>::infinity()); }
/// x, but `nan` where it is NaN, and `largest` and minus `largest` where it is infinite.
constexpr var nan_to_num(operand x, double nan, double largest) {
  const var v = x.in(*x.owner());
  return select(is_nan(x), full_like(v, nan), clamp(x, -largest, largest));
}

/// |x - y| <= absolute + relative |y|, or both equal; NaN is close to nothing.
constexpr var is_close(operand x, operand y, double relative = 1e-5, double absolute = 1e-8) {
  const var same = equal(x, y);
  const var v = x.is_number() ? full_like(y, x.number()) : x.in(*same.b);
  const var w = y.is_number() ? full_like(v, y.number()) : y.in(*same.b);
  const var near = abs(v - w) <= abs(w) * relative + absolute;
  return logical_or(same, logical_and(is_finite(w), near));
}
/// Whether all elements are close.
constexpr var all_close(operand x, operand y, double relative = 1e-5, double absolute = 1e-8) {
  return all(is_close(x, y, relative, absolute));
}

/// ln(e^x + e^y) without overflow.
constexpr var logaddexp(operand x, operand y) {
  const var top = maximum(x, y);
  const var low = minimum(x, y);
  // Of two infinities the difference is no number.
  const var apart = select(equal(low, top), zeros_like(top), low - top);
  return top + log1p(exp(apart));
}
/// sqrt(x^2 + y^2) without overflow.
constexpr var hypot(operand x, operand y) {
  const var a = abs(x), c = abs(y);
  const var top = maximum(a, c), low = minimum(a, c);
  const var part = low / select(top > 0, top, 1);
  return select(equal(top, std::numeric_limits<double>::infinity()), top,
                top * sqrt(1 + square(part)));
}
/// 2^x
constexpr var exp2(operand x) {
  const var v = x.in(*x.owner());
  return pow(full_like(v, 2), x);
}
/// The logarithm to the base 10.
constexpr var log10(operand x) { return log(x) * std::numbers::log10e; }
/// sin(pi x) / (pi x), and 1 at 0.
constexpr var sinc(operand x) {
  const var angle = x.in(*x.owner()) * std::numbers::pi;
  const var safe = select(equal(angle, 0), ones_like(angle), angle);
  return select(equal(angle, 0), ones_like(angle), sin(safe) / safe);
}
/// x ln y, and 0 where x is 0.
constexpr var xlogy(operand x, operand y) {
  builder& b = owner_of(x, y);
  const var w = y.is_number() ? full_like(x.in(b), y.number()) : y.in(b);
  // Where x is 0 and y has no logarithm that of 1 is taken, so that the derivative is a number,
  // too.
  const var has_log = logical_and(w > 0, w < std::numeric_limits<double>::infinity());
  return detail::binary<mul_op>(x,
                                log(select(logical_and(equal(x, 0), logical_not(has_log)), 1, y)));
}
/// 0 where x is below 0, `middle` where it is 0, 1 where it is above.
constexpr var heaviside(operand x, double middle = 0.5) {
  const var v = x.in(*x.owner());
  return select(v > 0, ones_like(v), select(equal(v, 0), full_like(v, middle), zeros_like(v)));
}

}  // namespace cella
