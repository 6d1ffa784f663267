// Max and average pooling with the batch in the lanes, for windows other than the 2x2 that a
// convolution does in its registers, and global average pooling; all with their gradients.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/lanes_layout.hpp>
#include <cstdint>

namespace cella::cpu {

/// Extents of a pooling of x [blocks][channels][height][width][L], which has no border: windows are
/// cut at the edges. At most half a window is padding, as in PyTorch; the last partial step is
/// dropped.
struct lanes_pool_extents {
  int blocks{}, channels{}, height{}, width{};
  int window_height{}, window_width{};
  int stride_height{1}, stride_width{1};
  int padding_height{}, padding_width{};

  constexpr int out_height() const {
    return (height + 2 * padding_height - window_height) / stride_height + 1;
  }
  constexpr int out_width() const {
    return (width + 2 * padding_width - window_width) / stride_width + 1;
  }
};

/// Units of work of every kernel below: channels of blocks.
constexpr int lanes_pool_units(const lanes_pool_extents& e) { return e.blocks * e.channels; }

/// Calls `sink(vec<T> maximum, int64 element, int channel)` once per lane-vector of
/// [blocks][channels][OH][OW] and stores in index [..][L] where in its window (row-major, so a
/// window has at most 256 elements) the first maximum stands. Which element wins against a NaN is
/// not defined.
template <class T, class Sink>
void lanes_max_pool(work_range units, const lanes_pool_extents& e, const T* x, std::uint8_t* index,
                    Sink sink);

/// Gradient: d [blocks][channels][OH][OW][L] and index -> all of dx
/// [blocks][channels][height][width][L].
template <class T>
void lanes_max_pool_gradient(work_range units, const lanes_pool_extents& e, const T* d,
                             const std::uint8_t* index, T* dx);

/// Whether the divisor of an average counts the padding, PyTorch's `count_include_pad`.
enum class pool_padding : std::uint8_t { counted, ignored };

/// Averages, to the same kind of sink.
template <class T, class Sink>
void lanes_average_pool(work_range units, const lanes_pool_extents& e, pool_padding padding,
                        const T* x, Sink sink);

/// Gradient: d [blocks][channels][OH][OW][L] -> all of dx [blocks][channels][height][width][L].
template <class T>
void lanes_average_pool_gradient(work_range units, const lanes_pool_extents& e,
                                 pool_padding padding, const T* d, T* dx);

/// Means over the pixels of x [blocks * channels][pixels][L]; the sink's elements count
/// [blocks][channels]. Units are blocks * channels.
template <class T, class Sink>
void lanes_global_average_pool(work_range units, int channels, std::int64_t pixels, const T* x,
                               Sink sink);

/// Gradient: d [blocks][channels][L] -> the sink's elements count [blocks][channels][pixels].
template <class T, class Sink>
void lanes_global_average_pool_gradient(work_range units, int channels, std::int64_t pixels,
                                        const T* d, Sink sink);

namespace detail {

/// The part of a window that lies inside the image, and where it starts in the whole window.
struct pool_window {
  int first_row, last_row, first_column, last_column;  // of the image, last excluded
  int row, column;                                     // of the image, where the window begins

  pool_window(const lanes_pool_extents& e, int i, int j)
      : row(i * e.stride_height - e.padding_height), column(j * e.stride_width - e.padding_width) {
    first_row = std::max(row, 0), last_row = std::min(row + e.window_height, e.height);
    first_column = std::max(column, 0), last_column = std::min(column + e.window_width, e.width);
  }
  int size() const { return (last_row - first_row) * (last_column - first_column); }
};

/// Calls f(window, lane-vector of the output) for each window of plane `unit`.
template <class F>
[[gnu::always_inline]] inline void for_each_window(const lanes_pool_extents& e, int unit, F f) {
  const int rows = e.out_height(), columns = e.out_width();
  std::int64_t element = std::int64_t{unit} * rows * columns;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j, ++element) f(pool_window(e, i, j), element);
  }
}

template <class T>
T pool_divisor(const lanes_pool_extents& e, pool_padding padding, const pool_window& w) {
  return static_cast<T>(padding == pool_padding::counted ? e.window_height * e.window_width
                                                         : w.size());
}

}  // namespace detail

template <class T, class Sink>
[[gnu::noinline]] void lanes_max_pool(work_range units, const lanes_pool_extents& extents,
                                      const T* __restrict x, std::uint8_t* __restrict index,
                                      Sink sink) {
  constexpr int L = lanes<T>;
  const lanes_pool_extents e = extents;
  const std::int64_t plane = std::int64_t{e.height} * e.width * L;
  for (int unit = units.first; unit < units.last; ++unit) {
    const T* from = x + unit * plane;
    const auto window = [&](const detail::pool_window& w, std::int64_t element)
        __attribute__((always_inline)) {
      const auto at = [&](int row, int column) {
        return load(from + (std::int64_t{row} * e.width + column) * L);
      };
      const auto position = [&](int row, int column) {
        return vec<T>(static_cast<T>((row - w.row) * e.window_width + column - w.column));
      };
      vec<T> best = at(w.first_row, w.first_column), where = position(w.first_row, w.first_column);
      for (int row = w.first_row; row < w.last_row; ++row) {
        for (int column = w.first_column; column < w.last_column; ++column) {
          const vec<T> value = at(row, column);
          const unsigned better = greater(value, best);
          best = select(better, value, best);
          where = select(better, position(row, column), where);
        }
      }
      alignas(vec<T>) T positions[L];
      store(positions, where);
      for (int i = 0; i < L; ++i) {
        index[element * L + i] = static_cast<std::uint8_t>(static_cast<int>(positions[i]));
      }
      sink(best, element, unit % e.channels);
    };
    detail::for_each_window(e, unit, window);
  }
}

template <class T>
[[gnu::noinline]] void lanes_max_pool_gradient(work_range units, const lanes_pool_extents& extents,
                                               const T* __restrict d,
                                               const std::uint8_t* __restrict index,
                                               T* __restrict dx) {
  constexpr int L = lanes<T>;
  const lanes_pool_extents e = extents;
  const std::int64_t plane = std::int64_t{e.height} * e.width * L;
  for (int unit = units.first; unit < units.last; ++unit) {
    T* to = dx + unit * plane;
    std::fill_n(to, plane, T{0});
    const auto window = [&](const detail::pool_window& w, std::int64_t element)
        __attribute__((always_inline)) {
      const vec<T> value = load(d + element * L);
      for (int row = w.first_row; row < w.last_row; ++row) {
        for (int column = w.first_column; column < w.last_column; ++column) {
          const int position = (row - w.row) * e.window_width + column - w.column;
          const unsigned here =
              equal_bytes<T>(index + element * L, static_cast<std::uint8_t>(position));
          T* at = to + (std::int64_t{row} * e.width + column) * L;
          store(at, load(at) + keep(here, value));
        }
      }
    };
    detail::for_each_window(e, unit, window);
  }
}

template <class T, class Sink>
[[gnu::noinline]] void lanes_average_pool(work_range units, const lanes_pool_extents& extents,
                                          pool_padding padding, const T* __restrict x, Sink sink) {
  constexpr int L = lanes<T>;
  const lanes_pool_extents e = extents;
  const std::int64_t plane = std::int64_t{e.height} * e.width * L;
  for (int unit = units.first; unit < units.last; ++unit) {
    const T* from = x + unit * plane;
    const auto window = [&](const detail::pool_window& w, std::int64_t element)
        __attribute__((always_inline)) {
      vec<T> total(T{0});
      for (int row = w.first_row; row < w.last_row; ++row) {
        for (int column = w.first_column; column < w.last_column; ++column) {
          total = total + load(from + (std::int64_t{row} * e.width + column) * L);
        }
      }
      sink(total / vec<T>(detail::pool_divisor<T>(e, padding, w)), element, unit % e.channels);
    };
    detail::for_each_window(e, unit, window);
  }
}

template <class T>
[[gnu::noinline]] void lanes_average_pool_gradient(work_range units,
                                                   const lanes_pool_extents& extents,
                                                   pool_padding padding, const T* __restrict d,
                                                   T* __restrict dx) {
  constexpr int L = lanes<T>;
  const lanes_pool_extents e = extents;
  const std::int64_t plane = std::int64_t{e.height} * e.width * L;
  for (int unit = units.first; unit < units.last; ++unit) {
    T* to = dx + unit * plane;
    std::fill_n(to, plane, T{0});
    const auto window = [&](const detail::pool_window& w, std::int64_t element)
        __attribute__((always_inline)) {
      const vec<T> share = load(d + element * L) / vec<T>(detail::pool_divisor<T>(e, padding, w));
      for (int row = w.first_row; row < w.last_row; ++row) {
        for (int column = w.first_column; column < w.last_column; ++column) {
          T* at = to + (std::int64_t{row} * e.width + column) * L;
          store(at, load(at) + share);
        }
      }
    };
    detail::for_each_window(e, unit, window);
  }
}

template <class T, class Sink>
[[gnu::noinline]] void lanes_global_average_pool(work_range units, int channels,
                                                 std::int64_t pixels, const T* __restrict x,
                                                 Sink sink) {
  constexpr int L = lanes<T>;
  const vec<T> count(static_cast<T>(pixels));
  for (int unit = units.first; unit < units.last; ++unit) {
    const T* from = x + unit * pixels * L;
    vec<T> even(T{0}), odd(T{0});
    for (std::int64_t i = 0; i + 1 < pixels; i += 2) {
      even = even + load(from + i * L);
      odd = odd + load(from + (i + 1) * L);
    }
    if (pixels % 2) even = even + load(from + (pixels - 1) * L);
    sink((even + odd) / count, std::int64_t{unit}, unit % channels);
  }
}

template <class T, class Sink>
[[gnu::noinline]] void lanes_global_average_pool_gradient(work_range units, int channels,
                                                          std::int64_t pixels,
                                                          const T* __restrict d, Sink sink) {
  const vec<T> count(static_cast<T>(pixels));
  for (int unit = units.first; unit < units.last; ++unit) {
    const vec<T> share = load(d + std::int64_t{unit} * lanes<T>) / count;
    for (std::int64_t i = 0; i < pixels; ++i) sink(share, unit * pixels + i, unit % channels);
  }
}

}  // namespace cella::cpu
