// Convolutions of one tap that change no extents, and their image gradients: the pixels of an image
// are the rows of a product, one after the other in memory. So a tile needs one pointer for all of
// its pixels, and the vectors that its results touch are a run for each block of channels.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/blocked/layout.hpp>
#include <cella/backend/cpu/blocked/units.hpp>
#include <cella/backend/cpu/simd/pairs.hpp>

namespace cella::cpu::detail {

/// What the tiles of a call have in common.
template <class T>
struct pointwise_product {
  std::int64_t plane;   // pixels of an image
  int channels;         // of the source
  std::int64_t filter;  // elements from the filters of a block of results to the next
  /// Arrays whose vectors the results touch, of which so many are asked for with each block of
  /// channels that is multiplied.
  span<const T* const> arrays;
  int arrays_at_once;
  const blocked_finish<T>* finish;
};

/// The product of `Pixels` pixels from x on and of Blocks blocks of results from `block` on, whose
/// filters begin at w. It is finished in place, the first block's results from vector `element` on,
/// or, if there is a `result`, written there, [Blocks][Pixels][L]. The image has its channels in
/// blocks, or is `Plain`; a word holds so many `Summands`.
template <class T, int Pixels, int Blocks, bool Plain, int Summands>
[[gnu::noinline]] void pointwise_tile(const pointwise_product<T>& p, const T* x, const T* w,
                                      std::int64_t element, int block, data_ahead<T> ahead,
                                      T* result) {
  constexpr int L = lanes<T>, W = L / Summands;
  const std::int64_t plane = p.plane, filter = p.filter;
  vec<T> sum[Pixels][Blocks];
#pragma GCC unroll 16
  for (int i = 0; i < Pixels; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < Blocks; ++j) sum[i][j] = vec<T>(T{0});
  }
  const auto add_channel = [&](const T* pixel, const T* f_of, int c)
      __attribute__((always_inline)) {
    vec<T> f[Blocks];
#pragma GCC unroll 4
    for (int j = 0; j < Blocks; ++j) {
      f[j] = load_shared(f_of + j * filter + c * L);
      if (begins_line<T>(c)) __builtin_prefetch(f_of + j * filter + (c + W) * L);
    }
#pragma GCC unroll 16
    for (int i = 0; i < Pixels; ++i) {
      const vec<T> v(pixel[i * (Plain ? 1 : W)]);
#pragma GCC unroll 4
      for (int j = 0; j < Blocks; ++j) add_words<Summands>(sum[i][j], v, f[j]);
    }
  };
  const std::int64_t first_result = (element + block * plane) * L;
  const int channels = p.channels, arrays = int(p.arrays.size());
  int asked = 0;
  for (int first = 0; first < channels; first += L, x += plane * W, w += W * L) {
    for (const int end = std::min(asked + p.arrays_at_once, arrays); asked < end; ++asked) {
      const T* run = p.arrays[std::size_t(asked)] + first_result;
      for (int j = 0; j < Blocks; ++j, run += plane * L) {
#pragma GCC unroll 16
        for (int i = 0; i < Pixels * L; i += data_ahead<T>::line) __builtin_prefetch(run + i, 1, 2);
      }
    }
    if constexpr (Plain) {
      const int count = std::min(L, channels - first);
      for (int c = 0; c < count; ++c) add_channel(x + c * plane, w, c);
    } else {
      add_block<W>(
          ahead, [&](int c) __attribute__((always_inline)) { add_channel(x + c, w, c); });
    }
  }
  if (!result)
    return p.finish->template store_tile<Pixels, Blocks>(
        element, plane,
        block, [&](int i, int j) __attribute__((always_inline)) { return sum[i][j]; });
#pragma GCC unroll 16
  for (int i = 0; i < Pixels; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < Blocks; ++j) store(result + (j * Pixels + i) * L, sum[i][j]);
  }
}

/// A product of the pixels of `source`, tile by tile.
template <class T, int Pixels, bool Plain = false, int Summands = 1>
class pointwise_tiles {
  static constexpr int words = Plain ? 1 : lanes<T> / Summands;  // of a pixel

 public:
  /// `filter`: elements from the filters of a block of results to the next.
  pointwise_tiles(const T* source, int channels, std::int64_t plane, const T* filters,
                  std::int64_t filter, int result_blocks, const any_blocked_sink<T>& sink)
      : product_{plane, channels, filter, sink.arrays(), 0, sink.finish()},
        source_(source),
        filters_(filters),
        result_blocks_(result_blocks),
        sink_(sink) {
    const int pieces = std::max(1, (channels + lanes<T> - 1) / lanes<T>);
    product_.arrays_at_once = (int(product_.arrays.size()) + pieces - 1) / pieces;
  }

  struct tile {
    const T* x;
    std::int64_t element;  // of block 0
    int skipped;           // pixels at the start that are another tile's
  };
  /// Pixels from `first` on of a sample.
  tile at(int sample, std::int64_t first, int skipped) const {
    const std::int64_t plane = product_.plane;
    return {source_ + sample * product_.channels * plane / Summands + first * words,
            std::int64_t{sample} * result_blocks_ * plane + first, skipped};
  }

  /// Computes the blocks of results from `block` on and hands them over.
  template <int Blocks>
  void compute(const tile& t, int block, data_ahead<T> ahead = {}) const {
    constexpr auto multiply = pointwise_tile<T, Pixels, Blocks, Plain, Summands>;
    const T* const w = filters_ + block * product_.filter;
    // Pixels of another tile, which may add to what it has stored, are left to it.
    if (product_.finish && t.skipped == 0)
      return multiply(product_, t.x, w, t.element, block, ahead, nullptr);
    alignas(64) T result[Blocks * Pixels * lanes<T>];
    multiply(product_, t.x, w, t.element, block, ahead, result);
    std::array<std::int64_t, std::size_t(Pixels)> at;
    for (int i = 0; i < Pixels; ++i) at[std::size_t(i)] = t.element + i;
    sink_.hand_over(result + t.skipped * lanes<T>, Pixels, Pixels - t.skipped, Blocks,
                    at.data() + t.skipped, product_.plane, block);
  }

 private:
  pointwise_product<T> product_;
  const T *source_, *filters_;
  int result_blocks_;
  const any_blocked_sink<T>& sink_;
};

}  // namespace cella::cpu::detail
