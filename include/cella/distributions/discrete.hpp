// Distributions of truths and of classes. No derivative goes through their samples.
#pragma once

#include <cella/distributions/continuous.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/softmax.hpp>

namespace cella::distributions {

namespace detail {
/// The mean of `values` along the last axis by probabilities; those that are 0 count as 0, whatever
/// the value.
constexpr var mean_by(var log_probability, var values) {
  const var p = exp(log_probability);
  return sum(p * select(p > 0, values, zeros_like(values)), {-1});
}
}  // namespace detail

/// 1 with probability sigmoid(logits), else 0.
struct bernoulli {
  var logits;

  constexpr var sample() const {
    return cast(random_uniform(logits) < sigmoid(logits), logits.element());
  }
  constexpr var log_prob(var x) const { return x * logits - softplus(logits); }
  constexpr var entropy() const { return softplus(logits) - logits * sigmoid(logits); }
};

/// Class k with a probability in proportion to e^logits[..., k], 0 where the logit is -infinity:
/// samples are integers [...], i64.
struct categorical {
  var logits;

  /// The largest of the logits plus Gumbel's noise.
  constexpr var sample() const {
    const var noise = -log(-log(detail::open_uniform(logits, logits)));
    return argmax(stop_gradient(logits) + noise, -1);
  }
  /// Classes [...], integers.
  constexpr var log_prob(var x) const {
    return squeeze(gather_elements(log_softmax(logits), expand_dims(x, -1), -1), -1);
  }
  constexpr var entropy() const {
    const var log_p = log_softmax(logits);
    return -detail::mean_by(log_p, log_p);
  }
};

}  // namespace cella::distributions
