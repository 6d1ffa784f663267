// The gradient of filters of convolutions of images of bf16 in blocks of channels, by the matrix
// unit (simd/matrix_unit.hpp). The sums run over pixels, of which neighbours in a chunk are put
// together to pairs; a column is a block of input channels at one tap:
//
//   A: 16 channels of dy x 16 pairs, transposed   B: 16 pairs x 16 channels of x, a block's column
//
// A chunk's A serves all columns of a unit, a column's B all blocks of dy. The sums of a block are
// transposed until their last chunk is done. With one tap and fewer blocks of x than of dy the two
// change places, since it is A that takes longer to pack, and the sums are as they shall be.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/blocked/unit_pixels.hpp>
#include <cella/backend/cpu/blocked/weight_gradient.hpp>
#include <cella/backend/cpu/simd/matrix_unit.hpp>
#include <utility>

namespace cella::cpu {

/// As paired_weight_gradient.
template <class T>
constexpr int unit_weight_gradient_units(const blocked_convolution_extents& e);
template <class T>
constexpr std::int64_t unit_weight_gradient_scratch(const blocked_convolution_extents& e);
template <class Unit, class T>
void unit_weight_gradient(work_range units, const blocked_convolution_extents& e, const bfloat16* x,
                          const bfloat16* dy, T* sums, std::byte* scratch);

namespace detail {

/// How the sums are cut: by groups of A's blocks, of which each unit takes some of B's columns. The
/// pixels of a chunk are so many tiles.
template <class T>
struct unit_gradient_cut {
  static constexpr int most_blocks = 32, least_columns = 8, enough_units = 8;
  static constexpr int pixels = 2 * unit_words;                 // of a tile, in pairs
  static constexpr int most_tiles = 16;                         // of a chunk
  static constexpr std::int64_t tile = unit_rows * unit_words;  // words

  bool image_first;  // x is in A
  int blocks, columns;
  int tiles;  // of a chunk

  constexpr explicit unit_gradient_cut(const blocked_convolution_extents& e)
      : image_first(e.taps() == 1 && e.in_blocks < e.out_blocks),
        blocks(image_first ? e.in_blocks : e.out_blocks),
        columns(image_first ? e.out_blocks : e.taps() * e.in_blocks),
        slices_(weight_gradient_slices<T>(e)) {
    const std::int64_t all = e.out_plane() * ((e.samples + slices_ - 1) / slices_);
    tiles = int(std::min<std::int64_t>(most_tiles, (all + pixels - 1) / pixels));
  }
  constexpr int groups() const { return (blocks + most_blocks - 1) / most_blocks; }
  constexpr int blocks_of_group() const { return (blocks + groups() - 1) / groups(); }
  constexpr int ranges() const {
    return std::clamp(enough_units / (groups() * slices_), 1, std::max(1, columns / least_columns));
  }
  constexpr int units() const { return groups() * ranges(); }
  constexpr std::int64_t words() const { return (blocks_of_group() + 2) * tiles * tile; }

 private:
  int slices_;
};

/// The pixels of a chunk in pairs.
template <class T>
using unit_chunk = unit_pixels<T, unit_gradient_cut<T>::pixels * unit_gradient_cut<T>::most_tiles>;

/// The words of the pairs of pixels that were read, of a block of channels; what is missing is
/// zero.
template <class T>
void pack_unit_pairs(const bfloat16* block, const unit_chunk<T>& pixels, T* to) {
  constexpr int L = lanes<T>;
  alignas(64) static constexpr std::array<bfloat16, std::size_t(L)> zeros{};
  for (int r = 0; r < pixels.run_count; ++r) {
    const auto& run = pixels.runs[std::size_t(r)];
    const int odd = run.first % 2;
    const bfloat16* from = block + (run.at + odd * pixels.step) * L;
    for (int k = run.first + odd; k + 1 < run.last; k += 2, from += 2 * pixels.step * L)
      store(to + k / 2 * L, load_pairs(from, from + pixels.step * L));
  }
  for (int i = 0; i < pixels.listed_count; ++i) {
    const int k = pixels.listed[std::size_t(i)];
    const auto pixel = [&](int of_pair) {
      const std::int64_t at = pixels.at(2 * k + of_pair);
      return at < 0 ? zeros.data() : block + at * L;
    };
    store(to + k * L, load_pairs(pixel(0), pixel(1)));
  }
}
/// Transposes tiles in place.
template <class T>
void transpose_unit_tiles(int tiles, T* of) {
  for (int t = 0; t < tiles; ++t, of += unit_rows * unit_words) {
    vec<T> rows[unit_words];
    for (int k = 0; k < unit_words; ++k) rows[k] = load(of + k * unit_words);
    transpose<T>(rows);
    for (int k = 0; k < unit_words; ++k) store(of + k * unit_words, rows[k]);
  }
}
/// sums (+)= a b over a chunk, of Blocks blocks of A and Columns columns of B, whose tiles lie
/// `chunk` words apart; sums[j][c] are where the blocks' are.
template <int Blocks, int Columns, class Unit, class T>
[[gnu::noinline]] void add_unit_pairs(Unit& unit, int tiles, const T* a, const T* b,
                                      std::int64_t chunk, T* const (&sums)[2][2], bool start) {
  constexpr std::int64_t row = unit_words * sizeof(T), tile = unit_gradient_cut<T>::tile;
  const auto at = [&](int j, int c) { return sums[j][c]; };
  unit_sums<Blocks, Columns, Unit> own(unit);
  if (start)
    own.zero();
  else
    own.load(at, row);
  for (int t = 0; t < tiles; ++t, a += tile, b += tile) {
    own.add_pairs([&](int j) { return a + j * chunk; }, row, [&](int c) { return b + c * chunk; },
                  row);
  }
  own.store(at, row);
}
template <class Unit, class T>
void add_unit_pairs(int blocks, int columns, Unit& unit, int tiles, const T* a, const T* b,
                    std::int64_t chunk, T* const (&sums)[2][2], bool start) {
  with_unit_tiles(blocks, columns, [&]<int Blocks, int Columns>() {
    add_unit_pairs<Blocks, Columns>(unit, tiles, a, b, chunk, sums, start);
  });
}

/// The sums of one unit.
template <class Unit, class T>
class unit_gradient {
 public:
  unit_gradient(const blocked_convolution_extents& e, const bfloat16* x, const bfloat16* dy,
                T* scratch)
      : e_(e),
        p_(forward_product<T, 2>(e)),
        cut_(e),
        chunk_(cut_.tiles * cut_.tile),
        x_(x),
        dy_(dy),
        a_(scratch),
        b_(scratch + cut_.blocks_of_group() * chunk_) {}

  void sum(work_range samples, work_range blocks, work_range columns, T* sums) {
    const std::int64_t last = samples.last * e_.out_plane();
    const int most = cut_.tiles * cut_.pixels;
    for (std::int64_t first = samples.first * e_.out_plane(); first < last; first += most) {
      pixels_.find(p_, first, int(std::min<std::int64_t>(most, last - first)));
      tiles_ = (pixels_.count + cut_.pixels - 1) / cut_.pixels;
      read_ = nothing;
      for (int j = 0; j < blocks.size(); ++j) {
        T* const to = a_ + j * chunk_;
        pack(cut_.image_first, blocks.first + j, to);
        transpose_unit_tiles(tiles_, to);
      }
      const bool start = first == samples.first * e_.out_plane(), end = first + most >= last;
      for (int c = columns.first; c < columns.last; c += 2)
        add(blocks, {c, std::min(c + 2, columns.last)}, sums, start, end);
    }
  }

 private:
  void add(work_range blocks, work_range columns, T* sums, bool start, bool end) {
    for (int c = columns.first; c < columns.last; ++c)
      pack(!cut_.image_first, c, b_ + (c - columns.first) * chunk_);
    for (int j = 0; j < blocks.size(); j += 2) {
      const int count = std::min(2, blocks.size() - j);
      T* to[2][2]{};
      for (int i = 0; i < count; ++i) {
        for (int c = columns.first; c < columns.last; ++c)
          to[i][c - columns.first] = sums + place(blocks.first + j + i, c);
      }
      add_unit_pairs(count, columns.size(), unit_, tiles_, a_ + j * chunk_, b_, chunk_, to, start);
      for (int i = 0; end && !cut_.image_first && i < count; ++i) {
        for (int c = 0; c < columns.size(); ++c) transpose_unit_tiles(1, to[i][c]);
      }
    }
  }
  /// Pairs of pixels of a block of dy, or of a column of x.
  void pack(bool image, int of, T* to) {
    const int tap = of / e_.in_blocks, wanted = image ? tap : results;
    if (read_ != wanted) {
      if (image)
        pixels_.read_source(p_, p_.tap[std::size_t(tap)]);
      else
        pixels_.read_results(p_);
      pixels_.list_mixed(tiles_ * unit_words);
    }
    read_ = wanted;
    if (image)
      pack_unit_pairs(x_ + of % e_.in_blocks * e_.in_plane() * lanes<T>, pixels_, to);
    else
      pack_unit_pairs(dy_ + of * e_.out_plane() * lanes<T>, pixels_, to);
  }
  std::int64_t place(int block, int column) const {
    if (cut_.image_first) std::swap(block, column);
    const int tap = column / e_.in_blocks, b = column % e_.in_blocks;
    return ((std::int64_t{block} * e_.in_blocks + b) * e_.taps() + tap) * lanes<T> * lanes<T>;
  }

  static constexpr int results = -1, nothing = -2;
  const blocked_convolution_extents& e_;
  blocked_product<T, 2> p_;
  unit_gradient_cut<T> cut_;
  std::int64_t chunk_;  // words of a block's tiles
  const bfloat16* x_;
  const bfloat16* dy_;
  T* a_;
  T* b_;
  Unit unit_;
  unit_chunk<T> pixels_;
  int tiles_ = 0;       // of the chunk
  int read_ = nothing;  // for a tap, or results
};

}  // namespace detail

template <class T>
constexpr int unit_weight_gradient_units(const blocked_convolution_extents& e) {
  return weight_gradient_slices<T>(e) * detail::unit_gradient_cut<T>(e).units();
}
template <class T>
constexpr std::int64_t unit_weight_gradient_scratch(const blocked_convolution_extents& e) {
  return detail::unit_gradient_cut<T>(e).words() * std::int64_t{sizeof(T)};
}

template <class Unit, class T>
void unit_weight_gradient(work_range units, const blocked_convolution_extents& e, const bfloat16* x,
                          const bfloat16* dy, T* sums, std::byte* scratch) {
  const detail::unit_gradient_cut<T> cut(e);
  detail::unit_gradient<Unit, T> gradient(e, x, dy, reinterpret_cast<T*>(scratch));
  const int slices = weight_gradient_slices<T>(e);
  for (int u = units.first; u < units.last; ++u) {
    const int slice = u / cut.units(), part = u % cut.units();
    gradient.sum(part_of(e.samples, slices, slice),
                 part_of(cut.blocks, cut.groups(), part / cut.ranges()),
                 part_of(cut.columns, cut.ranges(), part % cut.ranges()),
                 sums + slice * filter_elements<T>(e));
  }
}

}  // namespace cella::cpu
