// Losses of distances: what is alike comes together, what is not goes apart.
#pragma once

#include <cella/ops/loss.hpp>
#include <cella/ops/matmul.hpp>

namespace cella {

/// Euclidean distance of the vectors x - y + epsilon along the last axis: [...,D] -> [...].
constexpr var pairwise_distance(operand left, operand right, double epsilon = 1e-6) {
  return l2_norm({detail::binary<sub_op>(left, right) + epsilon, left.at()}, {-1});
}
/// max(0, |anchor - positive| - |anchor - negative| + margin): three times [N,D].
/// Balntas et al. 2016
constexpr var triplet_margin_loss(operand anchor, operand positive, operand negative,
                                  double margin = 1, reduction r = reduction::mean) {
  const var d = pairwise_distance(anchor, positive) - pairwise_distance(anchor, negative);
  return detail::reduce_loss(relu(d + margin), r, anchor.at());
}
/// d^2 / 2 for pairs with target 1, max(0, margin - d)^2 / 2 for those with 0, where d is their
/// distance: twice [N,D], targets [N].  Hadsell et al. 2006
constexpr var contrastive_loss(operand left, operand right, operand target, double margin = 1,
                               reduction r = reduction::mean) {
  const var d = pairwise_distance(left, right);
  const var t = target.in(*d.b);
  const var loss = 0.5 * (t * square(d) + (1 - t) * square(relu(margin - d)));
  return detail::reduce_loss(loss, r, left.at());
}
/// 1 - cos for pairs with sign 1, max(0, cos - margin) for those with -1: twice [N,D], signs [N].
constexpr var cosine_embedding_loss(operand left, operand right, operand signs, double margin = 0,
                                    reduction r = reduction::mean) {
  const var c = cosine_similarity(left, right);
  const var s = signs.in(*c.b);
  return detail::reduce_loss(select(s > 0, 1 - c, relu(c - margin)), r, left.at());
}
/// x where the sign is 1, max(0, margin - x) where it is -1: x is a distance.
constexpr var hinge_embedding_loss(operand x, operand signs, double margin = 1,
                                   reduction r = reduction::mean) {
  builder& b = owner_of(x, signs);
  const var v = x.in(b);
  return detail::reduce_loss(select(signs.in(b) > 0, v, relu(margin - v)), r, x.at());
}
/// max(0, margin - sign (left - right)): sign 1 if left is to be ranked higher, -1 if right is.
constexpr var margin_ranking_loss(operand left, operand right, operand signs, double margin = 0,
                                  reduction r = reduction::mean) {
  const var d = detail::binary<sub_op>(left, right);
  return detail::reduce_loss(relu(margin - d * signs), r, left.at());
}
/// Mean cross-entropy of telling each row's partner from those of the other rows, by products of
/// unit vectors over `temperature`: twice [N,D].  van den Oord et al. 2018; Radford et al. 2021
constexpr var info_nce_loss(operand left, operand right, double temperature = 0.07) {
  builder& b = owner_of(left, right);
  const var x = left.in(b), y = right.in(b);
  if (x.rank() != 2 || x.shape() != y.shape()) {
    b.fail(text() << left.at() << ": info_nce_loss: needs two tensors [N,D]: " << b.describe(x.id)
                  << " is " << x.shape() << ", " << b.describe(y.id) << " is " << y.shape());
    return x;
  }
  const var scores =
      matmul(l2_normalize(left, {-1}), l2_normalize(right, {-1}), false, true) / temperature;
  const var labels = iota(b, {dtype::i32, {x.extent(0)}}, 0);
  return softmax_cross_entropy({scores, left.at()}, labels);
}

}  // namespace cella
