// Maximum and average over windows of an image.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/pooling_windows.hpp>
#include <cella/ops/reduction.hpp>
#include <limits>

namespace cella {

/// image [N,C,H,W] -> largest element of each window, and where in its window it lies (u8,
/// row-major from 0; the first of equal ones). Windows have at most 256 elements; padding never
/// wins.
struct max_pool_op : opaque<max_pool_op>, detail::merges_batches<max_pool_op>, computed_in_single {
  static constexpr std::string_view name = "max_pool";
  static constexpr std::string_view torch = "F.max_pool2d(return_indices=True)";
  static constexpr std::string_view formula =
      "y = the largest element of each window, and where it is";
  static constexpr compute_class computes = compute_class::window;
  static constexpr onnx_operator onnx{"MaxPool", 1};
  using options = pooling_options;
  static constexpr int operands = 1;
  static bool fits(const op_application& a) {
    return a.n.result_count == 2 && detail::fits_places(a, a.of(0), a.g.result_type(a.id, 0).shape);
  }
  static constexpr int results(span<const tensor_type> in, const attributes& o,
                               span<tensor_type> out) {
    out[0] = out[1] = detail::pooled(in[0], o.as<options>());
    out[1].element = dtype::u8;
    return 2;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::pooling_space(detail::pooled(in[0], o.as<options>()), o.as<options>(), 0, 1, 3,
                                 combination::maximum);
  }
  /// The first result; the positions of ONNX are others.
  static void write_onnx(span<const tensor_type>, const attributes& o, onnx_attributes& to) {
    const auto a = o.as<options>();
    detail::write_onnx_window(a.window, a.kernel, to);
  }
  static attributes read_onnx(span<const tensor_type> in, const onnx_attributes& from) {
    from.only(
        {"kernel_shape", "strides", "pads", "dilations", "auto_pad", "ceil_mode", "storage_order"});
    return detail::read_onnx_pooling(in[0], from);
  }
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// values [N,C,PH,PW], positions u8 -> image [N,C,H,W]: each value is added where its position
/// points.
struct unpool_op : linear<unpool_op>,
                   detail::merges_batches<unpool_op>,
                   keeps_zero,
                   computed_in_single {
  static constexpr std::string_view name = "unpool";
  static constexpr std::string_view formula =
      "dx of max_pool: each dy where the largest element was";
  static constexpr compute_class computes = compute_class::window;
  using options = pooling_options;
  static constexpr int operands = 2;
  static bool fits(const op_application& a) {
    return a.in[1] == tensor_type{dtype::u8, a.of(0)} &&
           detail::fits_places(a, a.n.type.shape, a.of(0));
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    const auto e = o.as<options>().extents;
    return {in[0].element, {in[0][0], in[0][1], e[0], e[1]}};
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::pooling_space(in[0], o.as<options>(), 2, 2, 3, combination::sum);
  }
  /// Of the windows over an element any number may have their largest there.
  static constexpr interval bounds(span<const interval> in, span<const tensor_type> types,
                                   const attributes& o) {
    return hull(sum_over_points(space(types, o), infer(types, o), in[0]), {0, 0});
  }
  static constexpr var transpose(node_ref n, int i, var dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// image, positions u8 -> the image's elements at those positions: the transpose of `unpool`.
struct pool_gather_op : linear<pool_gather_op>,
                        detail::merges_batches<pool_gather_op>,
                        computed_in_single {
  static constexpr std::string_view name = "pool_gather";
  static constexpr std::string_view formula = "x at the places of the largest elements";
  static constexpr compute_class computes = compute_class::window;
  using options = pooling_options;
  static constexpr int operands = 2;
  static bool fits(const op_application& a) {
    return a.in[1].element == dtype::u8 && detail::fits_places(a, a.of(0), a.of(1));
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return {in[0].element, in[1].shape};
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::pooling_space(in[1], o.as<options>(), 0, 2, 3, combination::sum);
  }
  /// Nothing is read where a position lies in the padding, as no largest element does.
  static constexpr interval bounds(span<const interval> in, span<const tensor_type>,
                                   const attributes&) {
    return hull(in[0], {0, 0});
  }
  static constexpr var transpose(node_ref n, int i, var dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// Mean of each window.
struct average_pool_op : linear<average_pool_op>,
                         detail::merges_batches<average_pool_op>,
                         keeps_zero,
                         computed_in_single {
  static constexpr std::string_view name = "average_pool";
  static constexpr std::string_view torch = "F.avg_pool2d";
  static constexpr std::string_view formula = "y = the mean of each window";
  static constexpr compute_class computes = compute_class::window;
  static constexpr onnx_operator onnx{"AveragePool", 7};
  using options = pooling_options;
  static constexpr int operands = 1;
  static bool fits(const op_application& a) {
    return detail::fits_pool(a, a.of(0), a.n.type.shape);
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return detail::pooled(in[0], o.as<options>());
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::pooling_space(infer(in, o), o.as<options>(), 0, 1, 2, combination::sum);
  }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type> types,
                                   const attributes& o) {
    const bool zeros_count = o.as<options>().count_padding;
    return zeros_count ? read_by_points(space(types, o), 0, types[0], in[0]) : in[0];
  }
  static void write_onnx(span<const tensor_type>, const attributes& o, onnx_attributes& to) {
    const auto a = o.as<options>();
    detail::write_onnx_window(a.window, a.kernel, to);
    to.set("count_include_pad", a.count_padding);
  }
  static attributes read_onnx(span<const tensor_type> in, const onnx_attributes& from) {
    from.only({"kernel_shape", "strides", "pads", "dilations", "auto_pad", "ceil_mode",
               "count_include_pad"});
    auto o = detail::read_onnx_pooling(in[0], from);
    o.count_padding = from.integer("count_include_pad", 0);
    return o;
  }
  static constexpr var transpose(node_ref n, int i, var dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// Spreads each value evenly over its window: the transpose of `average_pool`.
struct average_spread_op : linear<average_spread_op>,
                           detail::merges_batches<average_spread_op>,
                           keeps_zero,
                           computed_in_single {
  static constexpr std::string_view name = "average_spread";
  static constexpr std::string_view formula = "dx of average_pool: each dy spread over its window";
  static constexpr compute_class computes = compute_class::window;
  using options = pooling_options;
  static constexpr int operands = 1;
  static bool fits(const op_application& a) {
    return detail::fits_pool(a, a.n.type.shape, a.of(0));
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    const auto e = o.as<options>().extents;
    return {in[0].element, {in[0][0], in[0][1], e[0], e[1]}};
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::pooling_space(in[0], o.as<options>(), 1, 1, 2, combination::sum);
  }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type> types,
                                   const attributes& o) {
    const auto a = o.as<options>();
    const interval all = sum_over_points(space(types, o), infer(types, o), in[0]);
    // Without its zeros a window at the border has fewer elements, but one at least.
    return a.count_padding ? 1 / (double(a.kernel[0]) * a.kernel[1]) * all : hull(all, {0, 0});
  }
  static constexpr var transpose(node_ref n, int i, var dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

// ---- public functions

namespace detail {
CELLA_ONCE constexpr bool pools(builder& b, std::string_view op, var x, const pooling_options& o,
                                std::int64_t most, std::source_location at) {
  std::string_view why;
  if (x.rank() != 4) {
    why = "the image must have rank 4";
  } else {
    for (std::size_t d = 0; d < 2 && why.empty(); ++d) {
      const auto& w = o.window;
      if (o.kernel[d] < 1 || w.stride[d] < 1)
        why = "window and stride must be positive";
      else if (w.before[d] < 0 || w.before[d] > o.kernel[d] / 2 || w.after[d] < 0 ||
               w.after[d] > o.kernel[d] / 2)
        why = "padding is negative or exceeds half the window";
      else if (w.padded(x.extent(int(d) + 2), d) < o.kernel[d])
        why = "the window is larger than the padded image";
    }
    if (why.empty() && std::int64_t{o.kernel[0]} * o.kernel[1] > most)
      why = "a window has at most 256 elements";
  }
  if (why.empty()) return true;
  b.fail(text() << at << ": " << op << ": " << why << ": " << b.describe(x.id) << " is "
                << x.shape() << ", window [" << o.kernel[0] << "," << o.kernel[1] << "]");
  return false;
}
constexpr pooling_options square_window(int size, int stride, int padding) {
  const int s = stride ? stride : size;
  return {{{s, s}, {padding, padding}, {padding, padding}, {1, 1}, 1}, {size, size}, {}, 1};
}
}  // namespace detail

/// Largest element of each `size` x `size` window of images [N,C,H,W]; `stride` 0 means `size`.
CELLA_ONCE constexpr var max_pool(operand image, int size, int stride = 0, int padding = 0) {
  builder& b = *image.owner();
  const var x = image.in(b);
  const auto o = detail::square_window(size, stride, padding);
  if (!detail::pools(b, "max_pool", x, o, 256, image.at())) return x;
  return {&b, b.get(emit<max_pool_op>(o, image.at(), x).id, 0)};
}
/// Mean of each window; `count_padding` counts the zeros of the border as elements.
constexpr var average_pool(operand image, int size, int stride = 0, int padding = 0,
                           bool count_padding = true) {
  builder& b = *image.owner();
  const var x = image.in(b);
  auto o = detail::square_window(size, stride, padding);
  o.count_padding = count_padding;
  if (!detail::pools(b, "average_pool", x, o, std::int64_t{1} << 62, image.at())) return x;
  return emit<average_pool_op>(o, image.at(), x);
}
/// [N,C,H,W] -> [N,C]
CELLA_ONCE constexpr var global_average_pool(operand image) {
  builder& b = *image.owner();
  const var x = image.in(b);
  if (x.rank() == 4) return mean(image, {2, 3});
  b.fail(text() << image.at() << ": global_average_pool: the image must have rank 4: "
                << b.describe(x.id) << " is " << x.shape());
  return x;
}

// ---- rules

namespace detail {
constexpr pooling_options with_extents(pooling_options o, var image) {
  o.extents = {image.extent(2), image.extent(3)};
  return o;
}
}  // namespace detail

constexpr void max_pool_op::vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
  if (dy[0].id < 0) return;
  const auto o = detail::with_extents(n.as<options>(), n.operand(0));
  dx[0] = emit<unpool_op>(o, std::source_location::current(), dy[0], n.output(1));
}
constexpr var unpool_op::transpose(node_ref n, int, var dy) {
  return emit<pool_gather_op>(n.as<options>(), std::source_location::current(), dy, n.operand(1));
}
constexpr var pool_gather_op::transpose(node_ref n, int, var dy) {
  return emit<unpool_op>(detail::with_extents(n.as<options>(), n.operand(0)),
                         std::source_location::current(), dy, n.operand(1));
}
constexpr var average_pool_op::transpose(node_ref n, int, var dy) {
  return emit<average_spread_op>(detail::with_extents(n.as<options>(), n.operand(0)),
                                 std::source_location::current(), dy);
}
constexpr var average_spread_op::transpose(node_ref n, int, var dy) {
  return emit<average_pool_op>(n.as<options>(), std::source_location::current(), dy);
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

namespace detail {
inline double window_count(const shape& image, const pooling_options& o, const multi_index& i) {
  int n = 0;
  for_each_tap(image, o, i, [&](std::int64_t, int) { ++n; });
  return o.count_padding ? double(o.kernel[0]) * o.kernel[1] : double(n);
}
}  // namespace detail

inline void max_pool_op::compute(const attributes& o, span<const tensor_ref> in,
                                 span<const tensor_ref> out) {
  const auto a = o.as<options>();
  fill(out[0], -std::numeric_limits<double>::infinity());
  with_wide_number(in[0].type.element, [&]<class N>() {
    for_each_index(out[0].type.shape, [&](std::int64_t k, const multi_index& i) {
      N best = read_number<N>(out[0], k);
      int at = 0;
      bool first = true;
      detail::for_each_tap(in[0].type.shape, a, i, [&](std::int64_t x, int position) {
        const N v = read_number<N>(in[0], x);
        if (first || v > best || v != v) {
          best = v;
          at = position;
          first = false;
        }
      });
      write_number(out[0], k, best);
      write_element(out[1], k, at);
    });
  });
}
inline void unpool_op::compute(const attributes& o, span<const tensor_ref> in,
                               span<const tensor_ref> out) {
  const auto a = o.as<options>();
  std::memset(out[0].data, 0, std::size_t(out[0].type.bytes()));
  for_each_index(in[0].type.shape, [&](std::int64_t k, const multi_index& i) {
    detail::for_each_tap(out[0].type.shape, a, i, [&](std::int64_t x, int position) {
      if (position == int(read_element(in[1], k))) add_element(in[0], k, out[0], x);
    });
  });
}
inline void pool_gather_op::compute(const attributes& o, span<const tensor_ref> in,
                                    span<const tensor_ref> out) {
  const auto a = o.as<options>();
  for_each_index(out[0].type.shape, [&](std::int64_t k, const multi_index& i) {
    detail::for_each_tap(in[0].type.shape, a, i, [&](std::int64_t x, int position) {
      if (position == int(read_element(in[1], k))) copy_element(in[0], x, out[0], k);
    });
  });
}
inline void average_pool_op::compute(const attributes& o, span<const tensor_ref> in,
                                     span<const tensor_ref> out) {
  const auto a = o.as<options>();
  for_each_index(out[0].type.shape, [&](std::int64_t k, const multi_index& i) {
    double sum = 0;
    detail::for_each_tap(in[0].type.shape, a, i,
                         [&](std::int64_t x, int) { sum += read_element(in[0], x); });
    write_element(out[0], k, sum / detail::window_count(in[0].type.shape, a, i));
  });
}
inline void average_spread_op::compute(const attributes& o, span<const tensor_ref> in,
                                       span<const tensor_ref> out) {
  const auto a = o.as<options>();
  std::memset(out[0].data, 0, std::size_t(out[0].type.bytes()));
  for_each_index(in[0].type.shape, [&](std::int64_t k, const multi_index& i) {
    const double share = read_element(in[0], k) / detail::window_count(out[0].type.shape, a, i);
    detail::for_each_tap(out[0].type.shape, a, i, [&](std::int64_t x, int) {
      write_element(out[0], x, read_element(out[0], x) + share);
    });
  });
}

#endif

}  // namespace cella
