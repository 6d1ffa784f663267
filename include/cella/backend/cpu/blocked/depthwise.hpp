// Depthwise convolution of images in blocks of channels - each channel has a filter of its own -
// and its gradients. Nothing is summed over channels, so a vector of them meets one vector of each
// tap: loads bound it, not multiply-adds. Filters are packed as those of a stem of one channel
// (blocked_stem.hpp), [blocks][taps][L].
#pragma once

#include <algorithm>
#include <cella/backend/cpu/blocked/convolution.hpp>
#include <cella/backend/cpu/blocked/depthwise_rows.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <type_traits>

namespace cella::cpu {

/// Units of work of the convolution and of the image's gradient: blocks of channels of each sample;
/// of the filters' gradient: blocks. `in_blocks` and `out_blocks` are the same.
constexpr int depthwise_units(const blocked_convolution_extents& e) {
  return e.samples * e.in_blocks;
}
constexpr int depthwise_weight_gradient_units(const blocked_convolution_extents& e) {
  return e.in_blocks;
}

/// y from x and packed filters. The sink gets (value, element of y, block).
template <class T, class Sink>
void depthwise_convolution(work_range units, const blocked_convolution_extents& e, const T* x,
                           const T* packed, const Sink& sink);
/// dx from dy and the same filters; elements are those of x.
template <class T, class Sink>
void depthwise_input_gradient(work_range units, const blocked_convolution_extents& e, const T* dy,
                              const T* packed, const Sink& sink);
/// The filters' gradient as sums [blocks][taps][L].
template <class T>
void depthwise_weight_gradient(work_range units, const blocked_convolution_extents& e, const T* x,
                               const T* dy, T* sums);

namespace detail {

/// A tap at a row of results: the row that it reads, the pixel there that belongs to result 0, and
/// its filter, or the sum that it adds to.
template <class T>
struct depthwise_tap {
  const T* row;
  int column;
  const T* filter;
};

/// Taps of a row of results, which are `step` source pixels apart in rows of `width`.
template <class T>
struct depthwise_row {
  int width, step, taps = 0;
  int leftmost = 0, rightmost = 0;  // columns of taps
  std::array<depthwise_tap<T>, std::size_t(most_taps)> tap;

  // Taps are not set to zero, which would take as long as some pixels.
  depthwise_row(int source_width, int source_step) : width(source_width), step(source_step) {}

  void add(const T* row, int column, const T* filter) {
    tap[std::size_t(taps++)] = {row, column, filter};
    leftmost = std::min(leftmost, column);
    rightmost = std::max(rightmost, column);
  }
  /// Results for which every tap lies inside the row.
  work_range inside(work_range of) const {
    return positions_inside(of, step, leftmost, rightmost, width);
  }
};

/// Results i to i + P, all of whose taps are inside. A step of 0 is known at run time only.
template <class T, int P, int Step>
[[gnu::always_inline]] inline void depthwise_tile(const depthwise_row<T>& r, int i, T* result) {
  constexpr int L = lanes<T>;
  vec<T> sum[P];
#pragma GCC unroll 8
  for (int k = 0; k < P; ++k) sum[k] = vec<T>(T{0});
  const std::int64_t step = std::int64_t{Step ? Step : r.step} * L, at = i * step;
  const depthwise_tap<T>* const last = r.tap.data() + r.taps;
  for (const depthwise_tap<T>* tap = r.tap.data(); tap != last; ++tap) {
    const vec<T> f = load(tap->filter);
    const T* const x = tap->row + std::int64_t{tap->column} * L + at;
#pragma GCC unroll 8
    for (int k = 0; k < P; ++k) sum[k] = multiply_add(load(x + k * step), f, sum[k]);
  }
#pragma GCC unroll 8
  for (int k = 0; k < P; ++k) store(result + k * L, sum[k]);
}

/// Results [first, last) of a row.
template <class T, int Step>
[[gnu::noinline]] void depthwise_pixels(const depthwise_row<T>& r, int first, int last, T* result) {
  constexpr int L = lanes<T>;
  const work_range inside = r.inside({first, last});
  const auto at = [&](int i) { return result + (i - first) * L; };
  for (int i = first; i < last; ++i) {
    if (i == inside.first) i = std::max(i, inside.last);
    if (i >= last) break;
    vec<T> sum(T{0});
    for (int t = 0; t < r.taps; ++t) {
      const depthwise_tap<T>& tap = r.tap[std::size_t(t)];
      const int column = tap.column + i * r.step;
      if (column >= 0 && column < r.width)
        sum = multiply_add(load(tap.row + std::int64_t{column} * L), load(tap.filter), sum);
    }
    store(at(i), sum);
  }
  // The last tile may compute some of the one before again.
  int i = inside.first;
  if (inside.size() >= 8) {
    for (; i + 8 <= inside.last; i += 8) depthwise_tile<T, 8, Step>(r, i, at(i));
    if (i < inside.last) depthwise_tile<T, 8, Step>(r, inside.last - 8, at(inside.last - 8));
    return;
  }
  if (inside.size() >= 4) {
    depthwise_tile<T, 4, Step>(r, i, at(i));
    if (i + 4 < inside.last) depthwise_tile<T, 4, Step>(r, inside.last - 4, at(inside.last - 4));
    return;
  }
  for (; i < inside.last; ++i) depthwise_tile<T, 1, Step>(r, i, at(i));
}

/// Computes and hands over `count` results, whose elements are `place` apart.
template <class T>
void finish_depthwise_row(const depthwise_row<T>& r, int count, std::int64_t first_element,
                          int place, int block, const any_blocked_sink<T>& sink) {
  constexpr int most = 64;
  alignas(64) T result[most * lanes<T>];
  std::array<std::int64_t, std::size_t(most)> at;
  const int parts = (count + most - 1) / most;
  for (int k = 0; k < parts; ++k) {
    const work_range part = part_of(count, parts, k);
    for (int i = 0; i < part.size(); ++i)
      at[std::size_t(i)] = first_element + std::int64_t{part.first + i} * place;
    if (r.step == 1)
      depthwise_pixels<T, 1>(r, part.first, part.last, result);
    else if (r.step == 2)
      depthwise_pixels<T, 2>(r, part.first, part.last, result);
    else
      depthwise_pixels<T, 0>(r, part.first, part.last, result);
    sink.hand_over(result, most, part.size(), 1, at.data(), 0, block);
  }
}

template <class T>
void depthwise_forward(work_range units, const blocked_convolution_extents& e, const T* x,
                       const T* packed, const any_blocked_sink<T>& sink) {
  constexpr int L = lanes<T>;
  if (has_row_tiles(e)) {
    for (int u = units.first; u < units.last; ++u) {
      const int block = u % e.in_blocks;
      const auto plane = [&]<int Step>(std::integral_constant<int, Step>) {
        depthwise_plane<T, Step>(e, x + u * e.in_plane() * L, packed + std::int64_t{block} * 9 * L,
                                 u * e.out_plane(), block, sink);
      };
      if (e.stride_horizontal == 1)
        plane(std::integral_constant<int, 1>{});
      else
        plane(std::integral_constant<int, 2>{});
    }
    return;
  }
  for (int u = units.first; u < units.last; ++u) {
    const int block = u % e.in_blocks;
    const T* const image = x + u * e.in_plane() * L;
    const T* const filter = packed + std::int64_t{block} * e.taps() * L;
    for (int i = 0; i < e.out_height; ++i) {
      depthwise_row<T> r(e.width, e.stride_horizontal);
      for (int k = 0; k < e.kernel_height; ++k) {
        const int row = i * e.stride_vertical - e.padding_top + k;
        if (row < 0 || row >= e.height) continue;
        for (int q = 0; q < e.kernel_width; ++q)
          r.add(image + std::int64_t{row} * e.width * L, q - e.padding_left,
                filter + (k * e.kernel_width + q) * L);
      }
      finish_depthwise_row(r, e.out_width, u * e.out_plane() + std::int64_t{i} * e.out_width, 1,
                           block, sink);
    }
  }
}
CELLA_COMPILED_FOR_FLOATS(depthwise_forward);

/// Columns of dx whose number leaves the same remainder by the stride are reached by the same taps.
template <class T>
void depthwise_backward(work_range units, const blocked_convolution_extents& e, const T* dy,
                        const T* packed, const any_blocked_sink<T>& sink) {
  constexpr int L = lanes<T>;
  for (int u = units.first; u < units.last; ++u) {
    const int block = u % e.in_blocks;
    const T* const image = dy + u * e.out_plane() * L;
    const T* const filter = packed + std::int64_t{block} * e.taps() * L;
    for (int i = 0; i < e.height; ++i) {
      for (int phase = 0; phase < std::min(e.stride_horizontal, e.width); ++phase) {
        depthwise_row<T> r(e.out_width, 1);
        for (int k = 0; k < e.kernel_height; ++k) {
          const int row = i + e.padding_top - k;
          if (row < 0 || row % e.stride_vertical || row / e.stride_vertical >= e.out_height)
            continue;
          for (int q = 0; q < e.kernel_width; ++q) {
            const int column = phase + e.padding_left - q;
            if (column % e.stride_horizontal) continue;
            r.add(image + std::int64_t{row / e.stride_vertical} * e.out_width * L,
                  column / e.stride_horizontal, filter + (k * e.kernel_width + q) * L);
          }
        }
        const int count = (e.width - phase + e.stride_horizontal - 1) / e.stride_horizontal;
        finish_depthwise_row(r, count, u * e.in_plane() + std::int64_t{i} * e.width + phase,
                             e.stride_horizontal, block, sink);
      }
    }
  }
}
CELLA_COMPILED_FOR_FLOATS(depthwise_backward);

/// What G taps add up over rows of dy: x[t] is where tap t reads for pixel 0 of the first row,
/// column[t] its column there.
template <class T, int G>
[[gnu::noinline]] void add_depthwise_products(const blocked_convolution_extents& e, int rows,
                                              const T* const* x, const int* column, const T* dy,
                                              T* const* sums) {
  constexpr int L = lanes<T>;
  vec<T> sum[G];
  const T* from[G];
  int first = 0, last = e.out_width;
  const int step = e.stride_horizontal;
#pragma GCC unroll 9
  for (int t = 0; t < G; ++t) {
    sum[t] = load(sums[t]);
    from[t] = x[t];
    first = std::max(first, (std::max(-column[t], 0) + step - 1) / step);
    last = std::min(last, column[t] < e.width ? (e.width - 1 - column[t]) / step + 1 : 0);
  }
  first = std::min(first, last);
  const auto edge = [&](int j) __attribute__((always_inline)) {
    const vec<T> d = load(dy + std::int64_t{j} * L);
#pragma GCC unroll 9
    for (int t = 0; t < G; ++t) {
      const int at = column[t] + j * step;
      if (at >= 0 && at < e.width)
        sum[t] = multiply_add(load(from[t] + std::int64_t{j} * step * L), d, sum[t]);
    }
  };
  for (int i = 0; i < rows; ++i, dy += std::int64_t{e.out_width} * L) {
    for (int j = 0; j < first; ++j) edge(j);
    std::int64_t at = std::int64_t{first} * step * L;
    for (int j = first; j < last; ++j, at += step * L) {
      const vec<T> d = load(dy + std::int64_t{j} * L);
#pragma GCC unroll 9
      for (int t = 0; t < G; ++t) sum[t] = multiply_add(load(from[t] + at), d, sum[t]);
    }
    for (int j = std::max(last, 0); j < e.out_width; ++j) edge(j);
#pragma GCC unroll 9
    for (int t = 0; t < G; ++t) from[t] += std::int64_t{e.stride_vertical} * e.width * L;
  }
#pragma GCC unroll 9
  for (int t = 0; t < G; ++t) store(sums[t], sum[t]);
}

/// Rows [first, last) of dy, which the rows [taps.first, taps.last) of the filter all reach.
template <class T>
void add_depthwise_rows(const blocked_convolution_extents& e, work_range rows, work_range taps,
                        const T* x, const T* dy, T* sums) {
  constexpr int L = lanes<T>;
  std::array<const T*, std::size_t(most_taps)> from;
  std::array<int, std::size_t(most_taps)> column;
  std::array<T*, std::size_t(most_taps)> to;
  int n = 0;
  for (int k = taps.first; k < taps.last; ++k) {
    for (int q = 0; q < e.kernel_width; ++q, ++n) {
      const auto at = std::size_t(n);
      const int row = rows.first * e.stride_vertical - e.padding_top + k;
      column[at] = q - e.padding_left;
      from[at] = x + (std::int64_t{row} * e.width + column[at]) * L;
      to[at] = sums + (k * e.kernel_width + q) * L;
    }
  }
  dy += std::int64_t{rows.first} * e.out_width * L;
  const auto add = [&]<int G>(int t, std::integral_constant<int, G>) {
    add_depthwise_products<T, G>(e, rows.size(), from.data() + t, column.data() + t, dy,
                                 to.data() + t);
    return G;
  };
  for (int t = 0, added = 0; t < n; t += added) {
    if (n - t >= 9)
      added = add(t, std::integral_constant<int, 9>{});
    else if (n - t >= 6)
      added = add(t, std::integral_constant<int, 6>{});
    else if (n - t >= 3)
      added = add(t, std::integral_constant<int, 3>{});
    else
      added = add(t, std::integral_constant<int, 1>{});
  }
}

/// The rows of the filter that meet the image for row i of dy.
constexpr work_range depthwise_taps(const blocked_convolution_extents& e, int i) {
  const int top = i * e.stride_vertical - e.padding_top;
  const int first = std::max(0, -top);
  return {first, std::max(first, std::min(e.kernel_height, e.height - top))};
}

}  // namespace detail

template <class T, class Sink>
void depthwise_convolution(work_range units, const blocked_convolution_extents& e, const T* x,
                           const T* packed, const Sink& sink) {
  detail::depthwise_forward(units, e, x, packed, detail::any_blocked_sink<T>(sink));
}
template <class T, class Sink>
void depthwise_input_gradient(work_range units, const blocked_convolution_extents& e, const T* dy,
                              const T* packed, const Sink& sink) {
  detail::depthwise_backward(units, e, dy, packed, detail::any_blocked_sink<T>(sink));
}

template <class T>
void depthwise_weight_gradient(work_range units, const blocked_convolution_extents& e, const T* x,
                               const T* dy, T* sums) {
  constexpr int L = lanes<T>;
  // Each image by itself first, which keeps the rounding error small.
  alignas(64) T own[detail::most_taps * L];
  const auto elements = std::size_t(e.taps() * L);
  for (int b = units.first; b < units.last; ++b) {
    T* const to = sums + std::int64_t{b} * e.taps() * L;
    std::fill_n(to, elements, T{0});
    for (int n = 0; n < e.samples; ++n) {
      const std::int64_t plane = std::int64_t{n} * e.in_blocks + b;
      std::fill_n(own, elements, T{0});
      for (int i = 0; i < e.out_height;) {
        const work_range taps = detail::depthwise_taps(e, i);
        int last = i + 1;
        while (last < e.out_height && detail::depthwise_taps(e, last).first == taps.first &&
               detail::depthwise_taps(e, last).last == taps.last)
          ++last;
        detail::add_depthwise_rows(e, {i, last}, taps, x + plane * e.in_plane() * L,
                                   dy + plane * e.out_plane() * L, own);
        i = last;
      }
      for (std::size_t k = 0; k < elements; k += std::size_t(L))
        store(to + k, load(to + k) + load(own + k));
    }
  }
}

}  // namespace cella::cpu
