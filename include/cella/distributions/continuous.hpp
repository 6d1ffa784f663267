// Distributions of real numbers. A distribution is a struct of parameters, vars that broadcast
// against each other, with the functions
//   sample()      one draw for each element of the parameters, from the program's random state;
//                 derivatives go through it to the parameters where there is a formula for that
//   log_prob(x)   the logarithm of the density or of the probability at x
//   entropy()     in nats
// One of one's own is a struct with the same functions: mixtures, transformed distributions and
// kl_divergence take it.
#pragma once

#include <cella/ops/activation.hpp>
#include <cella/ops/array.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/random.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/transform/values.hpp>

namespace cella::distributions {

namespace detail {

constexpr double log_2_pi = 1.8378770664093454836;

/// `density` where `inside`, else the logarithm of 0.
constexpr var log_density(var inside, var density) {
  return select(inside, density, full_like(density, -std::numeric_limits<double>::infinity()));
}
/// `least`, or the least number above 0 that a type has.
constexpr double above_zero(dtype t, double least) {
  return t == dtype::f16 && least < 0x1p-24 ? 0x1p-24 : least;
}
/// Uniform numbers in (0, 1) for each element of the sum of two parameters: no logarithm of them,
/// or of what is left to 1, is infinite.
constexpr var open_uniform(var a, var b) {
  const var u = random_uniform(a + b);
  return clamp(u, above_zero(u.element(), 0x1p-25), 1 - 0x1p-24);
}
/// Box and Muller 1958
constexpr var standard_normal(var a, var b) {
  const var radius = sqrt(-2 * log(open_uniform(a, b)));
  return radius * cos(2 * std::numbers::pi * random_uniform(a + b));
}

}  // namespace detail

/// The parameters with a new first axis of `count` equal slices: `sample()` of it draws so often.
template <class Distribution>
constexpr Distribution repeated(Distribution d, int count) {
  for_each_var(d, [count](var& v) {
    shape s = v.shape();
    s.insert(0, count);
    v = broadcast_to(expand_dims(v, 0), s);
  });
  return d;
}

/// Density e^(-(x - mean)^2 / (2 deviation^2)) / (deviation sqrt(2 pi)).
struct normal {
  var mean;
  var deviation;

  constexpr var sample() const {
    return mean + deviation * detail::standard_normal(mean, deviation);
  }
  constexpr var log_prob(var x) const {
    const var z = (x - mean) / deviation;
    return -0.5 * square(z) - log(deviation) - 0.5 * detail::log_2_pi;
  }
  constexpr var entropy() const {
    return log(deviation) + 0.5 * (1 + detail::log_2_pi) + zeros_like(mean);
  }
};

/// Density 1 / (high - low) in [low, high).
struct uniform {
  var low;
  var high;

  constexpr var sample() const { return low + (high - low) * random_uniform(low + high); }
  constexpr var log_prob(var x) const {
    const var density = -log(high - low) + zeros_like(x);
    const var inside = logical_and(x + zeros_like(density) >= low, x + zeros_like(density) < high);
    return detail::log_density(inside, density);
  }
  constexpr var entropy() const { return log(high - low); }
};

/// Density rate e^(-rate x) for x >= 0.
struct exponential {
  var rate;

  constexpr var sample() const { return -log(detail::open_uniform(rate, rate)) / rate; }
  constexpr var log_prob(var x) const {
    const var density = log(rate) - rate * x;
    return detail::log_density(x + zeros_like(density) >= 0, density);
  }
  constexpr var entropy() const { return 1 - log(rate); }
};

/// Density e^(-|x - mean| / scale) / (2 scale).
struct laplace {
  var mean;
  var scale;

  constexpr var sample() const {
    const var u = detail::open_uniform(mean, scale) - 0.5;
    return mean - scale * sign(u) * log1p(-2 * abs(u) * (1 - 0x1p-24));
  }
  constexpr var log_prob(var x) const { return -abs(x - mean) / scale - log(2 * scale); }
  constexpr var entropy() const { return 1 + log(2 * scale) + zeros_like(mean); }
};

/// Distribution function 1 / (1 + e^(-(x - mean) / scale)).
struct logistic {
  var mean;
  var scale;

  constexpr var sample() const {
    const var u = detail::open_uniform(mean, scale);
    return mean + scale * (log(u) - log1p(-u));
  }
  constexpr var log_prob(var x) const {
    const var z = (x - mean) / scale;
    return -z - 2 * softplus(-z) - log(scale);
  }
  constexpr var entropy() const { return log(scale) + 2 + zeros_like(mean); }
};

/// Distribution function e^(-e^(-(x - mean) / scale)): the largest of many.
struct gumbel {
  var mean;
  var scale;

  constexpr var sample() const {
    return mean - scale * log(-log(detail::open_uniform(mean, scale)));
  }
  constexpr var log_prob(var x) const {
    const var z = (x - mean) / scale;
    return -z - exp(-z) - log(scale);
  }
  constexpr var entropy() const {
    return log(scale) + (1 + 0.57721566490153286061) + zeros_like(mean);  // Euler's constant
  }
};

/// Density 1 / (pi scale (1 + ((x - median) / scale)^2)): without a mean.
struct cauchy {
  var median;
  var scale;

  constexpr var sample() const {
    const var u = detail::open_uniform(median, scale);
    return median + scale * tan(std::numbers::pi * (u - 0.5));
  }
  constexpr var log_prob(var x) const {
    return -log1p(square((x - median) / scale)) - log(std::numbers::pi * scale);
  }
  constexpr var entropy() const { return log(4 * std::numbers::pi * scale) + zeros_like(median); }
};

}  // namespace cella::distributions
