// How filters and pools walk over images: as options, as loops, and as attributes of ONNX.
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/iteration_space.hpp>
#include <cella/graph/onnx_attributes.hpp>
#include <cella/ops/application.hpp>
#include <cstdint>
#include <string>

namespace cella {

/// How a filter walks over an image. Pairs are (vertical, horizontal).
struct window {
  std::array<std::int32_t, 2> stride{1, 1};
  std::array<std::int32_t, 2> before{0, 0};  ///< zeros above and to the left
  std::array<std::int32_t, 2> after{0, 0};   ///< zeros below and to the right
  std::array<std::int32_t, 2> dilation{1, 1};
  std::int32_t groups = 1;

  /// Positions of a filter of `kernel` taps along axis `d` of `extent` elements.
  constexpr std::int32_t positions(std::int32_t extent, std::int32_t kernel, std::size_t d) const {
    return std::int32_t((padded(extent, d) - dilated(kernel, d)) / stride[d] + 1);
  }
  /// Elements of an axis with its zeros, and those from a filter's first tap to its last. In 64
  /// bits, since sums of options may exceed what an extent can be.
  constexpr std::int64_t padded(std::int32_t extent, std::size_t d) const {
    return std::int64_t{extent} + before[d] + after[d];
  }
  constexpr std::int64_t dilated(std::int32_t kernel, std::size_t d) const {
    return std::int64_t{dilation[d]} * (kernel - 1) + 1;
  }
  friend constexpr bool operator==(const window&, const window&) = default;
};

namespace detail {

/// Where along axis `axis` of an image the taps of a window lie, factor `tap`, at positions of
/// factor `place`.
constexpr void walk_window(iteration_space& s, const window& o, std::size_t d, int image, int place,
                           int tap) {
  s.along(image, int(d) + 2, place, o.stride[d]);
  s.along(image, int(d) + 2, tap, o.dilation[d]);
  s.offset(image, int(d) + 2, -o.before[d]);
}
/// The tensors of a convolution by their places among operands and result.
struct convolution_roles {
  int image{}, filter{}, result{};
};
/// Factors: image, group, filter of a group, row and column of the result, channel of a group, row
/// and column of the filter's taps. Without groups there is no factor for them.
constexpr iteration_space convolution_space(const tensor_type& filter, const tensor_type& result,
                                            const window& o, convolution_roles t) {
  iteration_space s(2);
  const int n = s.add(result[0]);
  const int g = o.groups > 1 ? s.add(o.groups) : iteration_space::none;
  const int f = s.add(filter[0] / o.groups);
  const int y = s.add(result[2]), x = s.add(result[3]);
  const int c = s.add(filter[1]);
  const int p = s.add(filter[2]), q = s.add(filter[3]);
  s.along(t.image, 0, n);
  s.along(t.image, 1, g, filter[1]);
  s.along(t.image, 1, c);
  walk_window(s, o, 0, t.image, y, p);
  walk_window(s, o, 1, t.image, x, q);
  for (int tensor : {t.filter, t.result}) {
    const int axis = tensor == t.filter ? 0 : 1;
    s.along(tensor, axis, g, filter[0] / o.groups);
    s.along(tensor, axis, f);
  }
  s.along_all(t.filter, c, 3, 1);
  s.along(t.result, 0, n);
  s.along_all(t.result, y, 2, 2);
  s.over = combination::sum;
  return s;
}
inline bool is_sound(const window& w) {
  bool sound = w.groups >= 1;
  for (std::size_t d = 0; d < 2; ++d)
    sound = sound && w.stride[d] >= 1 && w.dilation[d] >= 1 && w.before[d] >= 0 && w.after[d] >= 0;
  return sound;
}
/// Whether windows of these taps have `places` positions along axis `d` of an image.
inline bool takes_places(const window& w, int extent, int taps, std::size_t d, int places) {
  return extent >= 0 && taps >= 1 && w.padded(extent, d) >= w.dilated(taps, d) &&
         (w.padded(extent, d) - w.dilated(taps, d)) / w.stride[d] + 1 == places;
}
/// A convolution by the shapes of its tensors; tensor 2 is the node's result.
inline bool fits_convolution(const op_application& a, const window& w, convolution_roles t) {
  const auto of = [&](int k) { return k < 2 ? a.of(k) : a.n.type.shape; };
  const shape x = of(t.image), f = of(t.filter), y = of(t.result);
  return a.in[0].element == a.in[1].element && is_sound(w) && x.rank == 4 && f.rank == 4 &&
         y.rank == 4 && x[0] == y[0] && y[1] == f[0] && f[0] % w.groups == 0 &&
         std::int64_t{f[1]} * w.groups == x[1] && takes_places(w, x[2], f[2], 0, y[2]) &&
         takes_places(w, x[3], f[3], 1, y[3]);
}
/// What windows have as attributes in ONNX. Its pads are all those before, then all those after.
/// Pools have had dilations since opsets 10 and 19; they are written only where they say something.
inline void write_onnx_window(const window& w, const std::array<std::int32_t, 2>& kernel,
                              onnx_attributes& to) {
  using ints = list<std::int64_t>;
  to.set("kernel_shape", ints{kernel[0], kernel[1]});
  to.set("strides", ints{w.stride[0], w.stride[1]});
  to.set("pads", ints{w.before[0], w.before[1], w.after[0], w.after[1]});
  if (w.dilation != std::array{1, 1}) to.set("dilations", ints{w.dilation[0], w.dilation[1]});
}
/// `extents` are those of the image, which "SAME" pads so that there is a place for each stride.
inline window read_onnx_window(const onnx_attributes& from,
                               const std::array<std::int32_t, 2>& kernel,
                               const std::array<std::int32_t, 2>& extents) {
  window w;
  w.stride = from.integers("strides", w.stride);
  w.dilation = from.integers("dilations", w.dilation);
  const auto pads = from.integers("pads", std::array<std::int32_t, 4>{});
  w.before = {pads[0], pads[1]};
  w.after = {pads[2], pads[3]};
  const std::string padding = from.string("auto_pad", "NOTSET");
  if (padding == "NOTSET") return w;
  const bool upper = padding == "SAME_UPPER";
  if (!upper && padding != "SAME_LOWER" && padding != "VALID")
    from.refuse("auto_pad", "is unknown");
  if (from.find("pads")) from.refuse("pads", "stands beside auto_pad");
  for (std::size_t d = 0; padding != "VALID" && d < 2; ++d) {
    if (w.stride[d] < 1) from.refuse("strides", "must be positive");
    const std::int64_t places = (std::int64_t{extents[d]} + w.stride[d] - 1) / w.stride[d];
    const std::int64_t all = (places - 1) * w.stride[d] + w.dilated(kernel[d], d) - extents[d];
    const auto total = std::int32_t(std::max<std::int64_t>(all, 0));
    w.before[d] = upper ? total / 2 : total - total / 2;
    w.after[d] = total - w.before[d];
  }
  return w;
}
/// The same of a convolution, whose filter tells its kernel.
inline window read_onnx_convolution(span<const tensor_type> in, const onnx_attributes& from,
                                    const std::array<std::int32_t, 2>& extents) {
  const std::array<std::int32_t, 2> kernel{in[1][2], in[1][3]};
  if (from.integers("kernel_shape", kernel) != kernel)
    from.refuse("kernel_shape", "is not that of the filter");
  window w = read_onnx_window(from, kernel, extents);
  w.groups = from.integer("group", 1);
  return w;
}

}  // namespace detail

}  // namespace cella
