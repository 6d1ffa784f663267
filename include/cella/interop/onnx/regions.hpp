// Images at fractional places: regions of interest, and deformed windows.
#pragma once

#include <cella/interop/onnx/convolutions.hpp>
#include <cella/interop/onnx/cutting.hpp>
#include <cella/ops/regions.hpp>

namespace cella::interop {

using cella::detail::neighbours;
/// Neighbours beyond the ends weigh nothing.
inline neighbours with_zeros_outside(var place, int extent) {
  const var low = floor(place), part = place - low;
  auto weighted = [&](var at, var w) {
    const var inside = logical_and(at >= 0, at <= double(extent - 1));
    return std::pair(cast(clamp(at, 0, extent - 1), dtype::i64), select(inside, w, zeros_like(w)));
  };
  const auto [i, v] = weighted(low, 1 - part);
  const auto [j, w] = weighted(low + 1, part);
  return {{i, j}, {v, w}};
}
inline list<var> roi_align_rule(onnx_node& n) {
  const var x = n.in(0, 4, 4), rois = n.in(1, 2, 2);
  if (rois.extent(1) != 4 || x.shape().size() == 0)
    n.refuse("takes images and regions of 4 corners");
  const std::int64_t samples = n.integer("sampling_ratio", 0);
  if (samples < 1 || samples > 1 << 10)
    n.not_supported("as many samples of a region as its size says; give a sampling_ratio");
  const std::int64_t rows = n.integer("output_height", 1), columns = n.integer("output_width", 1);
  if (rows < 1 || columns < 1) n.refuse("has a result without rows or columns");
  n.limit(double(rows) * double(samples)), n.limit(double(columns) * double(samples));
  roi_form f{int(rows), int(columns), int(samples), n.number("spatial_scale", 1)};
  f.half_pixel = n.opset() >= 16 && n.one_of("coordinate_transformation_mode",
                                             {"half_pixel", "output_half_pixel"}) == "half_pixel";
  f.largest = n.one_of("mode", {"avg", "max"}) == "max";
  return {roi_align(x, rois, n.in(2), f)};
}

/// A convolution whose taps lie where the offsets say. Dai et al. 2017
inline list<var> deformable_convolution_rule(onnx_node& n) {
  const var x = n.in(0), filter = n.in(1);
  const window_axes w = read_windows(n, x, kernel_of(n, filter));
  if (w.size() != 2) n.not_supported("deformed windows over other than two axes");
  if (x.shape().size() == 0) n.refuse("takes images that are not empty");
  n.limit(taps_of(w));
  const std::int64_t groups = n.integer("offset_group", 1), taps = w[0].kernel * w[1].kernel;
  const std::int64_t batch = x.extent(0), channels = x.extent(1);
  const int height = x.extent(2), width = x.extent(3);
  if (groups < 1 || channels % groups)
    n.refuse("has an offset_group that does not divide the channels");
  for (const window_axis& a : w)
    if (a.padded() < a.taps()) n.refuse("has a filter that is larger than the padded image");
  const std::int64_t rows = (w[0].padded() - w[0].taps()) / w[0].stride + 1;
  const std::int64_t columns = (w[1].padded() - w[1].taps()) / w[1].stride + 1;
  const shape all{batch, groups, taps, rows, columns};
  const var offsets = reshape(n.in(2), {batch, groups, taps, 2, rows, columns});
  auto places = [&](std::size_t d) {
    const window_axis& a = w[d];
    std::vector<double> of_taps, of_places;
    for (std::int64_t k = 0; k < taps; ++k)
      of_taps.push_back(double((d ? k % w[1].kernel : k / w[1].kernel) * a.dilation));
    for (std::int64_t p = 0; p < (d ? columns : rows); ++p)
      of_places.push_back(double(p * a.stride - a.before));
    const shape line = d ? shape{1, 1, 1, 1, columns} : shape{1, 1, 1, rows, 1};
    const var fixed = numbers_as_constant(n.b(), of_taps, {1, 1, taps, 1, 1}, x.element()) +
                      numbers_as_constant(n.b(), of_places, line, x.element());
    return fixed + squeeze(cut(offsets, 3, int(d), 1), 3);
  };
  const neighbours y = with_zeros_outside(places(0), height),
                   z = with_zeros_outside(places(1), width);
  const std::int64_t each = channels / groups;
  const var split = reshape(x, {batch, groups, each, height, width});
  const var table = reshape(transpose(split, {0, 1, 3, 4, 2}), {-1, each});
  const var image =
      iota(n.b(), {dtype::i64, all}, 0) * double(groups) + iota(n.b(), {dtype::i64, all}, 1);
  const auto corners = cella::detail::weighted_corners(table, image, y, z, height, width);
  var sampled =
      corners[0] + corners[1] + corners[2] + corners[3];  // [N, g, taps, rows, columns, C/g]
  if (n.has(4)) sampled = sampled * expand_dims(reshape(n.in(4), all), -1);
  const var taken =
      reshape(transpose(sampled, {0, 1, 5, 2, 3, 4}), {batch, channels * taps, rows, columns});
  const std::int64_t inner = filter.extent(1) * taps;
  const window one{{1, 1},
                   {0, 0},
                   {0, 0},
                   {1, 1},
                   std::int32_t(n.between(1, n.integer("group", 1), 1 << 30, "group"))};
  return {with_bias(n, conv2d(taken, reshape(filter, {filter.extent(0), inner, 1, 1}), one), 3)};
}

inline constexpr named_onnx_rule region_rules[] = {
    {"DeformConv", deformable_convolution_rule},
    {"RoiAlign", roi_align_rule},
};

}  // namespace cella::interop
