// A convolution of images in blocks of channels, or the gradient of its image, as a product: a grid
// of result pixels, of which each is a sum over taps and channels of the source.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/blocked/layout.hpp>
#include <cella/backend/cpu/blocked/units.hpp>
#include <cstdint>

namespace cella::cpu::detail {

inline constexpr int most_taps = 128;

/// One tap of a filter: which, and where it reads relative to a pixel of the grid.
struct blocked_tap {
  int filter, row, column;
};

/// What the tiles of a call have in common: a grid of result pixels, the source image that the taps
/// read, and where results belong.
template <class T, int Summands>
struct blocked_product {
  static constexpr int words = lanes<T> / Summands;  // of a pixel in a block of channels

  int samples, rows, columns;                  // grid of result pixels
  int height, width, source_blocks;            // of the source image
  int step_vertical = 1, step_horizontal = 1;  // source pixels per grid pixel
  int result_blocks;
  std::int64_t result_plane;                     // pixels of a result image
  int result_width;                              // of it
  int place_vertical = 1, place_horizontal = 1;  // result pixels per grid pixel
  int place_row = 0, place_column = 0;           // of the grid's first pixel
  int filter_taps;                               // that a filter has, of which some are used
  int taps = 0;
  std::array<blocked_tap, most_taps> tap;

  constexpr int pixels() const { return samples * rows * columns; }
  /// How its planes are cut, if every result has one tap, at its own pixel.
  constexpr pointwise_cut pointwise() const {
    const bool same = rows == height && columns == width && step_vertical == 1 &&
                      step_horizontal == 1 && place_vertical == 1 && place_horizontal == 1;
    if (!same || filter_taps != 1 || taps != 1 || tap[0].row != 0 || tap[0].column != 0)
      return pointwise_cut(0, samples, result_blocks);
    return pointwise_cut(result_plane, samples, result_blocks);
  }
  constexpr int tiles() const {
    if (const pointwise_cut cut = pointwise(); cut.pixels) return samples * cut.tiles(result_plane);
    return (pixels() + blocked_pixels - 1) / blocked_pixels;
  }
  /// All filters in the second cache: then a tile's pixels stay in the first one.
  constexpr bool few_filters() const {
    return std::int64_t{filter_taps} * source_blocks * result_blocks * words * lanes<T> *
               std::int64_t{sizeof(T)} <=
           (256 << 10);
  }
  constexpr blocked_work work() const {
    const pointwise_cut cut = pointwise();
    blocked_work w{tiles(), cut.pixels ? cut.blocks : 2, result_blocks};
    const std::int64_t bytes = std::int64_t{cut.pixels ? cut.pixels : blocked_pixels} *
                               step_vertical * step_horizontal * source_blocks * words *
                               std::int64_t{sizeof(T)};
    w.divide(int(std::clamp<std::int64_t>((256 << 10) / bytes, 1, std::max(w.tiles, 1))),
             few_filters());
    return w;
  }
};

template <class T, int Summands>
constexpr blocked_product<T, Summands> forward_product(const blocked_convolution_extents& e) {
  blocked_product<T, Summands> p{};
  p.samples = e.samples;
  p.rows = e.out_height;
  p.columns = e.out_width;
  p.height = e.height;
  p.width = e.width;
  p.source_blocks = e.in_blocks;
  p.step_vertical = e.stride_vertical;
  p.step_horizontal = e.stride_horizontal;
  p.result_blocks = e.out_blocks;
  p.result_plane = e.out_plane();
  p.result_width = e.out_width;
  p.filter_taps = e.taps();
  for (int i = 0; i < e.kernel_height; ++i) {
    for (int j = 0; j < e.kernel_width; ++j)
      p.tap[std::size_t(p.taps++)] = {i * e.kernel_width + j, i - e.padding_top,
                                      j - e.padding_left};
  }
  return p;
}

/// Image pixels whose row and column leave the same remainder by the stride are reached by the same
/// taps: one product for each of these phases.
template <class T, int Summands>
constexpr blocked_product<T, Summands> backward_product(const blocked_convolution_extents& e,
                                                        int phase) {
  const int a = phase / e.stride_horizontal, b = phase % e.stride_horizontal;
  blocked_product<T, Summands> p{};
  p.samples = e.samples;
  p.rows = (e.height - a + e.stride_vertical - 1) / e.stride_vertical;
  p.columns = (e.width - b + e.stride_horizontal - 1) / e.stride_horizontal;
  p.height = e.out_height;
  p.width = e.out_width;
  p.source_blocks = e.out_blocks;
  p.result_blocks = e.in_blocks;
  p.result_plane = e.in_plane();
  p.result_width = e.width;
  p.place_vertical = e.stride_vertical;
  p.place_horizontal = e.stride_horizontal;
  p.place_row = a;
  p.place_column = b;
  p.filter_taps = e.taps();
  for (int i = 0; i < e.kernel_height; ++i) {
    const int row = a + e.padding_top - i;
    if (row % e.stride_vertical != 0) continue;
    for (int j = 0; j < e.kernel_width; ++j) {
      const int column = b + e.padding_left - j;
      if (column % e.stride_horizontal != 0) continue;
      p.tap[std::size_t(p.taps++)] = {i * e.kernel_width + j, row / e.stride_vertical,
                                      column / e.stride_horizontal};
    }
  }
  return p;
}

}  // namespace cella::cpu::detail
