// Images of another size.
#pragma once

#include <cella/interop/onnx/cutting.hpp>
#include <cella/ops/resampling.hpp>

namespace cella::interop {

/// Which of these words an attribute is, the first one if it is not there.
template <class E, std::size_t N>
E word_in(const onnx_node& n, std::string_view name, const std::pair<const char*, E> (&words)[N]) {
  const std::string said = n.string(name, words[0].first);
  for (const auto& [word, value] : words)
    if (said == word) return value;
  n.not_supported("the " + std::string(name) + " " + in_quotes(said));
}
inline resize_form read_resize_form(const onnx_node& n) {
  using m = resize_mode;
  using c = resize_coordinates;
  using r = nearest_rounding;
  resize_form f;
  f.mode =
      word_in<m>(n, "mode", {{"nearest", m::nearest}, {"linear", m::linear}, {"cubic", m::cubic}});
  f.coordinates = word_in<c>(n, "coordinate_transformation_mode",
                             {{"half_pixel", c::half_pixel},
                              {"asymmetric", c::asymmetric},
                              {"align_corners", c::align_corners},
                              {"pytorch_half_pixel", c::pytorch_half_pixel},
                              {"half_pixel_symmetric", c::half_pixel_symmetric},
                              {"tf_crop_and_resize", c::tf_crop_and_resize},
                              {"tf_half_pixel_for_nn", c::tf_half_pixel_for_nn}});
  f.nearest = word_in<r>(n, "nearest_mode",
                         {{"round_prefer_floor", r::prefer_floor},
                          {"round_prefer_ceil", r::prefer_ceil},
                          {"floor", r::floor},
                          {"ceil", r::ceil}});
  f.cubic = n.number("cubic_coeff_a", -0.75);
  f.excludes_outside = n.integer("exclude_outside", 0) != 0;
  f.antialias = n.integer("antialias", 0) != 0;
  return f;
}
inline list<var> resize_rule(onnx_node& n) {
  var x = n.in(0);
  const bool old = n.opset() < 11;  // X, scales
  const int scales_at = old ? 1 : 2, sizes_at = 3, rank = x.rank();
  resize_form f = read_resize_form(n);
  if (old) {
    f.coordinates = resize_coordinates::asymmetric;
    f.nearest = nearest_rounding::floor;
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
  const bool crops = f.coordinates == resize_coordinates::tf_crop_and_resize;
  if (crops) part = n.numbers(1);
  if (part.size() != 2 * count) n.refuse("has a region that names other axes");
  const dtype t = x.element();
  var outside{};
  for (std::size_t k = 0; k < count; ++k) {
    const int axis = axes[k];
    n.between(1, sizes[k], 1 << 30, "size");
    if (x.extent(axis) < 1) n.refuse("takes images that are not empty");
    if (sizes[k] == x.extent(axis) && scales[k] == 1 && !crops) continue;
    n.limit(double(sizes[k]) *
            (f.mode == resize_mode::nearest ? 1 : 4 * std::max(1.0, 1 / scales[k])));
    const auto r = cella::detail::resample(f, x.extent(axis), int(sizes[k]), scales[k], part[k],
                                           part[count + k]);
    if (f.mode != resize_mode::nearest && !is_floating(t)) x = cast(x, dtype::f32);
    x = cella::detail::resampled(x, axis, r);
    if (!crops) continue;
    shape along;
    for (int d = 0; d < rank; ++d) along.push_back(d == axis ? int(sizes[k]) : 1);
    const std::vector<std::int64_t> marks(r.outside.begin(), r.outside.end());
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
  resize_form f = read_resize_form(n);
  f.coordinates = resize_coordinates::asymmetric;
  f.nearest = nearest_rounding::floor;
  for (int d = 0; d < x.rank(); ++d) {
    const double scale = scales[std::size_t(d)];
    if (scale == 1) continue;
    if (!(scale * x.extent(d) >= 1)) n.refuse("has a scale that leaves nothing");
    n.limit(scale * x.extent(d));
    x = cella::detail::resampled(
        x, d,
        cella::detail::resample(f, x.extent(d), int(std::floor(scale * x.extent(d))), scale, 0, 1));
  }
  return {x};
}

inline constexpr named_onnx_rule image_rules[] = {
    {"Resize", resize_rule},
    {"Upsample", upsample_rule},
};

}  // namespace cella::interop
