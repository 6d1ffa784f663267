// Pooling of images in blocks of channels.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/blocked_layout.hpp>
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
/// Bit i says whether a[i] is a number.
template <class T>
unsigned numbers(vec<T> a) {
  return greater(a, vec<T>(-std::numeric_limits<T>::infinity())) |
         greater(vec<T>(std::numeric_limits<T>::lowest()), a);
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
      for (int j = 0; j < e.out_width; ++j, out += L) {
        vec<T> best(-std::numeric_limits<T>::infinity()), where(T{0});
        bool first = true;
        for (int k = 0; k < e.kernel_height; ++k) {
          const int row = i * e.stride_vertical - e.padding_top + k;
          if (row < 0 || row >= e.height) continue;
          for (int q = 0; q < e.kernel_width; ++q) {
            const int column = j * e.stride_horizontal - e.padding_left + q;
            if (column < 0 || column >= e.width) continue;
            const vec<T> v = load(image + (std::int64_t{row} * e.width + column) * L);
            const vec<T> at(static_cast<T>(k * e.kernel_width + q));
            // A NaN wins.
            const unsigned keeps = first ? 0u : ~greater(v, best) & detail::numbers(v);
            best = select(keeps, best, v);
            where = select(keeps, where, at);
            first = false;
          }
        }
        store(y + out, best);
        if (positions) store(positions + out, where);
      }
    }
  }
}

/// Adds each value where its position points: image from pooled values. Units: planes.
template <class T>
void blocked_unpool(work_range units, const blocked_window& e, const T* values, const T* positions,
                    T* image) {
  constexpr int L = lanes<T>;
  for (int u = units.first; u < units.last; ++u) {
    T* const to = image + std::int64_t{u} * e.height * e.width * L;
    std::memset(to, 0, sizeof(T) * std::size_t(e.height) * std::size_t(e.width) * std::size_t(L));
    std::int64_t from = std::int64_t{u} * e.out_height * e.out_width * L;
    for (int i = 0; i < e.out_height; ++i) {
      for (int j = 0; j < e.out_width; ++j, from += L) {
        const vec<T> v = load(values + from), where = load(positions + from);
        for (int k = 0; k < e.kernel_height; ++k) {
          const int row = i * e.stride_vertical - e.padding_top + k;
          if (row < 0 || row >= e.height) continue;
          for (int q = 0; q < e.kernel_width; ++q) {
            const int column = j * e.stride_horizontal - e.padding_left + q;
            if (column < 0 || column >= e.width) continue;
            const vec<T> at(static_cast<T>(k * e.kernel_width + q));
            const unsigned other = greater(at, where) | greater(where, at);
            T* const pixel = to + (std::int64_t{row} * e.width + column) * L;
            store(pixel, load(pixel) + select(other, vec<T>(T{0}), v));
          }
        }
      }
    }
  }
}

}  // namespace cella::cpu
