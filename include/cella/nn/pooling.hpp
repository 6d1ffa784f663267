// Pooling as cells; adaptive pooling is to an extent that is given, whatever the image's.
#pragma once

#include <cella/ops/matmul.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/slicing.hpp>

namespace cella {

namespace detail {

/// Where part i of `parts` parts of `extent` elements begins and ends, as PyTorch has them: they
/// overlap where the parts do not divide the extent.
constexpr int part_begin(int i, int extent, int parts) { return i * extent / parts; }
constexpr int part_end(int i, int extent, int parts) {
  return ((i + 1) * extent + parts - 1) / parts;
}
/// [parts, extent]: a row averages its part.
constexpr var part_means(var like, int extent, int parts) {
  list<double> rows(std::size_t(parts) * std::size_t(extent), 0);
  for (int i = 0; i < parts; ++i) {
    const int first = part_begin(i, extent, parts), last = part_end(i, extent, parts);
    for (int k = first; k < last; ++k)
      rows[std::size_t(i) * std::size_t(extent) + std::size_t(k)] = 1.0 / (last - first);
  }
  return constant(like, rows, {parts, extent}, like.element());
}
/// The largest of each part along an axis.
constexpr var part_maxima(var x, int axis, int parts) {
  const int extent = x.extent(axis);
  list<var> maxima;
  for (int i = 0; i < parts; ++i) {
    const var part = slice(x, axis, part_begin(i, extent, parts), part_end(i, extent, parts));
    maxima.push_back(max(part, {axis}, true));
  }
  return concat(span<const var>(maxima), axis);
}
constexpr bool pools_adaptively(std::string_view op, operand image, int height, int width) {
  const var x = image.in(*image.owner());
  if (x.rank() == 4 && x.shape().size() > 0 && height > 0 && width > 0) return true;
  x.b->fail(text() << image.at() << ": " << op
                   << ": needs images [N,C,H,W] and positive extents: " << x.b->describe(x.id)
                   << " is " << x.shape() << ", asked for [" << height << "," << width << "]");
  return false;
}

}  // namespace detail

namespace nn {

/// cella::max_pool as a cell.
struct max_pool {
  int size = 2;
  int stride = 0;
  int padding = 0;
  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    return cella::max_pool({x, at}, size, stride, padding);
  }
};
/// cella::average_pool as a cell.
struct average_pool {
  int size = 2;
  int stride = 0;
  int padding = 0;
  bool count_padding = true;
  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    return cella::average_pool({x, at}, size, stride, padding, count_padding);
  }
};
/// cella::global_average_pool as a cell.
struct global_average_pool {
  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    return cella::global_average_pool({x, at});
  }
};
/// Means of height x width parts of images: [N,C,H,W] -> [N,C,height,width]. Part i of an extent H
/// goes from floor(i H / height) to ceil((i + 1) H / height). Without a width it is the height.
struct adaptive_average_pool {
  int height = 1;
  int width = 0;
  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const int across = width ? width : height;
    if (!cella::detail::pools_adaptively("adaptive_average_pool", {x, at}, height, across))
      return x;
    const int h = x.extent(2), w = x.extent(3);
    if (h % height == 0 && w % across == 0 && h / height == w / across)
      return h == height ? x : cella::average_pool({x, at}, h / height);
    const var rows = matmul({x, at}, cella::detail::part_means(x, w, across), false, true);
    return matmul(cella::detail::part_means(x, h, height), {rows, at});
  }
};
/// The largest elements of such parts.
struct adaptive_max_pool {
  int height = 1;
  int width = 0;
  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    const int across = width ? width : height;
    if (!cella::detail::pools_adaptively("adaptive_max_pool", {x, at}, height, across)) return x;
    return cella::detail::part_maxima(cella::detail::part_maxima(x, 3, across), 2, height);
  }
};

/// [N,C,H,W] -> [N,C]: the largest element of each channel.
struct global_max_pool {
  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    if (!cella::detail::pools_adaptively("global_max_pool", {x, at}, 1, 1)) return x;
    return max({x, at}, {2, 3});
  }
};

}  // namespace nn
}  // namespace cella
