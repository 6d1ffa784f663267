// How convolutions of images in blocks of channels are cut into register tiles and units of work.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/simd/vector.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstdint>

namespace cella::cpu::detail {

/// Pixels of a register tile; with two blocks of channels they fill most registers. Half of them
/// have three: with four, whose filters leave no register for a pixel, loads would bound them.
inline constexpr int blocked_pixels = tile_pixels(vector_registers);

/// How a plane of pixels is cut: into tiles of which the last overlaps the one before. `pixels` is
/// 0 where tiles would compute too much twice.
struct pointwise_cut {
  int pixels{}, blocks{};  ///< of a tile

  constexpr explicit pointwise_cut(std::int64_t plane, int samples, int result_blocks) {
    if (plane < blocked_pixels) return;
    const auto computed = [&](int tile) { return (plane + tile - 1) / tile * tile; };
    constexpr int half = blocked_pixels / 2;
    // With few registers half a tile has three pixels, for which filters would be read twice as
    // fast as the second cache yields them.
    const bool halves =
        !few_vector_registers && result_blocks >= 3 && computed(half) < computed(blocked_pixels);
    const int tile = halves ? half : blocked_pixels;
    // Tiles that go on in the next sample compute nothing twice.
    if (samples > 1 && computed(tile) * 16 > plane * 17) return;
    pixels = tile;
    blocks = halves ? 3 : 2;
  }
  constexpr int tiles(std::int64_t plane) const { return int((plane + pixels - 1) / pixels); }
};

/// How the tiles of a call are shared out: chunks of them, and of each parts of the result's
/// channels.
struct blocked_work {
  int tiles, group, blocks;  ///< `group` blocks of a tile are computed together
  int chunks = 1, parts = 1;

  /// Chunks of `most` tiles, whose sources together fit a part of the second cache; more of them,
  /// for threads to share evenly, where filters are near, which are read again for each. Parts
  /// where there are few chunks.
  constexpr void divide(int most, bool few_filters) {
    constexpr int enough = 16;
    if (tiles == 0) {
      chunks = 0;
      return;
    }
    chunks = (tiles + most - 1) / most;
    if (few_filters)
      chunks = std::max(chunks, std::min(enough, tiles));
    else if (chunks * groups() < enough / 2)
      chunks = std::min(2 * chunks, tiles);
    parts = chunks * 2 > enough ? 1 : std::min(groups(), (enough + chunks - 1) / chunks);
  }
  constexpr int groups() const { return (blocks + group - 1) / group; }
  constexpr int units() const { return chunks * parts; }
  constexpr work_range tiles_of(int unit) const { return part_of(tiles, chunks, unit / parts); }
  constexpr work_range blocks_of(int unit) const {
    const work_range of = part_of(groups(), parts, unit % parts);
    return {group * of.first, std::min(group * of.last, blocks)};
  }
};

/// What tiles ask for, evenly, while they are computed: a part of what tiles will read that follow.
/// Filters that few pixels use come from memory otherwise while the first of these waits.
template <class T>
class data_ahead {
 public:
  static constexpr std::int64_t line = 64 / sizeof(T);  ///< elements

  data_ahead() = default;
  /// `count` elements, for which `tiles` tiles ask that follow each other, by `times` calls of
  /// ask() each.
  data_ahead(const T* first, std::int64_t count, int tiles, int times)
      : next_(first), end_(first + count / line * line) {
    const std::int64_t share = (count / line + tiles - 1) / std::max(tiles, 1);
    of_tile_ = share * line;
    each_ = int((share + times - 1) / std::max(times, 1));
  }
  /// The share of the tile that is next.
  data_ahead take_share() {
    data_ahead share = *this;
    if (of_tile_ < end_ - next_) share.end_ = next_ + of_tile_;
    next_ = share.end_;
    return share;
  }
  [[gnu::always_inline]] void ask() {
    for (int k = 0; k < each_ && next_ < end_; ++k, next_ += line) __builtin_prefetch(next_, 0, 2);
  }

 private:
  const T *next_{}, *end_{};
  std::int64_t of_tile_{};
  int each_ = 0;
};

/// Whether the filters of channel c of a block begin a line: several share one with short vectors.
template <class T>
constexpr bool begins_line(int c) {
  return c * lanes<T> * std::int64_t{sizeof(T)} % 64 == 0;
}

/// Words of a pixel's block of channels that a tile multiplies in one turn of its loop: see
/// `summands_of_turn`.
template <int Words>
inline constexpr int words_of_turn = few_vector_registers ? Words : 2;
/// The turns for such a block.
template <int Words>
inline constexpr int turns_of_block = Words / words_of_turn<Words>;

/// Calls add(c) for the words of a pixel's block of channels; asks once for each turn.
template <int Words, class T, class Add>
[[gnu::always_inline]] inline void add_block(data_ahead<T>& ahead, Add add) {
  constexpr int together = words_of_turn<Words>;
  for (int c = 0; c < Words; c += together) {
    ahead.ask();
#pragma GCC unroll 16
    for (int k = 0; k < together; ++k) add(c + k);
  }
}

/// Calls compute(pixels(tile), block, blocks, ahead) for the tiles of a unit and its blocks, of
/// which at_once(left) of those that are left are computed together. Where filters are few, which
/// stay near, a tile's pixels are used for all blocks; otherwise some blocks' filters for all
/// tiles, which share in asking for ahead_of(block, left, tiles): what the `left` blocks from
/// `block` on read.
template <class AtOnce, class Pixels, class Ahead, class Compute>
void walk_tiles(const blocked_work& work, int unit, bool few_filters, AtOnce at_once, Pixels pixels,
                Ahead ahead_of, Compute compute) {
  const work_range all = work.blocks_of(unit), tiles = work.tiles_of(unit);
  using data = decltype(ahead_of(0, 0, 0));
  if (few_filters) {
    for (int t = tiles.first; t < tiles.last; ++t) {
      const auto& tile = pixels(t);
      for (int block = all.first, blocks; block < all.last; block += blocks) {
        blocks = at_once(all.last - block);
        compute(tile, block, blocks, data{});
      }
    }
    return;
  }
  for (int block = all.first, next; block < all.last; block = next) {
    const int blocks = at_once(all.last - block);
    next = block + blocks;
    data ahead = ahead_of(next, all.last - next, tiles.size());
    for (int t = tiles.first; t < tiles.last; ++t)
      compute(pixels(t), block, blocks, ahead.take_share());
  }
}

}  // namespace cella::cpu::detail
