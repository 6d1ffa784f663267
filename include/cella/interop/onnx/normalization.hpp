// Normalizations, dropout and losses.
#pragma once

#include <cella/interop/onnx/convolutions.hpp>
#include <cella/interop/onnx/indexing.hpp>
#include <cella/interop/onnx/reductions.hpp>
#include <cella/ops/normalization.hpp>
#include <cella/ops/softmax.hpp>

namespace cella::interop {

inline std::vector<int> all_but(var x, int first, int second) {
  std::vector<int> all;
  for (int d = 0; d < x.rank(); ++d)
    if (d != first && d != second) all.push_back(d);
  return all;
}
/// x in f32 if it is of 16 bits, which do not hold its squares.
inline var in_single(var x) { return cella::detail::in_single(x, x.element()).in(*x.b); }

inline list<var> batch_normalization_rule(onnx_node& n) {
  const dtype own = n.in(0, 2).element();
  const var x = in_single(n.in(0, 2));
  const double epsilon = n.number("epsilon", 1e-5), momentum = n.number("momentum", 0.9);
  const bool trains = n.opset() >= 14 ? n.integer("training_mode", 0) != 0 : n.output_count() > 1;
  const dtype t = x.element();
  const var scale = by_channel(cast(n.in(1), t), x), offset = by_channel(cast(n.in(2), t), x);
  const var mean_before = n.in(3), variance_before = n.in(4);
  if (!trains) {
    const var m = by_channel(cast(mean_before, t), x), v = by_channel(cast(variance_before, t), x);
    return {cast((x - m) * (scale * rsqrt(v + epsilon)) + offset, own)};
  }
  const auto axes = all_but(x, 1, 1);
  const var m = mean(x, axes, true);
  const var v = mean(square(x - m), axes, true);
  const var y = (x - m) * (scale * rsqrt(v + epsilon)) + offset;
  auto moved = [&](var before, var now) {
    const var flat = cast(reshape(now, before.shape()), before.element());
    return before * momentum + flat * (1 - momentum);
  };
  return {cast(y, own), moved(mean_before, m), moved(variance_before, v)};
}
inline list<var> instance_normalization_rule(onnx_node& n) {
  const var x = n.in(0, 2);
  const var y = cella::detail::standardize(x, all_but(x, 0, 1), n.number("epsilon", 1e-5));
  return {y * by_channel(n.in(1), x) + by_channel(n.in(2), x)};
}
inline list<var> layer_normalization_rule(onnx_node& n) {
  const var x = n.in(0);
  const int first = n.axis("axis", -1, x.rank());
  std::vector<int> axes;
  for (int d = first; d < x.rank(); ++d) axes.push_back(d);
  // The statistics are computed, and handed out, in the type that `stash_type` names.
  const dtype stash = n.element("stash_type", dtype::f32);
  const var wide = cast(x, stash);
  const var m = mean(wide, axes, true);
  const var centered = wide - m;
  const var deviation = rsqrt(mean(square(centered), axes, true) + n.number("epsilon", 1e-5));
  var y = cast(centered * deviation, x.element()) * n.in(1);
  if (n.has(2)) y = y + n.in(2);
  return {y, m, deviation};
}
inline list<var> group_normalization_rule(onnx_node& n) {
  const var x = n.in(0, 2);
  const std::int64_t groups = n.integer("num_groups", 1);
  const shape s = x.shape();
  if (groups < 1 || s[1] % groups)
    n.refuse("has a number of groups that does not divide the channels");
  const var grouped = reshape(x, {s[0], groups, s.size(1, s.rank) / groups});
  const var y = cella::detail::standardize(grouped, {2}, n.number("epsilon", 1e-5));
  // Scale and bias are one for each group until opset 20, one for each channel from 21 on.
  if (n.in(1, 1, 1).extent(0) == groups && n.opset() < 21) {
    auto by_group = [&](var v) { return reshape(v, {1, groups, 1}); };
    return {reshape(y * by_group(n.in(1)) + by_group(n.in(2)), s)};
  }
  return {reshape(y, s) * by_channel(n.in(1), x) + by_channel(n.in(2), x)};
}
inline list<var> lrn_rule(onnx_node& n) {
  const dtype own = n.in(0, 2).element();
  const var x = in_single(n.in(0, 2));
  const std::int64_t size = n.between(1, n.integer("size", 1), 1 << 10, "size");
  const double alpha = n.number("alpha", 1e-4), beta = n.number("beta", 0.75),
               bias = n.number("bias", 1);
  // The sum of squares over channels c - (size - 1) / 2 to c + size / 2.
  std::vector<int> before(std::size_t(x.rank())), after = before;
  before[1] = int((size - 1) / 2);
  after[1] = int(size / 2);
  const var padded = pad(square(x), before, after, 0);
  var sums{};
  for (std::int64_t k = 0; k < size; ++k) {
    const var part = cut(padded, 1, k, x.extent(1));
    sums = k ? sums + part : part;
  }
  return {cast(x / pow(sums * (alpha / double(size)) + bias, beta), own)};
}
inline list<var> mean_variance_rule(onnx_node& n) {
  const dtype own = n.in(0).element();
  const var x = in_single(n.in(0));
  const axis_list axes = axes_in(n, n.integers("axes", {0, 2, 3}), x.rank());
  const var m = mean(x, axes, true);
  // A difference of squares may be below 0 by rounding.
  const var deviation = sqrt(mean(square(x - m), axes, true));
  return {cast((x - m) / (deviation + 1e-9), own)};
}
inline list<var> lp_normalization_rule(onnx_node& n) {
  const dtype own = n.in(0).element();
  const var x = in_single(n.in(0));
  const int axis = n.axis("axis", -1, x.rank());
  const std::int64_t p = n.integer("p", 2);
  const var norm = p == 1 ? sum(abs(x), {axis}, true) : sqrt(sum(square(x), {axis}, true));
  return {cast(select(equal(norm, 0), zeros_like(x), x / norm), own)};
}

/// The identity, unless a model that trains says its rate.
inline list<var> dropout_rule(onnx_node& n) {
  const var x = n.in(0);
  const bool trains = n.opset() >= 12 && n.has(2) && n.integer(2) != 0;
  const double rate = n.opset() >= 12 ? (n.has(1) ? n.number(1) : 0.5) : n.number("ratio", 0.5);
  if (trains && rate > 0) n.not_supported("random numbers of ONNX's own");
  const dtype mask = n.opset() >= 10 ? dtype::boolean : x.element();
  return {x, constant(n.b(), 1, {mask, x.shape()})};
}

// ---- losses

/// A loss of each sample, weighted and folded as the model says. `log_probabilities` is [N, C,
/// ...], labels are [N, ...].
inline var likelihood_loss(const onnx_node& n, var log_probabilities, var labels, int weights) {
  const shape s = log_probabilities.shape();
  const dtype t = log_probabilities.element();
  var at = cast(labels, dtype::i64);
  const bool ignores = n.has_attribute("ignore_index");
  const auto ignored = double(n.integer("ignore_index", 0));
  const var counts = ignores ? not_equal(at, ignored) : equal(at, at);
  at = select(counts, from_the_front(at, s[1]), zeros_like(at));
  const var picked = squeeze(gather_elements(log_probabilities, expand_dims(at, 1), 1), 1);
  var weight = select(counts, ones_like(picked), zeros_like(picked));
  if (n.has(weights)) weight = weight * gather(cast(n.in(weights), t), at, 0);
  const var loss = -picked * weight;
  const std::string how = n.one_of("reduction", {"mean", "none", "sum"});
  if (how == "none") return loss;
  return how == "sum" ? sum(loss) : sum(loss) / sum(weight);
}
inline list<var> negative_log_likelihood_rule(onnx_node& n) {
  return {likelihood_loss(n, n.in(0, 2), n.in(1), 2)};
}
inline list<var> softmax_cross_entropy_rule(onnx_node& n) {
  const var log_probabilities = log_softmax(n.in(0, 2), 1);
  return {likelihood_loss(n, log_probabilities, n.in(1), 2), log_probabilities};
}

inline constexpr named_onnx_rule normalization_rules[] = {
    {"BatchNormalization", batch_normalization_rule},
    {"Dropout", dropout_rule},
    {"GroupNormalization", group_normalization_rule},
    {"InstanceNormalization", instance_normalization_rule},
    {"LRN", lrn_rule},
    {"LayerNormalization", layer_normalization_rule},
    {"LpNormalization", lp_normalization_rule},
    {"MeanVarianceNormalization", mean_variance_rule},
    {"NegativeLogLikelihoodLoss", negative_log_likelihood_rule},
    {"SoftmaxCrossEntropyLoss", softmax_cross_entropy_rule},
};

}  // namespace cella::interop
