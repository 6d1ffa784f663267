// Distributions made of others: vectors of independent numbers, mixtures, functions of a number
// that is drawn.
#pragma once

#include <cella/distributions/discrete.hpp>
#include <cella/ops/numeric.hpp>

namespace cella::distributions {

/// Vectors along the last axis, whose numbers are drawn one by one: their log-probabilities and
/// entropies are sums. A multivariate normal distribution with a diagonal covariance is
/// `independent{normal{mean, deviation}}`.
template <class Base>
struct independent {
  Base base;

  constexpr var sample() const { return base.sample(); }
  constexpr var log_prob(var x) const { return sum(base.log_prob(x), {-1}); }
  constexpr var entropy() const { return sum(base.entropy(), {-1}); }
};
template <class Base>
independent(Base) -> independent<Base>;

/// One of several distributions, which lie along the last axis of the parameters of `parts`, with
/// the probabilities of `choice` [..., K]: numbers [...]. No derivative goes through the choice,
/// and there is no formula for the entropy.
template <class Base>
struct mixture {
  categorical choice;
  Base parts;

  constexpr var sample() const {
    const var drawn = parts.sample();
    return squeeze(gather_elements(drawn, expand_dims(choice.sample(), -1), -1), -1);
  }
  constexpr var log_prob(var x) const {
    return logsumexp(log_softmax(choice.logits) + parts.log_prob(expand_dims(x, -1)), {-1});
  }
};
template <class Base>
mixture(categorical, Base) -> mixture<Base>;

// A bijector is a struct with `forward(x)`, `inverse(y)` and `log_slope(x)`, the logarithm of the
// derivative's size at x.

/// y = shift + scale x
struct affine_bijector {
  var shift;
  var scale;
  constexpr var forward(var x) const { return shift + scale * x; }
  constexpr var inverse(var y) const { return (y - shift) / scale; }
  constexpr var log_slope(var x) const { return log(abs(scale)) + zeros_like(x); }
};
/// y = e^x
struct exp_bijector {
  constexpr var forward(var x) const { return exp(x); }
  constexpr var inverse(var y) const { return log(y); }
  constexpr var log_slope(var x) const { return x; }
};
/// y = 1 / (1 + e^-x)
struct sigmoid_bijector {
  constexpr var forward(var x) const { return sigmoid(x); }
  constexpr var inverse(var y) const { return log(y) - log1p(-y); }
  constexpr var log_slope(var x) const { return -softplus(x) - softplus(-x); }
};
/// y = tanh x
struct tanh_bijector {
  constexpr var forward(var x) const { return tanh(x); }
  constexpr var inverse(var y) const { return atanh(y); }
  constexpr var log_slope(var x) const { return 2 * (std::numbers::ln2 - x - softplus(-2 * x)); }
};
/// y = log(1 + e^x)
struct softplus_bijector {
  constexpr var forward(var x) const { return softplus(x); }
  constexpr var inverse(var y) const { return y + log(-expm1(-y)); }
  constexpr var log_slope(var x) const { return -softplus(-x); }
};

/// The distribution of bijector(x) where x is drawn from `base`: `transformed{normal{mean,
/// deviation}, exp_bijector{}}` is log-normal.
template <class Base, class Bijector>
struct transformed {
  Base base;
  Bijector bijector;

  constexpr var sample() const { return bijector.forward(base.sample()); }
  constexpr var log_prob(var y) const {
    // Where no finite number becomes y the density is 0.
    const auto inside = [](var x, var like) {
      return logical_or(is_finite(x), is_nan(like + zeros_like(x)));
    };
    const var from = bijector.inverse(y);
    const var x = select(inside(from, y), from, full_like(from, 0.5));
    const var density = base.log_prob(x) - bijector.log_slope(x);
    return detail::log_density(inside(from + zeros_like(density), y), density);
  }
};
template <class Base, class Bijector>
transformed(Base, Bijector) -> transformed<Base, Bijector>;

/// The mean over draws x of p of log p(x) - log q(x).
constexpr var kl_divergence(const normal& p, const normal& q) {
  const var ratio = p.deviation / q.deviation, apart = (p.mean - q.mean) / q.deviation;
  return 0.5 * (square(ratio) + square(apart) - 1) - log(ratio);
}
constexpr var kl_divergence(const exponential& p, const exponential& q) {
  const var ratio = q.rate / p.rate;
  return ratio - 1 - log(ratio);
}
constexpr var kl_divergence(const laplace& p, const laplace& q) {
  const var apart = abs(p.mean - q.mean);
  return log(q.scale / p.scale) + apart / q.scale + p.scale / q.scale * exp(-apart / p.scale) - 1;
}
/// Infinite where p reaches beyond q.
constexpr var kl_divergence(const uniform& p, const uniform& q) {
  const var inside = logical_and(q.low <= p.low, p.high <= q.high);
  const var value = log((q.high - q.low) / (p.high - p.low));
  return select(inside, value, full_like(value, std::numeric_limits<double>::infinity()));
}
/// By both outcomes, since large logits would cancel in a sum of them.
constexpr var kl_divergence(const bernoulli& p, const bernoulli& q) {
  const auto part = [&](var of_p, var of_q) {
    return sigmoid(of_p) * (softplus(-of_q) - softplus(-of_p));
  };
  return part(p.logits, q.logits) + part(-p.logits, -q.logits);
}
constexpr var kl_divergence(const categorical& p, const categorical& q) {
  const var log_p = log_softmax(p.logits);
  return detail::mean_by(log_p, log_p - log_softmax(q.logits));
}
template <class P, class Q>
constexpr var kl_divergence(const independent<P>& p, const independent<Q>& q) {
  return sum(kl_divergence(p.base, q.base), {-1});
}

}  // namespace cella::distributions
