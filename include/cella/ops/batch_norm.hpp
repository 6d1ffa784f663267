// Batch normalization by a batch's own statistics, and its gradient: operations of their own,
// because kernels get by with two passes over memory.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/reduction.hpp>
#include <cmath>

namespace cella {

struct batch_norm_options {
  double epsilon = 1e-5;
};

namespace detail {
/// Every axis but that of the channels.
constexpr unsigned all_but_channels(int rank) { return ((1u << rank) - 1) & ~2u; }
constexpr var along_channels(var v, const shape& full) {
  return repeat_along(v, full, all_but_channels(full.rank));
}
constexpr var sum_to_channels(var v) {
  return sum_axes(v, all_but_channels(v.rank()), std::source_location::current());
}
/// The first `images` operands and the first result are images, the others hold a number for each
/// channel. The statistics need all elements of a channel.
constexpr iteration_space batch_norm_space(const shape& s, int operands, int images) {
  iteration_space space{std::size_t(operands)};
  space.add(s);
  for (int d = 0; d < s.rank; ++d) space.factors[std::size_t(d)].whole = d != 1;
  for (int t = 0; t < operands + 3; ++t) {
    if (t < images || t == operands)
      space.along_all(t, 0, s.rank);
    else
      space.along(t, 0, 1);
  }
  return space;
}
/// The first `images` operands are images of one shape, all others have a number per channel.
inline bool fits_batch_norm(const op_application& a, int images) {
  bool fits = a.rank() >= 2;
  for (int k = 0; fits && k < int(a.in.size()); ++k)
    fits = is_floating(a.in[std::size_t(k)].element) &&
           a.of(k) == (k < images ? a.of(0) : shape{a.of(0)[1]});
  return fits;
}
/// Calls f(element, channel) for each element.
template <class F>
void for_each_channel(const shape& s, F f) {
  const std::int64_t inner = s.size(2, s.rank), n = s.size();
  for (std::int64_t i = 0; i < n; ++i) f(i, std::size_t(i / inner % s[1]));
}
}  // namespace detail

/// x [N,C,...], gamma [C], beta [C] -> (x - mean) / sqrt(variance + epsilon) gamma + beta, and mean
/// and variance [C] of x; the variance is divided by the count.  Ioffe and Szegedy 2015
struct batch_norm_op : opaque<batch_norm_op>, computed_in_single {
  static constexpr std::string_view name = "batch_norm";
  static constexpr std::string_view torch = "F.batch_norm";
  static constexpr std::string_view formula =
      "y = (x - mean) / sqrt(variance + epsilon) gamma + beta by channel, with mean and variance";
  static constexpr compute_class computes = compute_class::normalization;
  static constexpr int operations_per_point = 6;
  using options = batch_norm_options;
  static constexpr int operands = 3;
  static bool fits(const op_application& a) { return detail::fits_batch_norm(a, 1); }
  static constexpr int results(span<const tensor_type> in, const attributes&,
                               span<tensor_type> out) {
    out[0] = in[0];
    out[1] = out[2] = in[1];
    return 3;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes&) {
    return detail::batch_norm_space(in[0].shape, 3, 1);
  }
  /// Of n numbers none lies more than sqrt(n - 1) standard deviations from their mean.
  static interval bounds(span<const interval> in, span<const tensor_type> types,
                         const attributes&) {
    const double n = double(types[0].size()) / types[0][1];
    const double most = std::sqrt(std::max(n - 1, 0.0));
    return interval{-most, most} * in[1] + in[2];
  }
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx);
  static constexpr void jvp(node_ref n, span<const var> dx, span<var> dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// dy and x [N,C,...], gamma, mean, variance [C] -> the gradients of x, gamma and beta.
struct batch_norm_gradient_op : opaque<batch_norm_gradient_op>, computed_in_single {
  static constexpr std::string_view name = "batch_norm_gradient";
  static constexpr std::string_view formula = "dx, dgamma, dbeta of batch_norm";
  static constexpr compute_class computes = compute_class::normalization;
  static constexpr int operations_per_point = 10;
  using options = batch_norm_options;
  static constexpr int operands = 5;
  static bool fits(const op_application& a) { return detail::fits_batch_norm(a, 2); }
  static constexpr int results(span<const tensor_type> in, const attributes&,
                               span<tensor_type> out) {
    out[0] = in[0];
    out[1] = out[2] = in[2];
    return 3;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes&) {
    return detail::batch_norm_space(in[0].shape, 5, 2);
  }
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// What batch normalization returns in training: the result, and the statistics [C] of the batch,
/// from which a cell updates its running ones. The variance is divided by the count.
struct batch_normalized {
  var value;
  var mean;
  var variance;
};

namespace detail {
constexpr batch_normalized normalize_batch(operand x, var gamma, var beta, double epsilon) {
  builder& b = *x.owner();
  const node_id n =
      emit<batch_norm_op>(batch_norm_options{epsilon}, x.at(), x.in(b), gamma, beta).id;
  return {{&b, b.get(n, 0)}, {&b, b.get(n, 1)}, {&b, b.get(n, 2)}};
}
}  // namespace detail

// ---- rules

constexpr void batch_norm_op::vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
  builder& b = *n.b;
  const var x = n.operand(0), mean = n.output(1), variance = n.output(2);
  if (dy[0].id >= 0) {
    const node_id g = emit<batch_norm_gradient_op>(n.as<options>(), std::source_location::current(),
                                                   dy[0], x, n.operand(1), mean, variance)
                          .id;
    for (int k = 0; k < 3; ++k) dx[std::size_t(k)] = {&b, b.get(g, k)};
  }
  // Through the statistics: dx = (dmean + 2 (x - mean) dvariance) / count
  const double share = double(mean.shape().size()) / double(x.shape().size());
  auto add = [&](var d) { dx[0] = dx[0].id >= 0 ? dx[0] + d : d; };
  if (dy[1].id >= 0) add(detail::along_channels(dy[1] * share, x.shape()));
  if (dy[2].id >= 0)
    add((x - detail::along_channels(mean, x.shape())) *
        detail::along_channels(dy[2] * (2 * share), x.shape()));
}

/// With h = (x - mean) r and r = 1 / sqrt(variance + epsilon): dmean = mean(dx), dvariance = 2
/// mean((x - mean) dx), dy = gamma r (dx - dmean - h r dvariance / 2) + dgamma h + dbeta.
constexpr void batch_norm_op::jvp(node_ref n, span<const var> dx, span<var> dy) {
  const var x = n.operand(0);
  auto along = [&](var v) { return detail::along_channels(v, x.shape()); };
  const var centred = x - along(n.output(1)), r = rsqrt(n.output(2) + n.as<options>().epsilon);
  auto add = [&](var d) { dy[0] = dy[0].id >= 0 ? dy[0] + d : d; };
  if (dx[0].id >= 0) {
    const double share = double(r.shape().size()) / double(x.shape().size());
    auto mean = [&](var v) { return detail::sum_to_channels(v) * share; };
    dy[1] = mean(dx[0]);
    dy[2] = mean(centred * dx[0]) * 2;
    const var scale = n.operand(1) * r;
    add(along(scale) * (dx[0] - along(dy[1])) - centred * along(scale * square(r) * dy[2] * 0.5));
  }
  if (dx[1].id >= 0) add(centred * along(r * dx[1]));
  if (dx[2].id >= 0) add(along(dx[2]));
}

/// With h = (x - mean) r, r = 1 / sqrt(variance + epsilon), S the sum over all but the channels and
/// k = gamma r / count: beta' = S(dy), gamma' = S(dy h), x' = k (count dy - beta' - h gamma').
/// Their cotangents a (of x'), c (of gamma') and d (of beta') yield what follows.
constexpr void batch_norm_gradient_op::vjp(node_ref n, span<const var> dy, span<const char>,
                                           span<var> dx) {
  const var g = n.operand(0), x = n.operand(1), gamma = n.operand(2), mean = n.operand(3);
  const shape full = x.shape();
  const double count = double(full.size()) / double(gamma.shape().size());
  auto along = [&](var v) { return detail::along_channels(v, full); };
  auto total = [](var v) { return detail::sum_to_channels(v); };
  const var r = rsqrt(n.operand(4) + n.as<options>().epsilon);
  const var centred = x - along(mean);
  const var h = centred * along(r);
  const var a = dy[0].id >= 0 ? dy[0] : zeros_like(x);
  const var c = dy[1].id >= 0 ? dy[1] : zeros_like(gamma);
  const var d = dy[2].id >= 0 ? dy[2] : zeros_like(gamma);
  const var k = gamma * r * (1 / count);
  const var sum_g = total(g), sum_gh = total(g * h), sum_a = total(a), sum_ah = total(a * h);
  const var q = count * total(a * g) - sum_g * sum_a - sum_gh * sum_ah;
  dx[0] = along(k) * (count * a - along(sum_a) - h * along(sum_ah)) + along(c) * h + along(d);
  const var dh = along(c) * g - along(k) * (along(sum_gh) * a + along(sum_ah) * g);
  dx[1] = along(r) * dh;
  dx[2] = r * q * (1 / count);
  dx[3] = -r * total(dh);
  dx[4] = (total(dh * centred) + gamma * q * (1 / count)) * (-0.5) * r * r * r;
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void batch_norm_op::compute(const attributes& o, span<const tensor_ref> in,
                                   span<const tensor_ref> out) {
  const shape full = in[0].type.shape;
  const auto channels = std::size_t(full[1]);
  const double share = double(channels) / double(full.size());
  list<double> mean(channels, 0.0), variance(channels, 0.0);
  detail::for_each_channel(
      full, [&](std::int64_t i, std::size_t c) { mean[c] += read_element(in[0], i) * share; });
  detail::for_each_channel(full, [&](std::int64_t i, std::size_t c) {
    const double d = read_element(in[0], i) - mean[c];
    variance[c] += d * d * share;
  });
  detail::for_each_channel(full, [&](std::int64_t i, std::size_t c) {
    const double r = 1 / std::sqrt(variance[c] + o.as<options>().epsilon);
    const auto at = std::int64_t(c);
    write_element(
        out[0], i,
        (read_element(in[0], i) - mean[c]) * r * read_element(in[1], at) + read_element(in[2], at));
  });
  for (std::size_t c = 0; c < channels; ++c) {
    write_element(out[1], std::int64_t(c), mean[c]);
    write_element(out[2], std::int64_t(c), variance[c]);
  }
}
inline void batch_norm_gradient_op::compute(const attributes& o, span<const tensor_ref> in,
                                            span<const tensor_ref> out) {
  const shape full = in[0].type.shape;
  const auto channels = std::size_t(full[1]);
  const double share = double(channels) / double(full.size());
  list<double> r(channels, 0.0), gamma(channels, 0.0), beta(channels, 0.0);
  for (std::size_t c = 0; c < channels; ++c)
    r[c] = 1 / std::sqrt(read_element(in[4], std::int64_t(c)) + o.as<options>().epsilon);
  auto normalized = [&](std::int64_t i, std::size_t c) {
    return (read_element(in[1], i) - read_element(in[3], std::int64_t(c))) * r[c];
  };
  detail::for_each_channel(full, [&](std::int64_t i, std::size_t c) {
    beta[c] += read_element(in[0], i);
    gamma[c] += read_element(in[0], i) * normalized(i, c);
  });
  detail::for_each_channel(full, [&](std::int64_t i, std::size_t c) {
    const double dx = read_element(in[0], i) - (beta[c] + normalized(i, c) * gamma[c]) * share;
    write_element(out[0], i, dx * r[c] * read_element(in[2], std::int64_t(c)));
  });
  for (std::size_t c = 0; c < channels; ++c) {
    write_element(out[1], std::int64_t(c), gamma[c]);
    write_element(out[2], std::int64_t(c), beta[c]);
  }
}

#endif

}  // namespace cella
