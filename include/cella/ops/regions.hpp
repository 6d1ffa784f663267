// Regions of images: boxes, how much they overlap, the best of them, and what lies in them.
#pragma once

#include <array>
#include <cella/graph/once.hpp>
#include <cella/ops/exponential.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/sorting.hpp>

namespace cella {

/// boxes [K,4] (two opposite corners), scores [K] -> the places of at most `size` boxes, best
/// first, none of which overlaps a better one of them by more than `overlap`, then -1.
struct non_max_suppression_op : opaque<non_max_suppression_op>, zero_derivative {
  static constexpr std::string_view name = "non_max_suppression";
  static constexpr std::string_view torch = "torchvision.ops.nms";
  static constexpr std::string_view formula = "y = the best boxes that do not overlap better ones";
  static constexpr compute_class computes = compute_class::indexed;
  struct options {
    double overlap = 0.5;
    double least_score{};
    std::int32_t size{};
    std::int32_t centered{};  ///< boxes are centres and extents
  };
  static constexpr int operands = 2;
  static bool fits(const op_application& a) {
    return a.rank() == 2 && a.rank(1) == 1 && a.of(0)[1] == 4 && a.of(0)[0] == a.of(1)[0] &&
           is_floating(a.in[0].element) && is_floating(a.in[1].element) &&
           a.as<options>().size >= 0;
  }
  static constexpr tensor_type infer(span<const tensor_type>, const attributes& o) {
    return {dtype::i64, {o.as<options>().size}};
  }
  /// All boxes are compared.
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    iteration_space s(2);
    s.along(s.result(), 0, s.add(o.as<options>().size, true));
    s.add(in[1].size(), true);
    return s;
  }
  static constexpr interval bounds(span<const interval>, span<const tensor_type> types,
                                   const attributes&) {
    return {-1, double(std::max(types[1][0] - 1, 0))};
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

// ---- public functions

namespace detail {
/// Corner k of boxes [...,4], without the last axis.
constexpr var corner_of(var boxes, int k) { return squeeze(slice(boxes, -1, k, k + 1), -1); }
constexpr bool are_boxes(std::string_view op, var x, std::source_location at) {
  if (x.rank() >= 1 && x.extent(-1) == 4 && is_floating(x.element())) return true;
  x.b->fail(text() << at << ": " << op << ": needs boxes [...,4] of floating-point numbers: "
                   << x.b->describe(x.id) << " is " << x.type());
  return false;
}
}  // namespace detail

/// The areas of boxes [...,4] (x0, y0, x1, y1).
constexpr var box_area(operand boxes) {
  const var x = boxes.in(*boxes.owner());
  if (!detail::are_boxes("box_area", x, boxes.at())) return x;
  return (detail::corner_of(x, 2) - detail::corner_of(x, 0)) *
         (detail::corner_of(x, 3) - detail::corner_of(x, 1));
}
/// What two lists of boxes share, of what both cover: [M,4], [K,4] -> [M,K].
constexpr var box_iou(operand left, operand right) {
  builder& b = owner_of(left, right);
  const var x = left.in(b);
  const var y = right.in(b);
  if (!detail::are_boxes("box_iou", x, left.at()) || !detail::are_boxes("box_iou", y, right.at()))
    return x;
  auto rows = [&](int k) { return expand_dims(detail::corner_of(x, k), -1); };
  auto columns = [&](int k) { return detail::corner_of(y, k); };
  const var width = maximum(minimum(rows(2), columns(2)) - maximum(rows(0), columns(0)), 0);
  const var height = maximum(minimum(rows(3), columns(3)) - maximum(rows(1), columns(1)), 0);
  const var shared = width * height;
  return shared / (expand_dims(box_area(left), -1) + box_area(right) - shared);
}
/// Boxes [...,4] as seen from anchors [...,4]: how far their centers lie apart, in extents of the
/// anchor, and the logarithms of the quotients of their extents, each times its weight.  Girshick
/// et al. 2014, appendix C
constexpr var encode_boxes(operand boxes, operand anchors,
                           std::array<double, 4> weights = {1, 1, 1, 1}) {
  builder& b = owner_of(boxes, anchors);
  const var x = boxes.in(b), a = anchors.in(b);
  if (!detail::are_boxes("encode_boxes", x, boxes.at()) ||
      !detail::are_boxes("encode_boxes", a, anchors.at()))
    return x;
  list<var> codes;
  for (int d = 0; d < 2; ++d) {
    const var extent = detail::corner_of(a, d + 2) - detail::corner_of(a, d);
    const var twice_apart = detail::corner_of(x, d + 2) + detail::corner_of(x, d) -
                            detail::corner_of(a, d + 2) - detail::corner_of(a, d);
    codes.push_back(twice_apart / extent * (weights[std::size_t(d)] / 2));
  }
  for (int d = 0; d < 2; ++d) {
    const var extent = detail::corner_of(a, d + 2) - detail::corner_of(a, d);
    const var own = detail::corner_of(x, d + 2) - detail::corner_of(x, d);
    codes.push_back(log(own / extent) * weights[std::size_t(d + 2)]);
  }
  return stack(codes, -1);
}
/// And back: the boxes that codes [...,4] mean beside anchors. Extents grow by no more than
/// e^`most`, which is 1000 / 16 as in Detectron.
constexpr var decode_boxes(operand codes, operand anchors,
                           std::array<double, 4> weights = {1, 1, 1, 1},
                           double most = 4.135166556742356) {
  builder& b = owner_of(codes, anchors);
  const var x = codes.in(b), a = anchors.in(b);
  if (!detail::are_boxes("decode_boxes", x, codes.at()) ||
      !detail::are_boxes("decode_boxes", a, anchors.at()))
    return x;
  std::array<var, 2> center, half;
  for (int d = 0; d < 2; ++d) {
    const auto k = std::size_t(d);
    const var extent = detail::corner_of(a, d + 2) - detail::corner_of(a, d);
    const var middle = (detail::corner_of(a, d + 2) + detail::corner_of(a, d)) * 0.5;
    center[k] = middle + detail::corner_of(x, d) * (1 / weights[k]) * extent;
    const var growth = minimum(detail::corner_of(x, d + 2) * (1 / weights[k + 2]), most);
    half[k] = exp(growth) * extent * 0.5;
  }
  return stack({center[0] - half[0], center[1] - half[1], center[0] + half[0], center[1] + half[1]},
               -1);
}
/// At most `size` of the boxes [K,4] (x0, y0, x1, y1), as their places in the list, i64, the one of
/// the highest score first: none overlaps a chosen one by more than `overlap` (`box_iou`), none has
/// a score below `least_score`. Behind the last one -1.
constexpr var non_max_suppression(operand boxes, operand scores, int size, double overlap = 0.5,
                                  double least_score = -std::numeric_limits<double>::infinity(),
                                  bool centered = false) {
  builder& b = owner_of(boxes, scores);
  const var x = boxes.in(b);
  const var s = scores.in(b);
  if (!detail::are_boxes("non_max_suppression", x, boxes.at())) return x;
  if (x.rank() != 2 || s.rank() != 1 || s.extent(0) != x.extent(0) || size < 1 ||
      !is_floating(s.element())) {
    b.fail(text() << boxes.at() << ": non_max_suppression: needs boxes [K,4], scores [K] and room "
                  << "for one: " << b.describe(x.id) << " is " << x.type() << ", "
                  << b.describe(s.id) << " is " << s.type() << ", the size " << size);
    return x;
  }
  return emit<non_max_suppression_op>(
      non_max_suppression_op::options{overlap, least_score, size, centered}, boxes.at(), x, s);
}

namespace detail {
/// One axis of `extent` elements at fractional places: both neighbours and their weights.
struct neighbours {
  var index[2], weight[2];
};
/// Places up to an element beyond the ends count as at the ends; others weigh nothing.
constexpr neighbours with_ends_outside(var place, int extent) {
  const double last = extent - 1;
  const var near = logical_and(place >= -1.0, place <= double(extent));
  const var kept = clamp(place, 0, last);
  const var low = minimum(floor(kept), last), part = kept - low;
  auto weight = [&](var w) { return select(near, w, zeros_like(w)); };
  return {{cast(low, dtype::i64), cast(minimum(low + 1, last), dtype::i64)},
          {weight(1 - part), weight(part)}};
}
/// The four corners around places of rows and columns: rows of the table [images H W,C], each
/// weighted. `image` says which image each place is in.
constexpr std::array<var, 4> weighted_corners(var table, var image, const neighbours& rows,
                                              const neighbours& columns, int height, int width) {
  std::array<var, 4> all{};
  for (std::size_t k = 0; k < 4; ++k) {
    const std::size_t i = k / 2, j = k % 2;
    const var at = (image * double(height) + rows.index[i]) * double(width) + columns.index[j];
    all[k] = gather(table, at, 0) * expand_dims(rows.weight[i] * columns.weight[j], -1);
  }
  return all;
}
}  // namespace detail

/// How regions are cut into bins, and what is taken of each.
struct roi_form {
  int height = 1, width = 1;  ///< bins of a region
  int samples = 2;            ///< of each bin, along each axis
  double scale = 1;           ///< elements of the image for a unit of the regions
  bool half_pixel = true;     ///< regions begin at edges, not at centres; sizes may be below 1
  bool largest = false;       ///< of the corners' weighted elements the largest, instead of means
};
/// Images [N,C,H,W] in regions [R,4] (x0, y0, x1, y1) of image `image_of[r]`, at evenly spread
/// places between elements -> [R,C,height,width].  He et al. 2017
constexpr var roi_align(operand images, operand regions, operand image_of,
                        const roi_form& form = {}) {
  builder& b = owner_of(images, regions);
  const var x = images.in(b);
  const var r = regions.in(b);
  const var of = image_of.in(b);
  if (!detail::are_boxes("roi_align", r, regions.at())) return x;
  if (x.rank() != 4 || r.rank() != 2 || of.shape() != shape{r.extent(0)} ||
      x.element() != r.element() || x.shape().size() == 0 ||
      std::min({form.height, form.width, form.samples}) < 1) {
    b.fail(text() << images.at() << ": roi_align: needs images [N,C,H,W], regions [R,4] of their "
                  << "type, an image for each, bins and samples: " << b.describe(x.id) << " is "
                  << x.type() << ", " << b.describe(r.id) << " is " << r.type());
    return x;
  }
  const int count = r.extent(0), n = form.samples, height = x.extent(2), width = x.extent(3);
  auto corner = [&](int k) {
    return slice(r, 1, k, k + 1) * form.scale - (form.half_pixel ? 0.5 : 0.0);  // [R,1]
  };
  auto places = [&](var first, var last, int bins) {
    var size = last - first;
    if (!form.half_pixel) size = maximum(size, 1);
    shape line{1, bins * n};
    const var at = (iota(b, {x.element(), line}, 1) + 0.5) * (1.0 / n);
    return first + size / double(bins) * at;
  };
  const shape all{count, form.height * n, form.width * n};
  auto y = detail::with_ends_outside(places(corner(1), corner(3), form.height), height);
  auto z = detail::with_ends_outside(places(corner(0), corner(2), form.width), width);
  for (std::size_t k = 0; k < 2; ++k) {
    auto rows = [&](var v) { return broadcast_to(expand_dims(v, 2), all); };
    auto columns = [&](var v) { return broadcast_to(expand_dims(v, 1), all); };
    y.index[k] = rows(y.index[k]), y.weight[k] = rows(y.weight[k]);
    z.index[k] = columns(z.index[k]), z.weight[k] = columns(z.weight[k]);
  }
  const var image = broadcast_to(reshape(cast(of, dtype::i64), {count, 1, 1}), all);
  const int channels = x.extent(1);
  const var table = reshape(transpose(images, {0, 2, 3, 1}), {-1, channels});
  const auto corners = detail::weighted_corners(table, image, y, z, height, width);
  const shape split{count, form.height, n, form.width, n, channels};
  if (form.largest) {
    const var most = maximum(maximum(corners[0], corners[1]), maximum(corners[2], corners[3]));
    return transpose(max(reshape(most, split), {2, 4}), {0, 3, 1, 2});
  }
  const var total = corners[0] + corners[1] + corners[2] + corners[3];
  return transpose(mean(reshape(total, split), {2, 4}), {0, 3, 1, 2});
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void non_max_suppression_op::compute(const attributes& o, span<const tensor_ref> in,
                                            span<const tensor_ref> out) {
  const auto a = o.as<options>();
  const std::int64_t n = in[1].type.size();
  list<double> box(std::size_t(4 * n), 0.0), score(std::size_t(n), 0.0);
  read_numbers(in[0], 0, 4 * n, box.data());
  read_numbers(in[1], 0, n, score.data());
  list<std::int64_t> order, chosen;
  for (std::int64_t i = 0; i < n; ++i)
    if (score[std::size_t(i)] >= a.least_score) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
    const double x = score[std::size_t(i)], y = score[std::size_t(j)];
    return x != y ? x > y : i < j;
  });
  struct extent {
    double low, high;
    double shared(const extent& e) const {
      return std::max(0.0, std::min(high, e.high) - std::max(low, e.low));
    }
  };
  auto side = [&](std::int64_t i, int axis) {
    const double p = box[std::size_t(4 * i + axis)], q = box[std::size_t(4 * i + axis + 2)];
    if (a.centered) return extent{p - q / 2, p + q / 2};
    return extent{std::min(p, q), std::max(p, q)};
  };
  auto overlap = [&](std::int64_t i, std::int64_t j) {
    const extent x = side(i, 0), y = side(i, 1), u = side(j, 0), v = side(j, 1);
    const double shared = x.shared(u) * y.shared(v);
    const double all = x.shared(x) * y.shared(y) + u.shared(u) * v.shared(v) - shared;
    return all > 0 ? shared / all : 0;
  };
  for (std::int64_t i : order) {
    if (std::int64_t(chosen.size()) == out[0].type.size()) break;
    bool apart = true;
    for (std::int64_t j : chosen) apart = apart && overlap(i, j) <= a.overlap;
    if (apart) chosen.push_back(i);
  }
  for (std::int64_t k = 0; k < out[0].type.size(); ++k)
    write_number(out[0], k,
                 k < std::int64_t(chosen.size()) ? chosen[std::size_t(k)] : std::int64_t{-1});
}

#endif

}  // namespace cella
