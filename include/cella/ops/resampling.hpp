// Images, and any other tensors, of another size: all modes and coordinate rules of ONNX's Resize.
#pragma once

#include <cella/ops/elementwise.hpp>
#include <cella/ops/indexing.hpp>

namespace cella {

/// How an element of the result is made of those of the axis round its place.
enum class resize_mode { nearest, linear, cubic };
/// Where element i of the result lies in the axis (the names are ONNX's). Of an ONNX model whose
/// scale makes no whole number of elements, `align_corners`, too, goes by the number before it is
/// rounded, as ONNX's reference and its tests do; ONNX Runtime and PyTorch round it first.
enum class resize_coordinates {
  half_pixel,          ///< edges lie on edges: PyTorch's align_corners=False, TensorFlow's default
  asymmetric,          ///< i / scale
  align_corners,       ///< centres of the first and the last elements lie on each other
  pytorch_half_pixel,  ///< half_pixel, but a result of one element is the first
  half_pixel_symmetric,  ///< half_pixel, the part that rounding lost shared by both ends
  tf_crop_and_resize,    ///< of a part of the axis
  tf_half_pixel_for_nn   ///< (i + 0.5) / scale
};
/// Which element is nearest to a place between two.
enum class nearest_rounding { prefer_floor, prefer_ceil, floor, ceil };

/// What resizing says of all axes. PyTorch's `interpolate(..., antialias=True)` leaves out what is
/// outside, and has Catmull and Rom's kernel: {.cubic = -0.5, .excludes_outside = true, .antialias
/// = true}; its `align_corners` beside it puts no corners on each other, and is not among the
/// rules.
struct resize_form {
  resize_mode mode = resize_mode::linear;
  resize_coordinates coordinates = resize_coordinates::half_pixel;
  nearest_rounding nearest = nearest_rounding::prefer_floor;
  double cubic = -0.75;           ///< the parameter of Keys' kernel; -0.5 is Catmull and Rom's
  bool excludes_outside = false;  ///< elements outside weigh nothing, instead of being the last one
  bool antialias = false;         ///< smaller results take a wider part
};

namespace detail {

// The standard library's are no constant expressions everywhere.
constexpr double floor_of(double x) {
  const double whole = double(std::int64_t(x));
  return whole > x ? whole - 1 : whole;
}
constexpr double ceil_of(double x) { return -floor_of(-x); }

/// An element of an axis with its weight.
struct resampling_tap {
  std::int64_t element{};
  double weight{};
};
/// Which elements of an axis make those of the resized one.
struct resampled_axis {
  list<list<resampling_tap>> taps;  ///< of each new element
  list<bool> outside;               ///< whose place lies outside of the axis
};

/// Keys' cubic convolution kernel.
constexpr double cubic_kernel(double x, double a) {
  if (x < 0) x = -x;
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}
/// Where in the axis of `from` elements element x of the resized one lies; `start` and `stop` are
/// the part that tf_crop_and_resize takes.
constexpr double place_before(const resize_form& f, double x, double scale, double from,
                              double start, double stop) {
  // Not rounded, but where only the division of a size by another made it no whole number: 11
  // times 15 / 11 is less than 15.
  const double size = from * scale, whole = floor_of(size + 0.5);
  const double to = (size < whole ? whole - size : size - whole) < 1e-12 * whole ? whole : size;
  // As a fraction, which is exact where places are whole numbers or lie between two.
  const auto before = [&](double place) { return place * from / to; };
  switch (f.coordinates) {
    case resize_coordinates::asymmetric:
      return before(x);
    case resize_coordinates::align_corners:
      return to > 1 ? x * (from - 1) / (to - 1) : 0;
    case resize_coordinates::pytorch_half_pixel:
      return to > 1 ? before(x + 0.5) - 0.5 : 0;
    case resize_coordinates::half_pixel_symmetric:
      return from / 2 * (1 - floor_of(to) / to) + before(x + 0.5) - 0.5;
    case resize_coordinates::tf_crop_and_resize:
      return to > 1 ? start * (from - 1) + x * (stop - start) * (from - 1) / (to - 1)
                    : 0.5 * (start + stop) * (from - 1);
    case resize_coordinates::tf_half_pixel_for_nn:
      return before(x + 0.5);
    default:
      return before(x + 0.5) - 0.5;
  }
}
constexpr double nearest_place(nearest_rounding how, double x) {
  switch (how) {
    case nearest_rounding::floor:
      return floor_of(x);
    case nearest_rounding::ceil:
      return ceil_of(x);
    case nearest_rounding::prefer_ceil:
      return floor_of(x + 0.5);
    default:
      return ceil_of(x - 0.5);
  }
}
constexpr resampled_axis resample(const resize_form& f, int from, int to, double scale,
                                  double start = 0, double stop = 1) {
  resampled_axis all;
  for (int i = 0; i < to; ++i) {
    const double x = place_before(f, i, scale, from, start, stop);
    all.outside.push_back(x < 0 || x > from - 1);
    list<resampling_tap> taps;
    auto inside = [&](double k) { return std::int64_t(k < 0 ? 0 : k > from - 1 ? from - 1 : k); };
    if (f.mode == resize_mode::nearest) {
      taps.push_back({inside(nearest_place(f.nearest, x)), 1});
      all.taps.push_back(taps);
      continue;
    }
    // Smaller images take a wider part of the larger one, so that no element is left out.
    const bool cubic = f.mode == resize_mode::cubic;
    const double widen = f.antialias && scale < 1 ? 1 / scale : 1.0;
    const double radius = (cubic ? 2 : 1) * widen, last = floor_of(x + radius);
    double total = 0;
    for (double k = ceil_of(x - radius); k <= last; ++k) {
      const double apart = (k < x ? x - k : k - x) / widen;
      double w = cubic ? cubic_kernel(apart, f.cubic) : apart < 1 ? 1 - apart : 0;
      if (f.excludes_outside && (k < 0 || k > from - 1)) w = 0;
      if (w == 0) continue;
      taps.push_back({inside(k), w});
      total += w;
    }
    if (f.excludes_outside || f.antialias)
      for (resampling_tap& t : taps) t.weight /= total;
    all.taps.push_back(taps);
  }
  return all;
}
/// Applies it along one axis: a few gathers, weighted.
constexpr var resampled(var x, int axis, const resampled_axis& r) {
  std::size_t most = 1;
  for (const auto& t : r.taps) most = std::max(most, t.size());
  shape along, line{std::int64_t(r.taps.size())};
  for (int d = 0; d < x.rank(); ++d) along.push_back(d == axis ? line[0] : 1);
  var all{};
  for (std::size_t k = 0; k < most; ++k) {
    list<std::int64_t> places;
    list<double> weights;
    bool one = most == 1;
    for (const auto& t : r.taps) {
      places.push_back(k < t.size() ? t[k].element : 0);
      weights.push_back(k < t.size() ? t[k].weight : 0);
      one = one && weights.back() == 1;
    }
    const var part = gather(x, constant(x, places, line), axis);
    if (one) return part;
    const var weighted = part * constant(x, weights, along, x.element());
    all = k ? all + weighted : weighted;
  }
  return all;
}

}  // namespace detail

/// x with other extents, `sizes`, along some axes; negative axes count from the end. Images
/// [N,C,H,W] are resized by resize(x, {2, 3}, {height, width}).
constexpr var resize(operand x, const axis_list& axes, const axis_list& sizes,
                     const resize_form& form = {}) {
  builder& b = *x.owner();
  var v = x.in(b);
  if (axes.size() != sizes.size() || v.shape().size() == 0 ||
      (form.mode != resize_mode::nearest && !is_floating(v.element()))) {
    b.fail(text() << x.at() << ": resize: needs one size for each axis and elements, which between "
                  << "others are floating-point numbers: " << b.describe(v.id) << " is "
                  << v.type());
    return v;
  }
  for (int k = 0; k < axes.size(); ++k) {
    const int a = detail::find_axis("resize", v, axes[k], x.at());
    if (a < 0) return v;
    if (sizes[k] < 1) {
      b.fail(text() << x.at() << ": resize: the size " << sizes[k] << " of axis " << axes[k]
                    << " is not positive");
      return v;
    }
    const double scale = double(sizes[k]) / v.extent(a);
    if (sizes[k] != v.extent(a))
      v = detail::resampled(v, a, detail::resample(form, v.extent(a), sizes[k], scale));
  }
  return v;
}

}  // namespace cella
