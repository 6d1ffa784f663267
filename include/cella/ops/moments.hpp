// Mean and variance of a tensor over axes, as one operation: normalizations need both, and one pass
// over memory yields them.
#pragma once

#include <cella/ops/reduction.hpp>

namespace cella {

/// x -> mean and variance over `axes`, which the results lack; the variance is divided by the
/// count.
struct moments_op : opaque<moments_op> {
  static constexpr std::string_view name = "moments";
  using options = axes_options;
  static constexpr int results(std::span<const tensor_type> in, const attributes& o,
                               std::span<tensor_type> out) {
    out[0] = out[1] = detail::without_axes(in[0], o.as<options>().axes);
    return 2;
  }
  static constexpr attributes batch_options(node_ref n, int, unsigned) {
    return options{n.as<options>().axes << 1};
  }
  /// dx = (dmean + 2 (x - mean) dvariance) / count
  static constexpr void vjp(node_ref n, std::span<const var> dy, std::span<const char>,
                            std::span<var> dx);
  static void compute(const attributes& o, std::span<const tensor_ref> in,
                      std::span<const tensor_ref> out);
};

/// What `moments` returns.
struct mean_and_variance {
  var mean;
  var variance;
};

/// Mean and variance (divided by the count) over the axes whose bits are set.
constexpr mean_and_variance moments(operand x, unsigned axes) {
  builder& b = *x.owner();
  const node_id n = emit<moments_op>(axes_options{axes}, x.at(), x.in(b)).id;
  return {{&b, b.get(n, 0)}, {&b, b.get(n, 1)}};
}

constexpr void moments_op::vjp(node_ref n, std::span<const var> dy, std::span<const char>,
                               std::span<var> dx) {
  const var x = n.operand(0);
  const unsigned axes = n.as<options>().axes;
  const var mean = n.output(0);
  const double share = double(mean.shape().size()) / double(x.shape().size());
  auto along = [&](var v) { return detail::repeat_along(v, x.shape(), axes); };
  if (dy[1].id >= 0) dx[0] = (x - along(mean)) * along(dy[1] * (2 * share));
  if (dy[0].id >= 0) {
    const var even = along(dy[0] * share);
    dx[0] = dx[0].id >= 0 ? dx[0] + even : even;
  }
}

inline void moments_op::compute(const attributes& o, std::span<const tensor_ref> in,
                                std::span<const tensor_ref> out) {
  const unsigned axes = o.as<options>().axes;
  const auto kept = std::size_t(out[0].type.size());
  const double share = double(kept) / double(in[0].type.size());
  std::vector<double> mean(kept, 0.0), variance(kept, 0.0);
  detail::fold_axes(in[0], axes, mean.data(),
                    [&](double& a, double v, const multi_index&) { a += v * share; });
  detail::fold_axes(in[0], axes, variance.data(), [&](double& a, double v, const multi_index&) {
    const double d = v - mean[std::size_t(&a - variance.data())];
    a += d * d * share;
  });
  for (std::size_t i = 0; i < kept; ++i) {
    write_element(out[0], std::int64_t(i), mean[i]);
    write_element(out[1], std::int64_t(i), variance[i]);
  }
}

}  // namespace cella
