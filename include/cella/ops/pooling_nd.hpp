// Pools over one and three axes, with windows of any form, to a given size, and by other means.
#pragma once

#include <cella/ops/matmul.hpp>
#include <cella/ops/padding.hpp>
#include <cella/ops/pooling.hpp>

namespace cella {

/// The windows of a pool over images. Pairs are (vertical, horizontal).
struct pool_form {
  std::array<int, 2> size{2, 2};
  std::array<int, 2> stride{0, 0};  ///< 0: the size
  std::array<int, 2> before{0, 0};
  std::array<int, 2> after{0, 0};
  bool ceil = false;          ///< windows may stand out at the end, if they begin inside
  bool count_padding = true;  ///< of means: the border's zeros count as elements
};

namespace detail {
/// Strides filled in, and after what is needed for the last window.
constexpr pool_form completed(pool_form f, const shape& image) {
  for (std::size_t d = 0; d < 2; ++d) {
    if (f.stride[d] == 0) f.stride[d] = f.size[d];
    const int extent = image[int(d) + 2] + f.before[d] + f.after[d];
    if (!f.ceil || f.stride[d] < 1 || extent < f.size[d]) continue;
    int places = (extent - f.size[d] + f.stride[d] - 1) / f.stride[d] + 1;
    // A window that would begin in the padding behind the image is none.
    if ((places - 1) * f.stride[d] >= image[int(d) + 2] + f.before[d]) --places;
    f.after[d] += std::max((places - 1) * f.stride[d] + f.size[d] - extent, 0);
  }
  return f;
}
constexpr pooling_options unpadded(const pool_form& f) {
  window w;
  w.stride = {f.stride[0], f.stride[1]};
  return {w, {f.size[0], f.size[1]}, {}, 1};
}
/// The image with its border, or a fault.
constexpr var with_border(std::string_view op, operand image, const pool_form& f, double value,
                          std::int64_t most) {
  builder& b = *image.owner();
  const var x = image.in(b);
  if (x.rank() == 4 && std::min({f.before[0], f.before[1], f.after[0], f.after[1]}) < 0) {
    b.fail(text() << image.at() << ": " << op << ": padding must not be negative");
    return x;
  }
  const bool bare = f.before == std::array{0, 0} && f.after == std::array{0, 0};
  const var padded = bare || x.rank() != 4 ? x
                                           : pad(image, {0, 0, f.before[0], f.before[1]},
                                                 {0, 0, f.after[0], f.after[1]}, value);
  pools(b, op, padded, unpadded(f), most, image.at());
  return padded;
}
/// Less than all numbers of a type.
constexpr double least_number(dtype t) {
  return is_floating(t) ? -std::numeric_limits<double>::infinity() : least_integer(t);
}
}  // namespace detail

/// Largest element of each window of images [N,C,H,W].
constexpr var max_pool(operand image, const pool_form& form) {
  builder& b = *image.owner();
  const var x = image.in(b);
  const pool_form f = x.rank() == 4 ? detail::completed(form, x.shape()) : form;
  const var padded =
      detail::with_border("max_pool", image, f, detail::least_number(x.element()), 256);
  if (b.failed()) return x;
  return {&b, b.get(emit<max_pool_op>(detail::unpadded(f), image.at(), padded).id, 0)};
}
/// Mean of each window of images [N,C,H,W]. What stands out behind the padding counts as it does.
constexpr var average_pool(operand image, const pool_form& form) {
  builder& b = *image.owner();
  const var x = image.in(b);
  const pool_form f = x.rank() == 4 ? detail::completed(form, x.shape()) : form;
  const var padded = detail::with_border("average_pool", image, f, 0, std::int64_t{1} << 62);
  if (b.failed()) return x;
  const auto mean_of = [&](var v) {
    return emit<average_pool_op>(detail::unpadded(f), image.at(), v);
  };
  const var y = mean_of(padded);
  if (form.count_padding || padded.id == x.id) return y;
  shape one = x.shape();
  one[0] = one[1] = 1;
  const var inside = pad(constant(b, 1, {x.element(), one}), {0, 0, f.before[0], f.before[1]},
                         {0, 0, f.after[0], f.after[1]});
  return y / mean_of(inside);
}
/// (sum of |x|^p)^(1/p) of each window, to which zeros of the border add nothing.
constexpr var lp_pool(operand image, double p, const pool_form& form) {
  pool_form all = form;
  all.count_padding = true;  // each mean is of so many elements
  const double taps = double(form.size[0]) * form.size[1];
  return pow(average_pool({pow(abs(image), p), image.at()}, all) * taps, 1 / p);
}

namespace detail {
/// A pool of images as one of signals [N,C,L].
template <class Pool>
constexpr var pooled_signal(std::string_view op, operand signal, Pool pool) {
  builder& b = *signal.owner();
  const var x = signal.in(b);
  if (x.rank() != 3) {
    b.fail(text() << signal.at() << ": " << op
                  << ": the signal must have rank 3: " << b.describe(x.id) << " is " << x.shape());
    return x;
  }
  const var y = pool(operand(expand_dims({x, signal.at()}, 2), signal.at()));
  return b.failed() ? x : squeeze(y, 2);
}
/// A pool of images as one of volumes [N,C,D,H,W]: over the last two axes, then over the depth.
template <class Pool>
constexpr var pooled_volume(std::string_view op, operand volume, Pool pool) {
  builder& b = *volume.owner();
  const var x = volume.in(b);
  if (x.rank() != 5) {
    b.fail(text() << volume.at() << ": " << op
                  << ": the volume must have rank 5: " << b.describe(x.id) << " is " << x.shape());
    return x;
  }
  const shape s = x.shape();
  const var flat =
      pool(operand(reshape(x, {s[0], std::int64_t{s[1]} * s[2], s[3], s[4]}), volume.at()), false);
  if (b.failed()) return x;
  const int rows = flat.extent(2), columns = flat.extent(3);
  const var deep = pool(
      operand(reshape(flat, {s[0], s[1], s[2], std::int64_t{rows} * columns}), volume.at()), true);
  return b.failed() ? x : reshape(deep, {s[0], s[1], deep.extent(2), rows, columns});
}
constexpr pool_form even_form(int size, int stride, int padding, bool count_padding,
                              std::array<bool, 2> axes) {
  pool_form f;
  for (std::size_t d = 0; d < 2; ++d) {
    f.size[d] = axes[d] ? size : 1;
    f.stride[d] = axes[d] ? stride : 1;
    f.before[d] = f.after[d] = axes[d] ? padding : 0;
  }
  f.count_padding = count_padding;
  return f;
}
}  // namespace detail

/// Largest element of each `size` elements of signals [N,C,L]; `stride` 0 means `size`.
constexpr var max_pool1d(operand signal, int size, int stride = 0, int padding = 0) {
  return detail::pooled_signal("max_pool1d", signal, [&](operand x) {
    return max_pool(x, detail::even_form(size, stride, padding, true, {false, true}));
  });
}
/// Mean of each `size` elements of signals.
constexpr var average_pool1d(operand signal, int size, int stride = 0, int padding = 0,
                             bool count_padding = true) {
  return detail::pooled_signal("average_pool1d", signal, [&](operand x) {
    return average_pool(x, detail::even_form(size, stride, padding, count_padding, {false, true}));
  });
}
/// Largest element of each cube of volumes [N,C,D,H,W].
constexpr var max_pool3d(operand volume, int size, int stride = 0, int padding = 0) {
  return detail::pooled_volume("max_pool3d", volume, [&](operand x, bool deep) {
    return max_pool(x, detail::even_form(size, stride, padding, true, {true, !deep}));
  });
}
/// Mean of each cube of volumes.
constexpr var average_pool3d(operand volume, int size, int stride = 0, int padding = 0,
                             bool count_padding = true) {
  return detail::pooled_volume("average_pool3d", volume, [&](operand x, bool deep) {
    return average_pool(x, detail::even_form(size, stride, padding, count_padding, {true, !deep}));
  });
}

namespace detail {
/// The elements of part i of `to` parts of `from` elements: from floor(i from / to) to
/// ceil((i + 1) from / to).
struct adaptive_part {
  int first{}, end{};
};
constexpr adaptive_part part_of(int from, int to, std::int64_t i) {
  return {int(i * from / to), int(((i + 1) * from + to - 1) / to)};
}
/// [to,from]: `weight(part)` where element j belongs to part i, else 0.
template <class Weight>
constexpr var adaptive_parts(operand x, int from, int to, dtype element, Weight weight) {
  list<double> all(std::size_t(from) * std::size_t(to), 0.0);
  for (int i = 0; i < to; ++i) {
    const adaptive_part p = part_of(from, to, i);
    for (int j = p.first; j < p.end; ++j) all[std::size_t(i * from + j)] = weight(p);
  }
  return constant(x, all, {to, from}, element);
}
constexpr bool adapts(std::string_view op, operand image, int height, int width) {
  builder& b = *image.owner();
  const var x = image.in(b);
  if (x.rank() == 4 && height > 0 && width > 0 && is_floating(x.element())) return true;
  b.fail(text() << image.at() << ": " << op << ": needs images of floating-point numbers, and a "
                << "size: " << b.describe(x.id) << " is " << x.type());
  return false;
}
}  // namespace detail

/// Means of height x width parts of images [N,C,H,W], whatever their size.
constexpr var adaptive_average_pool(operand image, int height, int width) {
  builder& b = *image.owner();
  const var x = image.in(b);
  if (!detail::adapts("adaptive_average_pool", image, height, width)) return x;
  const auto weights = [&](int from, int to) {
    return detail::adaptive_parts(image, from, to, x.element(),
                                  [](detail::adaptive_part p) { return 1.0 / (p.end - p.first); });
  };
  // Rows first: their sums are of neighbours, and what is left is small.
  const var flat = matmul(weights(x.extent(2), height), image);
  return matmul({flat, image.at()}, weights(x.extent(3), width), false, true);
}
/// The largest elements of these parts.
constexpr var adaptive_max_pool(operand image, int height, int width) {
  builder& b = *image.owner();
  const var x = image.in(b);
  if (!detail::adapts("adaptive_max_pool", image, height, width)) return x;
  // A few parts are read one by one; of many, all numbers outside are masked.
  auto one_by_one = [](var v, int axis, int to) {
    list<var> all;
    for (int i = 0; i < to; ++i) {
      const auto [first, end] = detail::part_of(v.extent(axis), to, i);
      all.push_back(max(slice(v, axis, first, end), {axis}, true));
    }
    return concat(span<const var>(all), axis);
  };
  auto along_last = [&](var v, int to) {
    const var parts = detail::adaptive_parts(image, v.extent(-1), to, dtype::boolean,
                                             [](detail::adaptive_part) { return 1.0; });
    return max(select(parts, expand_dims(v, -2), -std::numeric_limits<double>::infinity()), {-1});
  };
  constexpr int few = 16;
  // Rows first: their elements lie beside each other, and what is left is small.
  const var flat = height <= few
                       ? one_by_one(x, 2, height)
                       : transpose(along_last(transpose(x, {0, 1, 3, 2}), height), {0, 1, 3, 2});
  return width <= few ? one_by_one(flat, 3, width) : along_last(flat, width);
}

}  // namespace cella
