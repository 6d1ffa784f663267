// Convolutions of one tap that change no extents, and their image gradients: the pixels of an image
// are the rows of a product, one after the other in memory. So a tile needs one pointer for all of
// its pixels, and the vectors that its results touch are a run for each block of channels.
#pragma once

#include <array>
#include <cella/backend/cpu/blocked/layout.hpp>
#include <cella/backend/cpu/blocked/units.hpp>
#include <cella/backend/cpu/simd/pairs.hpp>

namespace cella::cpu::detail {

/// Memory that is asked for while a tile is computed: runs of as many vectors as it has pixels.
template <class T>
struct blocked_runs {
  std::array<const T*, std::size_t(any_blocked_sink<T>::most_arrays * 4)> at;
  int count = 0;
};

/// The product of `Pixels` pixels from x on and of Blocks blocks of results, whose filters begin at
/// w, `filter` elements apart. It is finished in place, the first block's results from vector
/// `element` on, or, if `finish` is null, written to `result`, [Blocks][Pixels][L]. The image has
/// its channels in blocks, or is `Plain`; a word holds so many `Summands`.
template <class T, int Pixels, int Blocks, bool Plain, int Summands>
[[gnu::noinline]] void pointwise_tile(const T* x, std::int64_t plane, int channels, const T* w,
                                      std::int64_t filter, const blocked_runs<T>& runs,
                                      data_ahead<T> ahead, const blocked_finish<T>* finish,
                                      std::int64_t element, int block, T* result) {
  constexpr int L = lanes<T>, W = L / Summands;
  vec<T> sum[Pixels][Blocks];
#pragma GCC unroll 16
  for (int i = 0; i < Pixels; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < Blocks; ++j) sum[i][j] = vec<T>(T{0});
  }
  const auto add_channel = [&](const T* pixel, const T* f_of) __attribute__((always_inline)) {
    vec<T> f[Blocks];
#pragma GCC unroll 4
    for (int j = 0; j < Blocks; ++j) {
      f[j] = load_shared(f_of + j * filter);
      __builtin_prefetch(f_of + j * filter + W * L);
    }
#pragma GCC unroll 16
    for (int i = 0; i < Pixels; ++i) {
      const vec<T> v(pixel[i * (Plain ? 1 : W)]);
#pragma GCC unroll 4
      for (int j = 0; j < Blocks; ++j) sum[i][j] = add_words<Summands>(v, f[j], sum[i][j]);
    }
  };
  const int pieces = (channels + L - 1) / L, share = (runs.count + pieces - 1) / pieces;
  int asked = 0;
  for (int first = 0; first < channels; first += L, x += plane * W, w += W * L) {
    for (const int end = std::min(asked + share, runs.count); asked < end; ++asked) {
      const T* const run = runs.at[std::size_t(asked)];
#pragma GCC unroll 16
      for (int i = 0; i < Pixels; ++i) __builtin_prefetch(run + i * L, 1, 2);
    }
    if constexpr (Plain) {
      const int count = std::min(L, channels - first);
      for (int c = 0; c < count; ++c) add_channel(x + c * plane, w + c * L);
    } else {
#pragma GCC unroll 2
      for (int c = 0; c < W; ++c) {
        if (c % 2 == 0) ahead.ask();
        add_channel(x + c, w + c * L);
      }
    }
  }
  if (finish)
    return finish->template store_tile<Pixels, Blocks>(
        element, plane,
        block, [&](int i, int j) __attribute__((always_inline)) { return sum[i][j]; });
#pragma GCC unroll 16
  for (int i = 0; i < Pixels; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < Blocks; ++j) store(result + (j * Pixels + i) * L, sum[i][j]);
  }
}

/// The results of one tile of pixels, for any of their blocks.
template <class T, int Pixels, bool Plain = false, int Summands = 1>
class pointwise_pixels {
  static constexpr int words = Plain ? 1 : lanes<T> / Summands;  // of a pixel

 public:
  /// Pixels from `first` on of sample `sample`, of which those before `skipped` are handed over by
  /// another tile.
  pointwise_pixels(const T* source, int channels, int result_blocks, std::int64_t plane, int sample,
                   std::int64_t first, int skipped)
      : x_(source + sample * channels * plane / Summands + first * words),
        plane_(plane),
        channels_(channels),
        skipped_(skipped) {
    for (int i = 0; i < Pixels; ++i)
      at_[std::size_t(i)] = std::int64_t{sample} * result_blocks * plane + first + i;
  }

  /// Computes the blocks from `block` on and hands them over.
  template <int Blocks>
  void compute(int block, const T* filters, std::int64_t filter, const any_blocked_sink<T>& sink,
               const data_ahead<T>& ahead = {}) const {
    alignas(64) T result[Blocks * Pixels * lanes<T>];
    blocked_runs<T> runs;
    runs.count = sink.list_runs(at_[0], Blocks, plane_, block, runs.at.data());
    // Pixels of another tile, which may add to what it has stored, are left to it.
    const blocked_finish<T>* const finish = skipped_ ? nullptr : sink.finish();
    pointwise_tile<T, Pixels, Blocks, Plain, Summands>(x_, plane_, channels_,
                                                       filters + block * filter, filter, runs,
                                                       ahead, finish, at_[0], block, result);
    if (finish) return;
    sink.hand_over(result + skipped_ * lanes<T>, Pixels, Pixels - skipped_, Blocks,
                   at_.data() + skipped_, plane_, block);
  }

 private:
  const T* x_;
  std::int64_t plane_;
  int channels_, skipped_;
  std::array<std::int64_t, std::size_t(Pixels)> at_;
};

}  // namespace cella::cpu::detail
