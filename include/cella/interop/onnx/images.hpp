// Images of another size.
#pragma once

#include <cella/interop/onnx/cutting.hpp>
#include <cella/interop/onnx/resampling.hpp>
#include <cella/ops/matmul.hpp>

namespace cella::interop {

inline list<var> resize_rule(onnx_node& n) {
  var x = n.in(0);
  const bool old = n.opset() < 11;  // X, scales
  const int scales_at = old ? 1 : 2, sizes_at = 3, rank = x.rank();
  resize_form f{
      n.one_of("mode", {"nearest", "linear", "cubic"}),
      n.one_of("coordinate_transformation_mode",
               {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel",
                "half_pixel_symmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"}),
      n.one_of("nearest_mode", {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}),
      n.number("cubic_coeff_a", -0.75),
      n.integer("exclude_outside", 0) != 0,
      n.integer("antialias", 0) != 0};
  if (old) {
    f.coordinates = "asymmetric";
    f.nearest = "floor";
  }
  std::vector<int> axes;
  for (std::int64_t a : n.integers("axes")) axes.push_back(n.axis(a, rank));
  if (axes.empty())
    for (int d = 0; d < rank; ++d) axes.push_back(d);
  const auto count = axes.size();
  std::vector<double> scales;
  if (n.has(scales_at)) scales = n.numbers(scales_at);
  std::vector<std::int64_t> sizes;
  if (!old && n.has(sizes_at)) sizes = n.integers(sizes_at);
  if (scales.empty() == sizes.empty()) n.refuse("has both scales and sizes, or none of them");
  if (scales.size() + sizes.size() != count) n.refuse("has not one scale or size for each axis");
  if (!sizes.empty()) {
    const std::string policy =
        n.one_of("keep_aspect_ratio_policy", {"stretch", "not_larger", "not_smaller"});
    for (std::size_t k = 0; k < count; ++k) scales.push_back(double(sizes[k]) / x.extent(axes[k]));
    if (policy != "stretch") {
      const double one = policy == "not_larger" ? *std::ranges::min_element(scales)
                                                : *std::ranges::max_element(scales);
      for (std::size_t k = 0; k < count; ++k) {
        scales[k] = one;
        sizes[k] = std::int64_t(std::floor(one * x.extent(axes[k]) + 0.5));
      }
    }
  } else {
    for (std::size_t k = 0; k < count; ++k) {
      if (!(scales[k] > 0)) n.refuse("has a scale that is not positive");
      n.limit(scales[k] * x.extent(axes[k]));
      sizes.push_back(std::int64_t(std::floor(scales[k] * x.extent(axes[k]))));
    }
  }
  std::vector<double> part(2 * count);
  for (std::size_t k = 0; k < count; ++k) part[count + k] = 1;
  const bool crops = f.coordinates == "tf_crop_and_resize";
  if (crops) part = n.numbers(1);
  if (part.size() != 2 * count) n.refuse("has a region that names other axes");
  const dtype t = x.element();
  var outside{};
  for (std::size_t k = 0; k < count; ++k) {
    const int axis = axes[k];
    n.between(1, sizes[k], 1 << 30, "size");
    if (x.extent(axis) < 1) n.refuse("takes images that are not empty");
    if (sizes[k] == x.extent(axis) && scales[k] == 1 && !crops) continue;
    n.limit(double(sizes[k]) * (f.mode == "nearest" ? 1 : 4 * std::max(1.0, 1 / scales[k])));
    const resampled_axis r =
        resample(f, x.extent(axis), int(sizes[k]), scales[k], part[k], part[count + k]);
    if (f.mode != "nearest" && !is_floating(t)) x = cast(x, dtype::f32);
    x = resampled(x, axis, r);
    if (!crops) continue;
    shape along;
    for (int d = 0; d < rank; ++d) along.push_back(d == axis ? int(sizes[k]) : 1);
    std::vector<std::int64_t> marks(r.outside.begin(), r.outside.end());
    const var here = integers_as_constant(n.b(), marks, along, dtype::boolean);
    outside = outside.b ? logical_or(outside, here) : here;
  }
  if (outside.b)
    x = select(broadcast_to(outside, x.shape()), scalar_like(x, n.number("extrapolation_value", 0)),
               x);
  return {x.element() == t ? x : cast(round(x), t)};
}
inline list<var> upsample_rule(onnx_node& n) {
  var x = n.in(0);
  std::vector<double> scales = n.has(1) ? n.numbers(1) : n.numbers("scales");
  if (scales.size() != std::size_t(x.rank())) n.refuse("has not one scale for each axis");
  const resize_form f{n.one_of("mode", {"nearest", "linear"}), "asymmetric", "floor"};
  for (int d = 0; d < x.rank(); ++d) {
    const double scale = scales[std::size_t(d)];
    if (scale == 1) continue;
    if (!(scale * x.extent(d) >= 1)) n.refuse("has a scale that leaves nothing");
    n.limit(scale * x.extent(d));
    x = resampled(x, d,
                  resample(f, x.extent(d), int(std::floor(scale * x.extent(d))), scale, 0, 1));
  }
  return {x};
}

/// The corners that an affine map of the result's grid has, each from -1 to 1.
inline list<var> affine_grid_rule(onnx_node& n) {
  const var theta = n.in(0, 3, 3);
  const auto size = n.integers(1);
  const bool corners = n.integer("align_corners", 0);
  if (size.size() < 4 || size.size() > 5)
    n.not_supported("a grid over other than two or three axes");
  const std::size_t axes = size.size() - 2;
  std::int64_t places = 1;
  for (std::size_t d = 0; d < axes; ++d) {
    if (size[d + 2] < 1) n.refuse("has an extent below 1");
    n.limit(double(places) * double(size[d + 2]));
    places *= size[d + 2];
  }
  // One row for each place: its coordinates, the last axis first, and 1.
  std::vector<double> rows;
  for (std::int64_t p = 0; p < places; ++p) {
    std::vector<double> at(axes);
    std::int64_t rest = p;
    for (std::size_t d = axes; d-- > 0;) {
      const std::int64_t extent = size[d + 2], i = rest % extent;
      rest /= extent;
      const double step =
          corners ? 2.0 / std::max<double>(1, double(extent) - 1) : 2.0 / double(extent);
      at[axes - 1 - d] = -1 + (double(i) + (corners ? 0 : 0.5)) * step;
    }
    at.push_back(1);
    rows.insert(rows.end(), at.begin(), at.end());
  }
  const var grid =
      numbers_as_constant(n.b(), rows, {places, std::int64_t(axes) + 1}, theta.element());
  shape s{theta.extent(0)};
  for (std::size_t d = 0; d < axes; ++d) s.push_back(int(size[d + 2]));
  s.push_back(int(axes));
  // [N, axes, places] -> [N, places, axes]
  const var moved = matmul(theta, transpose(grid), false, false);
  return {reshape(transpose(moved, {0, 2, 1}), s)};
}

inline constexpr named_onnx_rule image_rules[] = {
    {"AffineGrid", affine_grid_rule},
    {"Resize", resize_rule},
    {"Upsample", upsample_rule},
};

}  // namespace cella::interop
