// Intervals, and their arithmetic: what bounds of tensors are made of.
#pragma once

#include <algorithm>
#include <cella/graph/dtype.hpp>
#include <cstdint>
#include <limits>

namespace cella {

/// Where the elements of a tensor lie: low <= x <= high; anywhere, if nothing is said. It holds at
/// least one number. Of NaN, and of what is computed from NaN, it says nothing. Bounds are those of
/// exact arithmetic: results that are rounded may lie beyond them by their rounding errors.
/// Moore, Interval Analysis, 1966
struct interval {
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  double low = -infinity;
  double high = infinity;

  constexpr bool contains(double x) const { return low <= x && x <= high; }
  /// The larger of |low| and |high|.
  constexpr double magnitude() const {
    return std::max(low < 0 ? -low : low, high < 0 ? -high : high);
  }

  friend constexpr bool operator==(const interval&, const interval&) = default;
};

/// The least interval with all of both.
constexpr interval hull(const interval& x, const interval& y) {
  return {std::min(x.low, y.low), std::max(x.high, y.high)};
}
/// What both have; `y` if there is nothing.
constexpr interval intersection(const interval& x, const interval& y) {
  const interval both{std::max(x.low, y.low), std::min(x.high, y.high)};
  return both.low <= both.high ? both : y;
}

constexpr interval operator-(const interval& x) { return {-x.high, -x.low}; }
constexpr interval operator+(const interval& x, const interval& y) {
  return {x.low + y.low, x.high + y.high};
}
constexpr interval operator-(const interval& x, const interval& y) { return x + -y; }
/// An end that is infinite stands for numbers of any size, so zero times it is zero.
constexpr interval operator*(const interval& x, const interval& y) {
  auto times = [](double a, double b) { return a == 0 || b == 0 ? 0 : a * b; };
  const auto [low, high] = std::minmax(
      {times(x.low, y.low), times(x.low, y.high), times(x.high, y.low), times(x.high, y.high)});
  return {low, high};
}
constexpr interval operator*(double x, const interval& y) { return interval{x, x} * y; }
/// Zeros have signs: a divisor that may be zero makes a quotient of any size.
constexpr interval operator/(const interval& x, const interval& y) {
  if (y.contains(0)) return {};
  return x * interval{1 / y.high, 1 / y.low};
}
/// Products of `n` numbers of an interval.
constexpr interval repeated_product(interval x, std::int64_t n) {
  interval y{1, 1};
  for (; n > 0; n /= 2) {
    if (n % 2) y = y * x;
    x = x * x;
  }
  return y;
}

/// The numbers that an element type can hold.
constexpr interval range_of(dtype t) {
  if (t == dtype::boolean) return {0, 1};
  if (!is_integer(t)) return {};
  // The largest integer of 64 bits has no double: its successor bounds it.
  const double beyond = beyond_integers(t);
  return {least_integer(t), beyond < 0x1p53 ? beyond - 1 : beyond};
}

/// The same numbers as elements of a type: beyond its largest ones floating-point numbers are
/// infinite, and integers may be any.
constexpr interval stored_as(interval x, dtype t) {
  if (x.low != x.low) x.low = -interval::infinity;
  if (x.high != x.high) x.high = interval::infinity;
  const interval range = range_of(t);
  if (x.low < range.low || x.high > range.high) return range;
  const double largest = t == dtype::f16    ? 65504
                         : t == dtype::bf16 ? 0x1.fep127
                         : t == dtype::f32  ? double(std::numeric_limits<float>::max())
                                            : std::numeric_limits<double>::max();
  if (x.low < -largest) x.low = -interval::infinity;
  if (x.high > largest) x.high = interval::infinity;
  return x;
}

}  // namespace cella
