// Convolutions of images of bf16 in blocks of channels, and image gradients, by the matrix unit
// (simd/matrix_unit.hpp). A pixel of two blocks of channels is a row of a tile, and the filters of
// two blocks (pack_filter_pairs) are a tile as they lie:
//
//   A: 16 pixels x 32 channels, gathered for each tap   B: 32 channels x 16 channels of results
//
// Images of an odd number of blocks are left to blocked_convolution.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/blocked/convolution.hpp>
#include <cella/backend/cpu/blocked/unit_pixels.hpp>
#include <cella/backend/cpu/simd/matrix_unit.hpp>

namespace cella::cpu {

/// Units of work, and bytes of scratch for each thread.
template <class T>
constexpr int unit_convolution_units(const blocked_convolution_extents& e);
template <class T>
constexpr std::int64_t unit_convolution_scratch(const blocked_convolution_extents& e);
template <class T>
constexpr int unit_input_gradient_units(const blocked_convolution_extents& e);
template <class T>
constexpr std::int64_t unit_input_gradient_scratch(const blocked_convolution_extents& e);

/// As blocked_convolution and blocked_input_gradient with two summands; in_blocks, or out_blocks,
/// are even.
template <class Unit, class T, class Sink>
void unit_convolution(work_range units, const blocked_convolution_extents& e, const T* x,
                      const T* packed, const Sink& sink, std::byte* scratch);
template <class Unit, class T, class Sink>
void unit_input_gradient(work_range units, const blocked_convolution_extents& e, const T* dy,
                         const T* packed, const Sink& sink, std::byte* scratch);

namespace detail {

/// How a product is cut. The pixels of a tile are gathered for all of its taps and channels; where
/// filters are not near, those of as many tiles as fit a part of the second cache.
template <class T>
struct unit_cut {
  static constexpr int pixels = 2 * unit_rows;                // of a tile of results
  static constexpr std::int64_t piece = pixels * unit_words;  // words, for a tap and two blocks
  static constexpr std::int64_t filter_tile = unit_rows * unit_words;  // of them

  std::int64_t source;  // words of a tile's pixels
  bool few_filters;
  blocked_work work;

  constexpr explicit unit_cut(const blocked_product<T, 2>& p)
      : source(p.taps * (p.source_blocks / 2) * piece),
        few_filters(p.few_filters()),
        work{(p.pixels() + pixels - 1) / pixels, 2, p.result_blocks} {
    const std::int64_t fit =
        (1280 << 10) / std::max<std::int64_t>(source * std::int64_t{sizeof(T)}, 1);
    work.divide(int(std::clamp<std::int64_t>(fit, 1, std::max(work.tiles, 1))), few_filters);
    // Each part gathers the pixels for itself.
    work.parts = std::clamp(work.groups() / 4, 1, std::max(work.parts, 1));
  }
  constexpr int tiles_at_once() const {
    return few_filters || work.chunks == 0 ? 1 : (work.tiles + work.chunks - 1) / work.chunks;
  }
  constexpr std::int64_t scratch() const {
    return tiles_at_once() * source * std::int64_t{sizeof(T)};
  }
};

template <class T>
inline constexpr auto units_by_unit =
    [](const blocked_product<T, 2>& p) { return unit_cut<T>(p).work.units(); };

/// The pixels of a tile, as they are gathered and where their results belong.
template <class T>
struct unit_tile {
  using cut = unit_cut<T>;
  unit_pixels<T, cut::pixels> pixels;

  /// [taps][pairs of blocks][pixels][2 blocks].
  void gather(const blocked_product<T, 2>& p, const T* source, T* to) {
    constexpr int W = blocked_product<T, 2>::words;
    const std::int64_t plane = std::int64_t{p.height} * p.width * W;
    for (int t = 0; t < p.taps; ++t) {
      pixels.read_source(p, p.tap[std::size_t(t)]);
      pixels.list_outside();
      const std::int64_t step = pixels.step * W;
      const T* block = source;
      for (int b = 0; b < p.source_blocks; b += 2, block += 2 * plane, to += cut::piece) {
        for (int r = 0; r < pixels.run_count; ++r) {
          const auto& run = pixels.runs[std::size_t(r)];
          const T* from = block + run.at * W;
          T* const end = to + run.last * 2 * W;
          for (T* row = to + run.first * 2 * W; row < end; row += 2 * W, from += step) {
            // Of the next blocks, which the processor does not see coming.
            if (t == 0) {
              __builtin_prefetch(from + 4 * plane);
              __builtin_prefetch(from + 5 * plane);
            }
            std::memcpy(row, from, sizeof(T) * W);
            std::memcpy(row + W, from + plane, sizeof(T) * W);
          }
        }
        for (int k = 0; k < pixels.listed_count; ++k)
          std::memset(to + pixels.listed[std::size_t(k)] * 2 * W, 0, sizeof(T) * 2 * W);
      }
    }
  }
  /// Hands over [blocks][pixels][L], in runs of pixels that lie as far apart as those of a row;
  /// those that are no neighbours, as the phases of a gradient with a stride have them, block by
  /// block.
  void hand_over(const blocked_product<T, 2>& p, const T* result, int blocks, int block,
                 const any_blocked_sink<T>& sink) const {
    const auto& at = pixels.result;
    const int at_once = p.place_horizontal == 1 ? blocks : 1;
    for (int b = 0; b < blocks; b += at_once, result += at_once * cut::pixels * lanes<T>) {
      for (int first = 0, end = 0; first < pixels.count; first = end) {
        for (end = first + 1; end < pixels.count; ++end) {
          if (at[std::size_t(end)] != at[std::size_t(end - 1)] + p.place_horizontal) break;
        }
        sink.hand_over(result + first * lanes<T>, cut::pixels, end - first, at_once,
                       at.data() + first, p.result_plane, block + b);
      }
    }
  }
};

/// A tile of Blocks blocks of results, whose filters begin at w, `filter` words apart, of gathered
/// pixels; writes [Blocks][pixels][L].
template <int Blocks, class Unit, class T>
[[gnu::noinline]] void multiply_unit_tile(Unit& unit, const blocked_product<T, 2>& p,
                                          const T* pixels, const T* w, std::int64_t filter,
                                          T* result) {
  using cut = unit_cut<T>;
  constexpr std::int64_t row = unit_words * sizeof(T);
  unit_sums<2, Blocks, Unit> sums(unit);
  sums.zero();
  for (int t = 0; t < p.taps; ++t) {
    const T* b = w + p.tap[std::size_t(t)].filter * (p.source_blocks / 2) * cut::filter_tile;
    for (int k = 0; k < p.source_blocks; k += 2, b += cut::filter_tile, pixels += cut::piece) {
      sums.add_pairs([&](int i) { return pixels + i * (cut::piece / 2); }, row,
                     [&](int j) { return b + j * filter; }, row);
    }
  }
  sums.store([&](int i, int j) { return result + (2 * j + i) * unit_rows * lanes<T>; }, row);
}

template <class Unit, class T>
void multiply_unit_blocks(work_range units, const blocked_product<T, 2>& p, const T* source,
                          const T* filters, const any_blocked_sink<T>& sink, T* gathered) {
  const unit_cut<T> cut(p);
  const std::int64_t filter = p.filter_taps * (p.source_blocks / 2) * cut.filter_tile;
  alignas(64) T result[2 * cut.pixels * lanes<T>];
  Unit unit;
  unit_tile<T> tile;
  for (int u = units.first; u < units.last; ++u) {
    const work_range tiles = cut.work.tiles_of(u), blocks = cut.work.blocks_of(u);
    const int at_once = cut.few_filters ? 1 : tiles.size();
    for (int t = tiles.first; t < tiles.last; t += at_once) {
      for (int k = 0; k < at_once; ++k) {
        tile.pixels.find(p, std::int64_t{t + k} * cut.pixels, cut.pixels);
        tile.gather(p, source, gathered + k * cut.source);
      }
      for (int block = blocks.first; block < blocks.last; block += 2) {
        const int count = std::min(blocks.last - block, 2);
        const T *pixels = gathered, *const w = filters + block * filter;
        for (int k = 0; k < at_once; ++k, pixels += cut.source) {
          if (at_once > 1) tile.pixels.find(p, std::int64_t{t + k} * cut.pixels, cut.pixels);
          if (count == 2)
            multiply_unit_tile<2>(unit, p, pixels, w, filter, result);
          else
            multiply_unit_tile<1>(unit, p, pixels, w, filter, result);
          tile.hand_over(p, result, count, block, sink);
        }
      }
    }
  }
}

}  // namespace detail

template <class T>
constexpr int unit_convolution_units(const blocked_convolution_extents& e) {
  return detail::units_by_unit<T>(detail::forward_product<T, 2>(e));
}
template <class T>
constexpr std::int64_t unit_convolution_scratch(const blocked_convolution_extents& e) {
  return detail::unit_cut<T>(detail::forward_product<T, 2>(e)).scratch();
}
template <class T>
constexpr int unit_input_gradient_units(const blocked_convolution_extents& e) {
  return detail::units_of_phases<T, 2>(e, detail::units_by_unit<T>);
}
template <class T>
constexpr std::int64_t unit_input_gradient_scratch(const blocked_convolution_extents& e) {
  std::int64_t most = 0;
  for (int phase = 0; phase < e.stride_vertical * e.stride_horizontal; ++phase)
    most = std::max(most, detail::unit_cut<T>(detail::backward_product<T, 2>(e, phase)).scratch());
  return most;
}

template <class Unit, class T, class Sink>
void unit_convolution(work_range units, const blocked_convolution_extents& e, const T* x,
                      const T* packed, const Sink& sink, std::byte* scratch) {
  detail::multiply_unit_blocks<Unit>(units, detail::forward_product<T, 2>(e), x, packed,
                                     detail::any_blocked_sink<T>(sink),
                                     reinterpret_cast<T*>(scratch));
}
template <class Unit, class T, class Sink>
void unit_input_gradient(work_range units, const blocked_convolution_extents& e, const T* dy,
                         const T* packed, const Sink& sink, std::byte* scratch) {
  const detail::any_blocked_sink<T> any(sink);
  detail::run_phases<T, 2>(units, e, detail::units_by_unit<T>, [&](work_range part, const auto& p) {
    detail::multiply_unit_blocks<Unit>(part, p, dy, packed, any, reinterpret_cast<T*>(scratch));
  });
}

}  // namespace cella::cpu
