// Images at places that the data name: grids, affine maps, parts and regions of interest.
#pragma once

#include <cella/ops/arranging.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>

namespace cella {

/// How an image is read between its elements.
enum class sample_mode { nearest, linear, cubic };
/// What lies outside of an image: zeros, its last elements, or the image mirrored at its borders.
enum class sample_padding { zeros, border, reflection };
/// How `grid_sample` reads an image.
struct sample_form {
  sample_mode mode = sample_mode::linear;
  sample_padding padding = sample_padding::zeros;
  bool align_corners = false;  ///< -1 and 1 are centres of elements, not edges
};

namespace detail {

/// Images [N,C,...] at the places of a grid [N,...,axes], whose coordinates go from -1 to 1 and
/// name the last axis first.
class grid_sampler {
 public:
  constexpr grid_sampler(var x, var grid, const sample_form& form)
      : x_(x), grid_(grid), form_(form), axes_(x.rank() - 2) {
    places_ = grid.shape().size() / grid.extent(0) / axes_;
  }
  constexpr var sample() const {
    list<var> at;
    for (int d = 0; d < axes_; ++d) at.push_back(place(d));
    if (form_.mode == sample_mode::nearest) {
      for (var& p : at) p = round(p);
      return finished(picked(at));
    }
    const bool cubic = form_.mode == sample_mode::cubic;
    const int first = cubic ? -1 : 0, count = cubic ? 4 : 2;
    list<var> base;
    for (const var& p : at) base.push_back(floor(p));
    var all{};
    // The taps of all axes: a number with `axes` digits.
    int combinations = 1;
    for (int d = 0; d < axes_; ++d) combinations *= count;
    for (int k = 0; k < combinations; ++k) {
      list<var> tap;
      var weight{};
      for (int d = 0, rest = k; d < axes_; ++d, rest /= count) {
        const auto i = std::size_t(d);
        const var where = base[i] + double(rest % count + first);
        tap.push_back(where);
        const var w = weight_of(abs(at[i] - where));
        weight = weight.b ? weight * w : w;
      }
      const var part = picked(tap) * expand_dims(weight, 1);
      all = all.b ? all + part : part;
    }
    return finished(all);
  }

 private:
  /// [N,places]: where along axis d of the image, counted in elements.
  constexpr var place(int d) const {
    const int last = grid_.rank() - 1, k = axes_ - 1 - d;
    const var g = reshape(slice(grid_, last, k, k + 1), {grid_.extent(0), places_});
    const double n = x_.extent(d + 2);
    var p = form_.align_corners ? (g + 1) * ((n - 1) / 2) : ((g + 1) * n - 1) / 2;
    // Of a cubic the elements that it reads are those of the border, not the place between them.
    if (form_.padding == sample_padding::border && form_.mode != sample_mode::cubic)
      p = clamp(p, 0, n - 1);
    if (form_.padding == sample_padding::reflection) p = reflected(p, d);
    return p;
  }
  /// Mirrored at the borders until it lies between them.
  constexpr var reflected(var p, int d) const {
    const double n = x_.extent(d + 2);
    const double low = form_.align_corners ? 0 : -0.5;
    const double high = form_.align_corners ? n - 1 : n - 0.5;
    const double range = high - low;
    if (range == 0) return zeros_like(p);
    const var shifted = mod(abs(p - low), 2 * range);
    return select(shifted > range, 2 * range - shifted, shifted) + low;
  }
  constexpr var weight_of(var distance) const {
    if (form_.mode != sample_mode::cubic) return maximum(1 - distance, 0);
    const double a = -0.75;
    const var near = ((a + 2) * distance - (a + 3)) * distance * distance + 1;
    const var far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
    return select(distance <= 1, near, select(distance < 2, far, zeros_like(far)));
  }
  /// [N,C,places]: the elements at whole places; outside the image as the padding says.
  constexpr var picked(const list<var>& at) const {
    const shape s = x_.shape();
    var inside{}, flat{};
    for (int d = 0; d < axes_; ++d) {
      const double n = s[d + 2];
      var p = at[std::size_t(d)];
      if (form_.padding == sample_padding::reflection) p = reflected(p, d);
      if (form_.padding == sample_padding::zeros) {
        const var fits = logical_and(p >= 0, p <= n - 1);
        inside = inside.b ? logical_and(inside, fits) : fits;
      }
      const var i = cast(clamp(p, 0, n - 1), dtype::i64);
      flat = flat.b ? flat * n + i : i;
    }
    const std::int64_t area = s.size(2, s.rank);
    // Rows [N area,C], and the sample's number in front of each place.
    shape index{s[0], places_};
    const var rows = flat + iota(*x_.b, {dtype::i64, index}, 0) * double(area);
    const var table = reshape(move_axis(x_, 1, -1), {std::int64_t{s[0]} * area, s[1]});
    const var y = transpose(gather(table, rows, 0), {0, 2, 1});
    if (!inside.b) return y;
    return select(broadcast_to(expand_dims(inside, 1), y.shape()), y, zeros_like(y));
  }
  constexpr var finished(var y) const {
    shape s{x_.extent(0), x_.extent(1)};
    for (int d = 1; d < grid_.rank() - 1; ++d) s.push_back(grid_.extent(d));
    return reshape(y, s);
  }

  var x_, grid_;
  sample_form form_;
  int axes_{};
  std::int64_t places_{};
};

}  // namespace detail

/// Images [N,C,H,W], or volumes [N,C,D,H,W], at the places of a grid [N,...,axes], whose
/// coordinates (x, y) or (x, y, z) go from -1 to 1.  Jaderberg et al. 2015
constexpr var grid_sample(operand image, operand grid, const sample_form& form = {}) {
  builder& b = owner_of(image, grid);
  const var x = image.in(b);
  const var g = grid.in(b);
  if (x.rank() < 3 || g.rank() != x.rank() || g.extent(-1) != x.rank() - 2 ||
      x.extent(0) != g.extent(0) || x.shape().size() == 0 || !is_floating(x.element()) ||
      x.element() != g.element()) {
    b.fail(text() << image.at() << ": grid_sample: needs images of floating-point numbers and a "
                  << "grid [N,...,axes] of them: " << b.describe(x.id) << " is " << x.type() << ", "
                  << b.describe(g.id) << " is " << g.type());
    return x;
  }
  return detail::grid_sampler(x, g, form).sample();
}

/// The grid [N,...,axes] for results of these extents, of affine maps theta [N,axes,axes + 1] of
/// their coordinates.
constexpr var affine_grid(operand theta, const axis_list& extents, bool align_corners = false) {
  builder& b = *theta.owner();
  const var t = theta.in(b);
  const int axes = extents.size();
  bool fits = t.rank() == 3 && axes >= 1 && axes <= max_rank - 2 && is_floating(t.element()) &&
              t.extent(1) == axes && t.extent(2) == axes + 1;
  for (int e : extents) fits = fits && e > 0;
  if (!fits) {
    b.fail(text() << theta.at() << ": affine_grid: needs maps [N,axes,axes + 1] of floating-point "
                  << "numbers, and an extent for each axis: " << b.describe(t.id) << " is "
                  << t.type() << ", there are " << axes << " extents");
    return t;
  }
  shape s;
  for (int e : extents) s.push_back(e);
  const std::int64_t places = s.size();
  // One row for each coordinate of the places, the last axis first, and one of ones.
  list<var> rows;
  for (int d = axes; d-- > 0;) {
    const double step = align_corners ? 2.0 / std::max(1, s[d] - 1) : 2.0 / s[d];
    const var i = iota(b, {t.element(), s}, d);
    rows.push_back(reshape(i * step + (align_corners ? -1.0 : 0.5 * step - 1), {1, places}));
  }
  rows.push_back(constant(b, 1, {t.element(), {1, places}}));
  const var moved = matmul(theta, concat(rows, 0, theta.at()));  // [N,axes,places]
  s.insert(0, t.extent(0));
  s.push_back(axes);
  return reshape(transpose(moved, {0, 2, 1}), s);
}

/// The part of image `image_of[k]` that each box [K,4] (y0, x0, y1, x1, from 0 to 1) names, resized
/// linearly to height x width; outside of the image `fill`.  (TensorFlow's crop_and_resize, but
/// images [N,C,H,W] -> [K,C,height,width])
constexpr var crop_and_resize(operand images, operand boxes, operand image_of, int height,
                              int width, double fill = 0) {
  builder& b = owner_of(images, boxes);
  const var x = images.in(b);
  const var box = boxes.in(b);
  const var i = image_of.in(b);
  if (x.rank() != 4 || box.rank() != 2 || box.extent(1) != 4 || i.rank() != 1 ||
      i.extent(0) != box.extent(0) || x.element() != box.element() || height < 1 || width < 1) {
    b.fail(text() << images.at() << ": crop_and_resize: needs images [N,C,H,W], boxes [K,4] of "
                  << "their type, an image for each, and a size: " << b.describe(x.id) << " is "
                  << x.type() << ", " << b.describe(box.id) << " is " << box.type());
    return x;
  }
  const int count = box.extent(0);
  // Coordinates from -1 to 1 between centres, [K,length].
  auto along = [&](int corner, int length) {
    const var first = slice(box, 1, corner, corner + 1);
    const var last = slice(box, 1, corner + 2, corner + 3);
    const var k = iota(b, {x.element(), {1, length}}, 1);
    const var at =
        length > 1 ? first + (last - first) * k * (1.0 / (length - 1)) : (first + last) * 0.5;
    return at * 2 - 1;
  };
  const shape all{count, height, width};
  const var y = broadcast_to(expand_dims(along(0, height), 2), all);
  const var z = broadcast_to(expand_dims(along(1, width), 1), all);
  const var parts = grid_sample({gather(images, image_of, 0), images.at()}, stack({z, y}, -1),
                                {sample_mode::linear, sample_padding::border, true});
  if (b.failed()) return x;
  const var inside = logical_and(abs(y) <= 1, abs(z) <= 1);
  return select(broadcast_to(expand_dims(inside, 1), parts.shape()), parts, full_like(parts, fill));
}

}  // namespace cella
