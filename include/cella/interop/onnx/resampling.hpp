// Which elements of an axis make those of a longer or shorter one.
#pragma once

#include <cella/interop/onnx/constants.hpp>
#include <cella/ops/indexing.hpp>
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

}  // namespace cella::interop
