// The gradient of 3x3 filters by Winograd's minimal filtering: tiles of the image and of dy are
// transformed, and multiplied with each other, summed over tiles, for each of the 36 places.
#pragma once

#include <cella/backend/cpu/blocked_weight_gradient.hpp>
#include <cella/backend/cpu/blocked_winograd.hpp>

namespace cella::cpu::winograd {

/// The tiles of chunk `index`, which are transformed before they are multiplied.
template <class T>
constexpr int gradient_chunks(const blocked_convolution_extents& e) {
  return cella::winograd::gradient_chunks(e.in_blocks, e.out_blocks, forward_tiles(e).count(),
                                          lanes<T>);
}
template <class T>
constexpr work_range gradient_chunk(const blocked_convolution_extents& e, int index) {
  return part_of(forward_tiles(e).count(), gradient_chunks<T>(e), index);
}

/// Transforms one chunk. Units: blocks of x, then those of dy.
template <class T>
void transform_gradient_tiles(work_range units, const blocked_convolution_extents& e, int index,
                              const T* x, const T* dy, T* tiles) {
  constexpr int L = lanes<T>;
  const tiling t = forward_tiles(e);
  const work_range part = gradient_chunk<T>(e, index);
  const std::int64_t n = part.size(), x_step = plane<T>(e.in_blocks * n);
  const std::int64_t dy_step = plane<T>(e.out_blocks * n);
  for (int b = units.first; b < units.last; ++b) {
    const int o = b - e.in_blocks;
    if (o < 0)
      transform_tiles<kind::image, T>(t, x + b * e.in_plane() * L, e.in_blocks * e.in_plane() * L,
                                      part.first, part.size(), tiles + b * n * L, x_step);
    else
      transform_tiles<kind::gradient, T>(t, dy + o * e.out_plane() * L,
                                         e.out_blocks * e.out_plane() * L, part.first, part.size(),
                                         tiles + products * x_step + o * n * L, dy_step);
  }
}

/// Units of the products: groups of output blocks times input blocks.
constexpr int gradient_units(const blocked_convolution_extents& e) {
  return cpu::detail::gradient_groups(e.out_blocks) * e.in_blocks;
}
/// sums [36][out_blocks][in_blocks][L in][L out] (+)= products of the chunk.
template <class T>
void multiply_gradient_tiles(work_range units, const blocked_convolution_extents& e, int index,
                             const T* tiles, T* sums) {
  constexpr int L = lanes<T>, C = cpu::detail::gradient_channels<T>;
  const std::int64_t n = gradient_chunk<T>(e, index).size();
  const std::int64_t x_step = plane<T>(e.in_blocks * n), dy_step = plane<T>(e.out_blocks * n);
  const std::int64_t sum_step = plane<T>(std::int64_t{e.in_blocks} * e.out_blocks * L);
  const std::int64_t sum_block = std::int64_t{e.in_blocks} * L * L;
  for (int p = 0; p < products; ++p) {
    for (int u = units.first; u < units.last; ++u) {
      const int b = u % e.in_blocks, o = u / e.in_blocks * cpu::detail::gradient_blocks;
      const int blocks = std::min(cpu::detail::gradient_blocks, e.out_blocks - o);
      for (int c = 0; c < L; c += C) {
        T* const to = sums + p * sum_step + (std::int64_t{o} * e.in_blocks + b) * L * L + c * L;
        for (int k = 0; index == 0 && k < blocks; ++k)
          std::memset(to + k * sum_block, 0, sizeof(T) * std::size_t(C * L));
        const cpu::detail::gradient_rows<T> r{tiles + p * x_step + b * n * L + c,
                                              tiles + products * x_step + p * dy_step + o * n * L,
                                              1,
                                              int(n),
                                              0,
                                              L,
                                              0,
                                              n * L};
        cpu::detail::add_products<T>(blocks, 1, r, to, sum_block);
      }
    }
  }
}

/// Transforms the sums back and hands them to a plain sink as filters: (value, offset, count).
/// Units: blocks of output channels.
template <class T, class Sink>
void finish_gradient(work_range units, const blocked_convolution_extents& e, const T* sums,
                     const Sink& sink) {
  constexpr int L = lanes<T>;
  const std::int64_t step = plane<T>(std::int64_t{e.in_blocks} * e.out_blocks * L);
  alignas(64) T block[9 * L * L];
  for (int o = units.first; o < units.last; ++o) {
    for (int b = 0; b < e.in_blocks; ++b) {
      const T* from = sums + (std::int64_t{o} * e.in_blocks + b) * L * L;
      for (int c = 0; c < L; ++c) {
        vec<T> x[products], y[9];
        for (int p = 0; p < products; ++p) x[p] = load(from + p * step + c * L);
        transform<kind::taps, T>(x, y);
        for (int t = 0; t < 9; ++t) store(block + (t * L + c) * L, y[t]);
      }
      const std::int64_t start =
          std::int64_t{o} * L * e.in_blocks * L * 9 + std::int64_t{b} * L * 9;
      hand_over_filters<T>(e.in_blocks, 9, block, start, sink);
    }
  }
}

}  // namespace cella::cpu::winograd
