// 3x3 convolutions of images in blocks of channels by Winograd's minimal filtering: forward, and
// the gradient of the image. Tiles of the image are transformed, multiplied channel by channel with
// transformed filters for each of the 36 places, and transformed back.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/blocked/layout.hpp>
#include <cella/backend/cpu/blocked/units.hpp>
#include <cella/backend/cpu/blocked/winograd_transform.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <utility>

namespace cella::cpu {

namespace winograd {

/// How an image is cut into tiles of results; the same for the gradient of the image, whose image
/// is dy.
struct tiling {
  int samples, height, width;  // of the image that is read
  int padding;                 // zeros round it
  int out_height, out_width;

  constexpr int rows() const { return (out_height + tile - 1) / tile; }
  constexpr int columns() const { return (out_width + tile - 1) / tile; }
  constexpr int each() const { return rows() * columns(); }
  constexpr int count() const { return samples * each(); }
};
constexpr tiling forward_tiles(const blocked_convolution_extents& e) {
  return {e.samples, e.height, e.width, e.padding_top, e.out_height, e.out_width};
}
constexpr tiling backward_tiles(const blocked_convolution_extents& e) {
  return {e.samples, e.out_height, e.out_width, 2 - e.padding_top, e.height, e.width};
}

/// Elements between the planes of the 36 places.
template <class T>
constexpr std::int64_t plane(std::int64_t vectors) {
  return plane(vectors, lanes<T>);
}

/// How the tiles and the blocks of results are shared out: chunks of tiles that differ by at most
/// one, and of each, where those are few, parts of the results, for which tiles are transformed
/// once by each thread.
struct shared_tiles {
  int tiles, groups;  ///< of two blocks of results
  int chunks = 1, parts = 1;

  constexpr int units() const { return chunks * parts; }
  /// Tiles of the largest chunk.
  constexpr int most() const { return (tiles + chunks - 1) / chunks; }
};
/// A chunk takes a quarter of the second cache, so that filters and images stay beside it; but has
/// so many tiles that reading the filters counts little. Where filters are near, there are at
/// least two chunks, and an even number of them.
template <class T>
constexpr shared_tiles share_tiles(const tiling& t, int source_blocks, int result_blocks) {
  constexpr int enough = 16;
  constexpr std::int64_t block = products * lanes<T> * std::int64_t{sizeof(T)};
  const int filters = source_blocks * result_blocks;
  const int fit = int((256 << 10) / (block * (source_blocks + result_blocks)) / 14 * 14);
  const int most = std::max(fit, filters > 64 ? 64 : 28);
  shared_tiles work{t.count(), (result_blocks + 1) / 2};
  work.chunks = (work.tiles + most - 1) / most;
  if (filters * lanes<T> * block <= (256 << 10))
    work.chunks =
        std::max(work.chunks, 2 * std::clamp(work.tiles / 56, work.tiles >= 16 ? 1 : 0, 8));
  work.parts = std::clamp(enough / std::max(work.chunks, 1), 1, work.groups);
  return work;
}

/// One block of filters as [9][L source channels][L result channels]: as they are, or for the
/// gradient of the image, where channels change places and taps are in reverse order.
template <class T, bool Backward>
void filter_block(const T* w, int in_blocks, int out_block, int in_block, vec<T>* block) {
  constexpr int L = lanes<T>;
  const std::int64_t filter = std::int64_t{in_blocks} * L * 9;
  const T* from = w + out_block * L * filter + std::int64_t{in_block} * L * 9;
  for (int e = 0; e < L * 9; e += L) {
    vec<T> square[L];
    for (int k = 0; k < L; ++k) square[k] = load_unaligned(from + k * filter + e);
    transpose<T>(square);
    int channel = e / 9, tap = e % 9;
    for (int k = 0; k < L; ++k) {
      block[(Backward ? 8 - tap : tap) * L + channel] = square[k];
      if (++tap == 9) tap = 0, ++channel;
    }
  }
  if constexpr (Backward) {
    for (int t = 0; t < 9; ++t) transpose<T>(block + t * L);
  }
}

/// Filters w [out_blocks L][in_blocks L][9] -> [36][result blocks][source blocks][L][L]. Units:
/// result blocks.
template <class T, bool Backward>
void transform_filters(work_range units, int in_blocks, int out_blocks, const T* w, T* u) {
  constexpr int L = lanes<T>;
  const int sources = Backward ? out_blocks : in_blocks;
  const std::int64_t step = plane<T>(std::int64_t{in_blocks} * out_blocks * L);
  vec<T> block[9 * L];
  for (int r = units.first; r < units.last; ++r) {
    for (int s = 0; s < sources; ++s) {
      filter_block<T, Backward>(w, in_blocks, Backward ? s : r, Backward ? r : s, block);
      T* const to = u + (std::int64_t{r} * sources + s) * L * L;
      for (int c = 0; c < L; ++c) {
        vec<T> x[9], y[products];
        for (int t = 0; t < 9; ++t) x[t] = block[t * L + c];
        transform<kind::filter, T>(x, y);
        for (int k = 0; k < products; ++k) store(to + k * step + c * L, y[k]);
      }
    }
  }
}

/// Reads Size x Size pixels of a plane from (row, column) on; zeros outside.
template <int Size, class T>
[[gnu::always_inline]] inline void read_tile(const T* image, int height, int width, int row,
                                             int column, vec<T>* x) {
  constexpr int L = lanes<T>;
  const T* from = image + (std::int64_t{row} * width + column) * L;
  if (row >= 0 && column >= 0 && row + Size <= height && column + Size <= width) {
#pragma GCC unroll 6
    for (int i = 0; i < Size; ++i) {
#pragma GCC unroll 6
      for (int j = 0; j < Size; ++j)
        x[i * Size + j] = load(from + (std::int64_t{i} * width + j) * L);
    }
    return;
  }
  const T* const zeros = cpu::detail::zero_pixel<T>.data();
#pragma GCC unroll 6
  for (int i = 0; i < Size; ++i) {
    const bool in_row = static_cast<unsigned>(row + i) < static_cast<unsigned>(height);
#pragma GCC unroll 6
    for (int j = 0; j < Size; ++j) {
      const bool inside =
          in_row & (static_cast<unsigned>(column + j) < static_cast<unsigned>(width));
      x[i * Size + j] = load(inside ? from + (std::int64_t{i} * width + j) * L : zeros);
    }
  }
}

/// Tiles [first, first + count) of one block of all samples -> v, `step` elements between places.
template <kind K, class T>
[[gnu::noinline]] void transform_tiles(const tiling& t, const T* block, std::int64_t sample,
                                       int first, int count, T* v, std::int64_t step) {
  constexpr int L = lanes<T>, size = reads(K);
  constexpr bool gradient = K == kind::gradient;
  const int height = gradient ? t.out_height : t.height, width = gradient ? t.out_width : t.width;
  const int back = gradient ? 0 : t.padding;
  for (int k = 0; k < count; ++k, v += L) {
    const int n = (first + k) / t.each(), at = (first + k) % t.each();
    vec<T> x[size * size], y[products];
    read_tile<size, T>(block + n * sample, height, width, at / t.columns() * tile - back,
                       at % t.columns() * tile - back, x);
    transform<K, T>(x, y);
    for (int p = 0; p < products; ++p) store(v + p * step, y[p]);
  }
}

/// m [Blocks][..][L] = sum over `sources` blocks of v [sources][pixels][L] times u
/// [Blocks][sources] [L][L], for P pixels.
template <class T, int P, int Blocks>
[[gnu::noinline]] void multiply(int sources, const T* v, std::int64_t v_block, const T* u,
                                std::int64_t u_block, cpu::detail::data_ahead<T> ahead, T* m,
                                std::int64_t m_block) {
  constexpr int L = lanes<T>;
  vec<T> sum[P][Blocks];
#pragma GCC unroll 16
  for (int i = 0; i < P; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < Blocks; ++j) sum[i][j] = vec<T>(T{0});
  }
  const auto add_channel = [&](int c) __attribute__((always_inline)) {
    vec<T> f[Blocks];
#pragma GCC unroll 2
    for (int j = 0; j < Blocks; ++j) f[j] = load_shared(u + j * u_block + c * L);
#pragma GCC unroll 16
    for (int i = 0; i < P; ++i) {
      const vec<T> a(v[i * L + c]);
#pragma GCC unroll 2
      for (int j = 0; j < Blocks; ++j) add_product<T>(sum[i][j], a, f[j]);
    }
  };
  for (int s = 0; s < sources; ++s, v += v_block, u += L * L) {
    cpu::detail::add_block<L>(ahead, add_channel);
  }
#pragma GCC unroll 16
  for (int i = 0; i < P; ++i) {
#pragma GCC unroll 2
    for (int j = 0; j < Blocks; ++j) store(m + j * m_block + i * L, sum[i][j]);
  }
}

inline constexpr int most_pixels = vector_registers == 32 ? 14 : 6;
template <class T>
using multiply_function = void (*)(int, const T*, std::int64_t, const T*, std::int64_t,
                                   cpu::detail::data_ahead<T>, T*, std::int64_t);
/// By the number of pixels.
template <class T, int Blocks>
inline constexpr auto multiply_functions = []<std::size_t... P>(std::index_sequence<P...>) {
  return std::array<multiply_function<T>, sizeof...(P) + 1>{nullptr,
                                                            &multiply<T, int(P) + 1, Blocks>...};
}
(std::make_index_sequence<std::size_t(most_pixels)>{});

/// m = v u for `pixels` pixels, cut into register tiles of nearly equal size; `next` is the u that
/// is read then, or null.
template <class T>
void multiply_pixels(int pixels, int sources, int results, const T* v, const T* u, const T* next,
                     T* m) {
  constexpr int L = lanes<T>;
  const int parts = (pixels + most_pixels - 1) / most_pixels;
  const std::int64_t step = std::int64_t{pixels} * L, filter = std::int64_t{sources} * L * L;
  for (int r = 0; r < results; r += 2) {
    const int left = results - r - 2;
    const T* const following = left > 0 ? u + (r + 2) * filter : next;
    const std::int64_t count = following ? std::min(left > 0 ? left : results, 2) * filter : 0;
    cpu::detail::data_ahead<T> ahead(following, count, parts,
                                     sources * cpu::detail::turns_of_block<L>);
    for (int k = 0; k < parts; ++k) {
      const work_range part = part_of(pixels, parts, k);
      const auto size = std::size_t(part.size());
      const auto call =
          r + 1 < results ? multiply_functions<T, 2>[size] : multiply_functions<T, 1>[size];
      call(sources, v + part.first * L, step, u + r * filter, filter, ahead.take_share(),
           m + r * step + part.first * L, step);
    }
  }
}

/// Sums of `count` tiles of one block -> results, handed over tile by tile.
template <class T>
[[gnu::noinline]] void finish_tiles(const tiling& t, const T* m, std::int64_t step, int first,
                                    int count, int results, int block,
                                    const cpu::detail::any_blocked_sink<T>& sink) {
  constexpr int L = lanes<T>;
  const std::int64_t out_plane = std::int64_t{t.out_height} * t.out_width;
  const blocked_finish<T>* const finish = sink.finish();
  alignas(64) T pixels[tile * tile * L];
  std::array<std::int64_t, tile * tile> at;
  for (int k = 0; k < count; ++k, m += L) {
    const int n = (first + k) / t.each(), place = (first + k) % t.each();
    const int row = place / t.columns() * tile, column = place % t.columns() * tile;
    vec<T> x[products], y[tile * tile];
    for (int p = 0; p < products; ++p) x[p] = load(m + p * step);
    transform<kind::result, T>(x, y);
    const std::int64_t start = n * results * out_plane + std::int64_t{row} * t.out_width + column;
    if (finish && row + tile <= t.out_height && column + tile <= t.out_width) {
      for (int i = 0; i < tile; ++i) {
        finish->template store_pixels<tile>(
            start + block * out_plane + std::int64_t{i} * t.out_width,
            block, [&](int j) __attribute__((always_inline)) { return y[i * tile + j]; });
      }
      continue;
    }
    int inside = 0;
    for (int i = 0; i < tile && row + i < t.out_height; ++i) {
      for (int j = 0; j < tile && column + j < t.out_width; ++j) {
        at[std::size_t(inside)] = start + std::int64_t{i} * t.out_width + j;
        store(pixels + inside++ * L, y[i * tile + j]);
      }
    }
    sink.hand_over(pixels, tile * tile, inside, 1, at.data(), out_plane, block);
  }
}

/// Bytes of scratch for each thread.
template <class T>
constexpr std::int64_t scratch(const tiling& t, int sources, int results) {
  const int n = share_tiles<T>(t, sources, results).most();
  return products * (plane<T>(std::int64_t{sources} * n) + plane<T>(std::int64_t{results} * n)) *
         std::int64_t{sizeof(T)};
}
template <class T>
constexpr int units(const tiling& t, int sources, int results) {
  return share_tiles<T>(t, sources, results).units();
}

/// Units [first, last) of chunks and parts. x has `sources` blocks, the result `results`.
template <class T>
void convolve(work_range units, const tiling& t, int sources, int results, const T* x, const T* u,
              const cpu::detail::any_blocked_sink<T>& sink, T* scratch) {
  constexpr int L = lanes<T>;
  const shared_tiles work = share_tiles<T>(t, sources, results);
  const std::int64_t image = std::int64_t{t.height} * t.width * L;
  const std::int64_t filters = plane<T>(std::int64_t{sources} * results * L);
  for (int unit = units.first, next = 0; unit < units.last; unit = next) {
    const int c = unit / work.parts;
    next = std::min(units.last, (c + 1) * work.parts);
    const work_range tiles = part_of(work.tiles, work.chunks, c);
    const int first = 2 * part_of(work.groups, work.parts, unit % work.parts).first;
    const int last =
        std::min(results, 2 * part_of(work.groups, work.parts, (next - 1) % work.parts).last);
    const std::int64_t v_step = plane<T>(std::int64_t{sources} * tiles.size());
    const std::int64_t m_step = plane<T>(std::int64_t{results} * tiles.size());
    T* const v = scratch;
    T* const m = scratch + products * v_step;
    for (int s = 0; s < sources; ++s)
      transform_tiles<kind::image, T>(t, x + s * image, sources * image, tiles.first, tiles.size(),
                                      v + std::int64_t{s} * tiles.size() * L, v_step);
    const T* const own = u + std::int64_t{first} * sources * L * L;
    for (int p = 0; p < products; ++p)
      multiply_pixels<T>(tiles.size(), sources, last - first, v + p * v_step, own + p * filters,
                         p + 1 < products ? own + (p + 1) * filters : nullptr, m + p * m_step);
    for (int r = first; r < last; ++r)
      finish_tiles<T>(t, m + std::int64_t{r - first} * tiles.size() * L, m_step, tiles.first,
                      tiles.size(), results, r, sink);
  }
}
CELLA_COMPILED_FOR_FLOATS(convolve);

}  // namespace winograd

/// y from x and filters transformed for it; the sink gets (value, element, block).
template <class T, class Sink>
void winograd_convolution(work_range units, const blocked_convolution_extents& e, const T* x,
                          const T* filters, const Sink& sink, std::byte* scratch) {
  winograd::convolve<T>(units, winograd::forward_tiles(e), e.in_blocks, e.out_blocks, x, filters,
                        detail::any_blocked_sink<T>(sink), reinterpret_cast<T*>(scratch));
}
/// dx from dy.
template <class T, class Sink>
void winograd_input_gradient(work_range units, const blocked_convolution_extents& e, const T* dy,
                             const T* filters, const Sink& sink, std::byte* scratch) {
  winograd::convolve<T>(units, winograd::backward_tiles(e), e.out_blocks, e.in_blocks, dy, filters,
                        detail::any_blocked_sink<T>(sink), reinterpret_cast<T*>(scratch));
}

}  // namespace cella::cpu
