// Random numbers of many distributions, from the program's random state: each is a function of
// (seed, step), of its draw's own stream number and of its place, on all tiers and any number of
// threads.
#pragma once

#include <cella/ops/indexing.hpp>
#include <cella/ops/random.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/special.hpp>
#include <numbers>

namespace cella {

namespace detail {

/// Base of draws that take more than one uniform number: `Op::draw(random, parameter)` for each
/// element of operand 1, from a generator of its own.
template <class Op>
struct drawn_by_element : opaque<Op> {
  static constexpr compute_class computes = compute_class::random;
  using options = stream_options;
  static constexpr int operands = 2;
  static bool fits(const op_application& a) {
    return takes_key(a) && a.rank() == 1 && is_floating(a.in[1].element);
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[1];
  }
  /// Each element reads the key and its own parameter.
  static constexpr iteration_space space(span<const tensor_type> in, const attributes&) {
    iteration_space s(2);
    s.add(in[1].shape);
    for (int t : {1, 2}) s.along_all(t, 0, in[1].rank());
    return s;
  }
  static constexpr interval bounds(span<const interval>, span<const tensor_type>,
                                   const attributes&) {
    return {0, interval::infinity};
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const auto* state = reinterpret_cast<const std::uint64_t*>(in[0].data);
    const std::uint64_t key = random_uniform_op::key_of(state, o.as<options>().stream);
    for (std::int64_t i = 0; i < out[0].type.size(); ++i) {
      generator random(key, std::uint64_t(i));
      write_element(out[0], i, Op::draw(random, read_element(in[1], i)));
    }
  }
};

/// Appends a draw with a stream of its own.
template <class Op>
constexpr var drawn(operand parameter) {
  builder& b = *parameter.owner();
  const var v = parameter.in(b);
  if (!is_floating(v.element())) {
    b.fail(text() << parameter.at() << ": " << Op::name << ": " << b.describe(v.id) << " is "
                  << v.type() << "; convert it to floating point with cast()");
    return v;
  }
  const typename Op::options o{b.bodies.next_random_stream()};
  return {&b, b.emit(bound<Op>(), {random_key(b), v.id}, o, parameter.at())};
}

}  // namespace detail

namespace detail {
/// d/d alpha of the part of the gamma distribution that lies below x, divided by its density there:
/// by the power series of the former, whose terms' logarithms have the derivatives ln x - psi(alpha
/// + k
/// + 1); of large alpha by Wilson's and Hilferty's normal approximation.
inline double gamma_slope_of(double alpha, double x) {
  if (!(alpha > 0) || !(x > 0)) return alpha > 0 && x == 0 ? 0 : std::nan("");
  if (alpha > 1e4) {
    const double root = std::sqrt(alpha), y = std::cbrt(x / alpha);
    const double z = (y - 1 + 1 / (9 * alpha)) * 3 * root;
    return y * y * y + 3 * alpha * y * y * (1 / (9 * alpha * alpha) - z / (6 * alpha * root));
  }
  // Terms over the density: x / alpha, each the one before times x / (alpha + k).
  double term = x / alpha, sum = 0, psi = polygamma_of(0, alpha + 1);
  const double log_x = std::log(x);
  for (int k = 1; k < 100'000; ++k) {
    const double next = term * (log_x - psi);
    sum += next;
    psi += 1 / (alpha + k);
    term *= x / (alpha + k);
    if (alpha + k > x && std::abs(next) < 1e-17 * std::abs(sum)) break;
  }
  return -sum;
}
}  // namespace detail

/// alpha, x -> how x, drawn from the gamma distribution of shape alpha, grows with alpha: implicit
/// reparameterisation.  Source: Figurnov, Mohamed and Mnih 2018
struct gamma_slope_op : opaque<gamma_slope_op>,
                        not_differentiable,
                        element_by_element,
                        detail::keeps_options,
                        computed_in_single {
  static constexpr std::string_view name = "gamma_slope";
  static constexpr std::string_view torch = "torch._standard_gamma_grad";
  static constexpr std::string_view formula =
      "how a number of the gamma distribution grows with alpha";
  static constexpr compute_class computes = compute_class::pointwise;
  static constexpr int operations_per_point = 200;
  static constexpr int operands = 2;
  static bool fits(const op_application& a) { return a.same(0, 1) && is_floating(a.in[0].element); }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static double of(double alpha, double x) { return detail::gamma_slope_of(alpha, x); }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out) {
    for (std::int64_t i = 0; i < out[0].type.size(); ++i)
      write_element(out[0], i, of(read_element(in[0], i), read_element(in[1], i)));
  }
};

/// Numbers of the gamma distribution with each shape alpha > 0 and the scale 1.
/// Source: Marsaglia and Tsang, "A simple method for generating gamma variables", TOMS 2000
struct random_gamma_op : detail::drawn_by_element<random_gamma_op> {
  static constexpr std::string_view name = "random_gamma";
  static constexpr std::string_view numpy = "np.random.standard_gamma";
  static constexpr std::string_view torch = "torch._standard_gamma";
  static constexpr std::string_view formula = "y of the density x^(alpha - 1) e^-x / gamma(alpha)";
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    dx[1] =
        dy[0] * emit<gamma_slope_op>({}, std::source_location::current(), n.operand(1), n.output());
  }
  static double draw(generator& random, double alpha) {
    if (!(alpha > 0) || std::isinf(alpha)) return std::numeric_limits<double>::quiet_NaN();
    if (alpha < 1) {
      const double power = std::pow(1 - random.uniform<double>(), 1 / alpha);
      return draw(random, alpha + 1) * power;
    }
    const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    for (;;) {
      const double x = random.normal<double>(), t = 1 + c * x, v = t * t * t;
      if (v <= 0) continue;
      const double u = 1 - random.uniform<double>();
      // Most are taken by the paper's squeeze, which lies below the bound.
      if (u < 1 - 0.0331 * (x * x) * (x * x)) return d * v;
      if (std::log(u) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
    }
  }
};

/// Numbers of the Poisson distribution with each rate: by inversion, of large rates by transformed
/// rejection.  Source: Hoermann, "The transformed rejection method for generating Poisson random
/// variables", Insurance: Mathematics and Economics 1993
struct random_poisson_op : detail::drawn_by_element<random_poisson_op>, not_differentiable {
  static constexpr std::string_view name = "random_poisson";
  static constexpr std::string_view numpy = "np.random.poisson";
  static constexpr std::string_view torch = "torch.poisson";
  static constexpr std::string_view formula = "y of the probabilities rate^y e^-rate / y!";
  static double draw(generator& random, double rate) {
    if (!(rate >= 0) || std::isinf(rate)) return std::numeric_limits<double>::quiet_NaN();
    if (rate < 10) {
      double p = std::exp(-rate), u = random.uniform<double>();
      int k = 0;
      while (u >= p && k < 1000) {
        u -= p;
        p *= rate / ++k;
      }
      return k;
    }
    const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
    const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
    for (;;) {
      const double u = random.uniform<double>() - 0.5, v = 1 - random.uniform<double>();
      const double us = 0.5 - std::abs(u), k = std::floor((2 * a / us + b) * u + rate + 0.43);
      if (us >= 0.07 && v <= v_r) return k;
      if (k < 0 || (us < 0.013 && v > us)) continue;
      const double height = std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b);
      if (height <= k * std::log(rate) - rate - lgamma_op::of({}, k + 1)) return k;
    }
  }
};

// ---- public functions

/// Standard normal numbers of the type of `like`.  Box and Muller 1958
constexpr var random_normal(operand like) {
  const var first = random_uniform(like), second = random_uniform(like);
  return sqrt(-2 * log1p(-first)) * cos(2 * std::numbers::pi * second);
}
/// Standard normal numbers on condition that they lie in [low, high], by the inverse of the
/// distribution.
constexpr var random_truncated_normal(operand like, double low = -2, double high = 2) {
  const var u = random_uniform(like);
  if (!(low < high)) {
    u.b->fail(text() << like.at() << ": random_truncated_normal: there is nothing from " << low
                     << " to " << high);
    return u;
  }
  constexpr double root = std::numbers::sqrt2;
  const var first = erf(full_like(u, low / root)), last = erf(full_like(u, high / root));
  return clamp(root * erfinv(first + (last - first) * u), low, high);
}
/// Numbers of the exponential distribution with the rate 1: divide them by another.
constexpr var random_exponential(operand like) { return -log1p(-random_uniform(like)); }
/// True with each probability.
constexpr var random_bernoulli(operand probability) {
  return random_uniform(probability) < operand(probability.in(*probability.owner()));
}
/// Indices along `axis`, which vanishes, with probabilities that are the softmax of the logits; as
/// i64. Gumbel 1954
constexpr var random_categorical(operand logits, int axis = -1) {
  const var noise = -log(-log(random_uniform(logits)));
  return cast(argmax(noise + logits, axis), dtype::i64);
}
/// Numbers of the gamma distribution with each shape alpha > 0 and the scale 1; NaN of others. They
/// have a derivative by alpha, once.
constexpr var random_gamma(operand alpha) { return detail::drawn<random_gamma_op>(alpha); }
/// Numbers of the beta distribution.
constexpr var random_beta(operand alpha, operand beta) {
  const var x = random_gamma(alpha), y = random_gamma(beta);
  return x / (x + y);
}
/// Numbers of the Poisson distribution with each rate, as its type; NaN of negative ones.
constexpr var random_poisson(operand rate) { return detail::drawn<random_poisson_op>(rate); }
/// Whole numbers from `low` up to but not including `high`, each with one probability, in the shape
/// of `like`, as i64 or `element`.
constexpr var random_integers(operand like, std::int64_t low, std::int64_t high,
                              dtype element = dtype::i64) {
  builder& b = *like.owner();
  const auto held = [&](double v) { return detail::nearest_integer(element, v) == v; };
  // A uniform number has 53 digits, which tell so many apart.
  constexpr auto most = double(std::int64_t{1} << 32);
  const double first = double(low), count = double(high) - first;
  if (!is_integer(element) || !(count >= 1 && count <= most) || !held(first) ||
      !held(first + count - 1) || std::int64_t(first) != low) {
    b.fail(text() << like.at() << ": random_integers: needs from 1 to 2^32 numbers of an integer "
                  << "type: from " << low << " up to, without, " << high << " as " << element);
    return like.in(b);
  }
  const var u = random_uniform(constant(b, 0, {dtype::f64, like.in(b).shape()}));
  return cast(floor(u * count), element) + first;
}
/// The numbers 0 to `count` - 1 in a random order, as i64, in the graph of `like`.
constexpr var random_permutation(operand like, int count) {
  builder& b = *like.owner();
  if (count < 1) {
    b.fail(text() << like.at() << ": random_permutation: there are no " << count << " numbers");
    return like.in(b);
  }
  const random_permutation_op::options o{count, b.bodies.next_random_stream()};
  return {&b, b.emit(bound<random_permutation_op>(), {detail::random_key(b)}, o, like.at())};
}
/// The slices of x along an axis in a random order.
constexpr var random_shuffle(operand x, int axis = 0) {
  const var v = x.in(*x.owner());
  const int a = detail::find_axis("random_shuffle", v, axis, x.at());
  return a < 0 ? v : gather(x, random_permutation(x, v.extent(a)), a);
}

}  // namespace cella
