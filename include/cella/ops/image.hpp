// Re-arranging and resizing of images [N,C,H,W], made of reshapes, gathers and products.
#pragma once

#include <algorithm>
#include <cella/ops/activation.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/padding.hpp>

namespace cella {

namespace detail {
/// A fault unless x is a batch of images and `fits`.
constexpr bool is_image(std::string_view op, operand x, bool fits, std::string_view why) {
  builder& b = *x.owner();
  const var v = x.in(b);
  if (v.rank() == 4 && fits) return true;
  b.fail(text() << x.at() << ": " << op << ": "
                << (v.rank() == 4 ? why : std::string_view("the image must have rank 4")) << ": "
                << b.describe(v.id) << " is " << v.shape());
  return false;
}
}  // namespace detail

/// [N,C,H,W] -> [N,C b^2,H/b,W/b]: each b x b block of pixels becomes channels (PyTorch's
/// pixel_unshuffle).
constexpr var space_to_depth(operand image, int block) {
  const var x = image.in(*image.owner());
  const bool fits =
      x.rank() == 4 && block > 0 && x.extent(2) % block == 0 && x.extent(3) % block == 0;
  if (!detail::is_image("space_to_depth", image, fits, "the block does not divide the image"))
    return x;
  const auto [n, c, h, w] = std::array{x.extent(0), x.extent(1), x.extent(2), x.extent(3)};
  const var blocks = reshape(image, {n, c, h / block, block, w / block, block});
  return reshape(transpose(blocks, {0, 1, 3, 5, 2, 4}),
                 {n, c * block * block, h / block, w / block});
}
/// [N,C b^2,H,W] -> [N,C,H b,W b], the inverse of `space_to_depth` (PyTorch's pixel_shuffle). Shi
/// et al. 2016
constexpr var depth_to_space(operand image, int block) {
  const var x = image.in(*image.owner());
  const bool fits = x.rank() == 4 && block > 0 && x.extent(1) % (block * block) == 0;
  if (!detail::is_image("depth_to_space", image, fits, "the block does not divide the channels"))
    return x;
  const auto [n, c, h, w] =
      std::array{x.extent(0), x.extent(1) / (block * block), x.extent(2), x.extent(3)};
  const var blocks = reshape(image, {n, c, block, block, h, w});
  return reshape(transpose(blocks, {0, 1, 4, 2, 5, 3}), {n, c, h * block, w * block});
}

/// The nearest pixel to the upper left of each place: row i of the result is row floor(i H /
/// height).
constexpr var resize_nearest(operand image, int height, int width) {
  builder& b = *image.owner();
  const var x = image.in(b);
  if (!detail::is_image("resize_nearest", image, height > 0 && width > 0, "the size is empty"))
    return x;
  const auto places = [&](std::int64_t from, int to) {
    list<std::int32_t> all;
    for (int i = 0; i < to; ++i) all.push_back(std::int32_t(i * from / to));
    return constant(image, all, {to});
  };
  const var rows = gather(image, places(x.extent(2), height), 2);
  return gather({rows, image.at()}, places(x.extent(3), width), 3);
}

namespace detail {
/// How many times as many rows there are, if they are interpolated by slices; else 0.
constexpr int phases_of_rows(int from, int to) {
  constexpr int most = 4;
  return from > 0 && to % from == 0 && to > from && to / from <= most ? to / from : 0;
}
/// Images [N,C,H + 2,W], whose first and last rows are there twice, linearly interpolated to
/// `times` H rows, outer edges on each other. Each place between two pixels is an average of all
/// rows and of those behind them, and these places follow each other in the result.
constexpr var interpolated_rows(operand edged, int times) {
  const var v = edged.in(*edged.owner());
  const int height = v.extent(2) - 2;
  list<var> places;
  for (int k = 0; k < times; ++k) {
    const double place = (k + 0.5) / times + 0.5;  // from the row in front
    const int first = place < 1 ? 0 : 1;
    const double part = place - first;
    const auto rows = [&](int from) { return slice(edged, 2, from, from + height); };
    const operand share(part, edged.at()), rest(1 - part, edged.at());
    places.push_back(part == 0 ? rows(first) : rows(first) * rest + rows(first + 1) * share);
  }
  shape s = v.shape();
  s[2] = height * times;
  return reshape({stack(places, 3, edged.at()), edged.at()}, s);
}
}  // namespace detail

/// Linear interpolation in both directions. `align_corners` puts the corner pixels' centres on each
/// other; otherwise their outer edges.
constexpr var resize_bilinear(operand image, int height, int width, bool align_corners = false) {
  builder& b = *image.owner();
  const var x = image.in(b);
  if (!detail::is_image("resize_bilinear", image, height > 0 && width > 0, "the size is empty"))
    return x;
  // Along an axis: the two pixels beside each place, and how far it is from the first.
  auto along = [&](var v, int axis, int to) {
    const int from = v.extent(axis);
    const double step =
        align_corners ? (to > 1 ? double(from - 1) / (to - 1) : 0.0) : double(from) / double(to);
    const double first = align_corners ? 0 : 0.5 * step - 0.5;
    list<std::int32_t> pixel, next;
    list<double> part, rest;
    for (int i = 0; i < to; ++i) {
      const double place = std::clamp(i * step + first, 0.0, double(from - 1));
      pixel.push_back(std::int32_t(place));
      next.push_back(std::min(pixel.back() + 1, from - 1));
      part.push_back(place - pixel.back());
      rest.push_back(1 - part.back());
    }
    const shape s = axis == 2 ? shape{to, 1} : shape{to};
    const var one = gather({v, image.at()}, constant(image, pixel, {to}), axis);
    const var other = gather({v, image.at()}, constant(image, next, {to}), axis);
    return one * constant(image, rest, s, v.element()) +
           other * constant(image, part, s, v.element());
  };
  // Along rows first: there are fewer of them then, and other rows are taken as a whole.
  const int phases = align_corners ? 0 : detail::phases_of_rows(x.extent(2), height);
  if (!phases) return along(along(x, 3, width), 2, height);
  const var edged = pad_replicate(image, {0, 0, 1, 0}, {0, 0, 1, 0});
  return detail::interpolated_rows({along(edged, 3, width), image.at()}, phases);
}

/// The windows of a convolution as columns: [N,C,H,W] -> [N, C K K, positions], for square windows.
constexpr var im2col(operand image, int size, int stride = 1, int padding = 0) {
  const var x = image.in(*image.owner());
  const bool fits = x.rank() == 4 && size > 0 && stride > 0 && padding >= 0 &&
                    std::min(x.extent(2), x.extent(3)) + 2 * padding >= size;
  if (!detail::is_image("im2col", image, fits, "the window does not fit the padded image"))
    return x;
  const var padded = pad(image, {0, 0, padding, padding}, {0, 0, padding, padding});
  const int rows = (padded.extent(2) - size) / stride + 1;
  const int columns = (padded.extent(3) - size) / stride + 1;
  list<var> taps;
  for (int p = 0; p < size; ++p) {
    for (int q = 0; q < size; ++q) {
      taps.push_back(strided_slice(
          {padded, image.at()}, {0, 0, p, q},
          {x.extent(0), x.extent(1), p + (rows - 1) * stride + 1, q + (columns - 1) * stride + 1},
          {1, 1, stride, stride}));
    }
  }
  return reshape(stack(taps, 2), {x.extent(0), x.extent(1) * size * size, rows * columns});
}

}  // namespace cella
