// Two-dimensional convolution with the batch in the lanes: forward, forward with 2x2 max pooling in
// registers, and the gradient of the input. Filters stay plain, [O][C][KH][KW], and are read by
// broadcast; nothing is packed. Sums run over c, kh, kw in this order for every element.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/lanes/convolution_extents.hpp>
#include <cella/backend/cpu/loops/sink.hpp>
#include <cstdint>

namespace cella::cpu {

namespace detail {

/// Channels of a register tile: with four pixels 16 accumulators of 32 registers, or 8 of 16.
inline constexpr int convolution_channels = vector_registers >= 32 ? 4 : 2;
inline constexpr int convolution_pixels = 4;
/// Of the gradient of the input: 6 x 4 sums and 5 operands in 32 registers, 6 x 2 and 3 in 16.
inline constexpr int input_gradient_channels = 6;
inline constexpr int input_gradient_pixels = vector_registers >= 32 ? 4 : 2;
/// Bits of a tile_set beside those of the channels.
inline constexpr tile_set four_pixels = 1u << 8, two_pixels = 1u << 9, one_pixel = 1u << 10,
                          pixel_run = 1u << 11;

}  // namespace detail

/// Units of work of `lanes_convolution`: rows of the output.
constexpr int lanes_convolution_units(const lanes_convolution_extents& e) {
  return e.blocks * e.out_height();
}
/// Units of work of `lanes_convolution_pool`: rows of the pooled output.
constexpr int lanes_convolution_pool_units(const lanes_convolution_extents& e) {
  return e.blocks * e.pooled_height();
}
/// Units of work of `lanes_convolution_input_gradient`: rows of the input.
constexpr int lanes_convolution_input_gradient_units(const lanes_convolution_extents& e) {
  return e.blocks * e.height;
}

/// Tiles that the three kernels need for these extents.
constexpr tile_set lanes_convolution_tiles(const lanes_convolution_extents& e) {
  const int columns = e.out_width(), rest = columns % detail::convolution_pixels;
  return detail::group_sizes(e.out_channels, detail::convolution_channels) |
         (columns >= detail::convolution_pixels ? detail::four_pixels : 0) |
         (rest >= 2 ? detail::two_pixels : 0) | (rest % 2 ? detail::one_pixel : 0);
}
constexpr tile_set lanes_convolution_pool_tiles(const lanes_convolution_extents& e) {
  return detail::group_sizes(e.out_channels, detail::convolution_channels);
}
constexpr tile_set lanes_convolution_input_gradient_tiles(const lanes_convolution_extents& e) {
  const bool wide = e.out_width() >= detail::input_gradient_pixels;
  return detail::group_sizes(e.in_channels, detail::input_gradient_channels) |
         (wide ? detail::pixel_run : detail::one_pixel);
}

/// y = x * w (cross-correlation, as in PyTorch).
/// x [blocks][C][padded height][padded width][L] with its zero border, w [O][C][KH][KW] plain. K is
/// `kernel_width` where `stride_width` is 1; K = 0 serves every filter. Tiles are those that the
/// extents need, or all. Calls `sink(vec<T> value, int64 element, int o)` once per lane-vector of
/// y [blocks][O][OH][OW]. Dead lanes may hold anything and stay dead.
template <int K = 0, tile_set Tiles = all_tiles, class T, class Sink>
void lanes_convolution(work_range units, const lanes_convolution_extents& e, const T* x, const T* w,
                       const Sink& sink);

/// The same followed by 2x2 max pooling of stride 2, which drops an odd last row or column. Calls
/// `sink(vec<T> maximum, corner_bits where, int64 element, int o)` once per lane-vector of
/// [blocks][O][OH / 2][OW / 2]; of equal values the first in row-major order wins. Which one wins
/// against a NaN is not defined.
template <int K = 0, tile_set Tiles = all_tiles, class T, class Sink>
void lanes_convolution_pool(work_range units, const lanes_convolution_extents& e, const T* x,
                            const T* w, const Sink& sink);

/// Gradient of the input without its border: dz [blocks][O][OH][OW][L] -> calls
/// `sink(vec<T> value, int64 element, int c)` once per lane-vector of [blocks][C][height][width].
/// Taps that fall outside dz are skipped, not multiplied by zero. Any stride; `Row` is
/// `short_row(e)`, or none, which serves every row. Dead lanes may hold anything and stay dead.
template <row_window Row = {}, tile_set Tiles = all_tiles, class T, class Sink>
void lanes_convolution_input_gradient(work_range units, const lanes_convolution_extents& e,
                                      const T* dz, const T* w, const Sink& sink);

namespace detail {

/// One tap of the filter at R rows of Q pixels: sum[o][r * Q + q] += w[o][tap] * x[r][q].
template <int O, int R, int Q, class T>
[[gnu::always_inline]] inline void convolution_tap(const T* x, const T* below, std::int64_t right,
                                                   const T* const (&w)[O], int tap,
                                                   vec<T> (&sum)[O][R * Q]) {
  vec<T> v[R * Q];
#pragma GCC unroll 2
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 4
    for (int q = 0; q < Q; ++q) v[r * Q + q] = load_shared((r ? below : x) + q * right);
  }
#pragma GCC unroll 4
  for (int o = 0; o < O; ++o) {
    const vec<T> weight(w[o][tap]);
#pragma GCC unroll 4
    for (int p = 0; p < R * Q; ++p) sum[o][p] = multiply_add(weight, v[p], sum[o][p]);
  }
}

/// The convolution at R rows of Q pixels from x on, all channels of the input, O of the output.
template <int K, int O, int R, int Q, class T>
[[gnu::always_inline]] inline void convolution_tile(const convolution_sizes<T>& s, const T* x,
                                                    const T* w, vec<T> (&sum)[O][R * Q]) {
  constexpr int L = lanes<T>;
#pragma GCC unroll 4
  for (int o = 0; o < O; ++o) {
#pragma GCC unroll 4
    for (int p = 0; p < R * Q; ++p) sum[o][p] = vec<T>(T{0});
  }
  // A pointer for each filter and each row: left to itself, g++ keeps one offset for every tap of
  // each and runs out of registers.
  const T* filters[O];
#pragma GCC unroll 4
  for (int o = 0; o < O; ++o) filters[o] = w + o * s.filter;
  const int taps = K > 0 ? K : s.kernel_width;
  for (int c = 0; c < s.in_channels; ++c, x += s.plane) {
    const T *at = x, *below = x + s.down;
    for (int kh = 0; kh < s.kernel_height; ++kh, at += s.row, below += s.row) {
      if constexpr (K > 0) {
#pragma GCC unroll 8
        for (int kw = 0; kw < K; ++kw) {
          convolution_tap<O, R, Q>(at + kw * L, below + kw * L, L, filters, kw, sum);
        }
      } else {
        for (int kw = 0; kw < s.kernel_width; ++kw) {
          convolution_tap<O, R, Q>(at + kw * L, below + kw * L, s.right, filters, kw, sum);
        }
      }
#pragma GCC unroll 4
      for (int o = 0; o < O; ++o) filters[o] += taps;
    }
  }
}

/// P pixels of a row, for O channels; `element` is that of the first pixel and channel.
template <int K, int O, int P, class T, class Sink>
[[gnu::always_inline]] inline void convolution_pixels_of_row(const convolution_sizes<T>& s,
                                                             const T* x, const T* w, int channel,
                                                             std::int64_t element, Sink& sink) {
  vec<T> sum[O][P];
  convolution_tile<K, O, 1, P>(s, x, w, sum);
#pragma GCC unroll 4
  for (int o = 0; o < O; ++o) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) sink(sum[o][p], element + o * s.out_plane + p, channel + o);
  }
}

/// One tap of the filters at the pixels [First, Last) of a tile: sum[c][p] += w[c] * dz[p].
template <int First, int Last, int C, int P, class T>
[[gnu::always_inline]] inline void input_gradient_tap(const T* dz, const T* w, int taps,
                                                      vec<T> (&sum)[C][P]) {
  vec<T> v[P];
#pragma GCC unroll 4
  for (int p = First; p < Last; ++p) v[p] = load_shared(dz + p * lanes<T>);
#pragma GCC unroll 6
  for (int c = 0; c < C; ++c) {
    const vec<T> weight(w[c * taps]);
#pragma GCC unroll 4
    for (int p = First; p < Last; ++p) sum[c][p] = multiply_add(weight, v[p], sum[c][p]);
  }
}

/// The rows of a filter, every stride-th from `first` to `last`, by which row h of the image has
/// reached rows of dz: the first of them row `meets`, each further one the row before.
struct filter_rows {
  template <class T>
  filter_rows(const convolution_sizes<T>& s, int h) {
    const int row = h + s.padding_height;
    first = std::max(row % s.stride_height, row - (s.out_height - 1) * s.stride_height);
    last = std::min(row, s.kernel_height - 1);
    meets = (row - first) / s.stride_height;
  }
  int first, last;
  std::int64_t meets;
};

/// P pixels x, x + stride, ... of row h. They meet the same taps of the filter, every stride-th,
/// and tap k of them meets columns [last - k, last - k + P) of dz. So a run of taps meets whole
/// columns, and at most P - 1 taps on each side of it meet some of the P only: which, is known
/// here.
template <int C, int P, class T, class Sink>
[[gnu::always_inline]] inline void input_gradient_tile(const convolution_sizes<T>& s, const T* dz,
                                                       const T* w, int channel, int h, int x,
                                                       std::int64_t element, Sink& sink) {
  constexpr int L = lanes<T>;
  const filter_rows rows(s, h);
  const int column = x + s.padding_width;
  const int phase = column % s.stride_width, last = column / s.stride_width;
  const int n = (s.kernel_width - phase + s.stride_width - 1) / s.stride_width;
  const int right = last + P - s.out_width;  // the first tap that meets no column behind dz
  const int first_full = std::max(right, 0), last_full = std::min(last, n - 1);
  vec<T> sum[C][P];
#pragma GCC unroll 6
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) sum[c][p] = vec<T>(T{0});
  }
  for (int o = 0; o < s.out_channels; ++o, dz += s.out_plane * L, w += s.filter) {
    const T* d = dz + (rows.meets * s.out_width + last) * L;
    for (int kh = rows.first; kh <= rows.last; kh += s.stride_height, d -= s.out_width * L) {
      const T* wk = w + kh * s.kernel_width + phase;
      const auto some = [&]<int First, int Last>(int k) __attribute__((always_inline)) {
        if (k < 0 || k >= n) return;
        input_gradient_tap<First, Last>(d - k * L, wk + k * s.stride_width, s.taps, sum);
      };
      const auto edge = std::make_integer_sequence<int, P - 1>{};
      [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
        (some.template operator()<0, I + 1>(right - P + 1 + I), ...);
      }
      (edge);
      for (int k = first_full; k <= last_full; ++k) {
        input_gradient_tap<0, P>(d - k * L, wk + k * s.stride_width, s.taps, sum);
      }
      [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
        (some.template operator()<I + 1, P>(last + 1 + I), ...);
      }
      (edge);
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) {
    if (x + p * s.stride_width >= s.width) break;
#pragma GCC unroll 6
    for (int c = 0; c < C; ++c) {
      sink(sum[c][p], element + c * s.in_plane + std::int64_t{p} * s.stride_width, channel + c);
    }
  }
}

/// The same for pixels X, X + 1, ... of a row that is a constant: which taps meet which columns is
/// known, so that nothing is asked between them.
template <row_window Row, int C, int X, class T, class Sink>
[[gnu::noinline]] void input_gradient_tile_of_row(const convolution_sizes<T>& s, const T* dz,
                                                  const T* w, int channel, int h,
                                                  std::int64_t element, Sink& sink) {
  constexpr int L = lanes<T>, P = std::min(input_gradient_pixels, Row.width - X);
  constexpr int last = X + Row.padding, columns = Row.out_width();
  const filter_rows rows(s, h);
  vec<T> sum[C][P];
#pragma GCC unroll 6
  for (int c = 0; c < C; ++c) {
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) sum[c][p] = vec<T>(T{0});
  }
  for (int o = 0; o < s.out_channels; ++o, dz += s.out_plane * L, w += s.filter) {
    const T* d = dz + rows.meets * columns * L;
    for (int kh = rows.first; kh <= rows.last; kh += s.stride_height, d -= columns * L) {
      const T* wk = w + kh * Row.kernel;
      const auto tap = [&]<int K>() __attribute__((always_inline)) {
        constexpr int first = std::max(0, K - last), behind = std::min(P, columns + K - last);
        if constexpr (first < behind)
          input_gradient_tap<first, behind>(d + (last - K) * L, wk + K, s.taps, sum);
      };
      [&]<int... K>(std::integer_sequence<int, K...>) __attribute__((always_inline)) {
        (tap.template operator()<K>(), ...);
      }
      (std::make_integer_sequence<int, Row.kernel>{});
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p) {
#pragma GCC unroll 6
    for (int c = 0; c < C; ++c) sink(sum[c][p], element + c * s.in_plane + X + p, channel + c);
  }
}

template <row_window Row, tile_set Tiles, class T, class Sink>
[[gnu::noinline]] void input_gradient_rows(work_range units, const lanes_convolution_extents& e,
                                           const T* __restrict dz, const T* __restrict w,
                                           const Sink& given) {
  own_sink<Sink> sink = given;
  const convolution_sizes<T> s(e);
  const int phases = std::min(s.stride_width, s.width);
  for (int unit = units.first; unit < units.last; ++unit) {
    const int block = unit / s.height, h = unit % s.height;
    const T* from = dz + block * s.out_channels * s.out_plane * lanes<T>;
    const auto group = [&](auto size, int c) __attribute__((always_inline)) {
      constexpr int C = size();
      const T* wc = w + std::int64_t{c} * s.taps;
      const std::int64_t element =
          (std::int64_t{block} * s.in_channels + c) * s.in_plane + std::int64_t{h} * s.width;
      if constexpr (Row.width > 0) {
        constexpr int P = input_gradient_pixels;
        [&]<int... I>(std::integer_sequence<int, I...>) {
          (input_gradient_tile_of_row<Row, C, I * P>(s, from, wc, c, h, element, sink), ...);
        }
        (std::make_integer_sequence<int, (Row.width + P - 1) / P>{});
      } else {
        const auto row = [&](auto pixels) __attribute__((always_inline)) {
          constexpr int P = pixels();
          for (int phase = 0; phase < phases; ++phase) {
            for (int x = phase; x < s.width; x += P * s.stride_width) {
              input_gradient_tile<C, P>(s, from, wc, c, h, x, element + x, sink);
            }
          }
        };
        if constexpr ((Tiles & pixel_run) != 0) {
          if (s.out_width >= input_gradient_pixels) {
            return row(std::integral_constant<int, input_gradient_pixels>{});
          }
        }
        if constexpr ((Tiles & one_pixel) != 0) row(std::integral_constant<int, 1>{});
      }
    };
    for_channel_groups<input_gradient_channels, Tiles>(s.in_channels, group);
  }
}

}  // namespace detail

template <int K, tile_set Tiles, class T, class Sink>
[[gnu::noinline]] void lanes_convolution(work_range units, const lanes_convolution_extents& e,
                                         const T* __restrict x, const T* __restrict w,
                                         const Sink& given) {
  own_sink<Sink> sink = given;
  constexpr int P = detail::convolution_pixels;
  const detail::convolution_sizes<T> s(e);
  for (int unit = units.first; unit < units.last; ++unit) {
    const int block = unit / s.out_height, row = unit % s.out_height;
    const T* from = x + block * s.in_channels * s.plane + row * s.down;
    const auto group = [&](auto size, int o) __attribute__((always_inline)) {
      constexpr int O = size();
      const T *at = from, *wo = w + o * s.filter;
      std::int64_t element = (std::int64_t{block} * s.out_channels + o) * s.out_plane +
                             std::int64_t{row} * s.out_width;
      int rest = s.out_width;
      if constexpr ((Tiles & detail::four_pixels) != 0) {
        for (; rest >= P; rest -= P, at += P * s.right, element += P) {
          detail::convolution_pixels_of_row<K, O, P>(s, at, wo, o, element, sink);
        }
      }
      if constexpr ((Tiles & detail::two_pixels) != 0) {
        if (rest >= 2) {
          detail::convolution_pixels_of_row<K, O, 2>(s, at, wo, o, element, sink);
          rest -= 2, at += 2 * s.right, element += 2;
        }
      }
      if constexpr ((Tiles & detail::one_pixel) != 0) {
        if (rest) detail::convolution_pixels_of_row<K, O, 1>(s, at, wo, o, element, sink);
      }
    };
    detail::for_channel_groups<detail::convolution_channels, Tiles>(s.out_channels, group);
  }
}

template <int K, tile_set Tiles, class T, class Sink>
[[gnu::noinline]] void lanes_convolution_pool(work_range units, const lanes_convolution_extents& e,
                                              const T* __restrict x, const T* __restrict w,
                                              const Sink& given) {
  own_sink<Sink> sink = given;
  constexpr unsigned all = first_bits(lanes<T>);
  const detail::convolution_sizes<T> s(e);
  const int rows = e.pooled_height(), columns = e.pooled_width();
  for (int unit = units.first; unit < units.last; ++unit) {
    const int block = unit / rows, row = unit % rows;
    const T* from = x + block * s.in_channels * s.plane + row * 2 * s.down;
    const auto group = [&](auto size, int o) __attribute__((always_inline)) {
      constexpr int O = size();
      const T *at = from, *wo = w + o * s.filter;
      std::int64_t element =
          (std::int64_t{block} * s.out_channels + o) * s.pooled_plane + std::int64_t{row} * columns;
      for (int i = 0; i < columns; ++i, at += 2 * s.right, ++element) {
        vec<T> z[O][4];
        detail::convolution_tile<K, O, 2, 2>(s, at, wo, z);
#pragma GCC unroll 4
        for (int k = 0; k < O; ++k) {
          const unsigned upper_right = greater(z[k][1], z[k][0]);
          const unsigned lower_right = greater(z[k][3], z[k][2]);
          const vec<T> upper = maximum(z[k][0], z[k][1]), lower = maximum(z[k][2], z[k][3]);
          const unsigned below = greater(lower, upper), above = all & ~below;
          const corner_bits where{above & ~upper_right, above & upper_right, below & ~lower_right,
                                  below & lower_right};
          sink(maximum(upper, lower), where, element + k * s.pooled_plane, o + k);
        }
      }
    };
    detail::for_channel_groups<detail::convolution_channels, Tiles>(s.out_channels, group);
  }
}

template <row_window Row, tile_set Tiles, class T, class Sink>
void lanes_convolution_input_gradient(work_range units, const lanes_convolution_extents& e,
                                      const T* dz, const T* w, const Sink& sink) {
  detail::input_gradient_rows<Row, Tiles>(units, e, dz, w, sink);
}

}  // namespace cella::cpu
