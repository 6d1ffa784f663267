// The sizes of Winograd's minimal filtering of 3x3 convolutions of images in blocks of channels.
// Where it pays: convolution_cost.hpp.
#pragma once

#include <algorithm>
#include <cstdint>

namespace cella::cpu::winograd {

inline constexpr int tile = 4;       ///< results of a tile, along each axis
inline constexpr int products = 36;  ///< of a tile and a pair of channels; the direct sum takes 144

constexpr int tiles(int samples, int height, int width) {
  return samples * ((height + tile - 1) / tile) * ((width + tile - 1) / tile);
}

/// Elements between the planes of the 36 places, of so many vectors: not a multiple of a large
/// power of two, so that they do not fall into the same sets of the cache.
constexpr std::int64_t plane(std::int64_t vectors, int lanes) { return (vectors + 5) * lanes; }

/// Elements of transformed filters, or of the sums that become their gradient.
constexpr std::int64_t filter_size(int in_blocks, int out_blocks, int lanes) {
  return products * plane(std::int64_t{in_blocks} * out_blocks * lanes, lanes);
}

/// A weight gradient may be taken over slices of the tiles, each with sums of its own and the work
/// of one thread, as in sample_slices.hpp. With larger sums, threads share the products of a chunk.
constexpr int gradient_slices(int in_blocks, int out_blocks, int tiles, int lanes, int size) {
  const std::int64_t bytes = filter_size(in_blocks, out_blocks, lanes) * size;
  const int most = bytes <= (64 << 10) ? 4 : bytes <= (640 << 10) ? 2 : 1;
  return std::clamp(tiles, 1, most);
}

/// The tiles of a slice are transformed in this many chunks: each is to stay near the core until it
/// is multiplied, but each is two steps of the plan, too, if there is one slice.
inline constexpr int most_chunks = 16;
constexpr int gradient_chunks(int in_blocks, int out_blocks, int tiles, int lanes) {
  const std::int64_t elements = products * std::int64_t{in_blocks + out_blocks} * tiles * lanes;
  constexpr std::int64_t near = 1 << 17;
  return int(std::clamp<std::int64_t>((elements + near - 1) / near, 1, most_chunks));
}
/// Elements of the transformed tiles of a chunk.
constexpr std::int64_t gradient_tiles_size(int in_blocks, int out_blocks, int tiles, int lanes) {
  const int chunks = gradient_chunks(in_blocks, out_blocks, tiles, lanes);
  const std::int64_t n = (tiles + chunks - 1) / chunks;
  return products * (plane(in_blocks * n, lanes) + plane(out_blocks * n, lanes));
}

}  // namespace cella::cpu::winograd
