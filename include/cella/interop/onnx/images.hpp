// Images of another size.
#pragma once

#include <cella/interop/onnx/indexing.hpp>
#include <cella/ops/matmul.hpp>
#include <cmath>

namespace cella::interop {

/// Which elements of an axis make an element of the resized one, and with what weight.
struct resampled_axis {
  std::vector<std::vector<std::pair<std::int64_t, double>>> taps;  ///< of each new element
  std::vector<bool> outside;  ///< whose place lies outside of the axis
};

/// What `Resize` says of all axes.
struct resize_form {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool excludes_outside{}, antialias{};
};

/// Keys' cubic convolution kernel.
inline double cubic_kernel(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}
/// Where in the axis of `from` elements element x of the resized one lies.
inline double place_before(const resize_form& f, double x, double scale, double from, double start,
                           double stop) {
  const double to = from * scale;  // not rounded
  if (f.coordinates == "asymmetric") return x / scale;
  if (f.coordinates == "align_corners") return to > 1 ? x * (from - 1) / (to - 1) : 0;
  if (f.coordinates == "pytorch_half_pixel") return to > 1 ? (x + 0.5) / scale - 0.5 : 0;
  if (f.coordinates == "half_pixel_symmetric") {
    // What rounding the extent lost is shared between both ends.
    const double adjustment = std::floor(to) / to;
    return from / 2 * (1 - adjustment) + (x + 0.5) / scale - 0.5;
  }
  if (f.coordinates == "tf_crop_and_resize")
    return to > 1 ? start * (from - 1) + x * (stop - start) * (from - 1) / (to - 1)
                  : 0.5 * (start + stop) * (from - 1);
  if (f.coordinates == "tf_half_pixel_for_nn") return (x + 0.5) / scale;
  return (x + 0.5) / scale - 0.5;
}
inline double nearest_place(const std::string& how, double x) {
  if (how == "floor") return std::floor(x);
  if (how == "ceil") return std::ceil(x);
  if (how == "round_prefer_ceil") return std::floor(x + 0.5);
  return std::ceil(x - 0.5);
}
/// `start` and `stop` are the part that tf_crop_and_resize takes.
inline resampled_axis resample(const resize_form& f, int from, int to, double scale, double start,
                               double stop) {
  resampled_axis all;
  for (int i = 0; i < to; ++i) {
    const double x = place_before(f, i, scale, from, start, stop);
    all.outside.push_back(x < 0 || x > from - 1);
    auto& taps = all.taps.emplace_back();
    auto inside = [&](double k) { return std::clamp<std::int64_t>(std::int64_t(k), 0, from - 1); };
    if (f.mode == "nearest") {
      taps.emplace_back(inside(nearest_place(f.nearest, x)), 1);
      continue;
    }
    // Smaller images take a wider part of the larger one, so that no element is left out.
    const double widen = f.antialias ? std::max(1.0, 1 / scale) : 1.0;
    const double radius = (f.mode == "cubic" ? 2 : 1) * widen;
    const double first = std::ceil(x - radius), last = std::floor(x + radius);
    double total = 0;
    for (double k = first; k <= last; ++k) {
      double w = f.mode == "cubic" ? cubic_kernel((k - x) / widen, f.cubic)
                                   : std::max(0.0, 1 - std::abs(k - x) / widen);
      if (f.excludes_outside && (k < 0 || k > from - 1)) w = 0;
      if (w == 0) continue;
      taps.emplace_back(inside(k), w);
      total += w;
    }
    if (f.excludes_outside || f.antialias)
      for (auto& [k, w] : taps) w /= total;
  }
  return all;
}
/// Applies it along one axis: a few gathers, weighted.
inline var resampled(var x, int axis, const resampled_axis& r) {
  builder& b = *x.b;
  std::size_t most = 1;
  for (const auto& t : r.taps) most = std::max(most, t.size());
  shape along;
  for (int d = 0; d < x.rank(); ++d) along.push_back(d == axis ? int(r.taps.size()) : 1);
  var all{};
  for (std::size_t k = 0; k < most; ++k) {
    std::vector<std::int64_t> places;
    std::vector<double> weights;
    for (const auto& t : r.taps) {
      places.push_back(k < t.size() ? t[k].first : 0);
      weights.push_back(k < t.size() ? t[k].second : 0);
    }
    const var part = gather(x, integers_as_constant(b, places), axis);
    if (most == 1 && std::ranges::all_of(weights, [](double w) { return w == 1; })) return part;
    const var weighted = part * numbers_as_constant(b, weights, along, x.element());
    all = k ? all + weighted : weighted;
  }
  return all;
}

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
