// Convolution of images in blocks of channels, and the gradient of the image: a register tile of
// some pixels by one or two blocks of channels, accumulated over taps and input channels. A tile's
// pixels need not be neighbours: each has a pointer of its own, which for taps outside the image
// points to zeros, so that no image is padded and no edge has a kernel of its own.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/blocked/pointwise.hpp>
#include <cella/backend/cpu/blocked/product.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>

namespace cella::cpu {

/// Units of work; results do not depend on how they are shared out.
template <class T, int Summands = 1>
constexpr int blocked_convolution_units(const blocked_convolution_extents& e);
template <class T, int Summands = 1>
constexpr int blocked_input_gradient_units(const blocked_convolution_extents& e);

/// y from x and filters packed by `pack_filters`. The sink gets (value, element of y, block). With
/// two `Summands` x and filters are pairs of channels (blocked/pairs.hpp).
template <class T, int Summands = 1, class Sink>
void blocked_convolution(work_range units, const blocked_convolution_extents& e, const T* x,
                         const T* packed, const Sink& sink);
/// dx from dy and filters packed by `pack_filters_transposed`; elements and blocks are those of x.
template <class T, int Summands = 1, class Sink>
void blocked_input_gradient(work_range units, const blocked_convolution_extents& e, const T* dy,
                            const T* packed, const Sink& sink);

namespace detail {

/// The grid pixels of one tile; those behind the last one are outside of every image.
template <class T>
struct blocked_tile_pixels {
  int count;
  std::array<std::int64_t, std::size_t(blocked_pixels)> at;  // elements of the result, block 0
  std::array<const T*, std::size_t(blocked_pixels)> image;   // the source of this sample
  std::array<int, std::size_t(blocked_pixels)> row, column;  // in the source, before the tap
};

template <class T, int Summands>
void find_pixels(const blocked_product<T, Summands>& p, const T* source, int first,
                 blocked_tile_pixels<T>& tile) {
  const std::int64_t source_image = std::int64_t{p.source_blocks} * p.height * p.width * p.words;
  const std::int64_t result_image = p.result_blocks * p.result_plane;
  const int grid = p.rows * p.columns;
  tile.count = std::min(blocked_pixels, p.pixels() - first);
  int n = first / grid, i = first % grid / p.columns, j = first % p.columns;
  for (int k = 0; k < blocked_pixels; ++k) {
    const auto at = std::size_t(k);
    tile.image[at] = source + n * source_image;
    tile.row[at] = k < tile.count ? i * p.step_vertical : -(1 << 20);
    tile.column[at] = j * p.step_horizontal;
    tile.at[at] = n * result_image +
                  std::int64_t{i * p.place_vertical + p.place_row} * p.result_width +
                  j * p.place_horizontal + p.place_column;
    if (k + 1 >= tile.count) continue;
    if (++j == p.columns) {
      j = 0;
      if (++i == p.rows) i = 0, ++n;
    }
  }
}

/// Memory that is asked for while a tile is computed.
template <class T>
struct blocked_tile_lines {
  static constexpr int most = any_blocked_sink<T>::most_arrays * 2 * blocked_pixels;
  std::array<const void*, std::size_t(most)> at;
  int count = 0;
};

/// Accumulates a tile of Blocks blocks whose filters begin at w, `filter` elements apart. It is
/// finished in place, the first block being number `first_block`, or, if `finish` is null, written
/// to `result`, [Blocks][blocked_pixels][L].
template <int Blocks, class T, int Summands>
[[gnu::noinline]] void blocked_tile(const blocked_product<T, Summands>& p,
                                    const blocked_tile_pixels<T>& tile, const T* w,
                                    std::int64_t filter, const blocked_tile_lines<T>& lines,
                                    data_ahead<T> ahead, const blocked_finish<T>* finish,
                                    int first_block, T* result) {
  constexpr int L = lanes<T>, P = blocked_pixels, W = L / Summands;
  vec<T> sum[P][Blocks];
#pragma GCC unroll 16
  for (int i = 0; i < P; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < Blocks; ++j) sum[i][j] = vec<T>(T{0});
  }
  const std::int64_t plane = std::int64_t{p.height} * p.width * W;
  const int pieces = std::max(p.taps * p.source_blocks, 1);  // without taps the tile is zero
  const int share = (lines.count + pieces - 1) / pieces;
  int asked = 0;
  for (int t = 0; t < p.taps; ++t) {
    const blocked_tap tap = p.tap[std::size_t(t)];
    const T* pixel[P];
    std::int64_t step[P];
    for (int i = 0; i < P; ++i) {
      const int row = tile.row[std::size_t(i)] + tap.row;
      const int column = tile.column[std::size_t(i)] + tap.column;
      const bool inside = row >= 0 && row < p.height && column >= 0 && column < p.width;
      pixel[i] = inside ? tile.image[std::size_t(i)] + (std::int64_t{row} * p.width + column) * W
                        : zero_pixel<T>.data();
      step[i] = inside ? plane : 0;
    }
    // Pixels that are neighbours in memory need one pointer instead of more than there are
    // registers.
    bool neighbours = true;
    for (int i = 1; i < P; ++i) neighbours &= pixel[i] == pixel[0] + i * W && step[i] == plane;
    const T* b = w + std::int64_t{tap.filter} * p.source_blocks * W * L;
    for (int block = 0; block < p.source_blocks; ++block, b += W * L) {
      for (const int end = std::min(asked + share, lines.count); asked < end; ++asked)
        __builtin_prefetch(lines.at[std::size_t(asked)], 1, 2);
      const auto add_channel = [&](int c, auto pixel_at) __attribute__((always_inline)) {
        vec<T> f[Blocks];
#pragma GCC unroll 2
        for (int j = 0; j < Blocks; ++j) {
          f[j] = load_shared(b + j * filter + c * L);
          if (begins_line<T>(c)) __builtin_prefetch(b + j * filter + (c + W) * L);
        }
#pragma GCC unroll 16
        for (int i = 0; i < P; ++i) {
          const vec<T> v(pixel_at(i)[c]);
#pragma GCC unroll 2
          for (int j = 0; j < Blocks; ++j) add_words<Summands>(sum[i][j], v, f[j]);
        }
      };
      if (neighbours) {
        const auto near = [first = pixel[0]](int i) { return first + i * W; };
        add_block<W>(
            ahead, [&](int c) __attribute__((always_inline)) { add_channel(c, near); });
        pixel[0] += plane;
        continue;
      }
      const auto anywhere = [&](int i) { return pixel[i]; };
      add_block<W>(
          ahead, [&](int c) __attribute__((always_inline)) { add_channel(c, anywhere); });
      for (int i = 0; i < P; ++i) pixel[i] += step[i];
    }
  }
  if (finish)
    return finish->template store_tile<P, Blocks>(
        tile.at[0], p.result_plane,
        first_block, [&](int i, int j) __attribute__((always_inline)) { return sum[i][j]; });
#pragma GCC unroll 16
  for (int i = 0; i < P; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < Blocks; ++j) store(result + (j * P + i) * L, sum[i][j]);
  }
}

/// multiply_blocks() of products whose planes are cut into so many pixels and blocks.
template <int Pixels, int Most, class T, int Summands>
void multiply_pointwise(work_range units, const blocked_product<T, Summands>& p, const T* source,
                        const T* filters, const any_blocked_sink<T>& sink) {
  constexpr int words = blocked_product<T, Summands>::words;
  const std::int64_t plane = p.result_plane;
  const int channels = p.source_blocks * lanes<T>;
  const std::int64_t filter = std::int64_t{p.source_blocks} * words * lanes<T>;
  const pointwise_tiles<T, Pixels, false, Summands> tiles(source, channels, plane, filters, filter,
                                                          p.result_blocks, sink);
  const blocked_work work = p.work();
  const int of_sample = int((plane + Pixels - 1) / Pixels);
  const auto pixels = [&](int tile) {
    const int sample = p.samples == 1 ? 0 : tile / of_sample;
    const std::int64_t wanted = std::int64_t{tile - sample * of_sample} * Pixels;
    const std::int64_t at = std::min(wanted, plane - Pixels);
    return tiles.at(sample, at, int(wanted - at));
  };
  // Not three of four: one block alone would wait for its sums.
  const auto at_once = [](int left) {
    return Most == 3 && left >= 3 && left != 4 ? 3 : std::min(left, 2);
  };
  const auto ahead_of = [&](int block, int left, int shares) {
    return data_ahead<T>(filters + block * filter, std::min(left, Most) * filter, shares,
                         p.source_blocks * turns_of_block<words>);
  };
  const auto compute = [&](const auto& tile, int block, int blocks, const data_ahead<T>& ahead) {
    if (Most == 3 && blocks == 3)
      tiles.template compute<Most>(tile, block, ahead);
    else if (blocks == 2)
      tiles.template compute<2>(tile, block, ahead);
    else
      tiles.template compute<1>(tile, block, ahead);
  };
  for (int u = units.first; u < units.last; ++u)
    walk_tiles(work, u, p.few_filters(), at_once, pixels, ahead_of, compute);
}

/// Units [first, last) of a product: chunks of tiles, each cut into parts of the result's channels.
template <class T, int Summands>
void multiply_blocks(work_range units, const blocked_product<T, Summands>& p, const T* source,
                     const T* filters, const any_blocked_sink<T>& sink) {
  constexpr int L = lanes<T>, P = blocked_pixels, words = blocked_product<T, Summands>::words;
  if (const int pixels = p.pointwise().pixels; pixels == P)
    return multiply_pointwise<P, 2>(units, p, source, filters, sink);
  else if (pixels)
    return multiply_pointwise<P / 2, 3>(units, p, source, filters, sink);
  const std::int64_t filter = std::int64_t{p.filter_taps} * p.source_blocks * words * L;
  const blocked_work work = p.work();
  alignas(64) T result[2 * P * L];
  blocked_tile_pixels<T> tile;
  blocked_tile_lines<T> lines;
  const auto pixels = [&](int t) -> const blocked_tile_pixels<T>& {
    find_pixels(p, source, t * P, tile);
    return tile;
  };
  const auto at_once = [](int left) { return std::min(left, 2); };
  const auto ahead_of = [&](int block, int left, int shares) {
    return data_ahead<T>(filters + block * filter, at_once(left) * filter, shares,
                         p.taps * p.source_blocks * turns_of_block<words>);
  };
  const auto compute = [&](const blocked_tile_pixels<T>&, int block, int blocks,
                           const data_ahead<T>& ahead) {
    const T* w = filters + block * filter;
    lines.count = sink.list_vectors(tile.count, blocks, tile.at.data(), p.result_plane, block,
                                    lines.at.data(), lines.most);
    const bool in_row = tile.count == P && tile.at[P - 1] == tile.at[0] + P - 1;
    const blocked_finish<T>* const finish = in_row ? sink.finish() : nullptr;
    if (blocks == 2)
      blocked_tile<2>(p, tile, w, filter, lines, ahead, finish, block, result);
    else
      blocked_tile<1>(p, tile, w, filter, lines, ahead, finish, block, result);
    if (finish) return;
    sink.hand_over(result, P, tile.count, blocks, tile.at.data(), p.result_plane, block);
  };
  for (int u = units.first; u < units.last; ++u)
    walk_tiles(work, u, p.few_filters(), at_once, pixels, ahead_of, compute);
}
CELLA_COMPILED_ONCE(multiply_blocks<float, 1>);
CELLA_COMPILED_ONCE(multiply_blocks<double, 1>);

/// The units of the phases of an image gradient, of which each product has units_of(product).
template <class T, int Summands, class UnitsOf>
constexpr int units_of_phases(const blocked_convolution_extents& e, UnitsOf units_of) {
  int n = 0;
  for (int phase = 0; phase < e.stride_vertical * e.stride_horizontal; ++phase)
    n += units_of(backward_product<T, Summands>(e, phase));
  return n;
}
/// Calls run(part, product) for each phase that some of the units belong to.
template <class T, int Summands, class UnitsOf, class Run>
void run_phases(work_range units, const blocked_convolution_extents& e, UnitsOf units_of, Run run) {
  int before = 0;
  for (int phase = 0; phase < e.stride_vertical * e.stride_horizontal; ++phase) {
    const auto p = backward_product<T, Summands>(e, phase);
    const int own = units_of(p);
    const work_range part{std::max(units.first - before, 0), std::min(units.last - before, own)};
    before += own;
    if (!part.empty()) run(part, p);
  }
}

inline constexpr auto units_in_vectors = [](const auto& p) { return p.work().units(); };

}  // namespace detail

template <class T, int Summands>
constexpr int blocked_convolution_units(const blocked_convolution_extents& e) {
  return detail::forward_product<T, Summands>(e).work().units();
}
template <class T, int Summands>
constexpr int blocked_input_gradient_units(const blocked_convolution_extents& e) {
  return detail::units_of_phases<T, Summands>(e, detail::units_in_vectors);
}

template <class T, int Summands, class Sink>
void blocked_convolution(work_range units, const blocked_convolution_extents& e, const T* x,
                         const T* packed, const Sink& sink) {
  detail::multiply_blocks(units, detail::forward_product<T, Summands>(e), x, packed,
                          detail::any_blocked_sink<T>(sink));
}
template <class T, int Summands, class Sink>
void blocked_input_gradient(work_range units, const blocked_convolution_extents& e, const T* dy,
                            const T* packed, const Sink& sink) {
  const detail::any_blocked_sink<T> any(sink);
  detail::run_phases<T, Summands>(
      units, e, detail::units_in_vectors,
      [&](work_range part, const auto& p) { detail::multiply_blocks(part, p, dy, packed, any); });
}

}  // namespace cella::cpu
