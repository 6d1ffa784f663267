// The gradient of 3x3 filters by Winograd's minimal filtering: tiles of the image and of dy are
// transformed, and multiplied with each other, summed over tiles, for each of the 36 places.
#pragma once

#include <cella/backend/cpu/blocked/weight_gradient.hpp>
#include <cella/backend/cpu/blocked/winograd.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>

namespace cella::cpu::winograd {

/// Slices of all tiles, each with sums of its own: see backend/cpu/plan/winograd.hpp.
template <class T>
constexpr int gradient_slices(const blocked_convolution_extents& e) {
  return gradient_slices(e.in_blocks, e.out_blocks, forward_tiles(e).count(), lanes<T>,
                         int(sizeof(T)));
}
/// Tiles of the largest slice, and the chunks that each slice is cut into.
template <class T>
constexpr int tiles_of_slice(const blocked_convolution_extents& e) {
  const int slices = gradient_slices<T>(e);
  return (forward_tiles(e).count() + slices - 1) / slices;
}
template <class T>
constexpr int gradient_chunks(const blocked_convolution_extents& e) {
  return gradient_chunks(e.in_blocks, e.out_blocks, tiles_of_slice<T>(e), lanes<T>);
}
/// Elements of the transformed tiles of a chunk.
template <class T>
constexpr std::int64_t gradient_tiles_size(const blocked_convolution_extents& e) {
  return gradient_tiles_size(e.in_blocks, e.out_blocks, tiles_of_slice<T>(e), lanes<T>);
}
/// Elements of the sums of one slice.
template <class T>
constexpr std::int64_t gradient_sums_size(const blocked_convolution_extents& e) {
  return filter_size(e.in_blocks, e.out_blocks, lanes<T>);
}

/// Transforms the tiles `part`. Units: blocks of x, then those of dy.
template <class T>
void transform_gradient_tiles(work_range units, const blocked_convolution_extents& e,
                              work_range part, const T* x, const T* dy, T* tiles) {
  constexpr int L = lanes<T>;
  const tiling t = forward_tiles(e);
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
/// sums [36][out_blocks][in_blocks][L in][L out] (+)= products of the transformed tiles, `n` each;
/// `start`: they replace what is there.
template <class T>
void multiply_gradient_tiles(work_range units, const blocked_convolution_extents& e, int n,
                             bool start, const T* tiles, T* sums) {
  constexpr int L = lanes<T>, C = cpu::detail::gradient_channels<T>;
  const std::int64_t pixels = std::int64_t{n} * L;
  const std::int64_t x_step = plane<T>(std::int64_t{e.in_blocks} * n);
  const std::int64_t dy_step = plane<T>(std::int64_t{e.out_blocks} * n);
  const std::int64_t sum_step = plane<T>(std::int64_t{e.in_blocks} * e.out_blocks * L);
  const std::int64_t sum_block = std::int64_t{e.in_blocks} * L * L;
  for (int p = 0; p < products; ++p) {
    for (int u = units.first; u < units.last; ++u) {
      const int b = u % e.in_blocks;
      const work_range of_dy = cpu::detail::gradient_group(e.out_blocks, u / e.in_blocks);
      const int o = of_dy.first, blocks = of_dy.size();
      for (int c = 0; c < L; c += C) {
        T* const to = sums + p * sum_step + (std::int64_t{o} * e.in_blocks + b) * L * L + c * L;
        for (int k = 0; start && k < blocks; ++k)
          std::memset(to + k * sum_block, 0, sizeof(T) * std::size_t(C * L));
        const T* const dy = tiles + products * x_step + p * dy_step + o * pixels;
        const cpu::detail::gradient_rows<T> r{.x = tiles + p * x_step + b * pixels + c,
                                              .dy = dy,
                                              .samples = 1,
                                              .rows = 1,
                                              .columns = n,
                                              .x_sample = 0,
                                              .x_row = 0,
                                              .x_column = L,
                                              .dy_sample = 0,
                                              .dy_row = 0,
                                              .dy_block = pixels};
        cpu::detail::add_products<T>(blocks, 1, r, to, sum_block);
      }
    }
  }
}

/// The sums take several calls, one after the other, if there is one slice: phase 2k transforms
/// chunk k, phase 2k + 1 multiplies it.
template <class T>
constexpr int gradient_phases(const blocked_convolution_extents& e) {
  return gradient_slices<T>(e) > 1 ? 1 : 2 * gradient_chunks<T>(e);
}
template <class T>
constexpr int gradient_phase_units(const blocked_convolution_extents& e, int phase) {
  if (gradient_slices<T>(e) > 1) return gradient_slices<T>(e);
  return phase % 2 == 0 ? e.in_blocks + e.out_blocks : gradient_units(e);
}
/// `tiles` is shared by all threads if there is one slice, else scratch of this one.
template <class T>
void sum_gradients(work_range units, const blocked_convolution_extents& e, int phase, const T* x,
                   const T* dy, T* tiles, T* sums) {
  const int slices = gradient_slices<T>(e), chunks = gradient_chunks<T>(e);
  const auto chunk = [&](int slice, int index) {
    const work_range all = part_of(forward_tiles(e).count(), slices, slice);
    const work_range part = part_of(all.size(), chunks, index);
    return work_range{all.first + part.first, all.first + part.last};
  };
  if (slices == 1) {
    const work_range part = chunk(0, phase / 2);
    if (phase % 2 == 0)
      transform_gradient_tiles<T>(units, e, part, x, dy, tiles);
    else
      multiply_gradient_tiles<T>(units, e, part.size(), phase == 1, tiles, sums);
    return;
  }
  for (int u = units.first; u < units.last; ++u) {
    for (int k = 0; k < chunks; ++k) {
      const work_range part = chunk(u, k);
      transform_gradient_tiles<T>({0, e.in_blocks + e.out_blocks}, e, part, x, dy, tiles);
      multiply_gradient_tiles<T>({0, gradient_units(e)}, e, part.size(), k == 0, tiles,
                                 sums + u * gradient_sums_size<T>(e));
    }
  }
}
CELLA_COMPILED_FOR_FLOATS(sum_gradients);

/// Adds up the slices, transforms the sums back and hands them to a plain sink as filters: (value,
/// offset, count). Units: blocks of output channels.
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
        for (int p = 0; p < products; ++p) {
          const T* const place = from + p * step + c * L;
          x[p] = load(place);
          for (int k = 1; k < gradient_slices<T>(e); ++k)
            x[p] = x[p] + load(place + k * gradient_sums_size<T>(e));
        }
        transform<kind::taps, T>(x, y);
        for (int t = 0; t < 9; ++t) store(block + (t * L + c) * L, y[t]);
      }
      const std::int64_t start =
          std::int64_t{o} * L * e.in_blocks * L * 9 + std::int64_t{b} * L * 9;
      hand_over_filters<T>(e.in_blocks, 9, 1, block, start, sink);
    }
  }
}

}  // namespace cella::cpu::winograd
