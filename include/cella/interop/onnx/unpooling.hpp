// What puts the elements of windows back.
#pragma once

#include <cella/interop/onnx/convolutions.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/rounding.hpp>

namespace cella::interop {

/// Elements at the places that a max pool told, zeros elsewhere.
inline list<var> max_unpool_rule(onnx_node& n) {
  const var x = n.in(0), at = n.in(1);
  const auto kernel = n.integers("kernel_shape");
  const window_axes w = read_windows(n, x, kernel);
  shape inner{x.extent(0), x.extent(1)};
  for (const window_axis& a : w)
    inner.push_back(int(n.between(1, (a.extent - 1) * a.stride + a.kernel - a.before - a.after,
                                  1 << 30, "result's extent")));
  shape target = inner;
  if (n.has(2)) target = shape_in(n, n.integers(2));
  n.limit_result(inner, {});
  if (inner.rank != target.rank || target.size() >> 31)
    n.refuse("has an output_shape of another rank");
  const std::int64_t size = x.shape().size();
  // The places are those in the smaller image: they are counted anew in the larger one.
  var places = constant(n.b(), 0, {dtype::i64, {size}});
  var rest = reshape(cast(at, dtype::i64), {size});
  std::int64_t step = 1;
  for (int d = target.rank; d-- > 0;) {
    const var q = floor_div(rest, double(inner[d]));
    places = places + (rest - q * double(inner[d])) * double(step);
    rest = q;
    step *= target[d];
  }
  return {reshape(scatter(reshape(x, {size}), places, int(target.size())), target)};
}
/// Columns of blocks back to images, overlaps added: the transpose of a convolution that cuts them.
inline list<var> col2im_rule(onnx_node& n) {
  const var x = n.in(0);
  const auto image = n.integers(1), block = n.integers(2);
  if (image.size() != 2 || block.size() != 2) n.not_supported("blocks over other than two axes");
  for (std::size_t d = 0; d < 2; ++d)
    if (block[d] < 1 || block[d] > 1 << 15 || image[d] < 1 || image[d] > 1 << 30)
      n.refuse("has a block or an image that is empty or huge");
  const auto area = block[0] * block[1];
  if (x.rank() != 3 || x.extent(1) % area) n.refuse("has columns that are no blocks");
  const std::int64_t channels = x.extent(1) / area;
  const auto pads = n.integers("pads", {0, 0, 0, 0}), strides = n.integers("strides", {1, 1}),
             dilations = n.integers("dilations", {1, 1});
  window_axes w(2);
  std::vector<std::int64_t> places;
  for (std::size_t d = 0; d < 2; ++d) {
    w[d] = {image[d],
            block[d],
            entry(n, strides, d, 2, 1),
            entry(n, dilations, d, 2, 1),
            entry(n, pads, d, 4, 0),
            entry(n, pads, d + 2, 4, 0)};
    if (w[d].stride < 1 || w[d].dilation < 1 || w[d].padded() < w[d].taps())
      n.refuse("has blocks that do not fit");
    places.push_back((w[d].padded() - w[d].taps()) / w[d].stride + 1);
  }
  n.limit(double(channels) * double(area) * double(area));
  std::vector<std::int64_t> identity(std::size_t(channels * area * area));
  for (std::int64_t c = 0; c < channels; ++c)
    for (std::int64_t k = 0; k < area; ++k) identity[std::size_t((c * area + k) * area + k)] = 1;
  const var filter =
      integers_as_constant(n.b(), identity, {channels * area, 1, block[0], block[1]}, x.element());
  const var columns = reshape(x, {x.extent(0), x.extent(1), places[0], places[1]});
  const std::array<int, 2> extra{int(w[0].padded() - (places[0] - 1) * w[0].stride - w[0].taps()),
                                 int(w[1].padded() - (places[1] - 1) * w[1].stride - w[1].taps())};
  return {conv2d_transpose(columns, filter, window_of(w[0], w[1], channels), extra)};
}

inline constexpr named_onnx_rule unpooling_rules[] = {
    {"Col2Im", col2im_rule},
    {"MaxUnpool", max_unpool_rule},
};

}  // namespace cella::interop
