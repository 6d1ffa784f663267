// Special functions: the logarithm of the gamma function and its derivatives, Bessel functions, the
// inverse of the error function.
#pragma once

#include <cella/ops/batching.hpp>
#include <cella/ops/functions.hpp>
#include <cmath>
#include <numbers>

namespace cella {

constexpr var lgamma(operand x);
constexpr var polygamma(int order, operand x);
constexpr var erfinv(operand x);
namespace detail {
constexpr var bessel_ie(int order, operand x);

/// Base of functions of one number that have no vector form: `Op::of(options, x)` in double.
template <class Op>
struct special : opaque<Op>, element_by_element, keeps_options, computed_in_single {
  static constexpr compute_class computes = compute_class::pointwise;
  static constexpr int operations_per_point = 40;
  static constexpr int operands = 1;
  static bool fits(const op_application& a) { return is_floating(a.in[0].element); }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    for (std::int64_t i = 0; i < out[0].type.size(); ++i)
      write_element(out[0], i, Op::of(o, read_element(in[0], i)));
  }
};

/// Base of those that have an order, of which there is one function each.
template <class Op>
struct special_of_order : special<Op> {
  struct options {
    std::int32_t order{};
  };
  static constexpr int most_order = 100;
  static bool fits(const op_application& a) {
    const int n = a.as<options>().order;
    return n >= 0 && n <= most_order && special<Op>::fits(a);
  }
};

/// psi^(n)(x) for n >= 0: recurrence to where the asymptotic series converges, and reflection where
/// n = 0.  Source: Abramowitz and Stegun 1964, 6.4.6 and 6.4.11 (6.3.5, 6.3.7 and 6.3.18 for n = 0)
inline double polygamma_of(int n, double x) {
  constexpr double bernoulli[] = {1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,    5.0 / 66,
                                  -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798};
  if (x <= 0 && x == std::floor(x))
    return n % 2 ? std::numeric_limits<double>::infinity()
                 : std::numeric_limits<double>::quiet_NaN();
  if (n == 0 && x < 0)
    return polygamma_of(0, 1 - x) - std::numbers::pi / std::tan(std::numbers::pi * x);
  // Of other orders the recurrence alone climbs out of the negative numbers.
  if (x < -1e6) return std::numeric_limits<double>::quiet_NaN();
  double factorial = 1;  // (n - 1)!, of n = 0 as well
  for (int k = 2; k < n; ++k) factorial *= k;
  const double whole = n == 0 ? 1 : factorial * n;  // n!
  double below = 0;
  const double far = 12 + n;
  while (x < far) {
    below += std::pow(x, -(n + 1));
    x += 1;
  }
  double series = n == 0 ? -std::log(x) : factorial * std::pow(x, -n);
  series += whole / (2 * std::pow(x, n + 1));
  double rising = whole * (n + 1) / 2;  // (2k + n - 1)! / (2k)!
  for (int k = 1; k <= int(std::size(bernoulli)); ++k) {
    series += bernoulli[k - 1] * rising * std::pow(x, -(2 * k + n));
    rising *= double(2 * k + n) * (2 * k + n + 1) / (double(2 * k + 1) * (2 * k + 2));
  }
  const double value = series + whole * below;
  return n % 2 ? value : -value;
}

/// e^-|x| I_n(x) for n >= 0: the power series, whose terms have one sign, or far out the asymptotic
/// one.  Source: Abramowitz and Stegun 1964, 9.6.10 and 9.7.1
inline double bessel_ie_of(int n, double x) {
  if (x < 0) return n % 2 ? -bessel_ie_of(n, -x) : bessel_ie_of(n, -x);
  if (x > 30 + n * n) {
    double term = 1, sum = 1;
    for (int k = 1; k < 200; ++k) {
      const double next = term * (double(2 * k - 1) * (2 * k - 1) - 4.0 * n * n) / (8 * k * x);
      if (std::abs(next) < 1e-17 * std::abs(sum) || std::abs(next) > std::abs(term)) break;
      sum += term = next;
    }
    return sum / std::sqrt(2 * std::numbers::pi * x);
  }
  double term = std::exp(-x);
  for (int k = 1; k <= n; ++k) term *= x / 2 / k;
  double sum = term;
  for (int k = 1; term > 1e-18 * sum; ++k) sum += term *= x * x / 4 / (double(k) * (k + n));
  return sum;
}

}  // namespace detail

/// ln |gamma(x)|.  d/dx = digamma(x)
struct lgamma_op : detail::special<lgamma_op> {
  static constexpr std::string_view name = "lgamma";
  static constexpr std::string_view numpy = "scipy.special.gammaln";
  static constexpr std::string_view torch = "torch.lgamma";
  static constexpr std::string_view formula = "y = ln |gamma(x)|";
  static double of(const attributes&, double x) {
    int sign = 0;
    return ::lgamma_r(x, &sign);
  }
  /// Of positive numbers: it falls until the zero of digamma, and rises behind it.
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes& o) {
    constexpr double bottom = 1.4616321449683623;
    if (!(in[0].low > 0)) return {};
    const double low = of(o, in[0].low), high = of(o, in[0].high);
    return {in[0].contains(bottom) ? of(o, bottom) : std::min(low, high), std::max(low, high)};
  }
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    dx[0] = dy[0] * polygamma(0, n.operand(0));
  }
};
/// The derivatives of ln gamma(x), from the first (order 0) on.  d/dx = that of the next order
struct polygamma_op : detail::special_of_order<polygamma_op> {
  static constexpr std::string_view name = "polygamma";
  static constexpr std::string_view numpy = "scipy.special.polygamma";
  static constexpr std::string_view torch = "torch.polygamma";
  static constexpr std::string_view formula = "y = the derivative of order n + 1 of ln gamma(x)";
  static double of(const attributes& o, double x) {
    return detail::polygamma_of(o.as<options>().order, x);
  }
  /// Each is monotone on the positive numbers.
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes& o) {
    if (!(in[0].low > 0)) return {};
    const double first = of(o, in[0].low), last = of(o, in[0].high);
    return {std::min(first, last), std::max(first, last)};
  }
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    dx[0] = dy[0] * polygamma(n.as<options>().order + 1, n.operand(0));
  }
};
/// e^-|x| I_n(x), of the modified Bessel function of the first kind.
struct bessel_ie_op : detail::special_of_order<bessel_ie_op> {
  static constexpr std::string_view name = "bessel_ie";
  static constexpr std::string_view numpy = "scipy.special.ive";
  static constexpr std::string_view torch = "torch.special.i0e";
  static constexpr std::string_view formula = "y = e^-|x| I_n(x)";
  static double of(const attributes& o, double x) {
    return detail::bessel_ie_of(o.as<options>().order, x);
  }
  static constexpr interval bounds(span<const interval>, span<const tensor_type>,
                                   const attributes&) {
    return {-1, 1};
  }
  /// I_n' = (I_(n-1) + I_(n+1)) / 2 and I_-1 = I_1
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    const var x = n.operand(0);
    const int order = n.as<options>().order;
    const var slope =
        (detail::bessel_ie(order ? order - 1 : 1, x) + detail::bessel_ie(order + 1, x)) * 0.5;
    dx[0] = dy[0] * (slope - sign(x) * n.output());
  }
};

/// The x whose erf is y: for y of size 1 infinite, above NaN.
struct erfinv_op : detail::special<erfinv_op>, nondecreasing, keeps_zero {
  static constexpr std::string_view name = "erfinv";
  static constexpr std::string_view numpy = "scipy.special.erfinv";
  static constexpr std::string_view torch = "torch.erfinv";
  static constexpr std::string_view formula = "erf y = x";
  /// A first guess (Winitzki 2008), and steps of Halley's method on what is not rounded: erfc
  /// near 1.
  static double of(const attributes&, double x) {
    const double size = std::abs(x);
    if (!(size < 1)) return size == 1 ? x * std::numeric_limits<double>::infinity() : std::nan("");
    const double w = std::log1p(-x * x), p = 2 / (std::numbers::pi * 0.147) + w / 2;
    double y = std::sqrt(std::sqrt(p * p - w / 0.147) - p);
    for (int step = 0; step < 3; ++step) {
      const double off = size < 0.5 ? std::erf(y) - size : (1 - size) - std::erfc(y);
      const double slope = 2 * std::numbers::inv_sqrtpi * std::exp(-y * y);
      y -= off / (slope + y * off);
    }
    return std::copysign(y, x);
  }
  static interval bounds(span<const interval> in, span<const tensor_type>, const attributes& o) {
    if (!(in[0].low >= -1 && in[0].high <= 1)) return {};
    return {of(o, in[0].low), of(o, in[0].high)};
  }
  /// dy/dx = sqrt(pi) / 2 e^(y^2)
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    dx[0] = dy[0] * exp(square(n.output())) * (0.5 / std::numbers::inv_sqrtpi);
  }
};

// ---- public functions

namespace detail {
template <class Op>
constexpr var special_function(operand x, int order = 0) {
  const var v = x.in(*x.owner());
  if (!is_floating(v.element())) {
    v.b->fail(text() << x.at() << ": " << Op::name << ": " << v.b->describe(v.id) << " is "
                     << v.type() << "; convert it to floating point with cast()");
    return v;
  }
  if constexpr (requires { Op::most_order; }) {
    if (order >= 0 && order <= Op::most_order)
      return emit<Op>(typename Op::options{order}, x.at(), v);
    v.b->fail(text() << x.at() << ": " << Op::name << ": the order " << order
                     << " does not lie from 0 to " << Op::most_order);
    return v;
  } else {
    return emit<Op>({}, x.at(), v);
  }
}
constexpr var bessel_ie(int order, operand x) { return special_function<bessel_ie_op>(x, order); }
}  // namespace detail

/// ln |gamma(x)|; infinite at 0, -1, -2, ...
constexpr var lgamma(operand x) { return detail::special_function<lgamma_op>(x); }
/// The inverse of erf.
constexpr var erfinv(operand x) { return detail::special_function<erfinv_op>(x); }
/// The derivative of order n + 1 of ln gamma(x): digamma, trigamma, ... Orders above 0 are NaN
/// below -10^6.
constexpr var polygamma(int order, operand x) {
  return detail::special_function<polygamma_op>(x, order);
}
/// The derivative of ln gamma(x); NaN at 0, -1, -2, ...
constexpr var digamma(operand x) { return polygamma(0, x); }
/// e^-|x| I_0(x), I_0 being the modified Bessel function of the first kind.
constexpr var i0e(operand x) { return detail::bessel_ie(0, x); }
/// e^-|x| I_1(x)
constexpr var i1e(operand x) { return detail::bessel_ie(1, x); }
/// ln of the beta function: ln gamma(a) + ln gamma(b) - ln gamma(a + b)
constexpr var lbeta(operand a, operand b) {
  const var sum = detail::binary<add_op>(a, b);
  return lgamma({a.in(*sum.b), a.at()}) + lgamma({b.in(*sum.b), b.at()}) - lgamma(sum);
}

}  // namespace cella
