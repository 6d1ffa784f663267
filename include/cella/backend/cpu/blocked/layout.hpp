// Tensors in blocks of channels: [N][C / L][H][W][L], L = lanes. All channels of a block lie side
// by side, so that a vector holds one pixel of L channels. Filters of such tensors are packed to
// match.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/blocked/finish.hpp>
#include <cella/backend/cpu/loops/sink.hpp>
#include <cella/backend/cpu/simd/storage.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cella/graph/span.hpp>
#include <cstdint>
#include <cstring>

namespace cella::cpu {

/// A convolution of images in blocks of channels; both numbers of channels are multiples of L.
struct blocked_convolution_extents {
  int samples{}, in_blocks{}, height{}, width{}, out_blocks{};
  int kernel_height = 1, kernel_width = 1;
  int stride_vertical = 1, stride_horizontal = 1;
  int padding_top{}, padding_left{};
  int out_height{}, out_width{};

  constexpr int taps() const { return kernel_height * kernel_width; }
  constexpr std::int64_t in_plane() const { return std::int64_t{height} * width; }
  constexpr std::int64_t out_plane() const { return std::int64_t{out_height} * out_width; }
  /// One product for each pixel: the image may be taken as one row.
  constexpr bool pointwise() const {
    return taps() == 1 && stride_vertical == 1 && stride_horizontal == 1 && padding_top == 0 &&
           padding_left == 0;
  }
};

/// Of the result positions `of`, `step` apart in a row (or column) of `size` pixels, those for
/// which all taps from `leftmost` to `rightmost` lie inside it.
constexpr work_range positions_inside(work_range of, int step, int leftmost, int rightmost,
                                      int size) {
  const int first = std::max(of.first, (step - 1 - leftmost) / step);
  const int last = std::min(of.last, rightmost < size ? (size - 1 - rightmost) / step + 1 : 0);
  return {std::min(first, last), last};
}

// ---- images

/// Units: blocks of channels of each sample.
constexpr int blocked_image_units(int samples, int blocks) { return samples * blocks; }

/// x [samples][blocks L][pixels] -> y [samples][blocks][pixels][L], where L numbers of type T are a
/// vector; memory may hold them in another type.
template <class T, class S>
void pack_blocks(work_range units, int pixels, const S* x, S* y) {
  constexpr int L = lanes<T>;
  for (int u = units.first; u < units.last; ++u) {
    const S* from = x + std::int64_t{u} * L * pixels;
    S* to = y + std::int64_t{u} * L * pixels;
    vec<T> square[L];
    for (int p = 0; p < pixels; p += L) {
      const int count = pixels - p < L ? pixels - p : L;
      for (int c = 0; c < L; ++c)
        square[c] = load_stored<T>(from + std::int64_t{c} * pixels + p, count);
      transpose<T>(square);
      for (int k = 0; k < count; ++k) store_stored(to + (std::int64_t{p} + k) * L, square[k]);
    }
  }
}
/// The reverse.
template <class T, class S>
void unpack_blocks(work_range units, int pixels, const S* x, S* y) {
  constexpr int L = lanes<T>;
  for (int u = units.first; u < units.last; ++u) {
    const S* from = x + std::int64_t{u} * L * pixels;
    S* to = y + std::int64_t{u} * L * pixels;
    vec<T> square[L];
    for (int p = 0; p < pixels; p += L) {
      const int count = pixels - p < L ? pixels - p : L;
      for (int k = 0; k < L; ++k)
        square[k] = k < count ? load_stored<T>(from + (std::int64_t{p} + k) * L) : vec<T>(T{0});
      transpose<T>(square);
      for (int c = 0; c < L; ++c) store_stored(to + std::int64_t{c} * pixels + p, square[c], count);
    }
  }
}

// ---- filters

/// Filters w [out_blocks L][in_blocks L][taps] as [out_blocks][taps][in_blocks][L in][L out].
/// Units: blocks of output channels.
template <class T>
void pack_filters(work_range units, int in_blocks, int taps, const T* w, T* packed) {
  constexpr int L = lanes<T>;
  const std::int64_t filter = std::int64_t{in_blocks} * L * taps;
  for (int o = units.first; o < units.last; ++o) {
    for (int b = 0; b < in_blocks; ++b) {
      const T* from = w + o * L * filter + std::int64_t{b} * L * taps;
      // Element e of a filter's block is channel e / taps, tap e % taps.
      for (int e = 0; e < L * taps; e += L) {
        vec<T> square[L];
        for (int k = 0; k < L; ++k) square[k] = load_unaligned(from + k * filter + e);
        transpose<T>(square);
        int channel = e / taps, tap = e % taps;
        for (int k = 0; k < L; ++k) {
          store(packed + (((std::int64_t{o} * taps + tap) * in_blocks + b) * L + channel) * L,
                square[k]);
          if (++tap == taps) tap = 0, ++channel;
        }
      }
    }
  }
}
/// The same filters as the gradient of the image reads them: [in_blocks][taps][out_blocks][L out][L
/// in]. Units: blocks of input channels.
template <class T>
void pack_filters_transposed(work_range units, int in_blocks, int out_blocks, int taps, const T* w,
                             T* packed) {
  constexpr int L = lanes<T>;
  const std::int64_t filter = std::int64_t{in_blocks} * L * taps;
  for (int b = units.first; b < units.last; ++b) {
    for (int o = 0; o < out_blocks; ++o) {
      for (int k = 0; k < L; ++k) {
        const T* from = w + (std::int64_t{o} * L + k) * filter + std::int64_t{b} * L * taps;
        for (int tap = 0; tap < taps; ++tap) {
          T* to = packed + (((std::int64_t{b} * taps + tap) * out_blocks + o) * L + k) * L;
          if (taps == 1) {
            store(to, load_unaligned(from));
          } else {
            for (int c = 0; c < L; ++c) to[c] = from[c * taps + tap];
          }
        }
      }
    }
  }
}

namespace detail {

/// A pixel outside of an image.
template <class T>
alignas(64) inline constexpr std::array<T, std::size_t(lanes<T>)> zero_pixel{};

/// A sink for vectors of L channels, (value, element, block of channels), without its type: kernels
/// are compiled once and not for each epilogue.
template <class T>
class any_blocked_sink {
 public:
  /// Arrays whose vectors are listed; more are left to themselves.
  static constexpr int most_arrays = 4;

  template <class Sink>
  explicit any_blocked_sink(const Sink& sink) : sink_(&sink), call_(&call<Sink>) {
    if constexpr (requires { sink.list_arrays(nullptr, 0); })
      array_count_ = sink.list_arrays(arrays_.data(), int(arrays_.size()));
    if constexpr (requires { sink.finish(); }) finish_ = sink.finish();
  }

  /// What a kernel may do with its sums itself, instead of handing them over; or null.
  const blocked_finish<T>* finish() const { return finish_.target ? &finish_ : nullptr; }

  /// Lists the vectors in memory that handing over this will touch, `most` at most; returns their
  /// number.
  int list_vectors(int pixels, int blocks, const std::int64_t* at, std::int64_t plane, int block,
                   const void** to, int most) const {
    int count = 0;
    for (int k = 0; k < array_count_ && count + pixels * blocks <= most; ++k) {
      for (int b = 0; b < blocks; ++b) {
        const T* const array = arrays_[std::size_t(k)] + (block + b) * plane * lanes<T>;
        for (int i = 0; i < pixels; ++i) to[count++] = array + at[i] * lanes<T>;
      }
    }
    return count;
  }

  /// The arrays of which handing over touches the vectors where the results belong.
  span<const T* const> arrays() const { return {arrays_.data(), std::size_t(array_count_)}; }

  /// Hands over `pixels` x `blocks` vectors, those of one block `tile_block` apart. Pixel i of
  /// block b belongs to element at[i] + b plane.
  void hand_over(const T* tile, int tile_block, int pixels, int blocks, const std::int64_t* at,
                 std::int64_t plane, int block) const {
    call_(sink_, tile, tile_block, pixels, blocks, at, plane, block);
  }

 private:
  template <class Sink>
  static void call(const void* erased, const T* tile, int tile_block, int pixels, int blocks,
                   const std::int64_t* at, std::int64_t plane, int block) {
    own_sink<Sink> sink = *static_cast<const Sink*>(erased);
    if constexpr (requires {
                    sink.hand_over(tile, tile_block, pixels, blocks, at, plane, block);
                  }) {
      if (sink.hand_over(tile, tile_block, pixels, blocks, at, plane, block)) return;
    }
    for (int b = 0; b < blocks; ++b, tile += tile_block * lanes<T>) {
      for (int i = 0; i < pixels; ++i)
        sink(load(tile + i * lanes<T>), at[i] + (block + b) * plane, block + b);
    }
  }

  const void* sink_;
  void (*call_)(const void*, const T*, int, int, int, const std::int64_t*, std::int64_t, int);
  std::array<const T*, std::size_t(most_arrays)> arrays_{};
  int array_count_{};
  blocked_finish<T> finish_;
};

}  // namespace detail

}  // namespace cella::cpu
