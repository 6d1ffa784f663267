// Convolutions of one image where latency is everything, alone or with a 2x2 maximum pool on top.
// Batches of one cannot fill the lanes, so either pixels or output channels do:
//   pixels in the lanes    few output channels or a wide image; weights as they are; stride 1
//   across channels in the lanes  at least half a vector of output channels; weights packed once
// The image comes padded (pad_image): neither kernel looks at the paddings of the extents, and
// `size` is the padded size. One sample, one group. For the dense layers see gemm with one row.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/convolution/extents.hpp>
#include <cella/backend/cpu/convolution/padded_image.hpp>
#include <cella/backend/cpu/gemm/tile.hpp>
#include <cella/backend/cpu/loops/sink.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cella::cpu {

/// Whether each 2x2 window of the output is reduced to its maximum (an odd last row or column is
/// dropped). Epilogues that never decrease (bias, ReLU) may be applied after the maximum.
enum class pooling { none, maximum_2x2 };

/// The same convolution of the padded image.
constexpr convolution_extents without_padding(convolution_extents e) {
  for (convolution_axis* a : {&e.vertical, &e.horizontal}) {
    a->size += a->padding_before + a->padding_after;
    a->padding_before = a->padding_after = 0;
  }
  return e;
}

/// Output rows and columns after the pool.
template <pooling Pool>
constexpr int pooled(int size) {
  return Pool == pooling::none ? size : size / 2;
}

/// Pixels in the lanes. x [in_channels, H, W] (padded), w [out_channels, in_channels, KH, KW]. The
/// sink gets offsets in y [out_channels, rows, columns], channel and pixel. Horizontal stride 1.
/// Units: rows of the (pooled) output.
template <pooling Pool, class T, class Sink>
void convolution_pixels(const convolution_extents& e, const T* x, const T* w, const Sink& sink,
                        work_range units);
template <pooling Pool>
constexpr int convolution_pixels_units(const convolution_extents& e) {
  return pooled<Pool>(e.vertical.output());
}

/// Weights for `convolution_channels`: w [out_channels, in_channels, KH, KW] becomes
/// [in_channels * KH * KW][out_channels, rounded up to lanes<T>, zeros behind].
template <class T>
constexpr std::int64_t packed_channels_size(const convolution_extents& e) {
  return std::int64_t{e.in_channels} * e.taps() * ceil_divide(e.out_channels, lanes<T>) * lanes<T>;
}
template <class T>
void pack_channels(const convolution_extents& e, const T* w, T* packed);

/// (Pooled) pixels of a unit of `convolution_channels`: whole rows, unless they are too long.
template <class T>
constexpr int pixels_of_unit(int columns) {
  return columns <= lanes<T> ? lanes<T> / columns * columns : lanes<T>;
}
/// Output channels in the lanes, any stride and dilation; otherwise like `convolution_pixels`.
/// Units: pixels_of_unit<T> of lanes<T> channels.
template <pooling Pool, class T, class Sink>
void convolution_channels(const convolution_extents& e, const T* x, const T* packed,
                          const Sink& sink, work_range units);
template <pooling Pool, class T>
constexpr int convolution_channels_units(const convolution_extents& e) {
  const int rows = pooled<Pool>(e.vertical.output()), columns = pooled<Pool>(e.horizontal.output());
  if (rows * columns == 0) return 0;
  return ceil_divide(e.out_channels, lanes<T>) *
         ceil_divide(rows * columns, pixels_of_unit<T>(columns));
}

namespace detail {

/// The larger of each pair of neighbours in a, then in b.
template <class T>
[[gnu::always_inline]] inline vec<T> maximum_of_pairs(vec<T> a, vec<T> b) {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    return maximum(vec<T>(_mm512_permutex2var_ps(a, even, b)),
                   vec<T>(_mm512_permutex2var_ps(a, odd, b)));
  } else {
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    const __m512i odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    return maximum(vec<T>(_mm512_permutex2var_pd(a, even, b)),
                   vec<T>(_mm512_permutex2var_pd(a, odd, b)));
  }
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>) {
    const vec<T> mixed =
        maximum(vec<T>(_mm256_shuffle_ps(a, b, 0x88)), vec<T>(_mm256_shuffle_ps(a, b, 0xdd)));
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(mixed), 0xd8));
  } else {
    const vec<T> mixed =
        maximum(vec<T>(_mm256_unpacklo_pd(a, b)), vec<T>(_mm256_unpackhi_pd(a, b)));
    return _mm256_permute4x64_pd(mixed, 0xd8);
  }
#else
  constexpr int L = lanes<T>;
  alignas(64) T row[2 * L];
  store(row, a);
  store(row + L, b);
  for (int i = 0; i < L; ++i) row[i] = std::max(row[2 * i], row[2 * i + 1]);
  return load(row);
#endif
}

/// `Channels` output channels, 1 or 2 output rows, up to 2 vectors of columns from `x0` on, of
/// which all may be read if `Whole`. Results, pooled or not, go to `results`: 2 vectors for each
/// channel.
template <pooling Pool, int Channels, bool Whole, class T>
[[gnu::noinline]] void pixel_tile(const convolution_extents& e, const T* x, const T* w, int channel,
                                  int row, int x0, int columns, T* results) {
  constexpr int L = lanes<T>, rows = Pool == pooling::none ? 1 : 2;
  const int n0 = std::min(L, columns), n1 = std::max(0, columns - L);
  const int width = e.horizontal.size, taps = e.taps(), filter = e.in_channels * taps;
  const std::int64_t next_row = std::int64_t{e.vertical.stride} * width;
  const T* image = x + std::int64_t{row} * rows * next_row + x0;
  const T* weight = w + std::int64_t{channel} * filter;
  vec<T> sum[Channels][2 * rows];
#pragma GCC unroll 8
  for (int o = 0; o < Channels; ++o) {
#pragma GCC unroll 4
    for (int j = 0; j < 2 * rows; ++j) sum[o][j] = vec<T>(T(0));
  }
  for (int c = 0; c < e.in_channels; ++c, image += std::int64_t{e.vertical.size} * width) {
    for (int i = 0; i < e.vertical.kernel; ++i) {
      const T* p = image + std::int64_t{i} * e.vertical.dilation * width;
      for (int j = 0; j < e.horizontal.kernel; ++j, p += e.horizontal.dilation, ++weight) {
        vec<T> factor[Channels];
#pragma GCC unroll 8
        for (int o = 0; o < Channels; ++o) factor[o] = vec<T>(weight[o * filter]);
#pragma GCC unroll 4
        for (int k = 0; k < 2 * rows; ++k) {
          const T* q = p + k / 2 * next_row + k % 2 * L;
          vec<T> value = Whole ? load_unaligned(q) : load_first(q, k % 2 ? n1 : n0);
          if constexpr (few_vector_registers) value = in_register<T>(value);
#pragma GCC unroll 8
          for (int o = 0; o < Channels; ++o) sum[o][k] = multiply_add(factor[o], value, sum[o][k]);
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int o = 0; o < Channels; ++o, results += 2 * L) {
    if constexpr (Pool == pooling::none) {
      store(results, sum[o][0]);
      store(results + L, sum[o][1]);
    } else {
      store(results,
            maximum_of_pairs<T>(maximum(sum[o][0], sum[o][2]), maximum(sum[o][1], sum[o][3])));
    }
  }
}

/// `Pixels` neighbouring (pooled) pixels of lanes<T> channels: into `to`, one vector for each. The
/// horizontal stride is `Stride`, where that is not 0: then addresses need no registers.
template <pooling Pool, int Pixels, int Stride, class T>
[[gnu::noinline]] void channel_tile(const convolution_extents& e, const T* x, const T* packed,
                                    std::int64_t packed_row, T* to) {
  constexpr int window = Pool == pooling::none ? 1 : 4, side = Pool == pooling::none ? 1 : 2;
  const int width = e.horizontal.size;
  const std::int64_t right = Stride > 0 ? Stride : e.horizontal.stride;
  const std::int64_t down = std::int64_t{e.vertical.stride} * width;
  vec<T> sum[Pixels][window];
#pragma GCC unroll 8
  for (int p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
    for (int k = 0; k < window; ++k) sum[p][k] = vec<T>(T(0));
  }
  for (int c = 0; c < e.in_channels; ++c, x += std::int64_t{e.vertical.size} * width) {
    for (int i = 0; i < e.vertical.kernel; ++i) {
      const T* at = x + std::int64_t{i} * e.vertical.dilation * width;
      const T* below = at + down;
      for (int j = 0; j < e.horizontal.kernel;
           ++j, at += e.horizontal.dilation, below += e.horizontal.dilation) {
        const vec<T> weight = load_unaligned(packed);
        packed += packed_row;
#pragma GCC unroll 8
        for (int p = 0; p < Pixels; ++p) {
#pragma GCC unroll 4
          for (int k = 0; k < window; ++k) {
            const T* pixel = (k < 2 ? at : below) + (side * p + k % 2) * right;
            sum[p][k] = multiply_add(vec<T>(*pixel), weight, sum[p][k]);
          }
        }
      }
    }
  }
#pragma GCC unroll 8
  for (int p = 0; p < Pixels; ++p) {
    vec<T> largest = sum[p][0];
    if constexpr (window == 4) {
      largest = maximum(maximum(sum[p][0], sum[p][1]), maximum(sum[p][2], sum[p][3]));
    }
    store(to + p * lanes<T>, largest);
  }
}

/// How many elements of the image a `pixel_tile` may read, beginning with the first: whole vectors
/// in the last row and under the last tap.
template <pooling Pool, class T>
constexpr std::int64_t reach_of_pixels(const convolution_extents& e, int row, int x0) {
  constexpr int side = Pool == pooling::none ? 1 : 2;
  const std::int64_t last_row = std::int64_t{row * side + side - 1} * e.vertical.stride +
                                std::int64_t{e.vertical.kernel - 1} * e.vertical.dilation;
  const std::int64_t above = std::int64_t{e.in_channels - 1} * e.vertical.size + last_row;
  return above * e.horizontal.size + x0 + (e.horizontal.kernel - 1) * e.horizontal.dilation +
         2 * lanes<T>;
}

template <pooling Pool, class T>
void convolve_pixels(const convolution_extents& e, const T* x, const T* w, const any_sink<T>& sink,
                     work_range units) {
  constexpr int L = lanes<T>, side = Pool == pooling::none ? 1 : 2;
  constexpr bool many = vector_registers == 32;
  const int columns = pooled<Pool>(e.horizontal.output()), used = columns * side;
  const std::int64_t plane = std::int64_t{pooled<Pool>(e.vertical.output())} * columns;
  alignas(64) T results[(many ? 6 : 3) * 2 * L];
  for (int row = units.first; row < units.last; ++row) {
    for (int x0 = 0; x0 < used; x0 += 2 * L) {
      const int width = std::min(2 * L, used - x0), pixel = row * columns + x0 / side;
      const bool whole = reach_of_pixels<Pool, T>(e, row, x0) <= e.in_channels * e.input_size();
      for (int o = 0, channels = 0; o < e.out_channels; o += channels) {
        const auto tile = [&]<int Channels>() {
          const auto compute =
              whole ? &pixel_tile<Pool, Channels, true, T> : &pixel_tile<Pool, Channels, false, T>;
          compute(e, x, w, o, row, x0, width, results);
          channels = Channels;
        };
        const int left = e.out_channels - o;
        if (many && left >= 6) {
          tile.template operator()<many ? 6 : 1>();
        } else if (many && left >= 4) {
          tile.template operator()<many ? 4 : 1>();
        } else if (!many && left >= 3 && left != 4) {
          tile.template operator()<many ? 1 : 3>();
        } else if (left >= 2) {
          tile.template operator()<2>();
        } else {
          tile.template operator()<1>();
        }
        sink.hand_over(results, 2 * L, channels, width / side, o * plane + pixel, plane, o, pixel);
      }
    }
  }
}
CELLA_COMPILED_ONCE(convolve_pixels<pooling::none, float>);
CELLA_COMPILED_ONCE(convolve_pixels<pooling::none, double>);
CELLA_COMPILED_ONCE(convolve_pixels<pooling::maximum_2x2, float>);
CELLA_COMPILED_ONCE(convolve_pixels<pooling::maximum_2x2, double>);

template <pooling Pool, class T>
void convolve_channels(const convolution_extents& e, const T* x, const T* packed,
                       const any_sink<T>& sink, work_range units) {
  constexpr int L = lanes<T>, side = Pool == pooling::none ? 1 : 2;
  constexpr int most = vector_registers == 32 ? 6 : 3;
  const int rows = pooled<Pool>(e.vertical.output());
  const int columns = pooled<Pool>(e.horizontal.output()), pixels = rows * columns;
  const int pixels_at_once = pixels_of_unit<T>(columns),
            blocks = ceil_divide(pixels, pixels_at_once);
  const std::int64_t packed_row = std::int64_t{ceil_divide(e.out_channels, L)} * L;
  for (int unit = units.first; unit < units.last; ++unit) {
    const int channel = unit / blocks * L, first = unit % blocks * pixels_at_once;
    const int count = std::min(pixels_at_once, pixels - first);
    alignas(64) T results[L * L];
    for (int p = 0; p < count;) {
      const int row = (first + p) / columns, column = (first + p) % columns;
      const T* at = x + std::int64_t{row} * side * e.vertical.stride * e.horizontal.size +
                    std::int64_t{column} * side * e.horizontal.stride;
      const auto tile = [&]<int Pixels>() {
        const auto compute = e.horizontal.stride == 1 ? &channel_tile<Pool, Pixels, 1, T>
                                                      : &channel_tile<Pool, Pixels, 0, T>;
        compute(e, at, packed + channel, packed_row, results + p * L);
        p += Pixels;
      };
      switch (std::min({most, columns - column, count - p})) {
        case 6:
          tile.template operator()<most == 6 ? 6 : 1>();
          break;
        case 5:
          tile.template operator()<most == 6 ? 5 : 1>();
          break;
        case 4:
          tile.template operator()<most == 6 ? 4 : 1>();
          break;
        case 3:
          tile.template operator()<3>();
          break;
        case 2:
          tile.template operator()<2>();
          break;
        default:
          tile.template operator()<1>();
      }
    }
    vec<T> square[L];
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i) square[i] = i < count ? load(results + i * L) : vec<T>(T(0));
    transpose<T>(square);
#pragma GCC unroll 16
    for (int i = 0; i < L; ++i) store(results + i * L, square[i]);
    sink.hand_over(results, L, std::min(L, e.out_channels - channel), count,
                   std::int64_t{channel} * pixels + first, pixels, channel, first);
  }
}
CELLA_COMPILED_ONCE(convolve_channels<pooling::none, float>);
CELLA_COMPILED_ONCE(convolve_channels<pooling::none, double>);
CELLA_COMPILED_ONCE(convolve_channels<pooling::maximum_2x2, float>);
CELLA_COMPILED_ONCE(convolve_channels<pooling::maximum_2x2, double>);

}  // namespace detail

template <class T>
void pack_channels(const convolution_extents& e, const T* w, T* packed) {
  const int filter = e.in_channels * e.taps();
  const int rounded = ceil_divide(e.out_channels, lanes<T>) * lanes<T>;
  pack_panel<T>(e.out_channels, filter, w, filter, 1, packed, rounded);
}
CELLA_COMPILED_FOR_FLOATS(pack_channels);

template <pooling Pool, class T, class Sink>
void convolution_pixels(const convolution_extents& e, const T* x, const T* w, const Sink& sink,
                        work_range units) {
  detail::convolve_pixels<Pool>(e, x, w, detail::any_sink<T>(sink), units);
}

template <pooling Pool, class T, class Sink>
void convolution_channels(const convolution_extents& e, const T* x, const T* packed,
                          const Sink& sink, work_range units) {
  detail::convolve_channels<Pool>(e, x, packed, detail::any_sink<T>(sink), units);
}

}  // namespace cella::cpu
