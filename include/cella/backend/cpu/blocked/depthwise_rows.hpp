// Depthwise convolutions whose filters are 3 x 3 with a border of one pixel. Their taps are
// constants, so that a pixel is loaded once for all taps of a row.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/blocked/layout.hpp>
#include <type_traits>

namespace cella::cpu::detail {

/// P results of a row, from `rows` rows of the image, of `width` pixels each, and as many of the
/// filter. Result 0 has its middle tap at x. The `first` result's left tap and the `last` one's
/// right tap lie outside of the image. They are finished in place, from vector `element` of the
/// results on, or, if `finish` is null, written to `result`.
template <class T, int P, int Step>
[[gnu::noinline]] void depthwise_row_tile(int rows, const T* x, std::int64_t width, const T* filter,
                                          bool first, bool last, const blocked_finish<T>* finish,
                                          std::int64_t element, int block, T* result) {
  constexpr int L = lanes<T>, columns = (P - 1) * Step + 3;
  vec<T> sum[P];
#pragma GCC unroll 8
  for (int k = 0; k < P; ++k) sum[k] = vec<T>(T{0});
  for (int r = 0; r < rows; ++r, x += width * L, filter += 3 * L) {
    const vec<T> f[3] = {load(filter), load(filter + L), load(filter + 2 * L)};
#pragma GCC unroll 16
    for (int c = 0; c < columns; ++c) {
      const bool outside = (c == 0 && first) || (c == columns - 1 && last);
      // Compilers would read it again for each of its taps.
      const vec<T> pixel = in_register<T>(load(outside ? zero_pixel<T>.data() : x + (c - 1) * L));
#pragma GCC unroll 3
      for (int q = 0; q < 3; ++q) {
        if ((c - q) >= 0 && (c - q) % Step == 0 && (c - q) / Step < P)
          sum[(c - q) / Step] = multiply_add(pixel, f[q], sum[(c - q) / Step]);
      }
    }
  }
  if (finish) {
    finish->template store_pixels<P>(
        element, block, [&](int k) __attribute__((always_inline)) { return sum[k]; });
    return;
  }
#pragma GCC unroll 8
  for (int k = 0; k < P; ++k) store(result + k * L, sum[k]);
}

/// Whether the tiles above serve: rows are cut into 4 to 7 results.
constexpr bool has_row_tiles(const blocked_convolution_extents& e) {
  return e.kernel_height == 3 && e.kernel_width == 3 && e.padding_top == 1 && e.padding_left == 1 &&
         e.stride_vertical == e.stride_horizontal && e.stride_horizontal <= 2 && e.out_width >= 4;
}

/// Rows of a plane that has_row_tiles().
template <class T, int Step>
void depthwise_plane(const blocked_convolution_extents& e, const T* image, const T* filter,
                     std::int64_t first_element, int block, const any_blocked_sink<T>& sink) {
  constexpr int L = lanes<T>, most = 63;  // results that are handed over at once
  alignas(64) T result[most * L];
  std::array<std::int64_t, std::size_t(most)> at;
  const int parts = (e.out_width + 6) / 7;  // of 4 to 7 results
  const blocked_finish<T>* const finish = sink.finish();
  int held = 0;
  std::int64_t element = first_element;
  const auto hand_over = [&] {
    for (int k = 0; k < held; ++k) at[std::size_t(k)] = element + k;
    sink.hand_over(result, most, held, 1, at.data(), 0, block);
    element += held;
    held = 0;
  };
  for (int i = 0; i < e.out_height; ++i) {
    const int top = i * Step - 1;
    const work_range taps{std::max(0, -top), std::min(3, e.height - top)};
    const T* const row = image + std::int64_t{top + taps.first} * e.width * L;
    for (int k = 0; k < parts; ++k) {
      const work_range part = part_of(e.out_width, parts, k);
      const int count = part.size();
      if (held + count > most) hand_over();
      const auto tile = [&]<int P>(std::integral_constant<int, P>) {
        depthwise_row_tile<T, P, Step>(taps.size(), row + std::int64_t{part.first} * Step * L,
                                       e.width, filter + taps.first * 3 * L, part.first == 0,
                                       (part.last - 1) * Step + 1 >= e.width, finish, element,
                                       block, result + held * L);
      };
      if (count == 7)
        tile(std::integral_constant<int, 7>{});
      else if (count == 6)
        tile(std::integral_constant<int, 6>{});
      else if (count == 5)
        tile(std::integral_constant<int, 5>{});
      else
        tile(std::integral_constant<int, 4>{});
      if (finish)
        element += count;
      else
        held += count;
    }
  }
  if (held) hand_over();
}

}  // namespace cella::cpu::detail
