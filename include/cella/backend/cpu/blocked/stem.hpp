// The first convolution of a net: a plain image of few channels, whose results are blocks of
// channels. The image is copied with a border of zeros, if it needs one; each pixel is multiplied
// with vectors of output channels. So are images of channels that are no whole blocks, where a
// filter has one tap.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/blocked/pointwise.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>

namespace cella::cpu {

/// x [samples, channels, height, width] plain, y in blocks.
struct stem_extents {
  int samples{}, channels{}, height{}, width{}, out_blocks{};
  int kernel_height = 1, kernel_width = 1;
  int stride_vertical = 1, stride_horizontal = 1;
  int padding_top{}, padding_left{};
  int out_height{}, out_width{};
  /// The plain image serves as it is: one tap, no border, and rows that hold a whole tile.
  bool as_it_is = false;

  constexpr int taps() const { return channels * kernel_height * kernel_width; }
  /// The padded image: as much as the windows of all results, and of a whole last tile, cover.
  constexpr int padded_height() const { return (out_height - 1) * stride_vertical + kernel_height; }
  constexpr int padded_width() const { return (out_width - 1) * stride_horizontal + kernel_width; }
};

namespace detail {
inline constexpr int stem_pixels = blocked_pixels;
/// Taps and blocks of a register tile of the filters' gradient.
inline constexpr int stem_taps = vector_registers == 32 ? 7 : 3;
inline constexpr int stem_blocks = vector_registers == 32 ? 4 : 3;
}  // namespace detail

/// Elements of the padded images and of packed filters.
template <class T>
constexpr std::int64_t stem_image_size(const stem_extents& e) {
  return std::int64_t{e.samples} * e.channels * e.padded_height() * e.padded_width() +
         detail::stem_pixels * e.stride_horizontal + e.kernel_width;
}
template <class T>
constexpr std::int64_t stem_filter_size(const stem_extents& e) {
  return std::int64_t{e.out_blocks} * e.taps() * lanes<T>;
}

/// Copies images into zeros. Units: channels of samples.
template <class T>
void pad_stem(work_range units, const stem_extents& e, const T* x, T* padded) {
  const int rows = e.padded_height(), columns = e.padded_width();
  const int copied = std::min(e.width, columns - e.padding_left);
  for (int u = units.first; u < units.last; ++u) {
    T* to = padded + std::int64_t{u} * rows * columns;
    for (int row = 0; row < rows; ++row, to += columns) {
      const int h = row - e.padding_top;
      if (h < 0 || h >= e.height) {
        std::fill_n(to, columns, T{0});
        continue;
      }
      std::fill_n(to, e.padding_left, T{0});
      std::copy_n(x + (std::int64_t{u} * e.height + h) * e.width, copied, to + e.padding_left);
      std::fill_n(to + e.padding_left + copied, columns - e.padding_left - copied, T{0});
    }
  }
}
CELLA_COMPILED_FOR_FLOATS(pad_stem);
/// w [out_blocks L][taps] -> [out_blocks][taps][L]. Units: blocks.
template <class T>
void pack_stem_filters(work_range units, const stem_extents& e, const T* w, T* packed) {
  constexpr int L = lanes<T>;
  const int taps = e.taps();
  for (int o = units.first; o < units.last; ++o) {
    for (int t = 0; t < taps; ++t) {
      for (int c = 0; c < L; ++c)
        packed[(std::int64_t{o} * taps + t) * L + c] = w[(std::int64_t{o} * L + c) * taps + t];
    }
  }
}

namespace detail {

/// One tile: neighbouring pixels of a row by Blocks blocks. It is finished in place, the first
/// block's results, that of number `first_block`, from vector `element` on, or, if `finish` is
/// null, written to `result`, [Blocks][stem_pixels][L].
template <class T, int Blocks>
[[gnu::noinline]] void stem_tile(const stem_extents& e, const T* image, const T* w,
                                 const blocked_finish<T>* finish, std::int64_t element,
                                 int first_block, T* result) {
  constexpr int L = lanes<T>, P = stem_pixels;
  vec<T> sum[P][Blocks];
#pragma GCC unroll 16
  for (int i = 0; i < P; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < Blocks; ++j) sum[i][j] = vec<T>(T{0});
  }
  const std::int64_t block = std::int64_t{e.taps()} * L;
  const int columns = e.padded_width(), step = e.stride_horizontal;
  for (int c = 0; c < e.channels; ++c) {
    for (int k = 0; k < e.kernel_height; ++k) {
      const T* row = image + (std::int64_t{c} * e.padded_height() + k) * columns;
      for (int q = 0; q < e.kernel_width; ++q, w += L) {
        vec<T> f[Blocks];
#pragma GCC unroll 2
        for (int j = 0; j < Blocks; ++j) f[j] = load_shared(w + j * block);
        const T* a = row + q;
        // g++ would keep what two taps share in registers and spill them.
        asm("" : "+r"(a));
#pragma GCC unroll 16
        for (int i = 0; i < P; ++i) {
          const vec<T> v(a[i * step]);
#pragma GCC unroll 2
          for (int j = 0; j < Blocks; ++j) sum[i][j] = multiply_add(v, f[j], sum[i][j]);
        }
      }
    }
  }
  if (finish)
    return finish->template store_tile<P, Blocks>(
        element, std::int64_t{e.out_height} * e.out_width,
        first_block, [&](int i, int j) __attribute__((always_inline)) { return sum[i][j]; });
#pragma GCC unroll 16
  for (int i = 0; i < P; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < Blocks; ++j) store(result + (j * P + i) * L, sum[i][j]);
  }
}

/// Rows of an image that serves as it is, whose last tile overlaps the one before: behind the image
/// there may be no memory.
template <class T>
void convolve_plain_rows(work_range units, const stem_extents& e, const T* x, const T* w,
                         const any_blocked_sink<T>& sink) {
  constexpr int P = blocked_pixels;
  const pointwise_tiles<T, P, true> tiles(x, e.channels, std::int64_t{e.height} * e.width, w,
                                          std::int64_t{e.channels} * lanes<T>, e.out_blocks, sink);
  for (int u = units.first; u < units.last; ++u) {
    const std::int64_t row = std::int64_t{u % e.height} * e.width;
    for (int next = 0; next < e.width; next += P) {
      const int column = std::min(next, e.width - P);
      const auto tile = tiles.at(u / e.height, row + column, next - column);
      int o = 0;
      for (; o + 2 <= e.out_blocks; o += 2) tiles.template compute<2>(tile, o);
      if (o < e.out_blocks) tiles.template compute<1>(tile, o);
    }
  }
}

template <class T>
void convolve_stem(work_range units, const stem_extents& e, const T* padded, const T* w,
                   const any_blocked_sink<T>& sink) {
  constexpr int L = lanes<T>, P = stem_pixels;
  if (e.as_it_is) return convolve_plain_rows(units, e, padded, w, sink);
  const std::int64_t plane = std::int64_t{e.out_height} * e.out_width;
  alignas(64) T result[2 * P * L];
  std::array<std::int64_t, std::size_t(P)> at;
  for (int u = units.first; u < units.last; ++u) {
    const int n = u / e.out_height, row = u % e.out_height;
    const T* image =
        padded + (std::int64_t{n} * e.channels * e.padded_height() + row * e.stride_vertical) *
                     e.padded_width();
    for (int column = 0; column < e.out_width; column += P) {
      const int count = std::min(P, e.out_width - column);
      for (int i = 0; i < P; ++i)
        at[std::size_t(i)] =
            n * e.out_blocks * plane + std::int64_t{row} * e.out_width + column + i;
      const T* from = image + column * e.stride_horizontal;
      const blocked_finish<T>* const finish = count == P ? sink.finish() : nullptr;
      for (int o = 0; o < e.out_blocks; o += 2) {
        const T* f = w + std::int64_t{o} * e.taps() * L;
        const int blocks = std::min(2, e.out_blocks - o);
        if (blocks == 2)
          stem_tile<T, 2>(e, from, f, finish, at[0], o, result);
        else
          stem_tile<T, 1>(e, from, f, finish, at[0], o, result);
        if (!finish) sink.hand_over(result, P, count, blocks, at.data(), plane, o);
      }
    }
  }
}
CELLA_COMPILED_FOR_FLOATS(convolve_stem);

/// sums[t][j] += x[offset[t]] dy[block j] over the rows of an image, for `taps` taps.
template <class T, int Taps, int Blocks>
[[gnu::noinline]] void add_stem_products(const stem_extents& e, const T* image, const T* dy,
                                         const std::int64_t* offset, int taps, T* sums) {
  constexpr int L = lanes<T>;
  const std::int64_t sum_block = std::int64_t{e.taps()} * L;
  const std::int64_t plane = std::int64_t{e.out_height} * e.out_width * L;
  vec<T> sum[Taps][Blocks];
#pragma GCC unroll 8
  for (int t = 0; t < Taps; ++t) {
#pragma GCC unroll 4
    for (int j = 0; j < Blocks; ++j)
      sum[t][j] = t < taps ? load(sums + j * sum_block + t * L) : vec<T>(T{0});
  }
  std::int64_t at[Taps];
  for (int t = 0; t < Taps; ++t) at[t] = offset[std::min(t, taps - 1)];
  for (int row = 0; row < e.out_height; ++row) {
    const T* x = image + std::int64_t{row} * e.stride_vertical * e.padded_width();
    for (int column = 0; column < e.out_width; ++column, x += e.stride_horizontal, dy += L) {
      vec<T> d[Blocks];
#pragma GCC unroll 4
      for (int j = 0; j < Blocks; ++j) d[j] = load_shared(dy + j * plane);
#pragma GCC unroll 8
      for (int t = 0; t < Taps; ++t) {
        const vec<T> v(x[at[t]]);
#pragma GCC unroll 4
        for (int j = 0; j < Blocks; ++j) sum[t][j] = multiply_add(v, d[j], sum[t][j]);
      }
    }
  }
#pragma GCC unroll 8
  for (int t = 0; t < Taps; ++t) {
    if (t >= taps) break;
#pragma GCC unroll 4
    for (int j = 0; j < Blocks; ++j) store(sums + j * sum_block + t * L, sum[t][j]);
  }
}

constexpr int stem_tap_groups(const stem_extents& e) {
  return (e.taps() + stem_taps - 1) / stem_taps;
}

}  // namespace detail

/// y from padded images and packed filters; the sink gets (value, element, block). Units: rows of
/// samples.
template <class T>
constexpr int stem_units(const stem_extents& e) {
  return e.samples * e.out_height;
}
template <class T, class Sink>
void stem_convolution(work_range units, const stem_extents& e, const T* padded, const T* packed,
                      const Sink& sink) {
  detail::convolve_stem(units, e, padded, packed, detail::any_blocked_sink<T>(sink));
}

/// The gradient of the filters as sums [out_blocks][taps][L]. Units: groups of taps.
template <class T>
constexpr int stem_gradient_units(const stem_extents& e) {
  return detail::stem_tap_groups(e);
}
template <class T>
void stem_weight_gradient(work_range units, const stem_extents& e, const T* padded, const T* dy,
                          T* sums) {
  constexpr int L = lanes<T>, most = detail::stem_blocks;
  const int taps = e.taps();
  for (int o = 0; o < e.out_blocks; ++o) {
    for (int u = units.first; u < units.last; ++u) {
      const int first = u * detail::stem_taps, count = std::min(detail::stem_taps, taps - first);
      std::memset(sums + (std::int64_t{o} * taps + first) * L, 0,
                  sizeof(T) * std::size_t(count * L));
    }
  }
  for (int n = 0; n < e.samples; ++n) {
    const T* image = padded + std::int64_t{n} * e.channels * e.padded_height() * e.padded_width();
    for (int o = 0; o < e.out_blocks; o += most) {
      const T* d = dy + (std::int64_t{n} * e.out_blocks + o) * e.out_height * e.out_width * L;
      for (int u = units.first; u < units.last; ++u) {
        const int first = u * detail::stem_taps, count = std::min(detail::stem_taps, taps - first);
        std::array<std::int64_t, std::size_t(detail::stem_taps)> offset;
        for (int t = 0; t < count; ++t) {
          const int q = (first + t) % e.kernel_width, k = (first + t) / e.kernel_width;
          offset[std::size_t(t)] =
              (std::int64_t{k / e.kernel_height} * e.padded_height() + k % e.kernel_height) *
                  e.padded_width() +
              q;
        }
        T* const to = sums + (std::int64_t{o} * taps + first) * L;
        constexpr int G = detail::stem_taps;
        switch (std::min(most, e.out_blocks - o)) {
          case 1:
            detail::add_stem_products<T, G, 1>(e, image, d, offset.data(), count, to);
            break;
          case 2:
            detail::add_stem_products<T, G, 2>(e, image, d, offset.data(), count, to);
            break;
          case 3:
            detail::add_stem_products<T, G, 3>(e, image, d, offset.data(), count, to);
            break;
          default:
            detail::add_stem_products<T, G, most>(e, image, d, offset.data(), count, to);
        }
      }
    }
  }
}
CELLA_COMPILED_FOR_FLOATS(stem_weight_gradient);
/// Hands the sums to a plain sink as filters [out_blocks L][taps]. Units: blocks.
template <class T, class Sink>
void finish_stem_filters(work_range units, const stem_extents& e, const T* sums, const Sink& sink) {
  constexpr int L = lanes<T>;
  const int taps = e.taps();
  for (int o = units.first; o < units.last; ++o) {
    for (int t = 0; t < taps; t += L) {
      const int count = std::min(L, taps - t);
      vec<T> square[L];
      for (int k = 0; k < L; ++k)
        square[k] = k < count ? load(sums + (std::int64_t{o} * taps + t + k) * L) : vec<T>(T{0});
      transpose<T>(square);
      for (int c = 0; c < L; ++c) sink(square[c], (std::int64_t{o} * L + c) * taps + t, count);
    }
  }
}

}  // namespace cella::cpu
