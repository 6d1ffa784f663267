// Signals: windows, short-time Fourier transforms, filters on the mel scale.
#pragma once

#include <cella/ops/arranging.hpp>
#include <cella/ops/fourier.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/special.hpp>
#include <numbers>

namespace cella {

/// Which window, and of what type: n elements; `periodic` ones are those of n + 1 without the last,
/// as spectra want them, others are symmetric, as filters do.
struct window_form {
  int size{};
  bool periodic = true;
  dtype element = dtype::f32;
};

namespace detail {
/// The angle 2 pi k / n (or n - 1) of each element k.
constexpr var window_angle(builder& b, const window_form& f) {
  const int count = f.periodic ? f.size : f.size - 1;
  return iota(b, {f.element, {f.size}}, 0) * (2 * std::numbers::pi / double(count > 0 ? count : 1));
}
constexpr bool is_window(builder& b, const window_form& f, std::source_location at) {
  if (f.size > 0 && is_floating(f.element)) return true;
  b.fail(text() << at << ": a window needs an element and a floating-point type; it has " << f.size
                << " elements");
  return false;
}
/// first - second cos(angle) + third cos(2 angle); one element is 1.
constexpr var cosine_window(operand x, const window_form& f, double first, double second,
                            double third) {
  builder& b = *x.owner();
  if (!is_window(b, f, x.at())) return x.in(b);
  if (f.size == 1) return constant(b, 1, {f.element, {1}});
  const var angle = window_angle(b, f);
  const var y = first - second * cos(angle);
  return third == 0 ? y : y + third * cos(2 * angle);
}
}  // namespace detail

/// 0.5 - 0.5 cos(2 pi k / n), in the graph of x.
constexpr var hann_window(operand x, const window_form& form) {
  return detail::cosine_window(x, form, 0.5, 0.5, 0);
}
/// 0.54 - 0.46 cos(2 pi k / n)
constexpr var hamming_window(operand x, const window_form& form) {
  return detail::cosine_window(x, form, 0.54, 0.46, 0);
}
/// 0.42 - 0.5 cos(2 pi k / n) + 0.08 cos(4 pi k / n)
constexpr var blackman_window(operand x, const window_form& form) {
  return detail::cosine_window(x, form, 0.42, 0.5, 0.08);
}
/// I_0(beta sqrt(1 - (2 k / n - 1)^2)) / I_0(beta)
constexpr var kaiser_window(operand x, const window_form& form, double beta = 12) {
  builder& b = *x.owner();
  if (!detail::is_window(b, form, x.at())) return x.in(b);
  if (form.size == 1) return constant(b, 1, {form.element, {1}});
  const int count = form.periodic ? form.size : form.size - 1;
  const var place = iota(b, {form.element, {form.size}}, 0) * (2.0 / count) - 1;
  const var root = beta * sqrt(maximum(1 - square(place), 0));
  return i0e(root) * exp(root - beta) / i0e(full_like(root, beta));
}

namespace detail {
/// [count,length]: the place of each element of each part.
constexpr var frame_places(builder& b, int count, int length, int step) {
  shape s{count, length};
  return iota(b, {dtype::i64, s}, 0) * step + iota(b, {dtype::i64, s}, 1);
}
}  // namespace detail

/// Overlapping parts of `length` elements along the last axis, `step` apart: [...,n] ->
/// [...,count,length].
constexpr var frames(operand x, int length, int step) {
  builder& b = *x.owner();
  const var v = x.in(b);
  if (v.rank() < 1 || length < 1 || step < 1 || v.extent(-1) < length) {
    b.fail(text() << x.at() << ": frames: " << b.describe(v.id) << " " << v.shape()
                  << " has no parts of " << length << " elements, " << step << " apart");
    return v;
  }
  const int count = (v.extent(-1) - length) / step + 1;
  return gather(x, detail::frame_places(b, count, length, step), -1);
}

/// The spectra of overlapping parts of signals [...,n], each multiplied with a window [length] ->
/// [...,frames,length/2 + 1], complex. `centered` mirrors the signal at its ends, so that part k is
/// centred at element k `step`, as in librosa and PyTorch (which have the last two axes exchanged).
constexpr var stft(operand x, operand window, int step, bool centered = true) {
  builder& b = owner_of(x, window);
  const var v = x.in(b);
  const var w = window.in(b);
  if (v.rank() < 1 || w.rank() != 1 || v.element() != w.element()) {
    b.fail(text() << x.at()
                  << ": stft: needs signals and a window of one type: " << b.describe(v.id)
                  << " is " << v.type() << ", " << b.describe(w.id) << " is " << w.type());
    return v;
  }
  const int length = w.extent(0);
  var padded = v;
  if (centered) {
    std::array<int, max_rank> wide{};
    wide[std::size_t(v.rank() - 1)] = length / 2;
    const axis_list ends(span<const int>(wide.data(), std::size_t(v.rank())));
    padded = pad_reflect(x, ends, ends);
  }
  const var parts = frames({padded, x.at()}, length, step);
  return b.failed() ? v : rfft(parts * w);
}
/// The signal [...,(frames - 1) step + length] whose `stft`, not centred, is nearest to these
/// spectra: the parts, weighted with the window, are added and divided by the squares of the
/// windows that meet. Griffin and Lim 1984
constexpr var istft(operand spectra, operand window, int step) {
  builder& b = owner_of(spectra, window);
  const var y = spectra.in(b);
  const var w = window.in(b);
  if (y.rank() < 2 || !is_complex(y.element()) || w.rank() != 1 ||
      y.extent(-1) != w.extent(0) / 2 + 1 || step < 1) {
    b.fail(text() << spectra.at() << ": istft: needs spectra [...,frames,length/2 + 1] of the "
                  << "window's length: " << b.describe(y.id) << " is " << y.type() << ", "
                  << b.describe(w.id) << " is " << w.type());
    return y;
  }
  const int count = y.extent(-2), length = w.extent(0), all = (count - 1) * step + length;
  const var parts = irfft(spectra, length) * w;
  const var index = reshape(detail::frame_places(b, count, length, step), {count * length});
  // Elements come to the front, where scatter adds them.
  shape s = parts.shape();
  s.rank -= 2;
  const std::int64_t signals = s.size();
  const var rows = transpose(reshape(parts, {signals, count * length}));
  const var sums = scatter(rows, index, all);
  const var squares = broadcast_to(square(w), {count, length});
  const var weight = scatter(reshape(squares, {count * length}), index, all);
  const var safe = select(weight > 1e-11, weight, ones_like(weight));
  s.push_back(all);
  return reshape(transpose(sums / expand_dims(safe, -1)), s);
}

/// Triangles on the mel scale 2595 log10(1 + f/700): [bins,spectrum] with spectrum = length/2 + 1,
/// in the graph of x. Frequencies from `low` to `high` (0: half the rate), in the unit of `rate`.
constexpr var mel_filter_bank(operand x, int bins, int length, double rate, double low = 0,
                              double high = 0, dtype element = dtype::f32) {
  builder& b = *x.owner();
  if (bins < 1 || length < 2 || !(rate > 0) || !is_floating(element)) {
    b.fail(text() << x.at() << ": mel_filter_bank: needs a bin, a length of 2, a rate and a "
                  << "floating-point type; it has " << bins << " bins, the length " << length
                  << ", the rate " << rate);
    return x.in(b);
  }
  constexpr double scale = 2595 * std::numbers::log10e;
  auto mel = [&](double f) { return scale * log1p(constant(b, f / 700, {element, {}})); };
  const var first = mel(low), last = mel(high > 0 ? high : rate / 2);
  const var step = iota(b, {element, {bins + 2}}, 0) * (1.0 / (bins + 1));
  const var corner = expm1((first + (last - first) * step) / scale) * 700;
  auto column = [&](int from) { return reshape(slice(corner, 0, from, from + bins), {bins, 1}); };
  const var f = iota(b, {element, {1, length / 2 + 1}}, 1) * (rate / length);
  const var rising = (f - column(0)) / (column(1) - column(0));
  const var falling = (column(2) - f) / (column(2) - column(1));
  return maximum(minimum(rising, falling), 0);
}

}  // namespace cella
