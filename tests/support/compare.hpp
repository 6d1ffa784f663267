// Comparison of computed values with expected ones, for all tests.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <limits>
#include <ranges>
#include <source_location>
#include <sstream>
#include <string>

namespace cella::test {

/// |actual - expected| / max(|expected|, 1): relative for large values, absolute near zero, where
/// cancellation makes a purely relative error meaningless. Equal infinities, and two NaNs, differ
/// by 0; any other pair with one of them by infinity.
inline double relative_error(double actual, double expected) {
  if (actual == expected || (std::isnan(actual) && std::isnan(expected))) return 0;
  if (!std::isfinite(actual) || !std::isfinite(expected)) {
    return std::numeric_limits<double>::infinity();
  }
  return std::abs(actual - expected) / std::max(std::abs(expected), 1.0);
}

/// Elements that can be compared as doubles: numbers, float16, bfloat16.
template <class R>
concept number_range = std::ranges::random_access_range<const R> &&
    std::ranges::sized_range<const R> && requires(const R& r) {
  static_cast<double>(r[0]);
};

/// The greatest `relative_error` over two sequences; infinity if their lengths differ.
template <number_range A, number_range B>
double max_relative_error(const A& actual, const B& expected) {
  if (std::ranges::size(actual) != std::ranges::size(expected)) {
    return std::numeric_limits<double>::infinity();
  }
  double worst = 0;
  for (std::size_t i = 0; i < std::ranges::size(actual); ++i) {
    worst = std::max(
        worst, relative_error(static_cast<double>(actual[i]), static_cast<double>(expected[i])));
  }
  return worst;
}

/// Why the values are not close, with the worst index and both values; empty if they are.
template <number_range A, number_range B>
std::string difference(const A& actual, const B& expected, double tolerance) {
  std::ostringstream out;
  out.precision(17);
  const std::size_t n = std::ranges::size(actual);
  if (n != std::ranges::size(expected)) {
    out << n << " values computed, " << std::ranges::size(expected) << " expected";
    return out.str();
  }
  double error = 0;
  std::size_t worst = 0, wrong = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const double e =
        relative_error(static_cast<double>(actual[i]), static_cast<double>(expected[i]));
    // Written so that a NaN tolerance fails.
    if (!(e <= tolerance)) ++wrong;
    if (e > error) error = e, worst = i;
  }
  if (wrong == 0) return {};
  out << wrong << " of " << n << " values differ, worst at [" << worst
      << "]: " << static_cast<double>(actual[worst]) << " computed, "
      << static_cast<double>(expected[worst]) << " expected, error " << error << " > " << tolerance;
  return out.str();
}

/// A doctest check that every value is within `tolerance` (see `relative_error`); a failure names
/// the worst index and both values, and the line of the caller.
template <number_range A, number_range B>
void check_close(const A& actual, const B& expected, double tolerance,
                 std::source_location at = std::source_location::current()) {
  const std::string fault = difference(actual, expected, tolerance);
  if (fault.empty()) {
    CHECK(fault.empty());  // counts as an assertion
  } else {
    ADD_FAIL_CHECK_AT(at.file_name(), static_cast<int>(at.line()), fault);
  }
}

/// The largest difference of two lists, relative to the largest element that is expected: the norm
/// of a tensor tells what its sums may have lost, single elements that cancelled do not. Infinite
/// where one is not finite and the other differs. `least` stands for the norm where that is smaller:
/// a tensor may be zero, but for what sums of larger numbers leave.
inline double relative_difference(std::span<const double> found, std::span<const double> expected,
                                  double least = 0) {
  double most = least, apart = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const bool same = found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i]));
    if (same && !std::isfinite(expected[i])) continue;
    most = std::max(most, std::abs(expected[i]));
    if (same) continue;
    const double d = std::abs(found[i] - expected[i]);
    apart = std::isfinite(d) ? std::max(apart, d) : std::numeric_limits<double>::infinity();
  }
  return apart == 0 ? 0 : most == 0 ? std::numeric_limits<double>::infinity() : apart / most;
}

}  // namespace cella::test
