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
inline constexpr int gradient_blocks = 3;
/// Neighbouring taps of a register tile of one block.
inline constexpr int gradient_taps = 3;

/// Groups of blocks of output channels, one for each tile, and the blocks of one: of four, two.
constexpr int gradient_groups(int blocks) { return ceil_divide(blocks, gradient_blocks); }
constexpr work_range gradient_group(int blocks, int group) {
  return part_of(blocks, gradient_groups(blocks), group);
}

/// A rectangle of result pixels of some samples, and the image pixels that a tap reads for it.
template <class T>
struct gradient_rows {
  const T* x;
  const T* dy;
  int samples, rows, columns;
  std::int64_t x_sample, x_row, x_column, dy_sample, dy_row, dy_block;  // elements
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
  const auto add_row = [&](const T* x, const T* dy) __attribute__((always_inline)) {
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
  };
  for (int n = 0; n < r.samples; ++n) {
    for (int row = 0; row < r.rows; ++row)
      add_row(r.x + n * r.x_sample + row * r.x_row, r.dy + n * r.dy_sample + row * r.dy_row);
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

/// The order of the sums: chunks of rows, or of samples, and for each the register tiles, of groups
/// of blocks of output channels. A chunk of a block of the image stays in the first cache for some
/// groups, and that of their dy in the second one for all blocks of the image. The fewer chunks,
/// the less often the sums come from memory.
template <class T>
struct gradient_order {
  static constexpr int parts = lanes<T> / gradient_channels<T>;  // of a block of the image
  const blocked_convolution_extents& e;
  int rows, samples;  // of a chunk
  int groups, near_groups;

  constexpr gradient_order(const blocked_convolution_extents& of, int all_samples)
      : e(of), groups(gradient_groups(e.out_blocks)) {
    constexpr std::int64_t first_cache = 24 << 10, second_cache = 192 << 10;
    constexpr std::int64_t pixel = lanes<T> * std::int64_t{sizeof(T)};
    const auto as_many = [](std::int64_t cache, std::int64_t bytes, int most) {
      return int(
          std::clamp<std::int64_t>(cache / std::max<std::int64_t>(bytes, 1), 1, std::max(most, 1)));
    };
    rows = as_many(first_cache, std::int64_t{e.stride_vertical} * e.width * pixel, e.out_height);
    samples = rows < e.out_height ? 1 : as_many(first_cache, e.in_plane() * pixel, all_samples);
    near_groups = as_many(
        second_cache, std::int64_t{samples} * rows * e.out_width * pixel * gradient_blocks, groups);
  }

  constexpr int units() const { return groups * e.in_blocks * parts * e.kernel_height; }
  struct tile {
    int tap_row, part, in_block;
    work_range out_blocks;
  };
  constexpr tile at(int unit) const {
    const int i = unit % e.kernel_height, part = unit / e.kernel_height % parts;
    const int rest = unit / e.kernel_height / parts;
    const int first = rest / (near_groups * e.in_blocks) * near_groups;
    const int count = std::min(near_groups, groups - first), k = rest - first * e.in_blocks;
    return {i, part, k / count, gradient_group(e.out_blocks, first + k % count)};
  }
};

/// The sums over some samples.
template <class T>
void sum_weight_gradient(work_range units, work_range samples, const blocked_convolution_extents& e,
                         const T* x, const T* dy, T* sums) {
  constexpr int L = lanes<T>, C = gradient_channels<T>;
  const std::int64_t in_plane = e.in_plane() * L, out_plane = e.out_plane() * L;
  const std::int64_t sum_block = std::int64_t{e.in_blocks} * e.taps() * L * L;
  const gradient_order<T> order(e, samples.size());
  for (int n = samples.first; n < samples.last; n += order.samples) {
    const int together = std::min(order.samples, samples.last - n);
    for (int first = 0; first < e.out_height; first += order.rows) {
      const bool start = n == samples.first && first == 0;
      for (int u = units.first; u < units.last; ++u) {
        const auto [i, part, b, of_dy] = order.at(u);
        const int o = of_dy.first, blocks = of_dy.size();
        T* const sum = sums + (std::int64_t{o} * e.in_blocks + b) * e.taps() * L * L +
                       i * e.kernel_width * L * L + part * C * L;
        const work_range rows =
            positions_inside({first, std::min(first + order.rows, e.out_height)}, e.stride_vertical,
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
          const T* const from = x + (std::int64_t{n} * e.in_blocks + b) * in_plane +
                                (std::int64_t{row} * e.width + column) * L + part * C;
          const T* const of = dy + (std::int64_t{n} * e.out_blocks + o) * out_plane +
                              (std::int64_t{rows.first} * e.out_width + columns.first) * L;
          add_products<T>(
              blocks, taps,
              {from, of, together, rows.size(), columns.size(), e.in_blocks * in_plane,
               std::int64_t{e.stride_vertical} * e.width * L, std::int64_t{e.stride_horizontal} * L,
               e.out_blocks * out_plane, std::int64_t{e.out_width} * L, out_plane},
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
  return weight_gradient_slices<T>(e) * detail::gradient_order<T>(e, e.samples).units();
}

template <class T>
void blocked_weight_gradient(work_range units, const blocked_convolution_extents& extents,
                             const T* x, const T* dy, T* sums) {
  const auto e = detail::as_rows(extents);
  const int slices = weight_gradient_slices<T>(e),
            each = detail::gradient_order<T>(e, e.samples).units();
  for (int k = units.first / each; k * each < units.last; ++k) {
    const work_range part{std::max(units.first - k * each, 0),
                          std::min(units.last - k * each, each)};
    detail::sum_weight_gradient<T>(part, part_of(e.samples, slices, k), e, x, dy,
                                   sums + k * filter_elements<T>(e));
  }
}
CELLA_COMPILED_FOR_FLOATS(blocked_weight_gradient);

}  // namespace cella::cpu
