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
  // One of them wholly, also where they are equal: halves of both would have no curvature there.
  const var larger = greater(x, y);
  const var top = select(larger, x, y);
  const var low = select(larger, y, x);
  // Of two infinities the difference is no number.
  const var apart = select(logical_and(equal(low, top), is_inf(top)), zeros_like(top), low - top);
  return top + log1p(exp(apart));
}
/// sqrt(x^2 + y^2) without overflow; infinite if one of them is. The derivative at (0, 0) is taken
/// to be 0.
constexpr var hypot(operand x, operand y) {
  const var larger = greater(abs(x), abs(y));
  // With their signs, whose square has a curvature at 0.
  const var top = select(larger, x, y), low = select(larger, y, x);
  const var part = low / select(equal(top, 0), 1, top);
  const var finite = abs(top) * sqrt(1 + square(part));
  return select(is_inf(x), abs(x), select(is_inf(y), abs(y), finite));
}
/// 2^x
constexpr var exp2(operand x) {
  const var v = x.in(*x.owner());
  return pow(full_like(v, 2), x);
}
/// The logarithm to the base 10.
constexpr var log10(operand x) { return log(x) * std::numbers::log10e; }
/// sin(pi x) / (pi x), and 1 at 0; with derivatives of any order there.
constexpr var sinc(operand x) {
  const var angle = x.in(*x.owner()) * std::numbers::pi;
  // Near 0 as Taylor's series: terms of the quotient's derivatives cancel there.
  const var near = abs(angle) < 1;
  const var squares = square(select(near, angle, 0));
  constexpr int terms = 10;  // the next is less than 2^-64
  var series = ones_like(angle);
  for (int k = terms - 1; k > 0; --k) series = 1 - squares * (1.0 / (2 * k * (2 * k + 1))) * series;
  const var far = select(near, 1, angle);
  return select(near, series, sin(far) / far);
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
