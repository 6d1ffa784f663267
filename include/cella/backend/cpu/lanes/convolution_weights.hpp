// Gradient of a convolution's filters with the batch in the lanes, the same with the gradient of
// 2x2 max pooling done on the fly, and that gradient alone. Each lane keeps its own sums; the lanes
// are added once, at the end.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/lanes/convolution.hpp>
#include <cella/backend/cpu/simd/long_sum.hpp>
#include <cstdint>

namespace cella::cpu {

namespace detail {

/// In a tile_set the sizes of groups of taps stand this far left of those of channels.
inline constexpr int tap_bits = 8;

/// A tile of the filters' gradient is `channels` output channels by up to `most` taps, all in
/// registers.
template <int K>
struct weight_tile {
  static constexpr bool fixed = K == 3 || K == 5;
  static constexpr int most = fixed ? K : 4;
  static constexpr int channels = std::min(4, (vector_registers - 4) / (most + 1));
};

/// The taps of one (output, input) channel pair as `rows` runs of `taps`, `step` lane-vectors apart
/// in x. A filter one column wide runs down its rows, and a 1 x 1 filter along up to `most` input
/// channels, for otherwise the tile would be one tap wide.
struct weight_taps {
  int rows, taps;
  std::int64_t step;
  int channels;  // input channels of one unit

  constexpr weight_taps(const lanes_convolution_extents& e, int most)
      : rows(e.kernel_height), taps(e.kernel_width), step(1), channels(1) {
    if (taps > 1) return;
    taps = rows, rows = 1, step = e.padded_width();
    if (taps > 1) return;
    taps = channels = std::min(e.in_channels, most);
    step = e.padded_plane();
  }
};

template <int K>
constexpr int weight_units(const lanes_convolution_extents& e) {
  const weight_taps t(e, weight_tile<K>::most);
  return ceil_divide(e.out_channels, weight_tile<K>::channels) *
         ceil_divide(e.in_channels, t.channels);
}

}  // namespace detail

/// Units of work of both weight gradients: tiles of output channels by input channels.
template <int K = 0>
constexpr int lanes_convolution_weight_gradient_units(const lanes_convolution_extents& e) {
  return detail::weight_units<K>(e);
}

/// Tiles that both weight gradients need for these extents.
template <int K = 0>
constexpr tile_set lanes_convolution_weight_gradient_tiles(const lanes_convolution_extents& e) {
  using tile = detail::weight_tile<K>;
  const detail::weight_taps t(e, tile::most);
  tile_set taps = detail::group_sizes(t.taps, tile::most);
  // 1 x 1 filters: the last unit has the input channels that are left.
  if (t.channels > 1 && e.in_channels % t.channels) taps |= 1u << e.in_channels % t.channels;
  return detail::group_sizes(e.out_channels, tile::channels) | taps << detail::tap_bits;
}

/// Elements of scratch, aligned as `vec<T>`, that one call of `lanes_convolution_weight_gradient`
/// needs; calls that run at the same time need their own.
template <class T, int K = 0>
constexpr std::int64_t lanes_convolution_weight_gradient_scratch(
    const lanes_convolution_extents& e) {
  const detail::weight_taps t(e, detail::weight_tile<K>::most);
  return std::int64_t{detail::weight_tile<K>::channels} * t.rows * t.taps * lanes<T>;
}

/// The same for `lanes_convolution_pool_weight_gradient`.
template <class T, int K = 0>
constexpr std::int64_t lanes_convolution_pool_weight_gradient_scratch(
    const lanes_convolution_extents& e) {
  return lanes_convolution_weight_gradient_scratch<T, K>(e) +
         std::int64_t{detail::weight_tile<K>::channels} * 4 * e.pooled_width() * lanes<T>;
}

/// dw[o][c][kh][kw] = sum over samples and pixels of dz * x.
/// x [blocks][C][padded height][padded width][L] with its border, dz [blocks][O][OH][OW][L]; dead
/// lanes of dz are zero and those of x finite. Calls `sink(vec<T> value, int64 offset, int count)`
/// once for each run of `count` <= L elements of the plain dw; lanes beyond are of no meaning.
template <int K = 0, tile_set Tiles = all_tiles, class T, class Sink>
void lanes_convolution_weight_gradient(work_range units, const lanes_convolution_extents& e,
                                       const T* x, const T* dz, T* scratch, const Sink& sink);

/// The same from the gradient d [blocks][O][OH / 2][OW / 2][L] of the 2x2 max pooling behind the
/// convolution and its stored corners [..][4]: dz is made two rows at a time and never stored.
/// Calls `bias_sink` in the same way with the sums of dz over samples and pixels, the bias's
/// gradient.
template <int K = 0, tile_set Tiles = all_tiles, class T, class Sink, class BiasSink = discard>
void lanes_convolution_pool_weight_gradient(work_range units, const lanes_convolution_extents& e,
                                            const T* x, const T* d, const std::uint16_t* corners,
                                            T* scratch, const Sink& sink,
                                            const BiasSink& bias_sink = {});

/// Units of work of `lanes_unpool`: output channels.
constexpr int lanes_unpool_units(const lanes_convolution_extents& e) { return e.out_channels; }

/// Gradient of 2x2 max pooling: d [blocks][O][OH / 2][OW / 2][L] and corners [..][4] -> all of
/// dz [blocks][O][OH][OW][L]. `bias_sink` gets the sums of dz, as above; dead lanes of d are zero.
template <class T, class BiasSink = discard>
void lanes_unpool(work_range units, const lanes_convolution_extents& e, const T* d,
                  const std::uint16_t* corners, T* dz, const BiasSink& bias_sink = {});

namespace detail {

/// A function of its own: what it does once in a block of rows would take registers from the tiles
/// beside it.
template <class T>
[[gnu::noinline]] void add_row(long_sum<T>& sums, vec<T> row) {
  sums.add(row);
}
/// Spreads one row of pooled gradients over two rows of dz; returns its sum.
template <class T>
[[gnu::always_inline]] inline vec<T> unpool_row(const T* d, const std::uint16_t* corners, int n,
                                                T* upper, T* lower) {
  constexpr int L = lanes<T>;
  vec<T> sum(T{0});
  for (int i = 0; i < n; ++i, d += L, corners += 4, upper += 2 * L, lower += 2 * L) {
    const vec<T> value = load(d);
    const vec<T> a = keep(corners[0], value), b = keep(corners[1], value);
    const vec<T> f = keep(corners[2], value), g = keep(corners[3], value);
    store(upper, a);
    store(upper + L, b);
    store(lower, f);
    store(lower + L, g);
    sum = sum + ((a + b) + (f + g));
  }
  return sum;
}

/// Rows of x and dz that a tile multiplies; distances in elements.
template <class T>
struct weight_rows {
  const T *x, *dz;
  int rows, columns;
  std::int64_t x_row, x_pixel, x_tap, dz_row, dz_channel;
};

/// sum[o][t] += dz[o] * x[t], over rows and columns; the sums live in scratch between calls.
template <int O, int N, class T>
[[gnu::always_inline]] inline void weight_gradient_tile(const weight_rows<T>& r, std::int64_t x_tap,
                                                        T* sums, std::int64_t stride, bool fresh) {
  constexpr int L = lanes<T>;
  vec<T> sum[O][N];
#pragma GCC unroll 4
  for (int o = 0; o < O; ++o) {
#pragma GCC unroll 8
    for (int t = 0; t < N; ++t) {
      sum[o][t] = fresh ? vec<T>(T{0}) : load(sums + o * stride + t * L);
    }
  }
  const T *x_row = r.x, *dz_row = r.dz;
  for (int row = 0; row < r.rows; ++row, x_row += r.x_row, dz_row += r.dz_row) {
    const T *x = x_row, *dz = dz_row;
    for (int column = 0; column < r.columns; ++column, x += r.x_pixel, dz += L) {
      vec<T> d[O];
#pragma GCC unroll 4
      for (int o = 0; o < O; ++o) {
        d[o] = load(dz + o * r.dz_channel);
        if constexpr (few_vector_registers) d[o] = in_register<T>(d[o]);
      }
#pragma GCC unroll 8
      for (int t = 0; t < N; ++t) {
        const vec<T> v = load_shared(x + t * x_tap);
#pragma GCC unroll 4
        for (int o = 0; o < O; ++o) sum[o][t] = multiply_add(d[o], v, sum[o][t]);
      }
    }
  }
#pragma GCC unroll 4
  for (int o = 0; o < O; ++o) {
#pragma GCC unroll 8
    for (int t = 0; t < N; ++t) store(sums + o * stride + t * L, sum[o][t]);
  }
}

/// All taps of one unit: `shape.rows` runs of `taps`, cut into tiles.
template <int K, int O, tile_set Tiles, class T>
[[gnu::always_inline]] inline void weight_gradient_taps(weight_rows<T> r, const weight_taps& shape,
                                                        int taps, std::int64_t kernel_row, T* sums,
                                                        bool fresh) {
  constexpr int L = lanes<T>, most = weight_tile<K>::most;
  const std::int64_t stride = std::int64_t{shape.rows} * taps * L;
  for (int row = 0; row < shape.rows; ++row, r.x += kernel_row) {
    if constexpr (weight_tile<K>::fixed) {
      weight_gradient_tile<O, K>(r, L, sums, stride, fresh);
      sums += K * L;
    } else {
      weight_rows<T> piece = r;
      const int pieces = ceil_divide(taps, most);
      for (int i = 0; i < pieces; ++i) {
        const work_range part = part_of(taps, pieces, i);
        piece.x = r.x + part.first * r.x_tap;
        with_group_size<most, (Tiles >> tap_bits)>(
            part.size(), [&](auto n) __attribute__((always_inline)) {
              weight_gradient_tile<O, n()>(piece, r.x_tap, sums + part.first * L, stride, fresh);
            });
      }
      sums += taps * L;
    }
  }
}

/// Adds up the lanes of n vectors and hands the sums on, L at a time.
template <class T, class Sink>
[[gnu::always_inline]] inline void sink_sums(const T* vectors, int n, std::int64_t offset,
                                             Sink& sink) {
  constexpr int L = lanes<T>;
  for (int i = 0; i < n; i += L) {
    vec<T> rows[L];
#pragma GCC unroll 16
    for (int j = 0; j < L; ++j) rows[j] = load(vectors + std::int64_t{std::min(i + j, n - 1)} * L);
    sink(sums<T>(rows), offset + i, std::min(L, n - i));
  }
}

}  // namespace detail

template <int K, tile_set Tiles, class T, class Sink>
[[gnu::noinline]] void lanes_convolution_weight_gradient(work_range units,
                                                         const lanes_convolution_extents& e,
                                                         const T* __restrict x,
                                                         const T* __restrict dz,
                                                         T* __restrict scratch, const Sink& given) {
  own_sink<Sink> sink = given;
  constexpr int L = lanes<T>, most = detail::weight_tile<K>::channels;
  const detail::weight_taps shape(e, detail::weight_tile<K>::most);
  const int inputs = ceil_divide(e.in_channels, shape.channels);
  const int groups = ceil_divide(e.out_channels, most);
  const std::int64_t width = e.padded_width();
  for (int unit = units.first; unit < units.last; ++unit) {
    const int c = unit % inputs * shape.channels;
    const work_range part = part_of(e.out_channels, groups, unit / inputs);
    const int taps = shape.channels > 1 ? std::min(shape.channels, e.in_channels - c) : shape.taps;
    for (int block = 0; block < e.blocks; ++block) {
      const detail::weight_rows<T> r{
          x + (std::int64_t{block} * e.in_channels + c) * e.padded_plane() * L,
          dz + (std::int64_t{block} * e.out_channels + part.first) * e.out_plane() * L,
          e.out_height(),
          e.out_width(),
          e.stride_height * width * L,
          std::int64_t{e.stride_width} * L,
          shape.step * L,
          std::int64_t{e.out_width()} * L,
          e.out_plane() * L};
      const auto tile = [&](auto size) __attribute__((always_inline)) {
        detail::weight_gradient_taps<K, size(), Tiles>(r, shape, taps, width * L, scratch,
                                                       block == 0);
      };
      detail::with_group_size<most, Tiles>(part.size(), tile);
    }
    const int n = shape.rows * taps;
    for (int o = part.first; o < part.last; ++o) {
      detail::sink_sums(scratch + std::int64_t{o - part.first} * n * L, n,
                        (std::int64_t{o} * e.in_channels + c) * e.taps(), sink);
    }
  }
}

template <int K, tile_set Tiles, class T, class Sink, class BiasSink>
[[gnu::noinline]] void lanes_convolution_pool_weight_gradient(
    work_range units, const lanes_convolution_extents& e, const T* __restrict x,
    const T* __restrict d, const std::uint16_t* __restrict corners, T* __restrict scratch,
    const Sink& given, const BiasSink& bias_sink) {
  own_sink<Sink> sink = given;
  constexpr int L = lanes<T>, most = detail::weight_tile<K>::channels;
  const detail::weight_taps shape(e, detail::weight_tile<K>::most);
  const int inputs = ceil_divide(e.in_channels, shape.channels);
  const int groups = ceil_divide(e.out_channels, most);
  const int pooled = e.pooled_width();
  const std::int64_t width = e.padded_width(), row = std::int64_t{2} * pooled * L;
  T* const rows = scratch + lanes_convolution_weight_gradient_scratch<T, K>(e);
  for (int unit = units.first; unit < units.last; ++unit) {
    const int c = unit % inputs * shape.channels;
    const work_range part = part_of(e.out_channels, groups, unit / inputs);
    const int taps = shape.channels > 1 ? std::min(shape.channels, e.in_channels - c) : shape.taps;
    const int n = shape.rows * taps;
    long_sum<T> bias[most];
    std::fill_n(scratch, std::int64_t{part.size()} * n * L, T{0});
    for (int block = 0; block < e.blocks; ++block) {
      for (int h = 0; h < e.pooled_height(); ++h) {
#pragma GCC unroll 4
        for (int o = 0; o < most; ++o) {
          if (o == part.size()) break;
          const std::int64_t at =
              (std::int64_t{block} * e.out_channels + part.first + o) * e.pooled_plane() +
              std::int64_t{h} * pooled;
          T* to = rows + o * 2 * row;
          detail::add_row(bias[o],
                          detail::unpool_row(d + at * L, corners + at * 4, pooled, to, to + row));
        }
        const detail::weight_rows<T> r{
            x + ((std::int64_t{block} * e.in_channels + c) * e.padded_plane() +
                 2 * h * e.stride_height * width) *
                    L,
            rows,
            2,
            2 * pooled,
            e.stride_height * width * L,
            std::int64_t{e.stride_width} * L,
            shape.step * L,
            row,
            2 * row};
        const auto tile = [&](auto size) __attribute__((always_inline)) {
          detail::weight_gradient_taps<K, size(), Tiles>(r, shape, taps, width * L, scratch, false);
        };
        detail::with_group_size<most, Tiles>(part.size(), tile);
      }
    }
    for (int o = part.first; o < part.last; ++o) {
      detail::sink_sums(scratch + std::int64_t{o - part.first} * n * L, n,
                        (std::int64_t{o} * e.in_channels + c) * e.taps(), sink);
    }
    if (c == 0) {
      // A tile may have more channels than a vector has lanes.
      alignas(vec<T>) T total[ceil_divide(most, L) * L]{};
      for (int o = 0; o < part.size(); ++o) total[o] = bias[o].over_lanes();
      for (int o = 0; o < part.size(); o += L) {
        bias_sink(load(total + o), std::int64_t{part.first} + o, std::min(L, part.size() - o));
      }
    }
  }
}

template <class T, class BiasSink>
[[gnu::noinline]] void lanes_unpool(work_range units, const lanes_convolution_extents& e,
                                    const T* __restrict d, const std::uint16_t* __restrict corners,
                                    T* __restrict dz, const BiasSink& bias_sink) {
  constexpr int L = lanes<T>;
  const int width = e.out_width(), pooled = e.pooled_width();
  for (int o = units.first; o < units.last; ++o) {
    long_sum<T> bias;
    for (int block = 0; block < e.blocks; ++block) {
      const std::int64_t plane = std::int64_t{block} * e.out_channels + o;
      T* to = dz + plane * e.out_plane() * L;
      std::int64_t at = plane * e.pooled_plane();
      for (int h = 0; h < e.pooled_height(); ++h, at += pooled, to += std::int64_t{2} * width * L) {
        T* lower = to + std::int64_t{width} * L;
        bias.add(detail::unpool_row(d + at * L, corners + at * 4, pooled, to, lower));
        if (width % 2) {
          store(lower - L, vec<T>(T{0}));
          store(lower + (width - 1) * L, vec<T>(T{0}));
        }
      }
      if (e.out_height() % 2) std::fill_n(to, std::int64_t{width} * L, T{0});
    }
    bias_sink(vec<T>(bias.over_lanes()), std::int64_t{o}, 1);
  }
}

}  // namespace cella::cpu
