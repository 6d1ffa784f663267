// Pooling of images in blocks of channels.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/blocked/layout.hpp>
#include <limits>

namespace cella::cpu {

/// Windows of an image in blocks of channels; `planes` are the blocks of all samples.
struct blocked_window {
  int planes{}, height{}, width{};
  int kernel_height = 1, kernel_width = 1;
  int stride_vertical = 1, stride_horizontal = 1;
  int padding_top{}, padding_left{};
  int out_height{}, out_width{};
};

namespace detail {

/// The part of a window that lies inside the image, along one axis: elements `first` up to `last`
/// of the window, the first of them at `place` of the image.
struct window_part {
  int first{}, last{}, place{};
};
constexpr window_part window_inside(int start, int kernel, int size) {
  const int first = std::max(0, -start);
  return {first, std::max(first, std::min(kernel, size - start)), start + first};
}

/// The windows that see a pixel, along one axis, while the pixel moves on by one at a time.
struct windows_over_pixel {
  int kernel{}, stride{}, padding{}, count{};
  int first{}, last = -1;  // last inclusive

  void move_to(int pixel) {
    while (last + 1 < count && (last + 1) * stride <= pixel + padding) ++last;
    while (first <= last && first * stride + kernel <= pixel + padding) ++first;
  }
};

/// Whether v takes the place of the best so far: NaN does, and what is equal does not.
template <class T>
[[gnu::always_inline]] inline auto takes_over(vec<T> v, vec<T> best) {
  return (v > best) || xsimd::isnan(v);
}

}  // namespace detail

/// Largest element of each window, and where in the window it lies (as a number of type T, row by
/// row from 0; the first of equal ones). `positions` may be null. Units: planes.
template <class T>
void blocked_max_pool(work_range units, const blocked_window& e, const T* x, T* y, T* positions) {
  constexpr int L = lanes<T>;
  for (int u = units.first; u < units.last; ++u) {
    const T* image = x + std::int64_t{u} * e.height * e.width * L;
    std::int64_t out = std::int64_t{u} * e.out_height * e.out_width * L;
    for (int i = 0; i < e.out_height; ++i) {
      const auto rows =
          detail::window_inside(i * e.stride_vertical - e.padding_top, e.kernel_height, e.height);
      for (int j = 0; j < e.out_width; ++j, out += L) {
        const auto columns = detail::window_inside(j * e.stride_horizontal - e.padding_left,
                                                   e.kernel_width, e.width);
        const T* row = image + (std::int64_t{rows.place} * e.width + columns.place) * L;
        vec<T> best(-std::numeric_limits<T>::infinity());
        // Where nothing is larger than minus infinity the first one counts.
        vec<T> at(static_cast<T>(rows.first * e.kernel_width + columns.first)), where = at;
        const vec<T> next_row(static_cast<T>(e.kernel_width - (columns.last - columns.first)));
        for (int k = rows.first; k < rows.last; ++k, row += std::int64_t{e.width} * L) {
          for (int q = 0; q < columns.last - columns.first; ++q, at += vec<T>(T(1))) {
            const vec<T> v = load(row + q * L);
            const auto takes = detail::takes_over<T>(v, best);
            best = xsimd::select(takes, v, best);
            where = xsimd::select(takes, at, where);
          }
          at += next_row;
        }
        store(y + out, best);
        if (positions) store(positions + out, where);
      }
    }
  }
}

/// Adds each value where its position points: image from pooled values, stored past the caches if
/// `Past`. Units: planes.
template <class T, bool Past = false>
void blocked_unpool(work_range units, const blocked_window& e, const T* values, const T* positions,
                    T* image) {
  constexpr int L = lanes<T>;
  for (int u = units.first; u < units.last; ++u) {
    const std::int64_t plane = std::int64_t{u} * e.out_height * e.out_width * L;
    T* to = image + std::int64_t{u} * e.height * e.width * L;
    detail::windows_over_pixel rows{e.kernel_height, e.stride_vertical, e.padding_top,
                                    e.out_height};
    for (int r = 0; r < e.height; ++r) {
      rows.move_to(r);
      detail::windows_over_pixel columns{e.kernel_width, e.stride_horizontal, e.padding_left,
                                         e.out_width};
      for (int c = 0; c < e.width; ++c, to += L) {
        columns.move_to(c);
        vec<T> sum(T{0});
        for (int i = rows.first; i <= rows.last; ++i) {
          const int in_column = (r + e.padding_top - i * e.stride_vertical) * e.kernel_width;
          for (int j = columns.first; j <= columns.last; ++j) {
            const int in_window = in_column + c + e.padding_left - j * e.stride_horizontal;
            const std::int64_t from = plane + (std::int64_t{i} * e.out_width + j) * L;
            const auto here = load(positions + from) == vec<T>(static_cast<T>(in_window));
            sum += xsimd::select(here, load(values + from), vec<T>(T{0}));
          }
        }
        store_vector<Past>(to, sum);
      }
    }
  }
}

}  // namespace cella::cpu
