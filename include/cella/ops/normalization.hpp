// Normalizations as compositions: batch, layer, RMS, group, instance, local response.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/batch_norm.hpp>
#include <cella/ops/padding.hpp>

namespace cella {

namespace detail {

/// [C] -> an extent-1 axis for every axis but `axis`, so that it broadcasts against x.
constexpr var along_axis(var vector, int rank, int axis) {
  shape s;
  for (int i = 0; i < rank; ++i) s.push_back(i == axis ? vector.extent(0) : 1);
  return reshape(vector, s);
}

/// A fault unless x has an axis `axis` and each of `vectors` has one element per place along it.
constexpr bool fits_channels(std::string_view op, operand x, int axis,
                             std::initializer_list<var> vectors) {
  const var v = x.in(*x.owner());
  const int a = find_axis(op, v, axis, x.at());
  if (a < 0) return false;
  for (const var& c : vectors) {
    if (c.rank() == 1 && c.extent(0) == v.extent(a)) continue;
    v.b->fail(text() << x.at() << ": " << op << ": " << v.b->describe(c.id) << " is " << c.shape()
                     << ", but axis " << axis << " of " << v.b->describe(v.id) << " " << v.shape()
                     << " has " << v.extent(a) << " channels");
    return false;
  }
  return true;
}

/// (x - mean) / sqrt(variance + epsilon) over axes.
constexpr var standardize(operand x, const axis_list& axes, double epsilon) {
  const dtype t = x.in(*x.owner()).element();
  const operand wide = in_single(x, t);
  const var centered = wide.in(*x.owner()) - operand(mean(wide, axes, true), x.at());
  const var spread = mean({square(centered), x.at()}, axes, true);
  return rounded({centered * rsqrt(spread + epsilon), x.at()}, t);
}

constexpr var scale_channels(var x, var scale, var offset, int axis) {
  return x * along_axis(scale, x.rank(), axis) + along_axis(offset, x.rank(), axis);
}

}  // namespace detail

/// Normalizes each channel over the batch: x [N,C,...] (channels along `axis`), gamma and beta [C].
/// Ioffe and Szegedy 2015
CELLA_ONCE constexpr batch_normalized batch_norm(operand x, operand gamma, operand beta,
                                                 double epsilon = 1e-5, int axis = 1) {
  builder& b = *x.owner();
  const var v = x.in(b);
  const var scale = gamma.in(b);
  const var offset = beta.in(b);
  if (!detail::fits_channels("batch_norm", x, axis, {scale, offset})) return {v, scale, offset};
  const int a = axis < 0 ? axis + v.rank() : axis;
  const unsigned others = ((1u << v.rank()) - 1) & ~(1u << a);
  if (is_storage_only(v.element())) {
    const auto wide = [&](operand o) { return detail::in_single(o, v.element()); };
    const batch_normalized r = batch_norm(wide(x), wide(gamma), wide(beta), epsilon, a);
    const auto rounded = [&](var y, var like) {
      return detail::rounded({y, x.at()}, like.element());
    };
    return {rounded(r.value, v), rounded(r.mean, scale), rounded(r.variance, scale)};
  }
  if (a == 1) return detail::normalize_batch({v, x.at()}, scale, offset, epsilon);
  const double share = 1 / double(v.shape().size() / v.extent(a));
  auto channel_mean = [&](var y) { return sum_axes(y, others, x.at()) * operand(share, x.at()); };
  const var m = channel_mean(v);
  const var centered = v - detail::along_axis(m, v.rank(), a);
  const var s = channel_mean(square(centered));
  const var y = centered * detail::along_axis(rsqrt(s + epsilon) * scale, v.rank(), a) +
                detail::along_axis(offset, v.rank(), a);
  return {y, m, s};
}
/// The same with given statistics [C], as in inference.
CELLA_ONCE constexpr var batch_norm(operand x, operand gamma, operand beta, operand running_mean,
                                    operand running_variance, double epsilon = 1e-5, int axis = 1) {
  builder& b = *x.owner();
  const var v = x.in(b);
  const var scale = gamma.in(b);
  const var offset = beta.in(b);
  const var m = running_mean.in(b);
  const var s = running_variance.in(b);
  if (!detail::fits_channels("batch_norm", x, axis, {scale, offset, m, s})) return v;
  const int a = axis < 0 ? axis + v.rank() : axis;
  const auto wide = [&](var o) { return detail::in_single({o, x.at()}, v.element()).in(b); };
  const var factor = rsqrt(wide(s) + epsilon) * wide(scale);
  const var y = detail::scale_channels(wide(v), factor, wide(offset) - wide(m) * factor, a);
  return detail::rounded({y, x.at()}, v.element());
}

/// Normalizes each sample over `axes`; gamma and beta broadcast against x. Ba et al. 2016
CELLA_ONCE constexpr var layer_norm(operand x, operand gamma, operand beta,
                                    const axis_list& axes = {-1}, double epsilon = 1e-5) {
  const dtype t = x.in(*x.owner()).element();
  const auto wide = [t](operand o) { return detail::in_single(o, t); };
  const var y = detail::standardize(wide(x), axes, epsilon) * wide(gamma) + wide(beta);
  return detail::rounded({y, x.at()}, t);
}
/// x / sqrt(mean(x^2) + epsilon) times gamma. Zhang and Sennrich 2019
constexpr var rms_norm(operand x, operand gamma, const axis_list& axes = {-1},
                       double epsilon = 1e-6) {
  const dtype t = x.in(*x.owner()).element();
  const auto wide = [t](operand o) { return detail::in_single(o, t); };
  const var v = wide(x).in(*x.owner());
  const var y = v * rsqrt(mean({square(v), x.at()}, axes, true) + epsilon) * wide(gamma);
  return detail::rounded({y, x.at()}, t);
}
/// Normalizes groups of channels of each sample: x [N,C,...], gamma and beta [C]. Wu and He 2018
constexpr var group_norm(operand x, operand gamma, operand beta, int groups,
                         double epsilon = 1e-5) {
  builder& b = *x.owner();
  const var v = x.in(b);
  const var scale = gamma.in(b);
  const var offset = beta.in(b);
  if (!detail::fits_channels("group_norm", x, 1, {scale, offset})) return v;
  if (groups < 1 || v.extent(1) % groups) {
    b.fail(text() << x.at() << ": group_norm: " << groups << " groups do not divide the "
                  << v.extent(1) << " channels of " << b.describe(v.id) << " " << v.shape());
    return v;
  }
  // All in one shape, so that a sweep over the groups applies the channels' numbers, too.
  const int channels = v.extent(1) / groups;
  const auto wide = [&](operand o) { return detail::in_single(o, v.element()); };
  const var grouped =
      reshape(wide(x), {v.extent(0), groups, channels, v.shape().size(2, v.rank())});
  const auto of_channels = [&](operand c) { return reshape(wide(c), {groups, channels, 1}); };
  const var y = detail::standardize({grouped, x.at()}, {2, 3}, epsilon);
  const var scaled = reshape(y * of_channels(gamma) + of_channels(beta), v.shape());
  return detail::rounded({scaled, x.at()}, v.element());
}
/// Normalizes each channel of each sample: x [N,C,...]. Ulyanov et al. 2016
constexpr var instance_norm(operand x, double epsilon = 1e-5) {
  builder& b = *x.owner();
  const var v = x.in(b);
  if (v.rank() < 3) {
    b.fail(text() << x.at() << ": instance_norm: needs [N,C,...]: " << b.describe(v.id) << " is "
                  << v.shape());
    return v;
  }
  const var lines = reshape(x, {v.extent(0), v.extent(1), v.shape().size(2, v.rank())});
  return reshape(detail::standardize({lines, x.at()}, {2}, epsilon), v.shape());
}
/// x / (k + alpha / size * sum of x^2 over `size` neighbouring channels)^beta: x [N,C,...].
/// Krizhevsky et al. 2012
constexpr var local_response_norm(operand x, int size, double alpha = 1e-4, double beta = 0.75,
                                  double k = 1) {
  builder& b = *x.owner();
  const var v = x.in(b);
  if (v.rank() < 2 || size < 1) {
    b.fail(text() << x.at() << ": local_response_norm: needs [N,C,...] and a positive size: "
                  << b.describe(v.id) << " is " << v.shape() << ", the size is " << size);
    return v;
  }
  std::array<int, max_rank> before{};
  std::array<int, max_rank> after{};
  before[1] = size / 2;
  after[1] = (size - 1) / 2;
  const auto rank = std::size_t(v.rank());
  const var wide = detail::in_single(x, v.element()).in(b);
  const var squares = pad({square(wide), x.at()}, span<const int>(before.data(), rank),
                          span<const int>(after.data(), rank));
  var total = slice(squares, 1, 0, v.extent(1));
  for (int i = 1; i < size; ++i) total += slice(squares, 1, i, i + v.extent(1));
  const var scale = total * (alpha / size) + k;
  const auto times = [&](var factor) {
    return detail::rounded({wide * factor, x.at()}, v.element());
  };
  // The usual exponent needs no power.
  if (beta == 0.75 && k > 0) {
    const var root = rsqrt(scale);
    return times(root * sqrt(root));
  }
  return times(pow(scale, -beta));
}

}  // namespace cella
