// The layout "batch in the lanes": a plain row-major tensor [N, features...] is stored as
// [ceil(N / L)][features...][L], L = lanes<T>. Lanes beyond N are dead and hold finite values.
// Weights stay plain. Here are the ways into this layout and out of it, and the sinks that only
// store.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <cella/backend/cpu/simd/simd.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstdint>
#include <cstring>

namespace cella::cpu {

/// The register tiles that a kernel is compiled for, as bits whose meaning is the kernel's own. All
/// of them serve any extents; where the extents are known in the compiler, the kernel's `_tiles`
/// function names the few that they need, and the rest is never compiled (0.1 s instead of 0.5 to
/// 2).
using tile_set = unsigned;
inline constexpr tile_set all_tiles = ~0u;

/// Lane-vectors that hold the batch: ceil(samples / lanes).
template <class T>
constexpr int lane_blocks(int samples) {
  return ceil_divide(samples, lanes<T>);
}

/// Sink of lane-vectors: stores `value` as lane-vector number `element`.
template <class T>
struct store_lanes {
  T* to;
  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t element, int) const {
    store(to + element * lanes<T>, value);
  }
};

/// Where the maximum of each lane's 2x2 window stands: entry `2 * row + column` has the bits of the
/// lanes whose maximum is in that corner. Stored as four `std::uint16_t` per pooled lane-vector.
using corner_bits = std::array<unsigned, 4>;

/// Stores the corners of the lanes that are set in `live`; the others are in no corner, so that no
/// gradient passes (a relu behind the pooling is off there). One store, for four of 16 bits cost
/// more than the pooling.
[[gnu::always_inline]] inline void store_corners(std::uint16_t* to, const corner_bits& at,
                                                 unsigned live) {
  if constexpr (std::endian::native == std::endian::little) {
    const std::uint64_t upper = at[0] | at[1] << 16, lower = at[2] | at[3] << 16;
    const std::uint64_t bits = (upper | lower << 32) & live * std::uint64_t{0x0001000100010001};
    std::memcpy(to, &bits, sizeof bits);
  } else {
    for (std::size_t i = 0; i < 4; ++i) to[i] = static_cast<std::uint16_t>(at[i] & live);
  }
}

/// Sink of pooled lane-vectors: stores the value, and its corners as `[element][4]`.
template <class T>
struct store_pooled_lanes {
  T* to;
  std::uint16_t* corners;
  [[gnu::always_inline]] void operator()(vec<T> value, const corner_bits& at, std::int64_t element,
                                         int) const {
    store(to + element * lanes<T>, value);
    store_corners(corners + element * 4, at, first_bits(lanes<T>));
  }
};

/// Sink of plain data: stores the first `count` lanes at consecutive offsets.
template <class T>
struct store_plain {
  T* to;
  [[gnu::always_inline]] void operator()(vec<T> value, std::int64_t offset, int count) const {
    if (count == lanes<T>) {
      store_unaligned(to + offset, value);
    } else {
      store_first(to + offset, count, value);
    }
  }
};

/// Sink for results that nobody wants.
struct discard {
  template <class V>
  void operator()(const V&, std::int64_t, int) const {}
};

/// A plain batch [samples][channels][height][width] and the width of the zero border that it gets
/// in the lanes. Flat features [samples][K] are K channels of 1 x 1.
struct lanes_image_extents {
  int samples{}, channels{}, height{1}, width{1};
  int padding_height{}, padding_width{};

  constexpr int padded_height() const { return height + 2 * padding_height; }
  constexpr int padded_width() const { return width + 2 * padding_width; }
  constexpr bool padded() const { return padding_height > 0 || padding_width > 0; }
};

namespace detail {

/// Without a border all features of a sample are one run, cut into pieces of this many elements;
/// with a border each channel is a run.
inline constexpr int layout_piece = 256;

struct layout_run {
  int block, channel;  // channel 0 where there is no border
  std::int64_t first;  // offset of the run in the sample
  int size;
};

constexpr int layout_runs(const lanes_image_extents& e) {
  return e.padded() ? e.channels : ceil_divide(e.channels * e.height * e.width, layout_piece);
}

constexpr layout_run run_of(const lanes_image_extents& e, int unit) {
  const int runs = layout_runs(e), index = unit % runs, plane = e.height * e.width;
  if (e.padded()) return {unit / runs, index, std::int64_t{index} * plane, plane};
  const int first = index * layout_piece;
  return {unit / runs, 0, first, std::min(layout_piece, e.channels * plane - first)};
}

/// Offset, in lane-vectors, of position `first + i` of a run.
struct lane_position {
  std::int64_t at;
  int column, width, skip;

  constexpr lane_position(const lanes_image_extents& e, const layout_run& run)
      : at(e.padded() ? (std::int64_t{run.channel} * e.padded_height() + e.padding_height) *
                                e.padded_width() +
                            e.padding_width
                      : run.first),
        column(0),
        width(e.padded() ? e.width : run.size),
        skip(2 * e.padding_width) {}

  constexpr void next() {
    ++at;
    if (++column == width) {
      column = 0;
      at += skip;
    }
  }
};

constexpr std::int64_t block_size(const lanes_image_extents& e) {
  return std::int64_t{e.channels} * e.padded_height() * e.padded_width();
}

template <class T>
void clear_border(const lanes_image_extents& e, T* plane) {
  const int width = e.padded_width(), last_row = e.height + e.padding_height;
  for (int h = 0; h < e.padded_height(); ++h, plane += std::int64_t{width} * lanes<T>) {
    const bool inside = h >= e.padding_height && h < last_row;
    for (int w = 0; w < width; ++w) {
      if (inside && w == e.padding_width) w += e.width;
      if (w < width) store(plane + std::int64_t{w} * lanes<T>, vec<T>(T{0}));
    }
  }
}

}  // namespace detail

/// Copies x, which is in the lanes, into y with a border of zeros. Units: planes.
template <class T>
void add_border(work_range units, const lanes_image_extents& e, const T* x, T* y) {
  constexpr int L = lanes<T>;
  for (int u = units.first; u < units.last; ++u) {
    const T* from = x + std::int64_t{u} * e.height * e.width * L;
    T* to = y + std::int64_t{u} * e.padded_height() * e.padded_width() * L;
    detail::clear_border(e, to);
    for (int h = 0; h < e.height; ++h) {
      T* row = to + (std::int64_t{h + e.padding_height} * e.padded_width() + e.padding_width) * L;
      std::memcpy(row, from + std::int64_t{h} * e.width * L, sizeof(T) * std::size_t(e.width) * L);
    }
  }
}

/// Units of work of `pack_lanes` and of `unpack_lanes`.
template <class T>
constexpr int pack_lanes_units(const lanes_image_extents& e) {
  return lane_blocks<T>(e.samples) * detail::layout_runs(e);
}

/// Plain x [samples][channels][height][width] -> y [blocks][channels][padded height][padded
/// width][L] with a zero border and zeros in the dead lanes. x may have any alignment.
template <class T>
[[gnu::noinline]] void pack_lanes(work_range units, const lanes_image_extents& e,
                                  const T* __restrict x, T* __restrict y) {
  constexpr int L = lanes<T>;
  const std::int64_t sample = std::int64_t{e.channels} * e.height * e.width;
  for (int unit = units.first; unit < units.last; ++unit) {
    const auto run = detail::run_of(e, unit);
    T* to = y + run.block * detail::block_size(e) * L;
    if (e.padded()) {
      detail::clear_border(
          e, to + std::int64_t{run.channel} * e.padded_height() * e.padded_width() * L);
    }
    const int live = std::min(L, e.samples - run.block * L);
    detail::lane_position position(e, run);
    const T* from = x + run.block * L * sample + run.first;
    for (int i = 0; i < run.size; i += L, from += L) {
      const int n = std::min(L, run.size - i);
      vec<T> rows[L];
#pragma GCC unroll 16
      for (int j = 0; j < L; ++j) {
        rows[j] = j < live ? load_first(from + j * sample, n) : vec<T>(T{0});
      }
      transpose<T>(rows);
      alignas(vec<T>) T columns[L * L];
#pragma GCC unroll 16
      for (int j = 0; j < L; ++j) store(columns + j * L, rows[j]);
      for (int j = 0; j < n; ++j, position.next()) {
        store(to + position.at * L, load(columns + j * L));
      }
    }
  }
}
CELLA_COMPILED_FOR_FLOATS(pack_lanes);

/// The way back: x [blocks][channels][padded height][padded width][L] -> plain y without the
/// border. Dead lanes and the border are not looked at (they may hold NaN).
template <class T>
[[gnu::noinline]] void unpack_lanes(work_range units, const lanes_image_extents& e,
                                    const T* __restrict x, T* __restrict y) {
  constexpr int L = lanes<T>;
  const std::int64_t sample = std::int64_t{e.channels} * e.height * e.width;
  for (int unit = units.first; unit < units.last; ++unit) {
    const auto run = detail::run_of(e, unit);
    const T* from = x + run.block * detail::block_size(e) * L;
    const int live = std::min(L, e.samples - run.block * L);
    detail::lane_position position(e, run);
    T* to = y + run.block * L * sample + run.first;
    for (int i = 0; i < run.size; i += L, to += L) {
      const int n = std::min(L, run.size - i);
      alignas(vec<T>) T columns[L * L]{};
      for (int j = 0; j < n; ++j, position.next()) {
        store(columns + j * L, load(from + position.at * L));
      }
      vec<T> rows[L];
#pragma GCC unroll 16
      for (int j = 0; j < L; ++j) rows[j] = load(columns + j * L);
      transpose<T>(rows);
#pragma GCC unroll 16
      for (int j = 0; j < L; ++j) {
        if (j < live) store_first(to + j * sample, n, rows[j]);
      }
    }
  }
}
CELLA_COMPILED_FOR_FLOATS(unpack_lanes);

}  // namespace cella::cpu
