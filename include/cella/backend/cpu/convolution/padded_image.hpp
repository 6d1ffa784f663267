// Copies of images that convolutions read: with a border of zeros, and split by the stride.
//
// A stride s splits the copy into s planes for each axis ("phases": rows 0, s, 2s ... are one of
// them). In these planes every filter tap is a mere shift, whatever the stride.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/convolution/extents.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstdint>

namespace cella::cpu {

/// Copies x [channels, H, W] into y [channels, before + H + after, before + W + after] with a
/// border of zeros.
template <class T>
void pad_image(const convolution_extents& e, const T* x, T* y);

namespace detail {

/// One axis of the copy: position i of the padded axis holds element i - before of the image, or
/// zero where there is none.
struct padded_axis {
  int size{};    // of the image
  int before{};  // zeros before it; negative: leading elements that nobody reads
  int phases = 1;
  int length{};  // of each phase
  int output{};  // positions of the result
};

/// The padded copy of some channels of one image, [channels][phases][phases][length][length].
struct padded_image {
  int channels{};
  padded_axis vertical{}, horizontal{};

  constexpr std::int64_t plane() const { return std::int64_t{vertical.length} * horizontal.length; }
  constexpr std::int64_t channel() const { return plane() * vertical.phases * horizontal.phases; }
  constexpr std::int64_t size() const { return channels * channel(); }
  /// Offset of position (y, x) of the padded axes.
  constexpr std::int64_t at(int y, int x) const {
    // Without the divisions, of which every row would have four.
    if (vertical.phases == 1 && horizontal.phases == 1)
      return std::int64_t{y} * horizontal.length + x;
    const int phase = y % vertical.phases * horizontal.phases + x % horizontal.phases;
    return phase * plane() + std::int64_t{y / vertical.phases} * horizontal.length +
           x / horizontal.phases;
  }
  /// A result of rows x columns is computed as one row, in which the rows lie as far apart as in
  /// the copy: what lies between them is computed for nothing.
  constexpr int virtual_columns(int rows, int columns) const {
    return rows > 0 && columns > 0 ? (rows - 1) * horizontal.length + columns : 0;
  }
  /// Whether the image itself serves, because it would be copied as it is.
  constexpr bool in_place() const {
    return vertical.before == 0 && vertical.phases == 1 && horizontal.before == 0 &&
           horizontal.phases == 1 && vertical.length == vertical.size &&
           horizontal.length == horizontal.size;
  }
  /// Whether the image covers the copy, so that there are no zeros.
  constexpr bool borderless() const {
    return vertical.before <= 0 && horizontal.before <= 0 &&
           vertical.length * vertical.phases <= vertical.size + vertical.before &&
           horizontal.length * horizontal.phases <= horizontal.size + horizontal.before;
  }
};

/// A row of an image: too short for a call of memcpy.
template <class T>
[[gnu::always_inline]] inline void copy_row(const T* from, int count, T* to) {
  constexpr int L = lanes<T>;
  int i = 0;
  for (; i + L <= count; i += L) store_unaligned(to + i, load_unaligned(from + i));
  if (i < count) store_first(to + i, count - i, load_first(from + i, count - i));
}

/// Fills `to` from image channels [channels][size][size].
template <class T>
void copy_padded(const padded_image& image, const T* from, T* to) {
  const padded_axis &v = image.vertical, &h = image.horizontal;
  if (!image.borderless()) std::fill_n(to, image.size(), T(0));
  for (int c = 0; c < image.channels; ++c, to += image.channel()) {
    for (int i = 0; i < v.size; ++i, from += h.size) {
      const int y = v.before + i;
      if (y < 0 || y >= v.length * v.phases) continue;
      if (h.phases == 1) {
        const int x = std::max(0, h.before), first = x - h.before;
        copy_row(from + first, std::min(h.length - x, h.size - first), to + image.at(y, x));
        continue;
      }
      for (int x = std::max(0, h.before), end = x + h.phases; x < end; ++x) {
        T* target = to + image.at(y, x);
        const int first = x - h.before;
        const int room = h.length - x / h.phases;
        const int count = std::min(room, ceil_divide(h.size - first, h.phases));
        for (int j = 0; j < count; ++j) target[j] = from[first + j * h.phases];
      }
    }
  }
}

constexpr padded_axis forward_axis(const convolution_axis& a) {
  if (a.output() == 0) return {};
  const int span = (a.output() - 1) * a.stride + (a.kernel - 1) * a.dilation + 1;
  return {a.size, a.padding_before, a.stride, ceil_divide(span, a.stride), a.output()};
}

/// What the forward pass and the weight gradient read: one group of channels of one sample.
constexpr padded_image forward_image(const convolution_extents& e) {
  return {e.group_inputs(), forward_axis(e.vertical), forward_axis(e.horizontal)};
}

}  // namespace detail

template <class T>
void pad_image(const convolution_extents& e, const T* x, T* y) {
  const auto padded = [](const convolution_axis& a) {
    const int size = a.size + a.padding_before + a.padding_after;
    return detail::padded_axis{a.size, a.padding_before, 1, size, size};
  };
  detail::copy_padded({e.in_channels, padded(e.vertical), padded(e.horizontal)}, x, y);
}

}  // namespace cella::cpu
