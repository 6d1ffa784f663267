// Pools over one to three axes.
#pragma once

#include <cella/interop/onnx/padding.hpp>
#include <cella/interop/onnx/windows.hpp>
#include <cella/ops/convolution_nd.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/reduction.hpp>

namespace cella::interop {

/// The windows of a pool. Where they may stand out at the end, the padding there is as wide as the
/// last one needs that begins before the model's padding there.
inline window_axes read_pool(const onnx_node& n, var x) {
  if (!n.has_attribute("kernel_shape")) n.refuse("lacks the attribute \"kernel_shape\"");
  window_axes w = read_windows(n, x, n.integers("kernel_shape"));
  pad_by_name(n, w);
  for (window_axis& a : w) {
    if (a.padded() < a.taps()) n.refuse("has a window that is larger than the padded image");
    n.between(0, a.padded() + a.stride, 1 << 30, "padded extent");
    if (!n.integer("ceil_mode", 0)) continue;
    const std::int64_t places = std::min((a.padded() - a.taps() + a.stride - 1) / a.stride,
                                         (a.before + a.extent - 1) / a.stride) +
                                1;
    const std::int64_t needed = (places - 1) * a.stride + a.taps();
    a.beyond = std::max<std::int64_t>(0, needed - a.padded());
    // Windows that would begin in the padding have no place any more.
    const std::int64_t room = needed + a.stride - 1;
    a.after = std::min(a.after, room - a.before - a.extent) + a.beyond;
  }
  return w;
}
/// The smallest number of a type: what a largest element is taken against.
inline double least_of(dtype t) {
  if (is_floating(t)) return -std::numeric_limits<double>::infinity();
  if (is_unsigned(t)) return 0;
  return -std::ldexp(1.0, int(size_of(t)) * 8 - 1);
}
/// Calls `pool(image, rows, columns)` on images of rank 4 whose axes are padded, first over all
/// axes but the depth, then over that.
template <class Pool>
var pooled_by_axes(var x, const window_axes& w, double border, Pool pool) {
  std::vector<int> before{0, 0}, after{0, 0};
  for (const window_axis& a : w) {
    before.push_back(int(a.before));
    after.push_back(int(a.after));
  }
  const bool padded = std::ranges::any_of(before, [](int p) { return p > 0; }) ||
                      std::ranges::any_of(after, [](int p) { return p > 0; });
  if (padded) x = pad(x, before, after, border);
  if (w.size() == 1) return squeeze(pool(expand_dims(x, 2), window_axis{}, w[0]), 2);
  if (w.size() == 2) return pool(x, w[0], w[1]);
  const var flat = cella::detail::batch_to_slices(
      pool(cella::detail::slices_to_batch(x), w[1], w[2]), x.extent(0));
  const shape s = flat.shape();
  const var deep = reshape(flat, {s[0], s[1], s[2], std::int64_t{s[3]} * s[4]});
  const var y = pool(deep, w[0], window_axis{});
  return reshape(y, {s[0], s[1], y.extent(2), s[3], s[4]});
}
/// The options of a pool over an image that is padded.
inline pooling_options plain_pool(const window_axis& rows, const window_axis& columns) {
  window o = window_of(rows, columns, 1);
  o.before = o.after = {0, 0};
  return {o, {std::int32_t(rows.kernel), std::int32_t(columns.kernel)}, {}, 1};
}
inline bool is_plain(const window_axes& w) {
  return w.size() == 2 && std::ranges::all_of(w, [](const window_axis& a) {
           return a.dilation == 1 && a.before <= a.kernel / 2 && a.after <= a.kernel / 2;
         });
}

/// Where the largest elements lie in x, whose rows and columns are those of the model's image.
inline var flat_positions(const onnx_node& n, var x, const window_axes& w, var places) {
  const shape s = places.shape();
  builder& b = n.b();
  const std::int64_t width = w[1].kernel;
  const var tap = cast(places, dtype::i64);
  auto along = [&](const window_axis& a, int axis, var t) {
    return iota(b, {dtype::i64, s}, axis) * double(a.stride) - double(a.before) +
           t * double(a.dilation);
  };
  const var row = along(w[0], 2, floor_div(tap, double(width)));
  const var column = along(w[1], 3, tap - floor_div(tap, double(width)) * double(width));
  const var image = iota(b, {dtype::i64, s}, 0) * double(x.extent(1)) + iota(b, {dtype::i64, s}, 1);
  const std::int64_t area = std::int64_t{x.extent(2)} * x.extent(3);
  // Column-major where the model asks for it.
  if (n.integer("storage_order", 0))
    return image * double(area) + column * double(x.extent(2)) + row;
  return image * double(area) + row * double(x.extent(3)) + column;
}
inline list<var> max_pool_rule(onnx_node& n) {
  var x = n.in(0);
  window_axes w = read_pool(n, x);
  if (n.wants(1)) {
    if (w.size() > 2) n.not_supported("the places of the largest elements over three axes");
    if (taps_of(w) > 256) n.not_supported("places in windows of more than 256 elements");
    const bool line = w.size() == 1;
    if (line) {
      x = expand_dims(x, 2);
      w.insert(w.begin(), window_axis{1});
    }
    const std::vector<int> before{0, 0, int(w[0].before), int(w[1].before)},
        after{0, 0, int(w[0].after), int(w[1].after)};
    const var padded = pad(x, before, after, least_of(x.element()));
    const var y =
        emit<max_pool_op>(plain_pool(w[0], w[1]), std::source_location::current(), padded);
    const var at = flat_positions(n, x, w, var{y.b, y.b->get(y.id, 1)});
    const var values{y.b, y.b->get(y.id, 0)};
    if (line) return {squeeze(values, 2), squeeze(at, 2)};
    return {values, at};
  }
  // Where an element lies in its window must fit into a byte.
  constexpr double most_taps = 256;
  for (const window_axis& a : w)
    if (double(a.kernel) > most_taps)
      n.not_supported("windows of more than 256 elements along an axis");
  auto largest = [](pooling_options o, var image) -> var {
    const var y = emit<max_pool_op>(o, std::source_location::current(), image);
    return {y.b, y.b->get(y.id, 0)};
  };
  if (is_plain(w) && taps_of(w) <= most_taps) {
    const pooling_options o{
        window_of(w[0], w[1], 1), {std::int32_t(w[0].kernel), std::int32_t(w[1].kernel)}, {}, 1};
    return {largest(o, x)};
  }
  return {pooled_by_axes(x, w, least_of(x.element()),
                         [&](var image, const window_axis& rows, const window_axis& columns) {
                           if (double(rows.kernel) * double(columns.kernel) <= most_taps)
                             return largest(plain_pool(rows, columns), image);
                           return largest(plain_pool({}, columns),
                                          largest(plain_pool(rows, {}), image));
                         })};
}
/// The sum of each window, the border being zeros.
inline var window_sums(var x, const window_axes& w) {
  const var means =
      pooled_by_axes(x, w, 0, [](var image, const window_axis& rows, const window_axis& columns) {
        return emit<average_pool_op>(plain_pool(rows, columns), std::source_location::current(),
                                     image);
      });
  return means * taps_of(w);
}
/// How many elements of the image each window has, or of the image with the model's padding.
inline var window_counts(const onnx_node& n, var sums, const window_axes& w, bool with_border) {
  var all = constant(n.b(), 1, {sums.element(), {}});
  for (std::size_t d = 0; d < w.size(); ++d) {
    const window_axis& a = w[d];
    n.limit(double(sums.extent(int(d) + 2)) * double(a.kernel));
    std::vector<double> counts;
    for (int p = 0; p < sums.extent(int(d) + 2); ++p) {
      double count = 0;
      for (std::int64_t k = 0; k < a.kernel; ++k) {
        const std::int64_t at = p * a.stride - a.before + k * a.dilation;
        const std::int64_t end = with_border ? a.extent + a.after - a.beyond : a.extent;
        count += (with_border || at >= 0) && at < end;
      }
      counts.push_back(count);
    }
    shape s{1, 1};
    for (std::size_t e = 0; e < w.size(); ++e) s.push_back(e == d ? int(counts.size()) : 1);
    all = all * numbers_as_constant(n.b(), counts, s, sums.element());
  }
  return all;
}
inline list<var> average_pool_rule(onnx_node& n) {
  const var x = n.in(0);
  const window_axes w = read_pool(n, x);
  n.limit(taps_of(w));
  const bool with_border = n.integer("count_include_pad", 0);
  // Windows with gaps counted all of their elements before opset 22, by the standard's own tests.
  const bool counts_all =
      n.opset() < 22 && std::ranges::any_of(w, [](const window_axis& a) { return a.dilation > 1; });
  const bool beyond =
      !counts_all && std::ranges::any_of(w, [](const window_axis& a) { return a.beyond > 0; });
  if (is_plain(w) && !(with_border && beyond)) {
    const pooling_options o{window_of(w[0], w[1], 1),
                            {std::int32_t(w[0].kernel), std::int32_t(w[1].kernel)},
                            {},
                            with_border};
    return {emit<average_pool_op>(o, std::source_location::current(), x)};
  }
  const var sums = window_sums(x, w);
  const bool whole = with_border && !beyond;
  return {sums / (whole ? scalar_like(x, taps_of(w)) : window_counts(n, sums, w, with_border))};
}
inline list<var> lp_pool_rule(onnx_node& n) {
  const var x = n.in(0);
  const double p = n.opset() < 2 ? n.number("p", 2) : double(n.integer("p", 2));
  const window_axes w = read_pool(n, x);
  return {pow(window_sums(pow(abs(x), p), w), 1 / p)};
}
inline std::vector<int> spatial_axes(var x) {
  std::vector<int> all;
  for (int d = 2; d < x.rank(); ++d) all.push_back(d);
  return all;
}
inline list<var> global_average_pool_rule(onnx_node& n) {
  return {mean(n.in(0), spatial_axes(n.in(0)), true)};
}
inline list<var> global_max_pool_rule(onnx_node& n) {
  return {max(n.in(0), spatial_axes(n.in(0)), true)};
}
inline list<var> global_lp_pool_rule(onnx_node& n) {
  const double p = n.opset() < 2 ? n.number("p", 2) : double(n.integer("p", 2));
  return {pow(sum(pow(abs(n.in(0)), p), spatial_axes(n.in(0)), true), 1 / p)};
}

inline constexpr named_onnx_rule pool_rules[] = {
    {"AveragePool", average_pool_rule},
    {"GlobalAveragePool", global_average_pool_rule},
    {"GlobalLpPool", global_lp_pool_rule},
    {"GlobalMaxPool", global_max_pool_rule},
    {"LpPool", lp_pool_rule},
    {"MaxPool", max_pool_rule},
};

}  // namespace cella::interop
