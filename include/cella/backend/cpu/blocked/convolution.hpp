// Convolution of images in blocks of channels, and the gradient of the image: a register tile of
// some pixels by one or two blocks of channels, accumulated over taps and input channels. A tile's
// pixels need not be neighbours: each has a pointer of its own, which for taps outside the image
// points to zeros, so that no image is padded and no edge has a kernel of its own.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/blocked/pointwise.hpp>
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

inline constexpr int most_taps = 128;

/// One tap of a filter: which, and where it reads relative to a pixel of the grid.
struct blocked_tap {
  int filter, row, column;
};

/// What the tiles of a call have in common: a grid of result pixels, the source image that the taps
/// read, and where results belong.
template <class T, int Summands>
struct blocked_product {
  static constexpr int words = lanes<T> / Summands;  // of a pixel in a block of channels

  int samples, rows, columns;                  // grid of result pixels
  int height, width, source_blocks;            // of the source image
  int step_vertical = 1, step_horizontal = 1;  // source pixels per grid pixel
  int result_blocks;
  std::int64_t result_plane;                     // pixels of a result image
  int result_width;                              // of it
  int place_vertical = 1, place_horizontal = 1;  // result pixels per grid pixel
  int place_row = 0, place_column = 0;           // of the grid's first pixel
  int filter_taps;                               // that a filter has, of which some are used
  int taps = 0;
  std::array<blocked_tap, most_taps> tap;

  constexpr int pixels() const { return samples * rows * columns; }
  /// How its planes are cut, if every result has one tap, at its own pixel.
  constexpr pointwise_cut pointwise() const {
    const bool same = rows == height && columns == width && step_vertical == 1 &&
                      step_horizontal == 1 && place_vertical == 1 && place_horizontal == 1;
    if (!same || filter_taps != 1 || taps != 1 || tap[0].row != 0 || tap[0].column != 0)
      return pointwise_cut(0, samples, result_blocks);
    return pointwise_cut(result_plane, samples, result_blocks);
  }
  constexpr int tiles() const {
    if (const pointwise_cut cut = pointwise(); cut.pixels) return samples * cut.tiles(result_plane);
    return (pixels() + blocked_pixels - 1) / blocked_pixels;
  }
  /// All filters in the second cache: then a tile's pixels stay in the first one.
  constexpr bool few_filters() const {
    return std::int64_t{filter_taps} * source_blocks * result_blocks * words * lanes<T> *
               std::int64_t{sizeof(T)} <=
           (256 << 10);
  }
  constexpr blocked_work work() const {
    const pointwise_cut cut = pointwise();
    blocked_work w{tiles(), cut.pixels ? cut.blocks : 2, result_blocks};
    const std::int64_t bytes = std::int64_t{cut.pixels ? cut.pixels : blocked_pixels} *
                               step_vertical * step_horizontal * source_blocks * words *
                               std::int64_t{sizeof(T)};
    w.divide(int(std::clamp<std::int64_t>((256 << 10) / bytes, 1, std::max(w.tiles, 1))),
             few_filters());
    return w;
  }
};

template <class T, int Summands>
constexpr blocked_product<T, Summands> forward_product(const blocked_convolution_extents& e) {
  blocked_product<T, Summands> p{};
  p.samples = e.samples;
  p.rows = e.out_height;
  p.columns = e.out_width;
  p.height = e.height;
  p.width = e.width;
  p.source_blocks = e.in_blocks;
  p.step_vertical = e.stride_vertical;
  p.step_horizontal = e.stride_horizontal;
  p.result_blocks = e.out_blocks;
  p.result_plane = e.out_plane();
  p.result_width = e.out_width;
  p.filter_taps = e.taps();
  for (int i = 0; i < e.kernel_height; ++i) {
    for (int j = 0; j < e.kernel_width; ++j)
      p.tap[std::size_t(p.taps++)] = {i * e.kernel_width + j, i - e.padding_top,
                                      j - e.padding_left};
  }
  return p;
}

/// Image pixels whose row and column leave the same remainder by the stride are reached by the same
/// taps: one product for each of these phases.
template <class T, int Summands>
constexpr blocked_product<T, Summands> backward_product(const blocked_convolution_extents& e,
                                                        int phase) {
  const int a = phase / e.stride_horizontal, b = phase % e.stride_horizontal;
  blocked_product<T, Summands> p{};
  p.samples = e.samples;
  p.rows = (e.height - a + e.stride_vertical - 1) / e.stride_vertical;
  p.columns = (e.width - b + e.stride_horizontal - 1) / e.stride_horizontal;
  p.height = e.out_height;
  p.width = e.out_width;
  p.source_blocks = e.out_blocks;
  p.result_blocks = e.in_blocks;
  p.result_plane = e.in_plane();
  p.result_width = e.width;
  p.place_vertical = e.stride_vertical;
  p.place_horizontal = e.stride_horizontal;
  p.place_row = a;
  p.place_column = b;
  p.filter_taps = e.taps();
  for (int i = 0; i < e.kernel_height; ++i) {
    const int row = a + e.padding_top - i;
    if (row % e.stride_vertical != 0) continue;
    for (int j = 0; j < e.kernel_width; ++j) {
      const int column = b + e.padding_left - j;
      if (column % e.stride_horizontal != 0) continue;
      p.tap[std::size_t(p.taps++)] = {i * e.kernel_width + j, row / e.stride_vertical,
                                      column / e.stride_horizontal};
    }
  }
  return p;
}

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
          __builtin_prefetch(b + j * filter + (c + W) * L);
        }
#pragma GCC unroll 16
        for (int i = 0; i < P; ++i) {
          const vec<T> v(pixel_at(i)[c]);
#pragma GCC unroll 2
          for (int j = 0; j < Blocks; ++j) sum[i][j] = add_words<Summands>(v, f[j], sum[i][j]);
        }
      };
      if (neighbours) {
#pragma GCC unroll 2
        for (int c = 0; c < W; ++c) {
          if (c % 2 == 0) ahead.ask();
          add_channel(c, [first = pixel[0]](int i) { return first + i * W; });
        }
        pixel[0] += plane;
        continue;
      }
#pragma GCC unroll 2
      for (int c = 0; c < W; ++c) {
        if (c % 2 == 0) ahead.ask();
        add_channel(c, [&](int i) { return pixel[i]; });
      }
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
  using tile_pixels = pointwise_pixels<T, Pixels, false, Summands>;
  const std::int64_t plane = p.result_plane;
  const int channels = p.source_blocks * lanes<T>;
  const std::int64_t filter = std::int64_t{p.source_blocks} * p.words * lanes<T>;
  const blocked_work work = p.work();
  const int of_sample = int((plane + Pixels - 1) / Pixels);
  const auto pixels = [&](int tile) {
    const std::int64_t wanted = std::int64_t{tile % of_sample} * Pixels;
    const std::int64_t at = std::min(wanted, plane - Pixels);
    return tile_pixels(source, channels, p.result_blocks, plane, tile / of_sample, at,
                       int(wanted - at));
  };
  const auto compute = [&](const tile_pixels& tile, int block, int last, int which, int shares) {
    const int left = last - block;
    // Not three of four: one block alone would wait for its sums.
    const int blocks = Most == 3 && left >= 3 && left != 4 ? 3 : std::min(left, 2);
    const data_ahead<T> ahead(filters + (block + blocks) * filter,
                              std::min(left - blocks, Most) * filter, which, shares,
                              channels / 2 / Summands);
    if (Most == 3 && blocks == 3)
      tile.template compute<Most>(block, filters, filter, sink, ahead);
    else if (blocks == 2)
      tile.template compute<2>(block, filters, filter, sink, ahead);
    else
      tile.template compute<1>(block, filters, filter, sink, ahead);
    return blocks;
  };
  for (int u = units.first; u < units.last; ++u)
    walk_tiles(work, u, p.few_filters(), pixels, compute);
}

/// Units [first, last) of a product: chunks of tiles, each cut into parts of the result's channels.
template <class T, int Summands>
void multiply_blocks(work_range units, const blocked_product<T, Summands>& p, const T* source,
                     const T* filters, const any_blocked_sink<T>& sink) {
  constexpr int L = lanes<T>, P = blocked_pixels;
  if (const int pixels = p.pointwise().pixels; pixels == P)
    return multiply_pointwise<P, 2>(units, p, source, filters, sink);
  else if (pixels)
    return multiply_pointwise<P / 2, 3>(units, p, source, filters, sink);
  const std::int64_t filter = std::int64_t{p.filter_taps} * p.source_blocks * p.words * L;
  const blocked_work work = p.work();
  alignas(64) T result[2 * P * L];
  blocked_tile_pixels<T> tile;
  blocked_tile_lines<T> lines;
  const auto pixels = [&](int t) -> const blocked_tile_pixels<T>& {
    find_pixels(p, source, t * P, tile);
    return tile;
  };
  const auto compute = [&](const blocked_tile_pixels<T>&, int block, int last, int which,
                           int shares) {
    const int blocks = std::min(last - block, 2);
    const T* w = filters + block * filter;
    const data_ahead<T> ahead(w + blocks * filter, std::min(last - block - blocks, 2) * filter,
                              which, shares, p.taps * p.source_blocks * p.words / 2);
    lines.count = sink.list_vectors(tile.count, blocks, tile.at.data(), p.result_plane, block,
                                    lines.at.data(), lines.most);
    const bool in_row = tile.count == P && tile.at[P - 1] == tile.at[0] + P - 1;
    const blocked_finish<T>* const finish = in_row ? sink.finish() : nullptr;
    if (blocks == 2)
      blocked_tile<2>(p, tile, w, filter, lines, ahead, finish, block, result);
    else
      blocked_tile<1>(p, tile, w, filter, lines, ahead, finish, block, result);
    if (finish) return blocks;
    sink.hand_over(result, P, tile.count, blocks, tile.at.data(), p.result_plane, block);
    return blocks;
  };
  for (int u = units.first; u < units.last; ++u)
    walk_tiles(work, u, p.few_filters(), pixels, compute);
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
