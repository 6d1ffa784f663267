// What is told of many numbers: deviations, norms, medians and quantiles, histograms, counts.
#pragma once

#include <bit>
#include <cella/ops/indexing.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/sorting.hpp>
#include <limits>

namespace cella {

/// Square root of the variance; `correction` is taken from the count that the squares are divided
/// by (1: the unbiased estimate of a sample). Of equal elements the derivative is taken to be 0.
constexpr var standard_deviation(operand x, const axis_list& axes = {}, bool keep_dims = false,
                                 double correction = 0) {
  const var v = x.in(*x.owner());
  const var y = variance(detail::in_single(x, v.element()), axes, keep_dims);
  const double count = y.shape().size() ? double(v.shape().size()) / double(y.shape().size()) : 1.0;
  const var root =
      detail::root_of_squares(correction == 0 ? y : y * (count / (count - correction)));
  return detail::rounded({root, x.at()}, v.element());
}

/// (sum of |x|^order)^(1/order) over `axes` (none: all). Order infinity is the largest |x|, minus
/// infinity the least, 0 the count of those that are not 0. The derivative at 0 is taken to be 0.
constexpr var vector_norm(operand x, double order = 2, const axis_list& axes = {},
                          bool keep_dims = false) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const var v = x.in(*x.owner());
  if (order == 2) return l2_norm(x, axes, keep_dims);
  const operand size(abs(x), x.at());
  if (order == infinity) return max(size, axes, keep_dims);
  if (order == -infinity) return min(size, axes, keep_dims);
  if (order == 1) return sum(size, axes, keep_dims);
  if (order == 0)
    return sum({cast(not_equal(v, zeros_like(v)), v.element()), x.at()}, axes, keep_dims);
  // Of a power that is not smooth at 0 no derivative is taken there, nor of the root of no sum.
  const auto power = [](var base, double exponent) {
    const var none = equal(base, 0);
    return select(none, exponent < 0 ? infinity : 0, pow(select(none, 1, base), exponent));
  };
  const operand wide = detail::in_single(size, v.element());
  const var all =
      sum({order < 1 ? power(wide.in(*v.b), order) : pow(wide, order), x.at()}, axes, keep_dims);
  return detail::rounded({power(all, 1 / order), x.at()}, v.element());
}

/// How many elements are not 0, as i64.
constexpr var count_nonzero(operand x, const axis_list& axes = {}, bool keep_dims = false) {
  const var v = x.in(*x.owner());
  const var counts = not_equal(v, zeros_like(v));
  // Up to here numbers of the own type count exactly, which one loop does as it reads them.
  constexpr int exact_in_single = 1 << 24;
  const bool own = v.element() == dtype::f32 || v.element() == dtype::f64;
  if (own && v.shape().size() <= exact_in_single)
    return cast(sum({select(counts, ones_like(v), zeros_like(v)), x.at()}, axes, keep_dims),
                dtype::i64);
  return sum({cast(counts, dtype::i64), x.at()}, axes, keep_dims);
}

/// Differences of neighbours along an axis, which is one shorter.
constexpr var diff(operand x, int axis = -1) {
  const var v = x.in(*x.owner());
  const int a = detail::find_axis("diff", v, axis, x.at());
  if (a < 0) return v;
  if (v.extent(a) < 2) {
    v.b->fail(text() << x.at() << ": diff: axis " << axis << " of " << v.b->describe(v.id) << " "
                     << v.shape() << " has no two elements");
    return v;
  }
  return slice({v, x.at()}, a, 1, v.extent(a)) - slice({v, x.at()}, a, 0, v.extent(a) - 1);
}

/// The number below which the part `q` (0 to 1) of the elements along `axis` lies, linear between
/// two of them; NaN counts as the largest.  (NumPy's "linear", Hyndman and Fan's type 7)
constexpr var quantile(operand x, double q, int axis = -1, bool keep_dims = false) {
  const var v = x.in(*x.owner());
  const int a = detail::find_axis("quantile", v, axis, x.at());
  if (a < 0) return v;
  if (!is_floating(v.element()) || v.extent(a) < 1 || !(q >= 0 && q <= 1)) {
    v.b->fail(text() << x.at() << ": quantile: needs floating-point elements along the axis and a "
                     << "part from 0 to 1: " << v.b->describe(v.id) << " is " << v.type()
                     << ", the part " << q);
    return v;
  }
  const var ordered = sort(x, a);
  const double place = q * (v.extent(a) - 1);
  const int below = int(place);
  const auto at = [&](int i) {
    const var y = slice(ordered, a, i, i + 1);
    return keep_dims ? y : squeeze(y, a);
  };
  const double part = place - below;
  if (part == 0) return at(below);
  return at(below) * (1 - part) + at(below + 1) * part;
}
/// The middle one of the elements along `axis` in their order, or the mean of the middle two.
constexpr var median(operand x, int axis = -1, bool keep_dims = false) {
  return quantile(x, 0.5, axis, keep_dims);
}

/// How often each of 0 ... `length` - 1 occurs in integers of any shape, as i64; others are not
/// counted.
constexpr var bincount(operand x, int length) {
  builder& b = *x.owner();
  const var v = x.in(b);
  if (!detail::are_indices("bincount", v, x.at())) return v;
  const var flat = reshape(x, {v.shape().size()});
  return scatter(constant(b, 1, {dtype::i64, flat.shape()}), {flat, x.at()}, length);
}
/// The sums of the weights of those that have each value.
constexpr var bincount(operand x, int length, operand weights) {
  builder& b = owner_of(x, weights);
  const var v = x.in(b);
  const var w = weights.in(b);
  return scatter({reshape(weights, {w.shape().size()}), weights.at()},
                 {reshape(x, {v.shape().size()}), x.at()}, length);
}

/// For each x how many elements of the ascending vector `edges` it has in front of it: those that
/// are less, and with `right` those that are equal, too.
constexpr var searchsorted(operand edges, operand x, bool right = false) {
  builder& b = owner_of(edges, x);
  const var e = edges.in(b);
  const var v = x.in(b);
  if (e.rank() != 1 || v.rank() == max_rank) {
    b.fail(text() << edges.at() << ": searchsorted: the edges must be a vector, and what is "
                  << "searched have an axis to spare: " << b.describe(e.id) << " is " << e.shape()
                  << ", " << b.describe(v.id) << " is " << v.shape());
    return v;
  }
  const auto in_front = [&](var edge) { return right ? less_equal(edge, v) : less(edge, v); };
  const int n = e.extent(0);
  constexpr int few = 8;
  if (n <= few) {
    const var y = expand_dims(v, -1);
    return sum(cast(right ? less_equal(e, y) : less(e, y), dtype::i64), {-1});
  }
  // By halves: so many of the edges are known to be in front.
  var known = constant(b, 0, {dtype::i32, v.shape()});
  for (int step = int(std::bit_floor(unsigned(n))); step > 0; step /= 2) {
    const var next = known + step;
    const var edge = gather(edges, minimum(next, n) - 1);
    known = select(logical_and(in_front(edge), next <= n), next, known);
  }
  return cast(known, dtype::i64);
}

/// How many elements lie in each of `bins` parts of [low, high], as i64; the last part has its
/// upper end. Others are not counted.
constexpr var histogram(operand x, int bins, double low, double high) {
  builder& b = *x.owner();
  const var v = x.in(b);
  if (!is_floating(v.element()) || bins < 1 || !(low < high)) {
    b.fail(text() << x.at() << ": histogram: needs floating-point elements, a bin and an interval: "
                  << b.describe(v.id) << " is " << v.type() << ", " << bins << " bins from " << low
                  << " to " << high);
    return v;
  }
  const var flat = reshape(x, {v.shape().size()});
  const double width = (high - low) / bins;
  // Rounded twice, as NumPy's, and constants, so that no processor joins product and sum.
  list<double> edges;
  for (int k = 0; k <= bins; ++k) edges.push_back(k * width);
  for (double& e : edges) e += low;
  edges.back() = high;
  // A quarter less than the quotient, which rounding does not move over an edge: it is in this part
  // or in the one before, which the edge between them decides. What is outside goes behind the
  // last.
  const var inside = logical_and(flat >= low, flat <= high);
  var number = flat;
  if (size_of(v.element()) < size_of(dtype::f32)) number = cast(flat, dtype::f32);
  const var before = clamp(floor((number - low) / width - 0.25), 0, bins - 1);
  const var i = cast(select(inside, before, constant(b, bins, before.type())), dtype::i32);
  list<double> upper(edges.begin() + 1, edges.end());
  upper.back() = std::numeric_limits<double>::infinity();
  upper.push_back(upper.back());
  const var edge = gather(constant(x, upper, {bins + 1}, v.element()), i);
  return bincount({i + cast(flat >= edge, dtype::i32), x.at()}, bins);
}

}  // namespace cella
