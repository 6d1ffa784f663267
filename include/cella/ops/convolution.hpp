// Two-dimensional convolution and its two gradients: three bilinear operations, each the transpose
// of the others.
#pragma once

#include <algorithm>
#include <cella/graph/list.hpp>
#include <cella/graph/once.hpp>
#include <cella/ops/batching.hpp>
#include <cella/ops/window.hpp>
#include <limits>

namespace cella {

struct convolution_options {
  cella::window window{};
  /// Extents that the operand types do not tell: of the image for the input gradient, of the filter
  /// for the weight gradient.
  std::array<std::int32_t, 2> extents{};
};

namespace detail {
/// Calls f(image element, filter element, result element) for every product.
template <class F>
void for_each_product(const shape& x, const shape& w, const shape& y, const window& o, F f);
/// out[c] = sum of in[0][a] in[1][b] over these places, where places(x, w, y) is {a, b, c}.
template <class Places>
void sum_products(const shape& x, const shape& w, const shape& y, const window& o,
                  span<const tensor_ref> in, const tensor_ref& out, Places places);
}  // namespace detail

/// image [N,C,H,W], filter [O,C/groups,KH,KW] -> [N,O,OH,OW]; cross-correlation, as everywhere in
/// the field.
struct convolution_op : bilinear<convolution_op>, computed_in_single {
  static constexpr std::string_view name = "conv2d";
  static constexpr std::string_view torch = "F.conv2d";
  static constexpr std::string_view formula =
      "y[n,o,i,j] = sum over c, k, l of x[n, c, s i + d k - p, s j + d l - p] w[o,c,k,l]";
  static constexpr compute_class computes = compute_class::window;
  static constexpr onnx_operator onnx{"Conv", 1};
  using options = convolution_options;
  static constexpr int operands = 2;
  static bool fits(const op_application& a) {
    return detail::fits_convolution(a, a.as<options>().window, {0, 1, 2});
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    const auto w = o.as<options>().window;
    return {in[0].element,
            {in[0][0], in[1][0], w.positions(in[0][2], in[1][2], 0),
             w.positions(in[0][3], in[1][3], 1)}};
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::convolution_space(in[1], infer(in, o), o.as<options>().window, {0, 1, 2});
  }
  static void write_onnx(span<const tensor_type> in, const attributes& o, onnx_attributes& to) {
    detail::write_onnx_window(o.as<options>().window, {in[1][2], in[1][3]}, to);
    to.set("group", o.as<options>().window.groups);
  }
  static attributes read_onnx(span<const tensor_type> in, const onnx_attributes& from) {
    from.only({"kernel_shape", "strides", "pads", "dilations", "auto_pad", "group"});
    return options{detail::read_onnx_convolution(in, from, {in[0][2], in[0][3]}), {}};
  }
  static constexpr var transpose(node_ref n, int i, var dy);
  static constexpr void batch(node_ref n, span<const var> in, unsigned batched, span<var> out);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// dy [N,O,OH,OW], filter -> image gradient [N,C,H,W]; also the forward pass of a transposed
/// convolution.
struct convolution_input_gradient_op : bilinear<convolution_input_gradient_op>, computed_in_single {
  static constexpr std::string_view name = "conv2d_input_gradient";
  static constexpr std::string_view torch = "torch.nn.grad.conv2d_input";
  static constexpr std::string_view formula = "dx of conv2d, from dy and w";
  static constexpr compute_class computes = compute_class::window;
  static constexpr onnx_operator onnx{"ConvTranspose", 1};
  using options = convolution_options;
  static constexpr int operands = 2;
  static bool fits(const op_application& a) {
    return detail::fits_convolution(a, a.as<options>().window, {2, 1, 0});
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    const auto a = o.as<options>();
    return {in[0].element, {in[0][0], in[1][1] * a.window.groups, a.extents[0], a.extents[1]}};
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::convolution_space(in[1], in[0], o.as<options>().window, {2, 1, 0});
  }
  static void write_onnx(span<const tensor_type> in, const attributes& o, onnx_attributes& to) {
    const auto a = o.as<options>();
    const auto least = least_extents(in, a.window);
    detail::write_onnx_window(a.window, {in[1][2], in[1][3]}, to);
    to.set("group", a.window.groups);
    to.set("output_padding", list<std::int64_t>{a.extents[0] - least[0], a.extents[1] - least[1]});
  }
  static attributes read_onnx(span<const tensor_type> in, const onnx_attributes& from) {
    from.only(
        {"kernel_shape", "strides", "pads", "dilations", "auto_pad", "group", "output_padding"});
    // How "SAME" pads there depends on the extents of the result.
    if (from.string("auto_pad", "NOTSET").starts_with("SAME"))
      from.refuse("auto_pad", "is not told as pads");
    options o{detail::read_onnx_convolution(in, from, {}), {}};
    const auto more = from.integers("output_padding", std::array<std::int32_t, 2>{});
    const auto least = least_extents(in, o.window);
    o.extents = {least[0] + more[0], least[1] + more[1]};
    return o;
  }
  static constexpr var transpose(node_ref n, int i, var dy);
  static constexpr void batch(node_ref n, span<const var> in, unsigned batched, span<var> out);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);

 private:
  /// Of the image that has one place of the filter for each element of dy, and no more.
  static constexpr std::array<std::int32_t, 2> least_extents(span<const tensor_type> in,
                                                             const window& w) {
    std::array<std::int32_t, 2> e{};
    for (std::size_t d = 0; d < 2; ++d) {
      const int axis = int(d) + 2;
      e[d] = std::int32_t((in[0][axis] - 1) * w.stride[d] + w.dilated(in[1][axis], d)) -
             w.before[d] - w.after[d];
    }
    return e;
  }
};

/// image, dy -> filter gradient [O,C/groups,KH,KW]
struct convolution_weight_gradient_op : bilinear<convolution_weight_gradient_op>,
                                        computed_in_single {
  static constexpr std::string_view name = "conv2d_weight_gradient";
  static constexpr std::string_view torch = "torch.nn.grad.conv2d_weight";
  static constexpr std::string_view formula = "dw of conv2d, from x and dy";
  static constexpr compute_class computes = compute_class::window;
  using options = convolution_options;
  static constexpr int operands = 2;
  static bool fits(const op_application& a) {
    return detail::fits_convolution(a, a.as<options>().window, {0, 2, 1});
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    const auto a = o.as<options>();
    return {in[0].element, {in[1][1], in[0][1] / a.window.groups, a.extents[0], a.extents[1]}};
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::convolution_space(infer(in, o), in[1], o.as<options>().window, {0, 2, 1});
  }
  static constexpr var transpose(node_ref n, int i, var dy);
  static constexpr void batch(node_ref n, span<const var> in, unsigned batched, span<var> out);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

namespace detail {
inline constexpr std::int64_t most_extent = std::numeric_limits<std::int32_t>::max();

constexpr void refuse_walk(std::string_view op, std::string_view why, var x, var w,
                           std::source_location at) {
  builder& b = *x.b;
  b.fail(text() << at << ": " << op << ": " << why << ": " << b.describe(x.id) << " is " << x.type()
                << ", " << b.describe(w.id) << " is " << w.type());
}
/// What both directions of a convolution ask of their operands.
constexpr bool walks(std::string_view op, var x, var w, const window& walk, std::source_location at,
                     bool of_one_type = true) {
  std::string_view why;
  if (x.rank() != 4 || w.rank() != 4)
    why = "image and filter must have rank 4";
  else if (of_one_type && x.element() != w.element())
    why = "element types differ";
  else if (walk.groups < 1 || w.extent(0) % walk.groups)
    why = "the groups do not divide the filters";
  else if (std::min({walk.stride[0], walk.stride[1], walk.dilation[0], walk.dilation[1]}) < 1)
    why = "stride and dilation must be positive";
  else if (std::min({walk.before[0], walk.before[1], walk.after[0], walk.after[1]}) < 0)
    why = "padding must not be negative (slice() cuts an image)";
  if (!why.empty()) refuse_walk(op, why, x, w, at);
  return why.empty();
}
/// And what a convolution asks besides.
constexpr bool convolves(std::string_view op, var x, var w, const window& walk,
                         std::source_location at) {
  std::string_view why;
  if (x.extent(1) != w.extent(1) * walk.groups) why = "channel counts differ";
  for (std::size_t d = 0; why.empty() && d < 2; ++d) {
    const std::int64_t padded = walk.padded(x.extent(int(d) + 2), d);
    if (padded < walk.dilated(w.extent(int(d) + 2), d))
      why = "the filter is larger than the padded image";
    else if (padded > most_extent)
      why = "the padded image is too large for 32 bits";
  }
  if (!why.empty()) refuse_walk(op, why, x, w, at);
  return why.empty();
}
}  // namespace detail

/// Convolution of images [N,C,H,W] with filters [O,C/groups,KH,KW].
CELLA_ONCE constexpr var conv2d(operand image, operand filter, const window& walk = {}) {
  builder& b = owner_of(image, filter);
  const var x = image.in(b);
  const var w = filter.in(b);
  if (!detail::walks("conv2d", x, w, walk, image.at()) ||
      !detail::convolves("conv2d", x, w, walk, image.at()))
    return x;
  return emit<convolution_op>(convolution_options{walk, {}}, image.at(), x, w);
}

/// Transposed convolution: the gradient of conv2d with respect to its image, as a layer. image
/// [N,O,OH,OW], filter [O,C/groups,KH,KW] -> [N,C,H,W] with H = (OH - 1) stride - before - after +
/// dilation (KH - 1) + 1 + extra.
constexpr var conv2d_transpose(operand image, operand filter, const window& walk = {},
                               std::array<int, 2> extra = {0, 0}) {
  builder& b = owner_of(image, filter);
  const var x = image.in(b);
  const var w = filter.in(b);
  if (!detail::walks("conv2d_transpose", x, w, walk, image.at())) return x;
  auto refuse = [&](std::string_view why) {
    detail::refuse_walk("conv2d_transpose", why, x, w, image.at());
    return x;
  };
  if (x.extent(1) != w.extent(0)) return refuse("channel counts differ");
  convolution_options o{walk, {}};
  for (std::size_t d = 0; d < 2; ++d) {
    const int taps = w.extent(int(d) + 2);
    const std::int64_t extent = (x.extent(int(d) + 2) - std::int64_t{1}) * walk.stride[d] -
                                walk.padded(0, d) + walk.dilated(taps, d) + extra[d];
    if (extent < 1) return refuse("the padding leaves no result");
    if (extent > detail::most_extent) return refuse("the result is too large for 32 bits");
    o.extents[d] = std::int32_t(extent);
    if (walk.positions(o.extents[d], taps, d) != x.extent(int(d) + 2))
      return refuse("the extra rows or columns are not less than the stride");
  }
  return emit<convolution_input_gradient_op>(o, image.at(), x, w);
}

/// Convolution of signals [N,C,L] with filters [O,C/groups,K] -> [N,O,OL].
constexpr var conv1d(operand signal, operand filter, int stride = 1, int before = 0, int after = 0,
                     int dilation = 1, int groups = 1) {
  builder& b = owner_of(signal, filter);
  const var x = signal.in(b);
  const var w = filter.in(b);
  if (x.rank() != 3 || w.rank() != 3) {
    detail::refuse_walk("conv1d", "signal and filter must have rank 3", x, w, signal.at());
    return x;
  }
  const window walk{{1, stride}, {0, before}, {0, after}, {1, dilation}, groups};
  const var y = conv2d({expand_dims({x, signal.at()}, 2), signal.at()}, expand_dims(w, 2), walk);
  return b.failed() ? x : squeeze(y, 2);
}

// ---- rules

namespace detail {
constexpr std::array<std::int32_t, 2> spatial(var x) { return {x.extent(2), x.extent(3)}; }
constexpr var input_gradient(const window& o, var dy, var w, var image) {
  return emit<convolution_input_gradient_op>(convolution_options{o, spatial(image)},
                                             std::source_location::current(), dy, w);
}
constexpr var weight_gradient(const window& o, var image, var dy, var w) {
  return emit<convolution_weight_gradient_op>(convolution_options{o, spatial(w)},
                                              std::source_location::current(), image, dy);
}
constexpr var convolve(const window& o, var image, var w) {
  return emit<convolution_op>(convolution_options{o, {}}, std::source_location::current(), image,
                              w);
}
}  // namespace detail

constexpr var convolution_op::transpose(node_ref n, int i, var dy) {
  const auto o = n.as<options>().window;
  return i == 0 ? detail::input_gradient(o, dy, n.operand(1), n.operand(0))
                : detail::weight_gradient(o, n.operand(0), dy, n.operand(1));
}
constexpr var convolution_input_gradient_op::transpose(node_ref n, int i, var dy) {
  const auto o = n.as<options>().window;
  return i == 0 ? detail::convolve(o, dy, n.operand(1))
                : detail::weight_gradient(o, dy, n.operand(0), n.operand(1));
}
constexpr var convolution_weight_gradient_op::transpose(node_ref n, int i, var dy) {
  const auto o = n.as<options>().window;
  return i == 0 ? detail::input_gradient(o, n.operand(1), dy, n.operand(0))
                : detail::convolve(o, n.operand(0), dy);
}

namespace detail {
/// [B,N,C,H,W] -> [N,B C,H,W], and back.
constexpr var batch_to_channels(var x) {
  const var y = swap_leading(x);
  const shape s = y.shape();
  return reshape(y, {s[0], s[1] * s[2], s[3], s[4]});
}
constexpr var channels_to_batch(var x, int size) {
  const shape s = x.shape();
  return swap_leading(reshape(x, {s[0], size, s[1] / size, s[2], s[3]}));
}
/// One filter bank for all samples: they are more images. One for each: they are more groups.
template <class Op>
constexpr void batch_convolution(node_ref n, span<const var> in, unsigned batched, span<var> out) {
  auto o = n.as<convolution_options>();
  const int size = batch_size(in, batched);
  const auto here = std::source_location::current();
  if (batched == 1) {
    out[0] = split_leading(emit<Op>(o, here, merge_leading(in[0]), in[1]), size);
    return;
  }
  o.window.groups *= size;
  out[0] = channels_to_batch(emit<Op>(o, here, batch_to_channels(batched_operand(in, batched, 0)),
                                      merge_leading(batched_operand(in, batched, 1))),
                             size);
}
}  // namespace detail

constexpr void convolution_op::batch(node_ref n, span<const var> in, unsigned batched,
                                     span<var> out) {
  detail::batch_convolution<convolution_op>(n, in, batched, out);
}
constexpr void convolution_input_gradient_op::batch(node_ref n, span<const var> in,
                                                    unsigned batched, span<var> out) {
  detail::batch_convolution<convolution_input_gradient_op>(n, in, batched, out);
}
constexpr void convolution_weight_gradient_op::batch(node_ref n, span<const var> in,
                                                     unsigned batched, span<var> out) {
  auto o = n.as<options>();
  const int size = detail::batch_size(in, batched);
  o.window.groups *= size;
  const var image = detail::batch_to_channels(detail::batched_operand(in, batched, 0));
  const var dy = detail::batch_to_channels(detail::batched_operand(in, batched, 1));
  out[0] = detail::split_leading(
      emit<convolution_weight_gradient_op>(o, std::source_location::current(), image, dy), size);
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

template <class F>
void detail::for_each_product(const shape& x, const shape& w, const shape& y, const window& o,
                              F f) {
  const int per_group = w[0] / o.groups;
  for_each_index(y, [&](std::int64_t at_y, const multi_index& i) {
    const int group = i[1] / per_group;
    for (int c = 0; c < w[1]; ++c) {
      for (int p = 0; p < w[2]; ++p) {
        const int row = i[2] * o.stride[0] - o.before[0] + p * o.dilation[0];
        if (row < 0 || row >= x[2]) continue;
        for (int q = 0; q < w[3]; ++q) {
          const int column = i[3] * o.stride[1] - o.before[1] + q * o.dilation[1];
          if (column < 0 || column >= x[3]) continue;
          const std::int64_t at_x =
              ((std::int64_t{i[0]} * x[1] + group * w[1] + c) * x[2] + row) * x[3] + column;
          const std::int64_t at_w = ((std::int64_t{i[1]} * w[1] + c) * w[2] + p) * w[3] + q;
          f(at_x, at_w, at_y);
        }
      }
    }
  });
}

template <class Places>
void detail::sum_products(const shape& x, const shape& w, const shape& y, const window& o,
                          span<const tensor_ref> in, const tensor_ref& out, Places places) {
  with_wide_number(out.type.element, [&]<class N>() {
    list<N> sums(std::size_t(out.type.size()), N(0));
    for_each_product(x, w, y, o, [&](std::int64_t at_x, std::int64_t at_w, std::int64_t at_y) {
      const std::array<std::int64_t, 3> at = places(at_x, at_w, at_y);
      N& sum = sums[std::size_t(at[2])];
      sum = wrapping_sum(
          sum, wrapping_product(read_number<N>(in[0], at[0]), read_number<N>(in[1], at[1])));
    });
    for (std::size_t i = 0; i < sums.size(); ++i) write_number(out, std::int64_t(i), sums[i]);
  });
}
inline void convolution_op::compute(const attributes& o, span<const tensor_ref> in,
                                    span<const tensor_ref> out) {
  detail::sum_products(in[0].type.shape, in[1].type.shape, out[0].type.shape,
                       o.as<options>().window, in, out[0], [](auto x, auto w, auto y) {
                         return std::array{x, w, y};
                       });
}
inline void convolution_input_gradient_op::compute(const attributes& o, span<const tensor_ref> in,
                                                   span<const tensor_ref> out) {
  detail::sum_products(out[0].type.shape, in[1].type.shape, in[0].type.shape,
                       o.as<options>().window, in, out[0], [](auto x, auto w, auto y) {
                         return std::array{y, w, x};
                       });
}
inline void convolution_weight_gradient_op::compute(const attributes& o, span<const tensor_ref> in,
                                                    span<const tensor_ref> out) {
  detail::sum_products(in[0].type.shape, out[0].type.shape, in[1].type.shape,
                       o.as<options>().window, in, out[0], [](auto x, auto w, auto y) {
                         return std::array{x, y, w};
                       });
}

#endif

}  // namespace cella
