// The gradient of a convolution's filters, for images in blocks of channels: sums over all pixels
// of products of input and output channels. They are kept in blocks, too, and finished afterwards.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/blocked/layout.hpp>
#include <cella/backend/cpu/plan/sample_slices.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>

namespace cella::cpu {

/// Units of the sums, and elements of `sums`: [slices][out_blocks][in_blocks][taps][L in][L out].
template <class T>
constexpr int blocked_weight_gradient_units(const blocked_convolution_extents& e);
template <class T>
constexpr std::int64_t filter_elements(const blocked_convolution_extents& e) {
  return std::int64_t{e.out_blocks} * e.in_blocks * e.taps() * lanes<T> * lanes<T>;
}
template <class T>
constexpr int weight_gradient_slices(const blocked_convolution_extents& e) {
  return sample_slices(e.samples, filter_elements<T>(e) * std::int64_t{sizeof(T)});
}
template <class T>
void blocked_weight_gradient(work_range units, const blocked_convolution_extents& e, const T* x,
                             const T* dy, T* sums);

/// Hands some blocks [taps][L in][L out] to a plain sink as filters that begin at `start`: (value,
/// offset, count). A sink that wants tiles gets them.
template <class T, class Sink>
[[gnu::noinline]] void hand_over_filters(int in_blocks, int taps, int blocks, const T* block,
                                         std::int64_t start, const Sink& sink) {
  constexpr int L = lanes<T>, most = 9;
  constexpr bool by_tiles = requires(const T* tile) {
    sink.hand_over(tile, start, L, L, start, start, 0, 0);
  };
  const std::int64_t filter = std::int64_t{in_blocks} * L * taps;
  alignas(64) [[maybe_unused]] std::array<T, std::size_t(by_tiles ? L * most * L : 1)> tile;
  const int vectors = blocks * taps;  // of each filter
  for (int i = 0, e = 0; i < vectors; ++i, e += L) {
    vec<T> square[L];
    const T* const of_block = block + i / taps * taps * L * L;
    int channel = i % taps * L / taps, tap = i % taps * L % taps;
    for (int k = 0; k < L; ++k) {
      square[k] = load(of_block + (tap * L + channel) * L);
      if (++tap == taps) tap = 0, ++channel;
    }
    transpose<T>(square);
    if constexpr (by_tiles) {
      const int at = i % most, wide = std::min(most, vectors - (i - at)) * L;
      for (int k = 0; k < L; ++k) store(tile.data() + k * wide + at * L, square[k]);
      if (at * L + L == wide)
        sink.hand_over(tile.data(), wide, L, wide, start + e - at * L, filter, 0, 0);
    } else {
      for (int k = 0; k < L; ++k) sink(square[k], start + k * filter + e, L);
    }
  }
}
/// Adds up the slices and hands the sums to a plain sink as filters [out_blocks L][in_blocks
/// L][taps]. Units: blocks of output channels.
template <class T, class Sink>
void finish_filters(work_range units, const blocked_convolution_extents& e, T* sums,
                    const Sink& sink) {
  constexpr int L = lanes<T>;
  const int block = e.taps() * L * L, together = std::max(1, 8 / e.taps());
  for (int o = units.first; o < units.last; ++o) {
    for (int b = 0; b < e.in_blocks; b += together) {
      const int blocks = std::min(together, e.in_blocks - b);
      T* const total = sums + (std::int64_t{o} * e.in_blocks + b) * block;
      for (int k = 1; k < weight_gradient_slices<T>(e); ++k) {
        const T* const slice = total + k * filter_elements<T>(e);
        for (int i = 0; i < blocks * block; i += L)
          store(total + i, load(total + i) + load(slice + i));
      }
      hand_over_filters<T>(e.in_blocks, e.taps(), blocks, total,
                           (std::int64_t{o} * L * e.in_blocks + b) * L * e.taps(), sink);
    }
  }
}

namespace detail {

/// Input channels and blocks of output channels of a register tile.
template <class T>
inline constexpr int gradient_channels = lanes<T> == 16  ? 8
                                         : lanes<T> >= 4 ? 4
                                                         : lanes<T>;
inline constexpr int gradient_blocks = vector_registers == 32 ? 3 : 2;
/// Neighbouring taps of a register tile of one block.
inline constexpr int gradient_taps = 3;

constexpr int gradient_groups(int blocks) {
  return (blocks + gradient_blocks - 1) / gradient_blocks;
}

/// A rectangle of result pixels, and the image pixels that a tap reads for it.
template <class T>
struct gradient_rows {
  const T* x;
  const T* dy;
  int rows, columns;
  std::int64_t x_row, x_column, dy_row, dy_block;  // elements
};

/// sums[t][j][i] += x[.. of tap t, i] dy[.. of block j] over the rectangle; `sum_block` elements
/// between blocks.
template <class T, int Blocks, int Taps>
[[gnu::noinline]] void add_products(const gradient_rows<T>& r, T* sums, std::int64_t sum_block) {
  constexpr int L = lanes<T>, C = gradient_channels<T>, columns = Blocks * Taps;
  const auto place = [&](int i, int j) {
    return sums + j / Blocks * L * L + j % Blocks * sum_block + i * L;
  };
  vec<T> sum[C][columns];
#pragma GCC unroll 8
  for (int i = 0; i < C; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < columns; ++j) sum[i][j] = load(place(i, j));
  }
  for (int row = 0; row < r.rows; ++row) {
    const T* x = r.x + row * r.x_row;
    const T* dy = r.dy + row * r.dy_row;
    const auto add_pixel = [&]() __attribute__((always_inline)) {
      vec<T> d[Blocks];
#pragma GCC unroll 3
      for (int j = 0; j < Blocks; ++j) d[j] = load_shared(dy + j * r.dy_block);
#pragma GCC unroll 3
      for (int t = 0; t < Taps; ++t) {
#pragma GCC unroll 8
        for (int i = 0; i < C; ++i) {
          const vec<T> v(x[t * L + i]);
#pragma GCC unroll 3
          for (int j = 0; j < Blocks; ++j)
            sum[i][t * Blocks + j] = multiply_add(v, d[j], sum[i][t * Blocks + j]);
        }
      }
      x += r.x_column;
      dy += L;
    };
    int left = r.columns;
    for (; left > 1; left -= 2) {
      add_pixel();
      add_pixel();
    }
    if (left > 0) add_pixel();
  }
#pragma GCC unroll 8
  for (int i = 0; i < C; ++i) {
#pragma GCC unroll 3
    for (int j = 0; j < columns; ++j) store(place(i, j), sum[i][j]);
  }
}

/// Several blocks with one tap, or one block with several.
template <class T>
void add_products(int blocks, int taps, const gradient_rows<T>& r, T* sums,
                  std::int64_t sum_block) {
  if (taps == 3)
    add_products<T, 1, 3>(r, sums, sum_block);
  else if (taps == 2)
    add_products<T, 1, 2>(r, sums, sum_block);
  else if (blocks == 3)
    add_products<T, 3, 1>(r, sums, sum_block);
  else if (blocks == 2)
    add_products<T, 2, 1>(r, sums, sum_block);
  else
    add_products<T, 1, 1>(r, sums, sum_block);
}

/// Result rows of one chunk, so that the image and dy of a chunk stay in the second cache.
template <class T>
constexpr int gradient_chunk_rows(const blocked_convolution_extents& e) {
  const std::int64_t row = (std::int64_t{e.out_blocks} * e.out_width +
                            std::int64_t{e.in_blocks} * e.stride_vertical * e.width) *
                           lanes<T> * std::int64_t{sizeof(T)};
  return int(std::clamp<std::int64_t>((512 << 10) / row, 1, e.out_height));
}

/// A pointwise convolution's pixels may be cut at will: as rows of some length.
constexpr blocked_convolution_extents as_rows(blocked_convolution_extents e) {
  if (!e.pointwise()) return e;
  const int pixels = int(e.in_plane());
  int length = pixels;
  for (int n : {2, 4, 7, 8, 14, 16, 28, 56}) {
    if (pixels % n == 0 && pixels / n >= 32) length = pixels / n;
  }
  e.width = e.out_width = length;
  e.height = e.out_height = pixels / length;
  return e;
}

/// Register tiles of filters.
template <class T>
constexpr int gradient_units_of_slice(const blocked_convolution_extents& e) {
  constexpr int tiles_of_block = lanes<T> / gradient_channels<T>;
  return gradient_groups(e.out_blocks) * e.in_blocks * tiles_of_block * e.kernel_height;
}
/// The sums over some samples.
template <class T>
void sum_weight_gradient(work_range units, work_range samples, const blocked_convolution_extents& e,
                         const T* x, const T* dy, T* sums) {
  constexpr int L = lanes<T>, C = gradient_channels<T>, parts = L / C;
  const std::int64_t in_plane = e.in_plane() * L, out_plane = e.out_plane() * L;
  const std::int64_t sum_block = std::int64_t{e.in_blocks} * e.taps() * L * L;
  const int chunk = gradient_chunk_rows<T>(e);
  for (int n = samples.first; n < samples.last; ++n) {
    for (int first = 0; first < e.out_height; first += chunk) {
      const bool start = n == samples.first && first == 0;
      for (int u = units.first; u < units.last; ++u) {
        const int i = u % e.kernel_height, part = u / e.kernel_height % parts;
        const int b = u / e.kernel_height / parts % e.in_blocks;
        const int o = u / e.kernel_height / parts / e.in_blocks * gradient_blocks;
        const int blocks = std::min(gradient_blocks, e.out_blocks - o);
        T* const sum = sums + (std::int64_t{o} * e.in_blocks + b) * e.taps() * L * L +
                       i * e.kernel_width * L * L + part * C * L;
        const work_range rows =
            positions_inside({first, std::min(first + chunk, e.out_height)}, e.stride_vertical,
                             i - e.padding_top, i - e.padding_top, e.height);
        const auto columns_of = [&](int tap, int taps) {
          const int leftmost = tap - e.padding_left;
          return positions_inside({0, e.out_width}, e.stride_horizontal, leftmost,
                                  leftmost + taps - 1, e.width);
        };
        const auto add = [&](int tap, int taps, work_range columns) {
          if (rows.empty() || columns.empty()) return;
          const int row = rows.first * e.stride_vertical - e.padding_top + i;
          const int column = columns.first * e.stride_horizontal - e.padding_left + tap;
          add_products<T>(
              blocks, taps,
              {x + (std::int64_t{n} * e.in_blocks + b) * in_plane +
                   (std::int64_t{row} * e.width + column) * L + part * C,
               dy + (std::int64_t{n} * e.out_blocks + o) * out_plane +
                   (std::int64_t{rows.first} * e.out_width + columns.first) * L,
               rows.size(), columns.size(), std::int64_t{e.stride_vertical} * e.width * L,
               std::int64_t{e.stride_horizontal} * L, std::int64_t{e.out_width} * L, out_plane},
              sum + tap * L * L, sum_block);
        };
        const int taps_at_once = blocks == 1 ? gradient_taps : 1;
        for (int j = 0; j < e.kernel_width; j += taps_at_once) {
          const int taps = std::min(taps_at_once, e.kernel_width - j);
          if (start) {
            for (int k = 0; k < blocks * taps; ++k)
              std::memset(sum + (j + k % taps) * L * L + k / taps * sum_block, 0,
                          sizeof(T) * std::size_t(C * L));
          }
          // Together where all these taps are inside the image, one by one at its edges.
          const work_range all = columns_of(j, taps);
          add(j, taps, all);
          for (int k = j; k < j + taps; ++k) {
            const work_range own = columns_of(k, 1);
            add(k, 1, {own.first, all.empty() ? own.last : all.first});
            if (!all.empty()) add(k, 1, {all.last, own.last});
          }
        }
      }
    }
  }
}

}  // namespace detail

template <class T>
constexpr int blocked_weight_gradient_units(const blocked_convolution_extents& e) {
  return weight_gradient_slices<T>(e) * detail::gradient_units_of_slice<T>(e);
}

template <class T>
void blocked_weight_gradient(work_range units, const blocked_convolution_extents& extents,
                             const T* x, const T* dy, T* sums) {
  const auto e = detail::as_rows(extents);
  const int slices = weight_gradient_slices<T>(e), each = detail::gradient_units_of_slice<T>(e);
  for (int k = units.first / each; k * each < units.last; ++k) {
    const work_range part{std::max(units.first - k * each, 0),
                          std::min(units.last - k * each, each)};
    detail::sum_weight_gradient<T>(part, part_of(e.samples, slices, k), e, x, dy,
                                   sums + k * filter_elements<T>(e));
  }
}
CELLA_COMPILED_FOR_FLOATS(blocked_weight_gradient);

}  // namespace cella::cpu
