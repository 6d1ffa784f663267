// Pooling and statistics of images in blocks of channels.
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

// ---- mean and variance of each channel, over samples and pixels

/// Sums of one plane's differences from `origin`, and of their squares.
template <class T>
void add_moments(const T* x, std::int64_t pixels, vec<T> origin, vec<T>& sum, vec<T>& squares) {
  constexpr int L = lanes<T>;
  std::array<vec<T>, 4> s, q;
  s.fill(vec<T>(T{0}));
  q.fill(vec<T>(T{0}));
  std::int64_t i = 0;
  for (; i + 4 <= pixels; i += 4) {
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
      const vec<T> d = load(x + (i + k) * L) - origin;
      s[std::size_t(k)] = s[std::size_t(k)] + d;
      q[std::size_t(k)] = multiply_add(d, d, q[std::size_t(k)]);
    }
  }
  for (; i < pixels; ++i) {
    const vec<T> d = load(x + i * L) - origin;
    s[0] = s[0] + d;
    q[0] = multiply_add(d, d, q[0]);
  }
  sum = sum + ((s[0] + s[1]) + (s[2] + s[3]));
  squares = squares + ((q[0] + q[1]) + (q[2] + q[3]));
}

/// Mean and variance (divided by the count) of each channel of x [samples][blocks][pixels][L]. One
/// pass: sums are taken of differences from the first pixel, which keeps them small. Units: blocks.
template <class T>
void blocked_moments(work_range units, int samples, int blocks, int pixels, const T* x, T* mean,
                     T* variance) {
  constexpr int L = lanes<T>;
  const vec<T> share(T{1} / (static_cast<T>(samples) * static_cast<T>(pixels)));
  for (int b = units.first; b < units.last; ++b) {
    const vec<T> origin = load(x + std::int64_t{b} * pixels * L);
    vec<T> sum(T{0}), squares(T{0});
    for (int n = 0; n < samples; ++n)
      add_moments(x + (std::int64_t{n} * blocks + b) * pixels * L, pixels, origin, sum, squares);
    const vec<T> m = sum * share;
    store_unaligned(mean + b * L, m + origin);
    store_unaligned(variance + b * L, maximum(squares * share - m * m, vec<T>(T{0})));
  }
}

/// The same for a plain x [samples][channels][pixels]. Units: channels.
template <class T>
void plain_moments(work_range units, int samples, int channels, int pixels, const T* x, T* mean,
                   T* variance) {
  constexpr int L = lanes<T>;
  const T share = T{1} / (static_cast<T>(samples) * static_cast<T>(pixels));
  for (int c = units.first; c < units.last; ++c) {
    const T origin = x[std::int64_t{c} * pixels];
    vec<T> s(T{0}), q(T{0});
    for (int n = 0; n < samples; ++n) {
      const T* plane = x + (std::int64_t{n} * channels + c) * pixels;
      for (int i = 0; i < pixels; i += L) {
        const int count = std::min(L, pixels - i);
        const vec<T> d = keep(first_bits(count), load_first(plane + i, count) - vec<T>(origin));
        s = s + d;
        q = multiply_add(d, d, q);
      }
    }
    const T m = sum(s) * share;
    mean[c] = m + origin;
    variance[c] = std::max(sum(q) * share - m * m, T{0});
  }
}

}  // namespace cella::cpu
