// Windows over one to three axes, and convolutions.
#pragma once

#include <cella/interop/onnx/movement.hpp>
#include <cella/ops/convolution.hpp>

namespace cella::interop {

/// What convolutions and pools say of each of their axes.
struct window_axis {
  std::int64_t extent{}, kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;

  std::int64_t taps() const { return (kernel - 1) * dilation + 1; }
  std::int64_t padded() const { return extent + before + after; }
};
using window_axes = std::vector<window_axis>;
/// The elements of a window.
inline double taps_of(const window_axes& w) {
  double taps = 1;
  for (const window_axis& a : w) taps *= double(a.kernel);
  return taps;
}

inline std::int64_t entry(const onnx_node& n, const std::vector<std::int64_t>& all, std::size_t d,
                          std::size_t count, std::int64_t otherwise) {
  if (all.empty()) return otherwise;
  if (all.size() != count) n.refuse("has not one number for each axis of its window");
  if (all[d] < 0 || all[d] > 1 << 30)
    n.refuse("has a number for its window that is negative or huge");
  return all[d];
}
/// The windows of a node over the axes of x behind the first two. Of a convolution that is
/// transposed the padding is not that of x.
inline window_axes read_windows(const onnx_node& n, var x, std::vector<std::int64_t> kernel) {
  if (x.rank() < 3 || x.rank() > 5)
    n.not_supported("windows over " + std::to_string(x.rank() - 2) + " axes");
  const auto count = std::size_t(x.rank() - 2);
  const auto strides = n.integers("strides"), dilations = n.integers("dilations");
  const auto pads = n.integers("pads");
  window_axes all(count);
  for (std::size_t d = 0; d < count; ++d) {
    window_axis& a = all[d];
    a.extent = x.extent(int(d) + 2);
    a.kernel = entry(n, kernel, d, count, 1);
    a.stride = entry(n, strides, d, count, 1);
    a.dilation = entry(n, dilations, d, count, 1);
    a.before = entry(n, pads, d, 2 * count, 0);
    a.after = entry(n, pads, d + count, 2 * count, 0);
    if (a.kernel < 1 || a.stride < 1 || a.dilation < 1)
      n.refuse("has a kernel, a stride or a dilation below 1");
  }
  return all;
}
/// Padding by name: as many windows as strides fit into the axis.
inline void pad_by_name(const onnx_node& n, window_axes& all) {
  const std::string how = n.one_of("auto_pad", {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"});
  if (how == "NOTSET") return;
  for (window_axis& a : all) {
    a.before = a.after = 0;
    if (how == "VALID") continue;
    const std::int64_t places = (a.extent + a.stride - 1) / a.stride;
    const std::int64_t more =
        std::max<std::int64_t>(0, (places - 1) * a.stride + a.taps() - a.extent);
    const std::int64_t less = more / 2;
    a.before = how == "SAME_UPPER" ? less : more - less;
    a.after = more - a.before;
  }
}
inline window window_of(const window_axis& rows, const window_axis& columns, std::int64_t groups) {
  auto pair = [](std::int64_t a, std::int64_t b) {
    return std::array{std::int32_t(a), std::int32_t(b)};
  };
  return {pair(rows.stride, columns.stride), pair(rows.before, columns.before),
          pair(rows.after, columns.after), pair(rows.dilation, columns.dilation),
          std::int32_t(groups)};
}

// ---- convolutions

/// [N, C, D, H, W] -> [N D, C, H, W], and back.
inline var depth_to_batch(var x) {
  const shape s = x.shape();
  return reshape(transpose(x, {0, 2, 1, 3, 4}), {std::int64_t{s[0]} * s[2], s[1], s[3], s[4]});
}
inline var batch_to_depth(var x, int batch) {
  const shape s = x.shape();
  return transpose(reshape(x, {batch, s[0] / batch, s[1], s[2], s[3]}), {0, 2, 1, 3, 4});
}
inline var with_bias(const onnx_node& n, var y, int i) {
  if (!n.has(i)) return y;
  shape s{1, y.extent(1)};
  while (s.rank < y.rank()) s.push_back(1);
  return y + reshape(n.in(i), s);
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
inline std::vector<std::int64_t> kernel_of(const onnx_node& n, var filter) {
  if (filter.rank() < 3) n.refuse("takes filters of rank 3 or more");
  const shape s = filter.shape();
  return {s.begin() + 2, s.end()};
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

inline constexpr named_onnx_rule window_rules[] = {
    {"Conv", convolution_rule},
    {"ConvTranspose", transposed_convolution_rule},
};

}  // namespace cella::interop
