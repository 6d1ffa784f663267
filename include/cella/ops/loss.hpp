// Losses as compositions. Each takes what the model says first and the truth second.
#pragma once

#include <cella/ops/activation.hpp>
#include <cella/ops/softmax.hpp>

namespace cella {

/// How the losses of elements or samples become one number.
enum class reduction : std::uint8_t { mean, sum, none };

namespace detail {
constexpr var reduce_loss(var loss, reduction r, std::source_location at) {
  if (r == reduction::none) return loss;
  return r == reduction::sum ? sum({loss, at}) : mean({loss, at});
}
}  // namespace detail

/// |prediction - target|
constexpr var l1_loss(operand prediction, operand target, reduction r = reduction::mean) {
  return detail::reduce_loss(abs(detail::binary<sub_op>(prediction, target)), r, prediction.at());
}
/// d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2). Huber 1964
constexpr var huber_loss(operand prediction, operand target, double delta = 1,
                         reduction r = reduction::mean) {
  const var d = abs(detail::binary<sub_op>(prediction, target));
  const var loss = select(d <= delta, 0.5 * square(d), delta * (d - 0.5 * delta));
  return detail::reduce_loss(loss, r, prediction.at());
}
/// d^2 / (2 beta) where |d| < beta, else |d| - beta / 2. Girshick 2015
constexpr var smooth_l1_loss(operand prediction, operand target, double beta = 1,
                             reduction r = reduction::mean) {
  if (beta == 0) return l1_loss(prediction, target, r);
  return huber_loss(prediction, target, beta, r) / beta;
}
/// Kullback-Leibler divergence of predicted log-probabilities [N,...] from target probabilities,
/// summed and divided by N. 0 log 0 counts as 0.
constexpr var kl_div(operand log_probabilities, operand probabilities) {
  builder& b = owner_of(log_probabilities, probabilities);
  const var q = log_probabilities.in(b);
  const var p = probabilities.in(b);
  const var some = p > 0;
  const var ratio = log(select(some, p, ones_like(p))) - operand(q, log_probabilities.at());
  // Beside a probability of 0 the other may be 0, too, and its logarithm infinite.
  const var total = sum({p * select(some, ratio, zeros_like(ratio)), log_probabilities.at()});
  return total / double(q.rank() ? q.extent(0) : 1);
}
/// -log p of the label: log-probabilities [N,C], integer labels [N].
constexpr var nll_loss(operand log_probabilities, operand labels, reduction r = reduction::mean) {
  builder& b = owner_of(log_probabilities, labels);
  const var q = log_probabilities.in(b);
  const var y = labels.in(b);
  if (q.rank() != 2 || y.rank() != 1 || q.extent(0) != y.extent(0)) {
    b.fail(text() << log_probabilities.at()
                  << ": nll_loss: needs log-probabilities [N,C] and labels [N]: "
                  << b.describe(q.id) << " is " << q.shape() << ", " << b.describe(y.id) << " is "
                  << y.shape());
    return q;
  }
  const var picked = gather_elements(log_probabilities, expand_dims(y, 1), 1);
  return detail::reduce_loss(-squeeze(picked, 1), r, log_probabilities.at());
}
/// -(t log p + (1 - t) log(1 - p)); logarithms count as at least -100, as in PyTorch. What is
/// bounded so has the derivative 0.
constexpr var binary_cross_entropy(operand probabilities, operand target,
                                   reduction r = reduction::mean) {
  builder& b = owner_of(probabilities, target);
  const var p = probabilities.in(b);
  const var t = target.in(b);
  // No logarithm of 0 is taken: it would be infinite, and so its derivative, which meets a 0.
  const auto bounded = [](var outside, var logarithm) {
    return select(outside, -100, maximum(logarithm, -100));
  };
  const var none = equal(p, 0), sure = equal(p, 1);
  const var log_p = bounded(none, log(select(none, 1, p)));
  const var log_rest = bounded(sure, log1p(-select(sure, 0, p)));
  const var loss = t * operand(log_p, target.at()) + (1 - t) * log_rest;
  return detail::reduce_loss(-loss, r, probabilities.at());
}
/// Binary cross-entropy of sigmoid(logits), without overflow.
constexpr var sigmoid_cross_entropy(operand logits, operand target, reduction r = reduction::mean) {
  builder& b = owner_of(logits, target);
  const var z = logits.in(b);
  return detail::reduce_loss(softplus(z) - z * target, r, logits.at());
}
/// x . y / (|x| |y|) along an axis; each norm counts as at least `epsilon`.
constexpr var cosine_similarity(operand left, operand right, int axis = 1, double epsilon = 1e-8) {
  const dtype t =
      left.is_number() ? right.in(*right.owner()).element() : left.in(*left.owner()).element();
  const operand a = detail::in_single(left, t), c = detail::in_single(right, t);
  const var dot = sum({detail::binary<mul_op>(a, c), left.at()}, {axis});
  auto squared_norm = [&](operand x) {
    const var v = x.in(*dot.b);
    return maximum(sum({square(v), x.at()}, {axis}),
                   detail::least_square_of_norm(v.element(), epsilon));
  };
  // The product of both would overflow long before they do.
  return detail::rounded({dot * rsqrt(squared_norm(a)) * rsqrt(squared_norm(c)), left.at()}, t);
}

/// A label, or none. (A std::optional is no part of a template's argument, as the loss of a model
/// is.)
struct some_label {
  int value{};
  bool given{};

  constexpr some_label() = default;
  constexpr some_label(int label) : value(label), given(true) {}
  constexpr explicit operator bool() const { return given; }
  constexpr int operator*() const { return value; }
};

/// Refinements of the softmax cross-entropy.
struct cross_entropy_options {
  double label_smoothing = 0;  ///< this share of each target is spread over all classes
  /// Samples with this label do not count; where there are no others the loss is 0.
  some_label ignored_label{};
};

/// Mean softmax cross-entropy of logits [N,C] with integer labels [N], or with probabilities [N,C].
/// Szegedy et al. 2016 for the smoothing.
constexpr var softmax_cross_entropy(operand logits, operand target,
                                    const cross_entropy_options& options) {
  builder& b = owner_of(logits, target);
  const var z = logits.in(b);
  const var y = target.in(b);
  const bool probabilities = is_floating(y.element());
  if (probabilities && (z.rank() != 2 || z.shape() != y.shape())) {
    b.fail(text() << logits.at()
                  << ": softmax_cross_entropy: needs logits and probabilities [N,C]: "
                  << b.describe(z.id) << " is " << z.shape() << ", " << b.describe(y.id) << " is "
                  << y.shape());
    return z;
  }
  var loss = probabilities ? -sum(y * log_softmax(logits, 1), {1})
                           : cross_entropy_per_sample(logits, target);
  if (b.failed()) return z;
  if (options.label_smoothing != 0) {
    const double share = options.label_smoothing;
    loss = (1 - share) * loss - share * mean(log_softmax(logits, 1), {1});
  }
  if (!options.ignored_label || probabilities) return mean({loss, logits.at()});
  const var counts = not_equal(y, *options.ignored_label);
  const var number = sum(select(counts, ones_like(loss), zeros_like(loss)));
  return sum(select(counts, loss, zeros_like(loss))) / maximum(number, 1);
}

}  // namespace cella
