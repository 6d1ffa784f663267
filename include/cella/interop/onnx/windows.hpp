// How filters and pools of a model walk over one to three axes.
#pragma once

#include <cella/interop/onnx/constants.hpp>
#include <cella/ops/window.hpp>

namespace cella::interop {

/// What convolutions and pools say of each of their axes.
struct window_axis {
  std::int64_t extent{}, kernel = 1, stride = 1, dilation = 1, before = 0, after = 0;
  std::int64_t beyond = 0;  ///< of `after`, what the last window has beyond the model's padding

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
  if (x.shape().size() == 0) n.refuse("takes images that are not empty");
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

inline std::vector<std::int64_t> kernel_of(const onnx_node& n, var filter) {
  if (filter.rank() < 3) n.refuse("takes filters of rank 3 or more");
  const shape s = filter.shape();
  return {s.begin() + 2, s.end()};
}

}  // namespace cella::interop
