// Pooling of plain images: maxima and means of windows, and what goes back from them.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace cella::cpu {

/// Windows of images that lie plane by plane; the planes are the channels of all samples.
struct pooling_extents {
  int planes{}, height{}, width{};
  int out_height{}, out_width{};
  std::array<int, 2> kernel{1, 1}, stride{1, 1}, dilation{1, 1};
  std::array<int, 2> padding{};  ///< above and on the left
  bool count_padding = true;     ///< means: divide by the window's size, zeros included

  constexpr std::int64_t pixels() const { return std::int64_t{height} * width; }
  constexpr std::int64_t windows() const { return std::int64_t{out_height} * out_width; }
  /// Windows of 2x2 side by side, all inside the image.
  constexpr bool quarters() const {
    constexpr std::array two{2, 2}, one{1, 1};
    return kernel == two && stride == two && dilation == one && padding == std::array{0, 0} &&
           2 * out_height <= height && 2 * out_width <= width;
  }
};

namespace detail {

/// The taps of a window that lie inside the image, along one axis: `first` up to `last`, the first
/// of them at `place`.
struct inner_taps {
  int first{}, last{}, place{};
  constexpr int count() const { return last - first; }
};
constexpr inner_taps taps_inside(int start, int kernel, int dilation, int size) {
  inner_taps t{0, kernel, start};
  if (start < 0) t.first = (dilation - 1 - start) / dilation;
  if (start + (kernel - 1) * dilation >= size)
    t.last = (std::max(size - start, 0) + dilation - 1) / dilation;
  t.last = std::max(t.first, t.last);
  t.place += t.first * dilation;
  return t;
}

/// Calls f(taps along rows, taps along columns, window) for the windows of a plane.
template <class F>
[[gnu::always_inline]] inline void for_each_window(const pooling_extents& e, F f) {
  std::int64_t window = 0;
  for (int i = 0; i < e.out_height; ++i) {
    const auto rows =
        taps_inside(i * e.stride[0] - e.padding[0], e.kernel[0], e.dilation[0], e.height);
    for (int j = 0; j < e.out_width; ++j) {
      f(rows, taps_inside(j * e.stride[1] - e.padding[1], e.kernel[1], e.dilation[1], e.width),
        window++);
    }
  }
}
/// Windows side by side in a row, of which no column is outside the image: `count` from number
/// `window` on, whose first pixels' columns begin at `place`.
struct whole_windows {
  inner_taps rows{};
  std::int64_t window{};
  int place{}, count{};
};
inline constexpr int windows_at_once = 64;

/// As for_each_window, but what is whole along the columns goes to g(whole_windows), so many at a
/// time.
template <class F, class G>
[[gnu::always_inline]] inline void for_each_row(const pooling_extents& e, F f, G g,
                                                int at_once = windows_at_once) {
  const int reach = (e.kernel[1] - 1) * e.dilation[1], stride = e.stride[1];
  const int first = std::min((e.padding[1] + stride - 1) / stride, e.out_width);
  const int room = e.width - 1 - reach + e.padding[1];
  const int last = std::clamp(room < 0 ? 0 : room / stride + 1, first, e.out_width);
  for (int i = 0; i < e.out_height; ++i) {
    const auto rows =
        taps_inside(i * e.stride[0] - e.padding[0], e.kernel[0], e.dilation[0], e.height);
    const std::int64_t window = std::int64_t{i} * e.out_width;
    const auto apart = [&](int from, int to) {
      for (int j = from; j < to; ++j)
        f(rows, taps_inside(j * stride - e.padding[1], e.kernel[1], e.dilation[1], e.width),
          window + j);
    };
    apart(0, first);
    for (int j = first; j < last; j += at_once)
      g(whole_windows{rows, window + j, j * stride - e.padding[1], std::min(at_once, last - j)});
    apart(last, e.out_width);
  }
}
/// Calls f(window, pixel, position in the window) for the taps inside the image of some windows:
/// for each tap all windows, so that the loops become vectors.
template <class F>
[[gnu::always_inline]] inline void for_each_whole_tap(const pooling_extents& e,
                                                      const whole_windows& w, F f) {
  const auto with_stride = [&](auto stride) __attribute__((always_inline)) {
    std::int64_t row = std::int64_t{w.rows.place} * e.width + w.place;
    for (int p = w.rows.first; p < w.rows.last; ++p, row += std::int64_t{e.dilation[0]} * e.width) {
      for (int q = 0; q < e.kernel[1]; ++q) {
        const std::int64_t from = row + q * e.dilation[1];
        for (int j = 0; j < w.count; ++j) f(j, from + j * stride, p * e.kernel[1] + q);
      }
    }
  };
  if (e.stride[1] == 1)
    with_stride(std::integral_constant<int, 1>{});
  else if (e.stride[1] == 2)
    with_stride(std::integral_constant<int, 2>{});
  else
    with_stride(e.stride[1]);
}

/// Calls f(pixel, position in the window) for the taps of a window inside the image.
template <class F>
[[gnu::always_inline]] inline void for_each_inner_tap(const pooling_extents& e, inner_taps rows,
                                                      inner_taps columns, F f) {
  std::int64_t row = std::int64_t{rows.place} * e.width + columns.place;
  for (int p = rows.first; p < rows.last; ++p, row += std::int64_t{e.dilation[0]} * e.width) {
    for (int q = columns.first; q < columns.last; ++q)
      f(row + (q - columns.first) * e.dilation[1], p * e.kernel[1] + q);
  }
}
/// Calls f(pixel) if a position in a window points at one inside the image.
template <class F>
[[gnu::always_inline]] inline void at_position(const pooling_extents& e, inner_taps rows,
                                               inner_taps columns, int position, F f) {
  const int p = position / e.kernel[1], q = position % e.kernel[1];
  if (p < rows.first || p >= rows.last || q < columns.first || q >= columns.last) return;
  const std::int64_t row = rows.place + std::int64_t{p - rows.first} * e.dilation[0];
  f(row * e.width + columns.place + (q - columns.first) * e.dilation[1]);
}
/// What the sum of a window is divided by.
constexpr double window_count(const pooling_extents& e, inner_taps rows, inner_taps columns) {
  return e.count_padding ? double(e.kernel[0]) * e.kernel[1]
                         : double(rows.count()) * columns.count();
}

/// Whether v takes the place of the best so far: NaN does, and what is equal does not.
template <class T>
constexpr bool takes_place(T v, T best) {
  return bool(int(v > best) | int(v != v));
}

/// The pixels of a tap in `count` windows side by side, `Stride` apart; touches none behind the
/// last one. `Whole`: there are as many windows as lanes.
template <int Stride, bool Whole, class T>
[[gnu::always_inline]] inline vec<T> pixels_of_tap(const T* x, int count) {
  constexpr int L = lanes<T>;
  const auto some = [=](const T* p, int n) __attribute__((always_inline)) {
    return Whole ? load_unaligned(p) : load_first(p, std::clamp(n, 0, L));
  };
  if constexpr (Stride == 1)
    return some(x, count);
  else
    return every_other<T>(some(x, 2 * count - 1), some(x + L - 1, 2 * count - L));
}
/// Largest pixels of windows side by side, from number `first` of w on, and, unless `Places` is
/// false, their positions. `Width`: of the windows, 0: any.
template <int Stride, int Width, bool Places, bool Whole, class T>
[[gnu::always_inline]] inline void max_of_windows(const pooling_extents& e, const whole_windows& w,
                                                  int first, const T* x, T* y,
                                                  std::uint8_t* positions) {
  using V = vec<T>;
  constexpr int L = lanes<T>;
  const int count = Whole ? L : w.count - first;
  const int width = Width ? Width : e.kernel[1];
  V best(-std::numeric_limits<T>::infinity());
  [[maybe_unused]] V at(T(w.rows.count() == 0 ? 0 : w.rows.first * width));
  const T* row = x + std::int64_t{w.rows.place} * e.width + w.place + first * Stride;
  for (int p = w.rows.first; p < w.rows.last; ++p, row += std::int64_t{e.dilation[0]} * e.width) {
    for (int q = 0; q < width; ++q) {
      const V v = pixels_of_tap<Stride, Whole>(row + q * e.dilation[1], count);
      const auto takes = v > best || !(v == v);  // xsimd's != is false for NaN
      best = xsimd::select(takes, v, best);
      if constexpr (Places) at = xsimd::select(takes, V(T(p * width + q)), at);
    }
  }
  store_first(y + w.window + first, count, best);
  if constexpr (Places) {
    alignas(sizeof(V)) std::array<T, std::size_t(L)> of_lanes;
    store(of_lanes.data(), at);
    for (int j = 0; j < count; ++j)
      positions[w.window + first + j] = static_cast<std::uint8_t>(of_lanes[std::size_t(j)]);
  }
}
template <int Stride, int Width, bool Places, class T>
[[gnu::always_inline]] inline void max_of_row(const pooling_extents& e, const whole_windows& w,
                                              const T* x, T* y, std::uint8_t* positions) {
  int j = 0;
  for (; j + lanes<T> <= w.count; j += lanes<T>)
    max_of_windows<Stride, Width, Places, true>(e, w, j, x, y, positions);
  if (j < w.count) max_of_windows<Stride, Width, Places, false>(e, w, j, x, y, positions);
}
template <int Stride, class T>
void max_of_whole_windows(const pooling_extents& e, const whole_windows& w, const T* x, T* y,
                          std::uint8_t* positions) {
  if (positions)
    max_of_row<Stride, 0, true>(e, w, x, y, positions);
  else if (e.kernel[1] == 2)
    max_of_row<Stride, 2, false>(e, w, x, y, positions);
  else
    max_of_row<Stride, 0, false>(e, w, x, y, positions);
}
/// Two rows of an image from a row of maxima.
template <class T>
void unpool_quarters(int n, const T* __restrict values, const std::uint8_t* __restrict positions,
                     T* __restrict upper, T* __restrict lower) {
  for (int j = 0; j < n; ++j) {
    const T v = values[j] + T(0);  // A sum from zero on has no negative zero.
    const int at = positions[j];
    upper[2 * j] = at == 0 ? v : T(0);
    upper[2 * j + 1] = at == 1 ? v : T(0);
    lower[2 * j] = at == 2 ? v : T(0);
    lower[2 * j + 1] = at == 3 ? v : T(0);
  }
}

}  // namespace detail

// Units of all of these: planes.

/// Largest element of each window, and where in the window it lies (row by row from 0; the first of
/// equal ones, the last NaN), unless `positions` is null. Padding never wins.
template <class T>
[[gnu::noinline]] void max_pool_planes(work_range units, const pooling_extents& e, const T* x, T* y,
                                       std::uint8_t* positions) {
  const auto planes = [&](auto stride) {
    for (std::int64_t u = units.first; u < units.last; ++u) {
      const T* const image = x + u * e.pixels();
      T* const values = y + u * e.windows();
      std::uint8_t* const places = positions ? positions + u * e.windows() : nullptr;
      const auto apart = [&](auto rows, auto columns, std::int64_t window) {
        // Where nothing is larger than minus infinity the first one counts.
        T best = -std::numeric_limits<T>::infinity();
        const bool none = rows.count() == 0 || columns.count() == 0;
        int at = none ? 0 : rows.first * e.kernel[1] + columns.first;
        detail::for_each_inner_tap(e, rows, columns, [&](std::int64_t pixel, int position) {
          const bool takes = detail::takes_place(image[pixel], best);
          best = takes ? image[pixel] : best;
          at = takes ? position : at;
        });
        values[window] = best;
        if (places) places[window] = static_cast<std::uint8_t>(at);
      };
      const auto whole = [&](const detail::whole_windows& w) {
        if constexpr (stride > 0) {
          detail::max_of_whole_windows<stride>(e, w, image, values, places);
        } else {
          for (int j = 0; j < w.count; ++j)
            apart(w.rows, detail::inner_taps{0, e.kernel[1], w.place + j * e.stride[1]},
                  w.window + j);
        }
      };
      detail::for_each_row(e, apart, whole, std::max(1, e.out_width));
    }
  };
  if (e.stride[1] == 1)
    planes(std::integral_constant<int, 1>{});
  else if (e.stride[1] == 2)
    planes(std::integral_constant<int, 2>{});
  else
    planes(std::integral_constant<int, 0>{});
}

/// Adds each value where its position points: image from pooled values.
template <class T>
[[gnu::noinline]] void unpool_planes(work_range units, const pooling_extents& e, const T* values,
                                     const std::uint8_t* positions, T* image) {
  values += units.first * e.windows();
  positions += units.first * e.windows();
  image += units.first * e.pixels();
  for (int u = units.first; u < units.last; ++u) {
    const bool covered = e.quarters() && e.pixels() == 4 * e.windows();
    if (!covered) std::fill_n(image, e.pixels(), T(0));
    for (int i = 0; e.quarters() && i < e.out_height; ++i) {
      T* const row = image + std::int64_t{2} * i * e.width;
      const std::int64_t from = std::int64_t{i} * e.out_width;
      detail::unpool_quarters(e.out_width, values + from, positions + from, row, row + e.width);
    }
    if (!e.quarters()) {
      detail::for_each_window(e, [&](auto rows, auto columns, std::int64_t window) {
        detail::at_position(e, rows, columns, positions[window],
                            [&](std::int64_t pixel) { image[pixel] += values[window]; });
      });
    }
    values += e.windows();
    positions += e.windows();
    image += e.pixels();
  }
}

/// The elements that positions point at, zero where they point at padding.
template <class T>
[[gnu::noinline]] void pool_gather_planes(work_range units, const pooling_extents& e,
                                          const T* image, const std::uint8_t* positions, T* y) {
  for (std::int64_t u = units.first; u < units.last; ++u) {
    detail::for_each_window(e, [&](auto rows, auto columns, std::int64_t window) {
      window += u * e.windows();
      y[window] = T(0);
      detail::at_position(e, rows, columns, positions[window],
                          [&](std::int64_t pixel) { y[window] = image[u * e.pixels() + pixel]; });
    });
  }
}

/// Mean of each window, summed in double.
template <class T>
[[gnu::noinline]] void average_pool_planes(work_range units, const pooling_extents& e, const T* x,
                                           T* y) {
  for (std::int64_t u = units.first; u < units.last; ++u) {
    const T* const image = x + u * e.pixels();
    T* const means = y + u * e.windows();
    const auto apart = [&](auto rows, auto columns, std::int64_t window) {
      double sum = 0;
      detail::for_each_inner_tap(e, rows, columns,
                                 [&](std::int64_t pixel, int) { sum += double{image[pixel]}; });
      means[window] = static_cast<T>(sum / detail::window_count(e, rows, columns));
    };
    detail::for_each_row(e, apart, [&](const detail::whole_windows& w) {
      std::array<double, detail::windows_at_once> sums{};
      detail::for_each_whole_tap(e, w, [&](int j, std::int64_t pixel, int) {
        sums[std::size_t(j)] += double{image[pixel]};
      });
      const double count = detail::window_count(e, w.rows, {0, e.kernel[1], 0});
      for (int j = 0; j < w.count; ++j)
        means[w.window + j] = static_cast<T>(sums[std::size_t(j)] / count);
    });
  }
}

/// Spreads each value evenly over its window: image from means.
template <class T>
[[gnu::noinline]] void average_spread_planes(work_range units, const pooling_extents& e,
                                             const T* values, T* image) {
  for (std::int64_t u = units.first; u < units.last; ++u) {
    T* const to = image + u * e.pixels();
    std::fill_n(to, e.pixels(), T(0));
    detail::for_each_window(e, [&](auto rows, auto columns, std::int64_t window) {
      const double share =
          double{values[u * e.windows() + window]} / detail::window_count(e, rows, columns);
      detail::for_each_inner_tap(e, rows, columns, [&](std::int64_t pixel, int) {
        to[pixel] = static_cast<T>(double{to[pixel]} + share);
      });
    });
  }
}

}  // namespace cella::cpu
