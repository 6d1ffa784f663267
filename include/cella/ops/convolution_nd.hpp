// Convolutions over one and three axes, and their transposes, made of those over two: the depth of
// a filter becomes channels.
#pragma once

#include <cella/ops/convolution.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/ops/padding.hpp>

namespace cella {

/// How a filter walks over a volume. Triples are (depth, vertical, horizontal).
struct volume_window {
  std::array<std::int32_t, 3> stride{1, 1, 1};
  std::array<std::int32_t, 3> before{0, 0, 0};  ///< zeros in front, above and to the left
  std::array<std::int32_t, 3> after{0, 0, 0};   ///< zeros behind, below and to the right
  std::array<std::int32_t, 3> dilation{1, 1, 1};
  std::int32_t groups = 1;

  /// What it does along the last two axes.
  constexpr window flat() const {
    return {{stride[1], stride[2]},
            {before[1], before[2]},
            {after[1], after[2]},
            {dilation[1], dilation[2]},
            groups};
  }
  /// What it does along the depth, as rows.
  constexpr window deep() const {
    return {{stride[0], 1}, {before[0], 0}, {after[0], 0}, {dilation[0], 1}, 1};
  }
};

namespace detail {
/// A fault unless x and w have rank 5 and the walk along the depth is sound.
constexpr bool walks_deep(std::string_view op, var x, var w, const volume_window& walk,
                          std::source_location at) {
  std::string_view why;
  if (x.rank() != 5 || w.rank() != 5)
    why = "volume and filter must have rank 5";
  else if (walk.stride[0] < 1 || walk.dilation[0] < 1)
    why = "stride and dilation must be positive";
  else if (walk.before[0] < 0 || walk.after[0] < 0)
    why = "padding must not be negative (slice() cuts a volume)";
  if (!why.empty()) refuse_walk(op, why, x, w, at);
  return why.empty();
}
/// The filter [O,C,D,H,W] with its depth as channels: [O,C D,H,W].
constexpr var filter_of_slices(var w) {
  return reshape(w, {w.extent(0), w.extent(1) * w.extent(2), w.extent(3), w.extent(4)});
}
/// Every slice that a tap k of `taps` meets, one for each place: a slice of the depth's elements.
constexpr slice_op::options depth_of_tap(const shape& padded, int tap, int places,
                                         const volume_window& walk) {
  auto o = whole(padded);
  o.start[2] = tap * walk.dilation[0];
  o.step[2] = places > 1 ? walk.stride[0] : 1;
  o.shape[2] = places;
  return o;
}
/// [N,C,D,H,W] -> [N D,C,H,W], and back.
constexpr var slices_to_batch(var x) {
  const shape s = x.shape();
  return reshape(transpose(x, {0, 2, 1, 3, 4}), {std::int64_t{s[0]} * s[2], s[1], s[3], s[4]});
}
constexpr var batch_to_slices(var x, int images) {
  const shape s = x.shape();
  return transpose(reshape(x, {images, s[0] / images, s[1], s[2], s[3]}), {0, 2, 1, 3, 4});
}
}  // namespace detail

/// Convolution of volumes [N,C,D,H,W] with filters [O,C/groups,KD,KH,KW].
constexpr var conv3d(operand volume, operand filter, const volume_window& walk = {}) {
  builder& b = owner_of(volume, filter);
  const var x = volume.in(b);
  const var w = filter.in(b);
  if (!detail::walks_deep("conv3d", x, w, walk, volume.at())) return x;
  const int taps = w.extent(2);
  const window deep = walk.deep();
  if (deep.padded(x.extent(2), 0) < deep.dilated(taps, 0)) {
    detail::refuse_walk("conv3d", "the filter is deeper than the padded volume", x, w, volume.at());
    return x;
  }
  const int places = deep.positions(x.extent(2), taps, 0);
  const var padded = pad(volume, {0, 0, walk.before[0], 0, 0}, {0, 0, walk.after[0], 0, 0});
  // [N,C,taps,places,H,W]: beside each channel what the other taps meet.
  list<var> met;
  for (int k = 0; k < taps; ++k)
    met.push_back(
        emit<slice_op>(detail::depth_of_tap(padded.shape(), k, places, walk), volume.at(), padded));
  const shape s = x.shape();
  const var channels = transpose(stack(met, 2), {0, 3, 1, 2, 4, 5});
  const var slices =
      reshape(channels, {std::int64_t{s[0]} * places, std::int64_t{s[1]} * taps, s[3], s[4]});
  const var y = conv2d({slices, volume.at()}, detail::filter_of_slices(w), walk.flat());
  return b.failed() ? x : detail::batch_to_slices(y, s[0]);
}

/// Transposed convolution of volumes [N,O,OD,OH,OW] with filters [O,C/groups,KD,KH,KW] ->
/// [N,C,D,H,W], with D = (OD - 1) stride - before - after + dilation (KD - 1) + 1 + extra, as in
/// `conv2d_transpose`.
constexpr var conv3d_transpose(operand volume, operand filter, const volume_window& walk = {},
                               std::array<int, 3> extra = {0, 0, 0}) {
  builder& b = owner_of(volume, filter);
  const var x = volume.in(b);
  const var w = filter.in(b);
  if (!detail::walks_deep("conv3d_transpose", x, w, walk, volume.at())) return x;
  const int taps = w.extent(2), places = x.extent(2);
  const window deep = walk.deep();
  const std::int64_t all =
      (places - std::int64_t{1}) * walk.stride[0] + deep.dilated(taps, 0) + extra[0];
  const std::int64_t kept = all - walk.before[0] - walk.after[0];
  if (kept < 1 || extra[0] < 0 || extra[0] >= walk.stride[0]) {
    detail::refuse_walk(
        "conv3d_transpose",
        kept < 1 ? "the padding leaves no result" : "the extra slices are not less than the stride",
        x, w, volume.at());
    return x;
  }
  const var slices =
      conv2d_transpose({detail::slices_to_batch(x), volume.at()}, detail::filter_of_slices(w),
                       walk.flat(), {extra[1], extra[2]});
  if (b.failed()) return x;
  const shape s = slices.shape();
  const int channels = s[1] / taps;
  const var each = reshape(slices, {x.extent(0), places, channels, taps, s[2], s[3]});
  shape full{x.extent(0), channels, all, s[2], s[3]};
  var sum{};
  for (int k = 0; k < taps; ++k) {
    const var one = transpose(squeeze(slice(each, 3, k, k + 1), 3), {0, 2, 1, 3, 4});
    auto o = detail::depth_of_tap(full, k, places, walk);
    o.shape = full;
    const var placed = emit<scatter_slice_op>(o, volume.at(), one);
    sum = sum.b ? sum + placed : placed;
  }
  return slice(sum, 2, walk.before[0], int(all) - walk.after[0]);
}

/// Transposed convolution of signals [N,O,OL] with filters [O,C/groups,K] -> [N,C,L].
constexpr var conv1d_transpose(operand signal, operand filter, int stride = 1, int before = 0,
                               int after = 0, int dilation = 1, int groups = 1, int extra = 0) {
  builder& b = owner_of(signal, filter);
  const var x = signal.in(b);
  const var w = filter.in(b);
  if (x.rank() != 3 || w.rank() != 3) {
    detail::refuse_walk("conv1d_transpose", "signal and filter must have rank 3", x, w,
                        signal.at());
    return x;
  }
  const window walk{{1, stride}, {0, before}, {0, after}, {1, dilation}, groups};
  const var y = conv2d_transpose({expand_dims({x, signal.at()}, 2), signal.at()}, expand_dims(w, 2),
                                 walk, {0, extra});
  return b.failed() ? x : squeeze(y, 2);
}

/// What `pad_same` returns.
struct same_padding {
  int before{}, after{};
};
/// How many zeros on both sides keep a place of the filter for each stride ("same" padding): the
/// odd one stands behind.
constexpr same_padding pad_same(int extent, int kernel, int stride = 1, int dilation = 1) {
  const int places = (extent + stride - 1) / stride;
  const int all = std::max((places - 1) * stride + dilation * (kernel - 1) + 1 - extent, 0);
  return {all / 2, all - all / 2};
}

}  // namespace cella
