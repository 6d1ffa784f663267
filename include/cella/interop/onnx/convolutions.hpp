// Convolutions over one to three axes.
#pragma once

#include <cella/interop/onnx/padding.hpp>
#include <cella/interop/onnx/windows.hpp>
#include <cella/ops/convolution_nd.hpp>

namespace cella::interop {

inline var with_bias(const onnx_node& n, var y, int i) {
  return n.has(i) ? y + by_channel(n.in(i), y) : y;
}
inline volume_window volume_window_of(const window_axes& w, std::int64_t groups) {
  volume_window v;
  v.groups = std::int32_t(groups);
  for (std::size_t d = 0; d < 3; ++d) {
    v.stride[d] = std::int32_t(w[d].stride);
    v.dilation[d] = std::int32_t(w[d].dilation);
    v.before[d] = std::int32_t(w[d].before);
    v.after[d] = std::int32_t(w[d].after);
  }
  return v;
}
/// Convolution of x with filters, over the axes of `w`.
inline var convolved(const onnx_node& n, var x, var filter, const window_axes& w) {
  const std::int64_t groups = n.between(1, n.integer("group", 1), 1 << 30, "group");
  if (w.size() == 1) {
    const var y = conv2d(expand_dims(x, 2), expand_dims(filter, 2), window_of({}, w[0], groups));
    return squeeze(y, 2);
  }
  if (w.size() == 2) return conv2d(x, filter, window_of(w[0], w[1], groups));
  n.between(1, w[0].kernel, 1 << 10, "depth of the filter");
  return conv3d(x, filter, volume_window_of(w, groups));
}
inline list<var> convolution_rule(onnx_node& n) {
  const var x = n.in(0), filter = n.in(1);
  window_axes w = read_windows(n, x, kernel_of(n, filter));
  pad_by_name(n, w);
  return {with_bias(n, convolved(n, x, filter, w), 2)};
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
  // The whole result, to which rows behind are added, since they may be more than a stride away.
  window_axes whole = w;
  for (window_axis& a : whole) a.before = a.after = 0;
  var y{};
  if (w.size() == 1) {
    const window walk = window_of({}, whole[0], groups);
    y = squeeze(conv2d_transpose(expand_dims(x, 2), expand_dims(filter, 2), walk), 2);
  } else if (w.size() == 2) {
    y = conv2d_transpose(x, filter, window_of(whole[0], whole[1], groups));
  } else {
    n.between(1, w[0].kernel, 1 << 10, "depth of the filter");
    y = conv3d_transpose(x, filter, volume_window_of(whole, groups));
  }
  std::vector<int> none(std::size_t(x.rank())), behind = none;
  for (std::size_t d = 0; d < w.size(); ++d) behind[d + 2] = int(extra[d]);
  y = pad(y, none, behind);
  for (std::size_t d = 0; d < w.size(); ++d) {
    const int axis = int(d) + 2;
    y = cut(y, axis, w[d].before, y.extent(axis) - w[d].before - w[d].after);
  }
  return {with_bias(n, y, 2)};
}

inline constexpr named_onnx_rule convolution_rules[] = {
    {"Conv", convolution_rule},
    {"ConvTranspose", transposed_convolution_rule},
};

}  // namespace cella::interop
