// Images at the places of a grid.
#pragma once

#include <array>
#include <cella/interop/onnx/cutting.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/rounding.hpp>

namespace cella::interop {

/// Images [N, C, ...] at the places of a grid [N, ..., axes], whose coordinates go from -1 to 1 and
/// name the last axis first.
class grid_sampler {
 public:
  grid_sampler(const onnx_node& n, var x, var grid) : x_(x), grid_(grid) {
    axes_ = x.rank() - 2;
    corners_ = n.integer("align_corners", 0);
    padding_ = n.one_of("padding_mode", {"zeros", "border", "reflection"});
    if (grid.extent(-1) != axes_ || x.extent(0) != grid.extent(0))
      n.refuse("has a grid for other images");
    if (x.shape().size() == 0) n.refuse("takes images that are not empty");
    places_ = grid.shape().size() / grid.extent(0) / axes_;
  }
  var sample(const std::string& mode) const {
    std::vector<var> at;
    for (int d = 0; d < axes_; ++d) at.push_back(place(d));
    if (mode == "nearest") {
      for (var& p : at) p = round(p);
      return finished(picked(at));
    }
    const int first = mode == "cubic" ? -1 : 0, count = mode == "cubic" ? 4 : 2;
    std::vector<var> base;
    for (const var& p : at) base.push_back(floor(p));
    var all{};
    // The taps of all axes: a number with `axes` digits.
    int combinations = 1;
    for (int d = 0; d < axes_; ++d) combinations *= count;
    for (int k = 0; k < combinations; ++k) {
      std::vector<var> tap;
      var weight{};
      for (int d = 0, rest = k; d < axes_; ++d, rest /= count) {
        const auto i = std::size_t(d);
        const var where = base[i] + double(rest % count + first);
        tap.push_back(where);
        const var w = weight_of(abs(at[i] - where), mode);
        weight = weight.b ? weight * w : w;
      }
      const var part = picked(tap) * expand_dims(weight, 1);
      all = all.b ? all + part : part;
    }
    return finished(all);
  }

 private:
  /// [N, places]: where along axis d of the image, counted in elements.
  var place(int d) const {
    const shape s{grid_.extent(0), places_};
    const int last = grid_.rank() - 1;
    const var g = reshape(cut(grid_, last, axes_ - 1 - d, 1), s);
    const double n = x_.extent(d + 2);
    var p = corners_ ? (g + 1) * ((n - 1) / 2) : ((g + 1) * n - 1) / 2;
    if (padding_ == "border") p = clamp(p, 0, n - 1);
    if (padding_ == "reflection") p = reflected(p, d);
    return p;
  }
  /// Mirrored at the borders until it lies between them.
  var reflected(var p, int d) const {
    const double n = x_.extent(d + 2);
    const double low = corners_ ? 0 : -0.5, high = corners_ ? n - 1 : n - 0.5;
    const double range = high - low;
    if (range == 0) return zeros_like(p);
    const var shifted = mod(abs(p - low), 2 * range);
    return select(shifted > range, 2 * range - shifted, shifted) + low;
  }
  static var weight_of(var distance, const std::string& mode) {
    if (mode != "cubic") return maximum(1 - distance, 0);
    const double a = -0.75;
    const var near = ((a + 2) * distance - (a + 3)) * distance * distance + 1;
    const var far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
    return select(distance <= 1, near, select(distance < 2, far, zeros_like(far)));
  }
  /// [N, C, places]: the elements at whole places; outside the image as the padding says.
  var picked(std::vector<var> at) const {
    const shape s = x_.shape();
    var inside{}, flat{};
    for (int d = 0; d < axes_; ++d) {
      const double n = s[d + 2];
      var p = at[std::size_t(d)];
      if (padding_ == "reflection") p = reflected(p, d);
      if (padding_ == "zeros") {
        const var fits = logical_and(p >= 0, p <= n - 1);
        inside = inside.b ? logical_and(inside, fits) : fits;
      }
      const var i = cast(clamp(p, 0, n - 1), dtype::i64);
      flat = flat.b ? flat * n + i : i;
    }
    const std::int64_t area = s.size(2, s.rank);
    // Rows [N area, C], and the sample's number in front of each place.
    const shape index{s[0], places_};
    const var rows = flat + iota(*x_.b, {dtype::i64, index}, 0) * double(area);
    std::vector<int> order{0};
    for (int d = 2; d < s.rank; ++d) order.push_back(d);
    order.push_back(1);
    const var table = reshape(permuted(x_, order), {std::int64_t{s[0]} * area, s[1]});
    const var y = transpose(gather(table, rows, 0), {0, 2, 1});
    if (!inside.b) return y;
    return select(broadcast_to(expand_dims(inside, 1), y.shape()), y, zeros_like(y));
  }
  var finished(var y) const {
    shape s{x_.extent(0), x_.extent(1)};
    for (int d = 1; d < grid_.rank() - 1; ++d) s.push_back(grid_.extent(d));
    return reshape(y, s);
  }

  var x_, grid_;
  int axes_{};
  bool corners_{};
  std::string padding_;
  std::int64_t places_{};
};
inline list<var> grid_sample_rule(onnx_node& n) {
  std::string mode = n.one_of("mode", {"linear", "bilinear", "nearest", "cubic", "bicubic"});
  if (mode == "bilinear") mode = "linear";
  if (mode == "bicubic") mode = "cubic";
  return {grid_sampler(n, n.in(0, 4, 5), n.in(1, n.in(0).rank(), n.in(0).rank())).sample(mode)};
}

inline constexpr named_onnx_rule grid_sampling_rules[] = {
    {"GridSample", grid_sample_rule},
};

}  // namespace cella::interop
