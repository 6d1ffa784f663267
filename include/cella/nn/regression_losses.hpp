// Losses of numbers: of errors, and of distributions that a net predicts. With an object for each
// that `model` takes.
#pragma once

#include <cella/ops/loss.hpp>

namespace cella {

/// log cosh(prediction - target), without overflow.
constexpr var log_cosh_loss(operand prediction, operand target, reduction r = reduction::mean) {
  const var d = abs(detail::binary<sub_op>(prediction, target));
  return detail::reduce_loss(d + softplus(-2 * d) - std::numbers::ln2, r, prediction.at());
}
/// q d where d = target - prediction > 0, else (q - 1) d: its mean is least at the quantile q.
/// Koenker and Bassett 1978
constexpr var quantile_loss(operand prediction, operand target, double q = 0.5,
                            reduction r = reduction::mean) {
  const var d = detail::binary<sub_op>(target, prediction);
  return detail::reduce_loss(maximum(q * d, (q - 1) * d), r, prediction.at());
}
/// What the Poisson loss may be told.
struct poisson_options {
  bool log_rate = true;  ///< the prediction is the logarithm of the rate
  bool full = false;     ///< with Stirling's approximation of log(target!)
  double epsilon = 1e-8;
};
/// -log of the probability of counts under a Poisson distribution, less what the prediction does
/// not change: e^x - t x, or x - t log(x + epsilon).
constexpr var poisson_nll_loss(operand prediction, operand target, poisson_options o = {},
                               reduction r = reduction::mean) {
  builder& b = owner_of(prediction, target);
  const var x = prediction.in(b);
  const var t = target.in(b);
  var loss = o.log_rate ? exp(x) - t * x : x - t * log(x + o.epsilon);
  if (o.full) {
    const var known = maximum(t, 1);
    const var stirling = t * log(known) - t + 0.5 * log(2 * std::numbers::pi * known);
    loss = loss + select(t > 1, stirling, zeros_like(stirling));
  }
  return detail::reduce_loss(loss, r, prediction.at());
}
/// (log v + (prediction - target)^2 / v) / 2, where v is the predicted variance, at least
/// `epsilon`; `full` adds log(2 pi) / 2.  Nix and Weigend 1994
constexpr var gaussian_nll_loss(operand prediction, operand target, operand variance,
                                bool full = false, double epsilon = 1e-6,
                                reduction r = reduction::mean) {
  const var d = detail::binary<sub_op>(prediction, target);
  const var v = maximum(variance.in(*d.b), epsilon);
  var loss = 0.5 * (log(v) + square(d) / v);
  if (full) loss = loss + 0.91893853320467274178;  // log(2 pi) / 2
  return detail::reduce_loss(loss, r, prediction.at());
}

namespace nn {

/// cella::l1_loss as an object.
struct l1_loss {
  constexpr var operator()(var prediction, var target) const {
    return cella::l1_loss(prediction, target);
  }
};
/// cella::huber_loss as an object.
struct huber_loss {
  double delta = 1;
  constexpr var operator()(var prediction, var target) const {
    return cella::huber_loss(prediction, target, delta);
  }
};
/// cella::smooth_l1_loss as an object.
struct smooth_l1_loss {
  double beta = 1;
  constexpr var operator()(var prediction, var target) const {
    return cella::smooth_l1_loss(prediction, target, beta);
  }
};
/// cella::log_cosh_loss as an object.
struct log_cosh_loss {
  constexpr var operator()(var prediction, var target) const {
    return cella::log_cosh_loss(prediction, target);
  }
};
/// cella::quantile_loss as an object.
struct quantile_loss {
  double q = 0.5;
  constexpr var operator()(var prediction, var target) const {
    return cella::quantile_loss(prediction, target, q);
  }
};
/// cella::poisson_nll_loss as an object.
struct poisson_nll_loss {
  poisson_options options{};
  constexpr var operator()(var prediction, var target) const {
    return cella::poisson_nll_loss(prediction, target, options);
  }
};

}  // namespace nn
}  // namespace cella
