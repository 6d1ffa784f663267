// Convolutions over one to three axes.
#pragma once

#include <cella/interop/onnx/padding.hpp>
#include <cella/interop/onnx/windows.hpp>
#include <cella/ops/convolution.hpp>

namespace cella::interop {

inline var with_bias(const onnx_node& n, var y, int i) {
  return n.has(i) ? y + by_channel(n.in(i), y) : y;
}
/// Convolution of x with filters, over the axes of `w`.
inline var convolved(const onnx_node& n, var x, var filter, const window_axes& w) {
  const std::int64_t groups = n.between(1, n.integer("group", 1), 1 << 30, "group");
  if (w.size() == 1) {
    const var y = conv2d(expand_dims(x, 2), expand_dims(filter, 2), window_of({}, w[0], groups));
    return squeeze(y, 2);
  }
  if (w.size() == 2) return conv2d(x, filter, window_of(w[0], w[1], groups));
  // A sum over the filter's depth of convolutions of slices.
  const window_axis& depth = w[0];
  const auto zeros = [&](std::int64_t width) { return std::vector<int>{0, 0, int(width), 0, 0}; };
  const var padded = pad(x, zeros(depth.before), zeros(depth.after));
  if (depth.padded() < depth.taps()) n.refuse("has filters that are deeper than the padded image");
  n.between(1, depth.kernel, 1 << 10, "depth of the filter");
  const std::int64_t places = (depth.padded() - depth.taps()) / depth.stride + 1;
  var all{};
  for (std::int64_t k = 0; k < depth.kernel; ++k) {
    grid g{{}, grid{}.step, padded.shape()};
    g.start[2] = std::int32_t(k * depth.dilation);
    g.step[2] = places > 1 ? std::int32_t(depth.stride) : 1;
    g.count[2] = std::int32_t(places);
    const var taps = squeeze(cut(filter, 2, k, 1), 2);
    const var y = conv2d(depth_to_batch(cut(padded, g)), taps, window_of(w[1], w[2], groups));
    all = k ? all + y : y;
  }
  return batch_to_depth(all, x.extent(0));
}
inline list<var> convolution_rule(onnx_node& n) {
  const var x = n.in(0), filter = n.in(1);
  window_axes w = read_windows(n, x, kernel_of(n, filter));
  pad_by_name(n, w);
  return {with_bias(n, convolved(n, x, filter, w), 2)};
}

/// Zeros between the slices of an axis, `stride` - 1 of them, and none behind the last.
inline var spread(var x, int axis, std::int64_t stride) {
  if (stride == 1) return x;
  std::vector<int> none(std::size_t(x.rank()) + 1), behind = none;
  behind[std::size_t(axis) + 1] = int(stride) - 1;
  shape s = x.shape();
  s[axis] *= std::int32_t(stride);
  const var y = reshape(pad(expand_dims(x, axis + 1), none, behind), s);
  return cut(y, axis, 0, s[axis] - stride + 1);
}
inline list<var> transposed_convolution_rule(onnx_node& n) {
  const var x = n.in(0), filter = n.in(1);
  const std::int64_t groups = n.between(1, n.integer("group", 1), 1 << 30, "group");
  window_axes w = read_windows(n, x, kernel_of(n, filter));
  const auto wanted = n.integers("output_shape"), more = n.integers("output_padding");
  const std::string how = n.one_of("auto_pad", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  std::vector<std::int64_t> extra(w.size());
  if (!wanted.empty() && wanted.size() < w.size()) n.refuse("has too short an output_shape");
  for (std::size_t d = 0; d < w.size(); ++d) {
    window_axis& a = w[d];
    extra[d] = entry(n, more, d, w.size(), 0);
    const std::int64_t whole = a.stride * (a.extent - 1) + extra[d] + a.taps();
    n.between(1, whole - a.before - a.after, 1 << 30, "result's extent");
    if (wanted.empty() && how == "NOTSET") continue;
    // What the result lacks of the whole is cut off at both ends.
    std::int64_t target = whole;
    if (!wanted.empty())
      target = n.between(1, wanted.at(wanted.size() - w.size() + d), 1 << 30, "extent");
    else if (how != "VALID")
      target = a.extent * a.stride;
    const std::int64_t total = whole - target;
    const std::int64_t half = total > 0 ? total / 2 : 0;
    a.before = how == "SAME_UPPER" ? half : total - half;
    a.after = total - a.before;
    // A result that is larger than the whole has zeros behind.
    if (total < 0) {
      a.before = a.after = 0;
      extra[d] -= total;
    }
  }
  // Some of the rows behind may be more than a stride away: the result is padded for these.
  auto transposed = [&](var image, var taps, window_axis rows, window_axis columns,
                        std::int64_t extra_rows, std::int64_t extra_columns) {
    const window full = window_of({.stride = rows.stride, .dilation = rows.dilation},
                                  {.stride = columns.stride, .dilation = columns.dilation}, groups);
    var y = conv2d_transpose(image, taps, full);
    y = pad(y, {0, 0, 0, 0}, {0, 0, int(extra_rows), int(extra_columns)});
    y = cut(y, 2, rows.before, y.extent(2) - rows.before - rows.after);
    return cut(y, 3, columns.before, y.extent(3) - columns.before - columns.after);
  };
  if (w.size() == 1) {
    const var y = transposed(expand_dims(x, 2), expand_dims(filter, 2), {}, w[0], 0, extra[0]);
    return {with_bias(n, squeeze(y, 2), 2)};
  }
  if (w.size() == 2)
    return {with_bias(n, transposed(x, filter, w[0], w[1], extra[0], extra[1]), 2)};
  const window_axis& depth = w[0];
  n.between(1, depth.kernel, 1 << 10, "depth of the filter");
  var all{};
  for (std::int64_t k = 0; k < depth.kernel; ++k) {
    const var taps = squeeze(cut(filter, 2, k, 1), 2);
    const var y = transposed(depth_to_batch(x), taps, w[1], w[2], extra[1], extra[2]);
    const var at = spread(batch_to_depth(y, x.extent(0)), 2, depth.stride);
    const auto zeros = [&](std::int64_t width) { return std::vector<int>{0, 0, int(width), 0, 0}; };
    const std::int64_t behind = (depth.kernel - 1 - k) * depth.dilation + extra[0];
    const var placed = pad(at, zeros(k * depth.dilation), zeros(behind));
    all = k ? all + placed : placed;
  }
  all = cut(all, 2, depth.before, all.extent(2) - depth.before - depth.after);
  return {with_bias(n, all, 2)};
}

inline constexpr named_onnx_rule convolution_rules[] = {
    {"Conv", convolution_rule},
    {"ConvTranspose", transposed_convolution_rule},
};

}  // namespace cella::interop
