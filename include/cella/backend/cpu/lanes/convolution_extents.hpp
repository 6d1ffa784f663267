// The extents of a convolution with the batch in the lanes, and what its kernels share.
#pragma once

#include <cassert>
#include <cella/backend/cpu/lanes/layout.hpp>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace cella::cpu {

/// Extents of a convolution, its pooling and its gradients. `height` and `width` are without the
/// border; the stored input of the forward pass has it. No dilation, one group.
struct lanes_convolution_extents {
  int blocks{};  // lane_blocks(samples)
  int in_channels{}, height{}, width{};
  int out_channels{}, kernel_height{}, kernel_width{};
  int stride_height{1}, stride_width{1};
  int padding_height{}, padding_width{};

  constexpr int padded_height() const { return height + 2 * padding_height; }
  constexpr int padded_width() const { return width + 2 * padding_width; }
  constexpr int out_height() const { return (padded_height() - kernel_height) / stride_height + 1; }
  constexpr int out_width() const { return (padded_width() - kernel_width) / stride_width + 1; }
  constexpr int pooled_height() const { return out_height() / 2; }
  constexpr int pooled_width() const { return out_width() / 2; }
  /// Weights of one (output channel, input channel) pair.
  constexpr int taps() const { return kernel_height * kernel_width; }
  /// Lane-vectors of one channel: of the bordered input, of the output, of the pooled output.
  constexpr std::int64_t padded_plane() const {
    return std::int64_t{padded_height()} * padded_width();
  }
  constexpr std::int64_t out_plane() const { return std::int64_t{out_height()} * out_width(); }
  constexpr std::int64_t pooled_plane() const {
    return std::int64_t{pooled_height()} * pooled_width();
  }
};

namespace detail {

/// The sizes, as bits, of `channels` cut into groups of at most `most` that differ by at most one.
constexpr tile_set group_sizes(int channels, int most) {
  const int groups = ceil_divide(channels, most);
  tile_set sizes = 0;
  for (int g = 0; g < groups; ++g) sizes |= 1u << part_of(channels, groups, g).size();
  return sizes;
}

template <tile_set Tiles, int N, class Tile>
[[gnu::always_inline]] inline bool call_tile(Tile& tile) {
  if constexpr ((Tiles >> N & 1u) != 0) tile(std::integral_constant<int, N>{});
  return true;
}

/// Calls `tile(std::integral_constant<int, n>)` for n = `size` <= Most.
template <int Most, tile_set Tiles, class Tile>
[[gnu::always_inline]] inline void with_group_size(int size, Tile tile) {
  assert((Tiles >> size & 1u) != 0 && "the kernel was not compiled for these extents");
  [&]<int... N>(std::integer_sequence<int, N...>) __attribute__((always_inline)) {
    static_cast<void>(((size == N + 1 && call_tile<Tiles, N + 1>(tile)) || ...));
  }
  (std::make_integer_sequence<int, Most>{});
}

/// Calls `tile(std::integral_constant<int, n>, first channel)` for the groups of `group_sizes`.
template <int Most, tile_set Tiles, class Tile>
[[gnu::always_inline]] inline void for_channel_groups(int channels, Tile tile) {
  const int groups = ceil_divide(channels, Most);
  for (int g = 0; g < groups; ++g) {
    const work_range part = part_of(channels, groups, g);
    with_group_size<Most, Tiles>(
        part.size(), [&](auto size) __attribute__((always_inline)) { tile(size, part.first); });
  }
}

/// The extents with what the inner loops need worked out once. A kernel's own copy, whose address
/// nobody knows, stays in registers, where the caller's would be read (and divided) again after
/// each store.
template <class T>
struct convolution_sizes : lanes_convolution_extents {
  explicit convolution_sizes(const lanes_convolution_extents& e) : lanes_convolution_extents(e) {}

  const int taps = lanes_convolution_extents::taps();
  const int out_height = lanes_convolution_extents::out_height();
  const int out_width = lanes_convolution_extents::out_width();
  // Weights of one output channel.
  const std::int64_t filter = std::int64_t{in_channels} * taps;
  // In elements: a row and a plane of the bordered input, a step down and to the right.
  const std::int64_t row = std::int64_t{padded_width()} * lanes<T>;
  const std::int64_t plane = padded_plane() * lanes<T>;
  const std::int64_t down = stride_height * row;
  const std::int64_t right = std::int64_t{stride_width} * lanes<T>;
  // In lane-vectors: a plane of the output, of its pooling, of the input without its border.
  const std::int64_t out_plane = lanes_convolution_extents::out_plane();
  const std::int64_t pooled_plane = lanes_convolution_extents::pooled_plane();
  const std::int64_t in_plane = std::int64_t{height} * width;
};

}  // namespace detail

/// A row of an image under a filter of stride 1.
struct row_window {
  int width{}, kernel{}, padding{};

  constexpr int out_width() const { return width + 2 * padding - kernel + 1; }
};
/// That of the extents, if it is so short that the gradient of the input unrolls it; else none.
constexpr row_window short_row(const lanes_convolution_extents& e) {
  if (e.stride_width != 1 || e.width > 32 || e.kernel_width > 7) return {};
  return {e.width, e.kernel_width, e.padding_width};
}

}  // namespace cella::cpu
