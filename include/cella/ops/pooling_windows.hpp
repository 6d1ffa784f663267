// The windows of pools: their options, their loops, their elements.
#pragma once

#include <cella/ops/convolution.hpp>

namespace cella {

struct pooling_options {
  cella::window window{};
  std::array<std::int32_t, 2> kernel{};
  std::array<std::int32_t, 2> extents{};  ///< of the image, where the operands do not tell
  std::int32_t count_padding = 1;         ///< average: divide by the window's size, zeros included
};

namespace detail {
constexpr tensor_type pooled(const tensor_type& x, const pooling_options& o) {
  return {x.element,
          {x[0], x[1], o.window.positions(x[2], o.kernel[0], 0),
           o.window.positions(x[3], o.kernel[1], 1)}};
}
/// Factors: image, channel, row and column of the result, row and column in the window. Of
/// `tensors` tensors, `operands` of them operands, all but the image have an element for each
/// window.
constexpr iteration_space pooling_space(const tensor_type& windows, const pooling_options& o,
                                        int image, int operands, int tensors, combination over) {
  iteration_space s{std::size_t(operands)};
  s.add(windows.shape);
  s.add(o.kernel[0]);
  s.add(o.kernel[1]);
  for (int t = 0; t < tensors; ++t) {
    s.along_all(t, 0, t == image ? 2 : 4);
    for (std::size_t d = 0; t == image && d < 2; ++d)
      walk_window(s, o.window, d, t, int(d) + 2, int(d) + 4);
  }
  s.over = over;
  return s;
}
/// A pool by the shapes of the image and of its windows.
inline bool fits_pool(const op_application& a, const shape& image, const shape& windows) {
  const auto o = a.as<pooling_options>();
  return is_sound(o.window) && image.rank == 4 && windows.rank == 4 && image[0] == windows[0] &&
         image[1] == windows[1] && o.kernel[0] >= 1 && o.kernel[1] >= 1 &&
         std::int64_t{o.kernel[0]} * o.kernel[1] <= (std::int64_t{1} << 30) &&
         takes_places(o.window, image[2], o.kernel[0], 0, windows[2]) &&
         takes_places(o.window, image[3], o.kernel[1], 1, windows[3]);
}
/// The same where a byte tells the place of an element in its window.
inline bool fits_places(const op_application& a, const shape& image, const shape& windows) {
  const auto o = a.as<pooling_options>();
  return fits_pool(a, image, windows) && std::int64_t{o.kernel[0]} * o.kernel[1] <= 256;
}
inline pooling_options read_onnx_pooling(const tensor_type& image, const onnx_attributes& from) {
  from.must_be("ceil_mode", 0, 0);
  pooling_options o;
  if (!from.find("kernel_shape")) from.refuse("kernel_shape", "is missing");
  o.kernel = from.integers("kernel_shape", o.kernel);
  o.window = read_onnx_window(from, o.kernel, {image[2], image[3]});
  return o;
}
/// Calls f(image element, position in the window) for the taps of a pooled element inside the
/// image.
template <class F>
void for_each_tap(const shape& image, const pooling_options& o, const multi_index& i, F f) {
  for (int p = 0; p < o.kernel[0]; ++p) {
    const int row = i[2] * o.window.stride[0] - o.window.before[0] + p * o.window.dilation[0];
    if (row < 0 || row >= image[2]) continue;
    for (int q = 0; q < o.kernel[1]; ++q) {
      const int column = i[3] * o.window.stride[1] - o.window.before[1] + q * o.window.dilation[1];
      if (column < 0 || column >= image[3]) continue;
      f(((std::int64_t{i[0]} * image[1] + i[1]) * image[2] + row) * image[3] + column,
        p * o.kernel[1] + q);
    }
  }
}
}  // namespace detail

}  // namespace cella
