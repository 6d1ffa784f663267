// Losses of classes: weighted and focal cross-entropies, margins, overlaps. With an object for each
// that `model` takes.
#pragma once

#include <cella/nn/losses.hpp>
#include <cella/ops/cast.hpp>

namespace cella {

namespace detail {

/// -1 and 1 from targets 0 and 1 would be a guess: margins say which they take.
constexpr var margin_of(operand score, operand sign) { return binary<mul_op>(score, sign); }

/// Whether logits [N,C] and integer labels [N] go together.
constexpr bool are_labels(std::string_view op, operand logits, var z, var y) {
  if (z.rank() == 2 && y.rank() == 1 && z.extent(0) == y.extent(0) && is_integer(y.element()))
    return true;
  z.b->fail(text() << logits.at() << ": " << op
                   << ": needs logits [N,C] and integer labels [N]: " << z.b->describe(z.id)
                   << " is " << z.type() << ", " << z.b->describe(y.id) << " is " << y.type());
  return false;
}

}  // namespace detail

/// Softmax cross-entropy of logits [N,C] and labels [N], where class c counts as weights[c] [C]
/// samples: sum of w[label] loss / sum of w[label]. With PyTorch's smoothing, whose share of class
/// c is weighted by w[c]. Samples with the ignored label do not count; where nothing does it is 0.
constexpr var weighted_cross_entropy(operand logits, operand labels, operand weights,
                                     const cross_entropy_options& o = {}) {
  builder& b = owner_of(logits, labels);
  const var z = logits.in(b), y = labels.in(b), w = weights.in(b);
  if (!detail::are_labels("weighted_cross_entropy", logits, z, y)) return z;
  if (w.shape() != shape{z.extent(1)}) {
    b.fail(text() << weights.at() << ": weighted_cross_entropy: needs a weight for each of the "
                  << z.extent(1) << " classes: " << b.describe(w.id) << " is " << w.shape());
    return z;
  }
  const var log_p = log_softmax(logits, 1);
  var label = y;
  var seen{};
  if (o.ignored_label) {
    seen = not_equal(y, *o.ignored_label);
    label = select(seen, y, zeros_like(y));
  }
  const auto kept = [&](var v) { return seen.b ? select(seen, v, zeros_like(v)) : v; };
  const var weight = kept(gather(w, label));
  const var own = squeeze(gather_elements(log_p, expand_dims(label, 1), 1), 1);
  // Where nothing counts the loss is 0, and so are its derivatives.
  const var total = sum(weight);
  const var some = not_equal(total, 0);
  const auto over_total = [&](var v) {
    return select(some, v / select(some, total, ones_like(total)), zeros_like(v));
  };
  const var loss = over_total(-sum({weight * own, logits.at()}));
  if (o.label_smoothing == 0) return loss;
  const var smooth = over_total(-sum(kept(sum(log_p * w, {1}))));
  return (1 - o.label_smoothing) * loss + (o.label_smoothing / z.extent(1)) * smooth;
}
/// Binary cross-entropy of sigmoid(logits) whose positive targets count `positive_weight` times,
/// which broadcasts against the logits.
constexpr var weighted_sigmoid_cross_entropy(operand logits, operand target,
                                             operand positive_weight,
                                             reduction r = reduction::mean) {
  builder& b = owner_of(logits, target);
  const var z = logits.in(b);
  const var t = target.in(b);
  const var weight = 1 + (detail::binary<sub_op>(positive_weight, 1)) * t;
  return detail::reduce_loss((1 - t) * z + weight * softplus(-z), r, logits.at());
}
/// Binary cross-entropy of sigmoid(logits), times (1 - p)^gamma, where p is the probability of the
/// target, and times alpha for targets of 1, 1 - alpha for those of 0 (a negative alpha: 1 for
/// both). Lin et al. 2017
constexpr var focal_loss(operand logits, operand target, double alpha = 0.25, double gamma = 2,
                         reduction r = reduction::mean) {
  builder& b = owner_of(logits, target);
  const var z = logits.in(b);
  const var t = target.in(b);
  const var p = sigmoid(z);
  const var missed = p + t - 2 * p * t;  // 1 - p for targets of 1, p for those of 0
  // The derivative of a power below 1 is infinite at 0, where the loss has none to speak of.
  const var base = gamma > 0 && gamma < 1 ? maximum(missed, 0x1p-126) : missed;
  var loss = (softplus(z) - z * t) * (gamma == 2 ? square(missed) : pow(base, gamma));
  if (alpha >= 0) loss = loss * (t * (2 * alpha - 1) + (1 - alpha));
  return detail::reduce_loss(loss, r, logits.at());
}
/// max(0, 1 - y s): scores s, signs y, -1 or 1.
constexpr var hinge_loss(operand scores, operand signs, reduction r = reduction::mean) {
  return detail::reduce_loss(relu(1 - detail::margin_of(scores, signs)), r, scores.at());
}
/// max(0, 1 - y s)^2
constexpr var squared_hinge_loss(operand scores, operand signs, reduction r = reduction::mean) {
  return detail::reduce_loss(square(relu(1 - detail::margin_of(scores, signs))), r, scores.at());
}
/// log(1 + e^(-y s)): scores s, signs y, -1 or 1.
constexpr var soft_margin_loss(operand scores, operand signs, reduction r = reduction::mean) {
  return detail::reduce_loss(softplus(-detail::margin_of(scores, signs)), r, scores.at());
}
/// Mean over the samples of sum over c != y of max(0, margin - z[y] + z[c])^power / C, power 1 or
/// 2: scores [N,C], labels [N].  Crammer and Singer 2001
constexpr var multi_margin_loss(operand scores, operand labels, double margin = 1, int power = 1) {
  builder& b = owner_of(scores, labels);
  const var z = scores.in(b), y = labels.in(b);
  if (!detail::are_labels("multi_margin_loss", scores, z, y)) return z;
  const var own = gather_elements(scores, expand_dims(y, 1), 1);
  const var gap = relu(margin - own + z);
  const var others = equal(one_hot(labels, z.extent(1), z.element()), 0);
  const var cost = select(others, power == 2 ? square(gap) : gap, zeros_like(gap));
  return sum({cost, scores.at()}) * (1 / double(z.shape().size()));
}
/// Mean over the samples of sum over pairs (y of the sample's classes, c not) of max(0, 1 - z[y] +
/// z[c]) / C: scores [N,C], targets [N,C] of 0 and 1.
constexpr var multilabel_margin_loss(operand scores, operand targets) {
  builder& b = owner_of(scores, targets);
  const var z = scores.in(b), t = targets.in(b);
  if (z.rank() != 2 || z.type() != t.type()) {
    b.fail(text() << scores.at() << ": multilabel_margin_loss: needs scores and targets [N,C] of "
                  << "one type: " << b.describe(z.id) << " is " << z.type() << ", "
                  << b.describe(t.id) << " is " << t.type());
    return z;
  }
  const auto pairs = [&](var of_class, var of_other, auto f) {
    return f(expand_dims(of_class, 2), expand_dims(of_other, 1));
  };
  const var gap = pairs(z, z, [](var y, var c) { return relu(1 - y + c); });
  const var counts = pairs(t, 1 - t, [](var y, var c) { return y * c; });
  return sum({gap * counts, scores.at()}) * (1 / double(z.shape().size()));
}
/// 1 - (2 sum of p t + smooth) / (sum of p + sum of t + smooth), the mean over the samples:
/// probabilities and targets [N,...].  Milletari et al. 2016
constexpr var dice_loss(operand probabilities, operand target, double smooth = 1) {
  builder& b = owner_of(probabilities, target);
  const var p = probabilities.in(b);
  const var t = target.in(b);
  if (p.rank() < 1 || p.type() != t.type()) {
    b.fail(text() << probabilities.at()
                  << ": dice_loss: needs probabilities and targets [N,...] of "
                  << "one type: " << b.describe(p.id) << " is " << p.type() << ", "
                  << b.describe(t.id) << " is " << t.type());
    return p;
  }
  const unsigned others = ((1u << p.rank()) - 1) & ~1u;
  const auto total = [&](var v) { return others ? sum_axes(v, others, probabilities.at()) : v; };
  return mean(1 - (2 * total(p * t) + smooth) / (total(p) + total(t) + smooth));
}

namespace nn {

/// cella::softmax_cross_entropy with options, as an object: `cross_entropy{{.label_smoothing =
/// 0.1}}`.
struct cross_entropy : class_labels {
  cross_entropy_options options{};
  constexpr cross_entropy(cross_entropy_options o = {}) : options(o) {}
  /// Labels that need not be one of the classes.
  constexpr bool ignores(std::int64_t label) const {
    return options.ignored_label && label == *options.ignored_label;
  }
  constexpr var operator()(var logits, var labels) const {
    return softmax_cross_entropy(logits, labels, options);
  }
};
/// cella::sigmoid_cross_entropy as an object.
struct sigmoid_cross_entropy {
  constexpr var operator()(var logits, var target) const {
    return cella::sigmoid_cross_entropy(logits, target);
  }
};
/// cella::binary_cross_entropy as an object.
struct binary_cross_entropy {
  constexpr var operator()(var probabilities, var target) const {
    return cella::binary_cross_entropy(probabilities, target);
  }
};
/// cella::focal_loss as an object.
struct focal_loss {
  double alpha = 0.25;
  double gamma = 2;
  constexpr var operator()(var logits, var target) const {
    return cella::focal_loss(logits, target, alpha, gamma);
  }
};
/// cella::hinge_loss as an object.
struct hinge_loss {
  constexpr var operator()(var scores, var signs) const { return cella::hinge_loss(scores, signs); }
};
/// cella::multi_margin_loss as an object.
struct multi_margin_loss : class_labels {
  constexpr var operator()(var scores, var labels) const {
    return cella::multi_margin_loss(scores, labels);
  }
};
/// cella::dice_loss as an object.
struct dice_loss {
  double smooth = 1;
  constexpr var operator()(var probabilities, var target) const {
    return cella::dice_loss(probabilities, target, smooth);
  }
};

}  // namespace nn
}  // namespace cella
