// Normal distributions of vectors whose numbers depend on each other.
#pragma once

#include <cella/distributions/continuous.hpp>
#include <cella/ops/diagonal.hpp>
#include <cella/ops/linear_algebra.hpp>

namespace cella::distributions {

/// Vectors [...,N] of the density e^(-|L^-1 (x - mean)|^2 / 2) / (|det L| (2 pi)^(N/2)): mean
/// [...,N], `factor` [...,N,N] the lower triangle L of the covariance L L^T, with a positive
/// diagonal; what lies above that is not read. Leading axes are broadcast.
struct multivariate_normal {
  var mean;
  var factor;

  constexpr var sample() const {
    const var z = detail::standard_normal(mean, zeros_for(factor));
    return mean + sum(tril(factor) * expand_dims(z, -2), {-1});
  }
  constexpr var log_prob(var x) const {
    return -0.5 * (squared_distance(x - mean) + mean.extent(-1) * detail::log_2_pi) -
           log_determinant();
  }
  constexpr var entropy() const {
    return log_determinant() + 0.5 * mean.extent(-1) * (1 + detail::log_2_pi) +
           zeros_like(sum(mean, {-1}));
  }
  /// ln det L
  constexpr var log_determinant() const { return sum(log(diagonal(factor)), {-1}); }
  /// |L^-1 v|^2
  constexpr var squared_distance(var v) const {
    return sum(square(solve_triangular(factor, expand_dims(v, -1))), {-2, -1});
  }

 private:
  /// Vectors of zeros for each factor.
  static constexpr var zeros_for(var l) { return zeros_like(diagonal(l)); }
};
/// That of a covariance [...,N,N], symmetric and positive definite.
constexpr multivariate_normal with_covariance(var mean, var covariance) {
  return {mean, cholesky(covariance)};
}

/// The mean over draws x of p of log p(x) - log q(x).
constexpr var kl_divergence(const multivariate_normal& p, const multivariate_normal& q) {
  const var spread = sum(square(solve_triangular(q.factor, tril(p.factor))), {-2, -1});
  return q.log_determinant() - p.log_determinant() +
         0.5 * (spread + q.squared_distance(p.mean - q.mean) - p.mean.extent(-1));
}

}  // namespace cella::distributions
