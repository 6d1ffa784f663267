// Signals: windows, Fourier transforms.
#pragma once

#include <cella/interop/onnx/cutting.hpp>
#include <cella/ops/fourier.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/padding.hpp>
#include <cmath>
#include <numbers>

namespace cella::interop {

/// a0 - a1 cos(2 pi k / n) + a2 cos(4 pi k / n), a window for signals.
template <int Kind>
list<var> signal_window_rule(onnx_node& n) {
  constexpr double coefficients[][3] = {
      {0.5, 0.5, 0}, {25.0 / 46, 1 - 25.0 / 46, 0}, {0.42, 0.5, 0.08}};
  const std::int64_t size = n.integer(0);
  if (size < 0) n.refuse("has a size of " + std::to_string(size));
  n.limit(double(size));
  const double count = double(n.integer("periodic", 1) ? size : size - 1);
  std::vector<double> all;
  for (std::int64_t k = 0; k < size; ++k) {
    const double turn = count > 0 ? 2 * std::numbers::pi * double(k) / count : 0;
    const auto& [a, b, c] = coefficients[Kind];
    all.push_back(a - b * std::cos(turn) + c * std::cos(2 * turn));
  }
  return {numbers_as_constant(n.b(), all, {size}, n.element("output_datatype", dtype::f32))};
}
/// The transform along the last axis of real and imaginary parts (none: of real signals), of which
/// the first `count` elements are kept; {real, imaginary}.
inline std::pair<var, var> transformed(var re, var im, std::int64_t count, bool inverse) {
  const dtype t = re.element(), wide = t == dtype::f64 ? t : dtype::f32;
  const var x = cast(re, wide), z = im.b ? complex(x, cast(im, wide)) : x;
  const bool half = !im.b && !inverse && count == re.extent(-1) / 2 + 1;
  const var y = half ? rfft(x) : cut(inverse ? ifft(z) : fft(z), x.rank() - 1, 0, count);
  return {cast(real(y), t), cast(imag(y), t)};
}
/// Cut off or filled up with zeros at the end.
inline var of_length(var x, int axis, std::int64_t length) {
  if (length <= x.extent(axis)) return cut(x, axis, 0, length);
  std::vector<int> none(std::size_t(x.rank())), behind = none;
  behind[std::size_t(axis)] = int(length - x.extent(axis));
  return pad(x, none, behind);
}
inline list<var> dft_rule(onnx_node& n) {
  var x = n.in(0, 2);
  const int rank = x.rank();
  const bool onesided = n.integer("onesided", 0), inverse = n.integer("inverse", 0);
  const int axis =
      n.opset() >= 20 ? n.axis(n.has(2) ? n.integer(2) : -2, rank) : n.axis("axis", 1, rank);
  const int parts = x.extent(-1);
  if (axis == rank - 1 || parts < 1 || parts > 2)
    n.refuse("takes numbers of one or two parts along the last axis");
  if (onesided && inverse) n.not_supported("the inverse of a transform of one side");
  if (n.has(1)) {
    const std::int64_t length = n.integer(1);
    x = of_length(x, axis, n.between(1, length, 1 << 26, "length"));
  }
  const std::int64_t length = x.extent(axis), count = onesided ? length / 2 + 1 : length;
  n.limit(double(x.shape().size()));
  // The axis comes to the end, the parts go to the front.
  std::vector<int> order{rank - 1};
  for (int d = 0; d < rank - 1; ++d)
    if (d != axis) order.push_back(d);
  order.push_back(axis);
  std::vector<int> back(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) back[std::size_t(order[k])] = int(k);
  const var y = permuted(x, order);
  const var re = squeeze(cut(y, 0, 0, 1), 0);
  const var im = parts == 2 ? squeeze(cut(y, 0, 1, 1), 0) : var{};
  const auto [real, imaginary] = transformed(re, im, count, inverse);
  return {permuted(stack({real, imaginary}, 0), back)};
}
inline list<var> stft_rule(onnx_node& n) {
  const var x = n.in(0, 2, 3);
  const std::int64_t step = n.integer(1);
  const bool onesided = n.integer("onesided", 1);
  const std::int64_t batch = x.extent(0), all = x.extent(1);
  const int parts = x.rank() == 3 ? x.extent(2) : 1;
  const std::int64_t length = n.has(3) ? n.integer(3) : n.in(2, 1, 1).extent(0);
  if (step < 1 || length < 1 || length > all)
    n.refuse("has frames that do not fit into the signal");
  const std::int64_t frames = (all - length) / step + 1;
  n.limit(double(frames) * double(length));
  std::vector<std::int64_t> places;
  for (std::int64_t f = 0; f < frames; ++f)
    for (std::int64_t i = 0; i < length; ++i) places.push_back(f * step + i);
  const var index = integers_as_constant(n.b(), places, {frames, length});
  auto framed = [&](int part) {
    const var line = x.rank() == 3 ? squeeze(cut(x, 2, part, 1), 2) : x;
    const var y = gather(line, index, 1);  // [N, frames, length]
    return n.has(2) ? y * n.in(2) : y;
  };
  const std::int64_t count = onesided ? length / 2 + 1 : length;
  const var flat_re = reshape(framed(0), {batch * frames, length});
  const var flat_im = parts == 2 ? reshape(framed(1), {batch * frames, length}) : var{};
  const auto [real, imaginary] = transformed(flat_re, flat_im, count, false);
  return {reshape(stack({real, imaginary}, -1), {batch, frames, count, 2})};
}
/// Triangles over the bins of a spectrum whose corners lie evenly on the mel scale.
inline list<var> mel_matrix_rule(onnx_node& n) {
  const std::int64_t bins = n.integer(0), length = n.integer(1), rate = n.integer(2);
  const double low = n.number(3), high = n.number(4);
  if (bins < 1 || length < 1 || bins > 1 << 16 || length > 1 << 24 || rate < 1)
    n.refuse("has a number of bins, a length or a rate that is not positive, or huge");
  n.limit(double(length / 2 + 1) * double(bins));
  const std::int64_t spectrum = length / 2 + 1;
  auto to_mel = [](double f) { return 2595 * std::log10(1 + f / 700); };
  const double first = to_mel(low), step = (to_mel(high) - first) / double(bins + 2);
  std::vector<std::int64_t> corner;
  for (std::int64_t k = 0; k < bins + 2; ++k) {
    const double f = 700 * (std::pow(10, (double(k) * step + first) / 2595) - 1);
    corner.push_back(std::int64_t(std::floor(double(length + 1) * f / double(rate))));
  }
  std::vector<double> all(std::size_t(spectrum * bins));
  auto put = [&](std::int64_t row, std::int64_t column, double value) {
    if (row >= 0 && row < spectrum) all[std::size_t(row * bins + column)] = value;
  };
  for (std::size_t k = 0; k < std::size_t(bins); ++k) {
    const std::int64_t a = corner[k], b = corner[k + 1], c = corner[k + 2];
    const auto column = std::int64_t(k);
    if (b == a) put(b, column, 1);
    for (std::int64_t i = a; b > a && i <= b; ++i) put(i, column, double(i - a) / double(b - a));
    for (std::int64_t i = b; c > b && i < c; ++i) put(i, column, double(c - i) / double(c - b));
  }
  return {
      numbers_as_constant(n.b(), all, {spectrum, bins}, n.element("output_datatype", dtype::f32))};
}

inline constexpr named_onnx_rule signal_rules[] = {
    {"BlackmanWindow", signal_window_rule<2>}, {"DFT", dft_rule},
    {"HammingWindow", signal_window_rule<1>},  {"HannWindow", signal_window_rule<0>},
    {"MelWeightMatrix", mel_matrix_rule},      {"STFT", stft_rule},
};

}  // namespace cella::interop
