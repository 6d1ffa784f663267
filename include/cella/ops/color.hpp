// Colours of images [N,3,H,W], and how alike two images are.
#pragma once

#include <cella/ops/convolution.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <numbers>

namespace cella {

namespace detail {
/// A fault unless x has three channels along axis 1.
constexpr bool has_colors(std::string_view op, var x, std::source_location at) {
  if (x.rank() >= 2 && x.extent(1) == 3 && is_floating(x.element())) return true;
  x.b->fail(text() << at << ": " << op << ": needs images [N,3,...] of floating-point numbers: "
                   << x.b->describe(x.id) << " is " << x.type());
  return false;
}
constexpr var channel(var x, int k) { return slice(x, 1, k, k + 1); }
constexpr var from_channels(var a, var b, var c) { return concat({a, b, c}, 1); }
/// Each new channel is a sum of the old ones, with an offset.
constexpr var mixed_colors(var x, const double (&rows)[3][3], const double (&offset)[3]) {
  list<var> all;
  for (int i = 0; i < 3; ++i)
    all.push_back(channel(x, 0) * rows[i][0] + channel(x, 1) * rows[i][1] +
                  channel(x, 2) * rows[i][2] + offset[i]);
  return concat(all, 1);
}
}  // namespace detail

/// Brightness 0.299 R + 0.587 G + 0.114 B: [N,3,...] -> [N,1,...].  ITU-R BT.601
constexpr var rgb_to_grayscale(operand image) {
  const var x = image.in(*image.owner());
  if (!detail::has_colors("rgb_to_grayscale", x, image.at())) return x;
  return detail::channel(x, 0) * 0.299 + detail::channel(x, 1) * 0.587 +
         detail::channel(x, 2) * 0.114;
}
/// Brightness and the differences of blue and red from it, which lie round 0.5, of colours from 0
/// to
/// 1.  JFIF 1.02, after ITU-R BT.601
constexpr var rgb_to_ycbcr(operand image) {
  const var x = image.in(*image.owner());
  if (!detail::has_colors("rgb_to_ycbcr", x, image.at())) return x;
  return detail::mixed_colors(x,
                              {{0.299, 0.587, 0.114},
                               {-0.299 / 1.772, -0.587 / 1.772, 0.5},
                               {0.5, -0.587 / 1.402, -0.114 / 1.402}},
                              {0, 0.5, 0.5});
}
/// Its inverse.
constexpr var ycbcr_to_rgb(operand image) {
  const var x = image.in(*image.owner());
  if (!detail::has_colors("ycbcr_to_rgb", x, image.at())) return x;
  constexpr double green_blue = 0.114 * 1.772 / 0.587, green_red = 0.299 * 1.402 / 0.587;
  return detail::mixed_colors(x, {{1, 0, 1.402}, {1, -green_blue, -green_red}, {1, 1.772, 0}},
                              {-0.701, (green_blue + green_red) / 2, -0.886});
}
/// Hue, saturation and value, each from 0 to 1, of colours from 0 to 1.  Smith 1978
constexpr var rgb_to_hsv(operand image) {
  const var x = image.in(*image.owner());
  if (!detail::has_colors("rgb_to_hsv", x, image.at())) return x;
  const var r = detail::channel(x, 0), g = detail::channel(x, 1), b = detail::channel(x, 2);
  const var value = maximum(maximum(r, g), b), range = value - minimum(minimum(r, g), b);
  const var gray = equal(range, 0);
  const var safe = select(gray, ones_like(range), range);
  const var turned = select(equal(value, r), (g - b) / safe,
                            select(equal(value, g), (b - r) / safe + 2, (r - g) / safe + 4));
  const var hue = select(turned < 0, turned + 6, turned) / 6;
  const var dark = equal(value, 0);
  const var saturation = range / select(dark, ones_like(value), value);
  return detail::from_channels(select(gray, zeros_like(hue), hue), saturation, value);
}
/// Its inverse.
constexpr var hsv_to_rgb(operand image) {
  const var x = image.in(*image.owner());
  if (!detail::has_colors("hsv_to_rgb", x, image.at())) return x;
  const var hue = detail::channel(x, 0) * 6, value = detail::channel(x, 2);
  const var range = value * detail::channel(x, 1);
  // Each colour is at its full a third of the circle away from the next.
  auto color = [&](double shift) {
    const var k = mod(hue + shift, 6);
    return value - range * clamp(minimum(k, 4 - k), 0, 1);
  };
  return detail::from_channels(color(5), color(3), color(1));
}

/// 10 log10(range^2 / mean of (x - y)^2) of each image [N,...] -> [N], in decibels; infinite for
/// equal images.
constexpr var psnr(operand left, operand right, double range = 1) {
  const var apart = detail::binary<sub_op>(left, right);
  builder& b = *apart.b;
  if (apart.rank() < 2 || !is_floating(apart.element())) {
    b.fail(text() << left.at()
                  << ": psnr: needs images [N,...] of floating-point numbers; they are "
                  << apart.type());
    return apart;
  }
  const shape s = apart.shape();
  const var error = mean(square(reshape(apart, {s[0], s.size(1, s.rank)})), {1});
  return log(range * range / error) * (10 * std::numbers::log10e);
}

/// How alike the neighbourhoods of two images [N,C,H,W] are in brightness, contrast and structure,
/// 1 if they are equal: the mean over all places of a Gaussian window of 11 x 11 pixels -> [N].
/// `range` is that of the pixels.  Wang et al. 2004
constexpr var ssim(operand left, operand right, double range = 1, double sigma = 1.5) {
  builder& b = owner_of(left, right);
  const var x = left.in(b);
  const var y = right.in(b);
  constexpr int size = 11;
  if (x.type() != y.type() || x.rank() != 4 || !is_floating(x.element()) || x.extent(2) < size ||
      x.extent(3) < size) {
    b.fail(text() << left.at() << ": ssim: needs two images [N,C,H,W] of one floating-point type, "
                  << size << " pixels wide and high at least: " << b.describe(x.id) << " is "
                  << x.type() << ", " << b.describe(y.id) << " is " << y.type());
    return x;
  }
  shape line{size};
  const var place = (iota(b, {x.element(), line}, 0) - size / 2) * (1 / sigma);
  const var bell = exp(square(place) * -0.5);
  const var weights = bell / sum(bell);
  // Each channel is an image of its own.
  auto smooth = [&](var v) {
    const var flat =
        reshape(v, {std::int64_t{v.extent(0)} * v.extent(1), 1, v.extent(2), v.extent(3)});
    const var wide = conv2d(flat, reshape(weights, {1, 1, 1, size}));
    return conv2d(wide, reshape(weights, {1, 1, size, 1}));
  };
  const var mx = smooth(x), my = smooth(y);
  const var vx = smooth(square(x)) - square(mx), vy = smooth(square(y)) - square(my);
  const var vxy = smooth(x * y) - mx * my;
  const double c1 = 1e-4 * range * range, c2 = 9e-4 * range * range;
  const var alike =
      (2 * mx * my + c1) * (2 * vxy + c2) / ((square(mx) + square(my) + c1) * (vx + vy + c2));
  return mean(reshape(alike, {x.extent(0), -1}), {1});
}

/// What `image_gradients` returns.
struct image_gradients_result {
  var vertical, horizontal;
};
/// Differences of neighbours, below and above and right and left, of images [N,C,H,W], with zeros
/// at the last row and column.  (TensorFlow's image_gradients)
constexpr image_gradients_result image_gradients(operand image) {
  builder& b = *image.owner();
  const var x = image.in(b);
  if (x.rank() != 4) {
    b.fail(text() << image.at() << ": image_gradients: the image must have rank 4: "
                  << b.describe(x.id) << " is " << x.shape());
    return {x, x};
  }
  auto along = [&](int axis) {
    const int n = x.extent(axis);
    const var last = zeros_like(slice(x, axis, n - 1, n));
    if (n == 1) return last;
    return concat({slice(x, axis, 1, n) - slice(x, axis, 0, n - 1), last}, axis);
  };
  return {along(2), along(3)};
}

}  // namespace cella
