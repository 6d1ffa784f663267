// Distributions that numbers of the gamma distribution make: that itself, beta, Dirichlet; and
// Poisson's, whose probabilities have the same functions. Derivatives go through samples to all
// parameters but those of Poisson's, once.
#pragma once

#include <cella/distributions/continuous.hpp>
#include <cella/ops/numeric.hpp>
#include <cella/ops/random_distributions.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/ops/special.hpp>

namespace cella::distributions {

namespace detail {
/// Numbers that are not 0.
constexpr var above_zero(var p) { return maximum(p, above_zero(p.element(), 0x1p-126)); }
/// A number of the gamma distribution that is not 0, as small shapes make them in single precision.
constexpr var standard_gamma(var alpha) { return above_zero(random_gamma(alpha)); }
/// The logarithm of such a number, also of small shapes, whose numbers have no form in single
/// precision: u^(1 / alpha) times one of the shape alpha + 1.  Marsaglia and Tsang 2000
constexpr var log_standard_gamma(var alpha) {
  return log(standard_gamma(alpha + 1)) + log(open_uniform(alpha, alpha)) / alpha;
}
/// ln of the integral of a Dirichlet density without its factor.
constexpr var dirichlet_constant(var a) { return sum(lgamma(a), {-1}) - lgamma(sum(a, {-1})); }
}  // namespace detail

/// Density rate^shape x^(shape - 1) e^(-rate x) / gamma(shape) for x >= 0. With the rate 1/2, of
/// half the degrees of freedom, it is that of chi squared.
struct gamma {
  var shape;
  var rate;

  constexpr var sample() const { return detail::standard_gamma(shape + zeros_like(rate)) / rate; }
  constexpr var log_prob(var x) const {
    const var all = x + zeros_like(shape + rate);
    const var inside = all >= 0;
    const var v = select(inside, all, ones_like(all));
    const var density =
        shape * log(rate) + xlogy(shape - 1 + zeros_like(v), v) - rate * v - lgamma(shape);
    return detail::log_density(inside, density);
  }
  constexpr var entropy() const {
    return shape - log(rate) + lgamma(shape) + (1 - shape) * digamma(shape);
  }
};
/// The mean over draws x of p of log p(x) - log q(x).
constexpr var kl_divergence(const gamma& p, const gamma& q) {
  return (p.shape - q.shape) * digamma(p.shape) - lgamma(p.shape) + lgamma(q.shape) +
         q.shape * log(p.rate / q.rate) + p.shape * (q.rate / p.rate - 1);
}

/// Density x^(a - 1) (1 - x)^(b - 1) / B(a, b) in [0, 1].
struct beta {
  var a;
  var b;

  constexpr var sample() const {
    const var none = zeros_like(a + b);
    const var x = detail::log_standard_gamma(a + none), y = detail::log_standard_gamma(b + none);
    return detail::above_zero(sigmoid(x - y));
  }
  constexpr var log_prob(var x) const {
    const var all = x + zeros_like(a + b);
    const var inside = logical_and(all >= 0, all <= 1);
    const var v = select(inside, all, full_like(all, 0.5));
    const var none = zeros_like(v);
    const var density = xlogy(a - 1 + none, v) + xlogy(b - 1 + none, 1 - v);
    return detail::log_density(inside, density - lbeta(a, b));
  }
  constexpr var entropy() const {
    return lbeta(a, b) - (a - 1) * digamma(a) - (b - 1) * digamma(b) + (a + b - 2) * digamma(a + b);
  }
};
constexpr var kl_divergence(const beta& p, const beta& q) {
  const var sum = p.a + p.b;
  return lbeta(q.a, q.b) - lbeta(p.a, p.b) + (p.a - q.a) * digamma(p.a) +
         (p.b - q.b) * digamma(p.b) + (q.a + q.b - sum) * digamma(sum);
}

/// Vectors along the last axis of numbers that are not negative and add up to 1, with a density in
/// proportion to the product of x_k^(concentration_k - 1).
struct dirichlet {
  var concentration;

  constexpr var sample() const {
    return detail::above_zero(softmax(detail::log_standard_gamma(concentration)));
  }
  /// Of vectors whose sum is 1: that is not looked at.
  constexpr var log_prob(var x) const {
    const var v = x + zeros_like(concentration);
    return sum(xlogy(concentration - 1 + zeros_like(v), v), {-1}) -
           detail::dirichlet_constant(concentration);
  }
  constexpr var entropy() const {
    const var total = sum(concentration, {-1});
    return detail::dirichlet_constant(concentration) +
           (total - concentration.extent(-1)) * digamma(total) -
           sum((concentration - 1) * digamma(concentration), {-1});
  }
};
constexpr var kl_divergence(const dirichlet& p, const dirichlet& q) {
  const var total = digamma(sum(p.concentration, {-1}, true));
  return detail::dirichlet_constant(q.concentration) - detail::dirichlet_constant(p.concentration) +
         sum((p.concentration - q.concentration) * (digamma(p.concentration) - total), {-1});
}

/// Whole numbers k with the probabilities rate^k e^-rate / k!. Samples have no derivative, and
/// there is no formula for the entropy.
struct poisson {
  var rate;

  constexpr var sample() const { return random_poisson(stop_gradient(rate)); }
  /// Of numbers that are not negative and whole: that is not looked at.
  constexpr var log_prob(var x) const {
    return xlogy(x + zeros_like(rate), rate + zeros_like(x)) - rate - lgamma(x + 1);
  }
};
constexpr var kl_divergence(const poisson& p, const poisson& q) {
  const var ratio = p.rate / q.rate;
  return xlogy(p.rate + zeros_like(ratio), ratio) - p.rate + q.rate;
}

}  // namespace cella::distributions
