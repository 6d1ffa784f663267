// Dense layers with the batch in the lanes: y = x W^T and dx = dy W (one kernel, other strides),
// the gradient of the weights, and sums over the batch. Weights stay plain and are read by
// broadcast.
#pragma once

#include <algorithm>
#include <cassert>
#include <cella/backend/cpu/lanes/layout.hpp>
#include <cella/backend/cpu/loops/folds.hpp>
#include <cella/backend/cpu/loops/sink.hpp>
#include <cella/backend/cpu/simd/compiled_once.hpp>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace cella::cpu {

/// y[i][n] = sum over k < inner of w[i * row_stride + k * column_stride] * x[k][n], i < rows.
/// x W^T with W [O][I]: rows O, inner I, strides (I, 1).  dy W: rows I, inner O, strides (1, I).
struct lanes_dense_extents {
  int blocks{};  // lane_blocks(samples)
  int rows{}, inner{};
  std::int64_t row_stride{}, column_stride{};
};

/// Gradient of W [O][I]: dw[o][i] = sum over samples of dy[o] * x[i].
struct lanes_dense_weight_extents {
  int blocks{};
  int out_features{}, in_features{};
};

namespace detail {

/// Rows by vectors of a register tile: 12 x 2 of 32 registers, 6 x 2 of 16.
inline constexpr int dense_rows = vector_registers >= 32 ? 12 : 6;
inline constexpr int dense_vectors = 2;

/// Tiles have an even number of rows; an odd row more is computed twice and
/// given once.
constexpr int tile_rows(int rows) { return rows + rows % 2; }

/// Bits of a tile_set: the rows of tiles, and whether two vectors or one stand
/// side by side.
inline constexpr tile_set two_vectors = 1u << 16, one_vector = 1u << 17;
/// Of gradients of weights: more samples than single precision can add up without losing digits.
inline constexpr tile_set long_sums = 1u << 18;
/// So many blocks of samples are added up at once.
template <class T>
inline constexpr int blocks_at_once = 1024 / lanes<T>;
constexpr tile_set dense_tiles(int rows, int vectors) {
  return (rows >= dense_rows ? 1u << dense_rows : 0) |
         (rows % dense_rows ? 1u << tile_rows(rows % dense_rows) : 0) |
         (vectors >= 2 ? two_vectors : 0) | (vectors % 2 ? one_vector : 0);
}

}  // namespace detail

/// Units of work of `lanes_dense`: tiles of rows by two blocks of samples.
constexpr int lanes_dense_units(const lanes_dense_extents& e) {
  return ceil_divide(e.rows, detail::dense_rows) * ceil_divide(e.blocks, detail::dense_vectors);
}

/// Tiles that `lanes_dense` needs for these extents.
constexpr tile_set lanes_dense_tiles(const lanes_dense_extents& e) {
  return detail::dense_tiles(e.rows, e.blocks);
}

/// x [blocks][inner][L]; calls `sink(vec<T> value, int64 element, int row)` once per lane-vector of
/// y [blocks][rows][L]. Dead lanes may hold anything and stay dead.
template <tile_set Tiles = all_tiles, class T, class Sink>
void lanes_dense(work_range units, const lanes_dense_extents& e, const T* w, const T* x,
                 const Sink& sink);

/// Elements of the transposed input, x^T [blocks * L][in_features rounded up to L].
template <class T>
constexpr std::int64_t lanes_transposed_size(const lanes_dense_weight_extents& e) {
  return std::int64_t{e.blocks} * lanes<T> * ceil_divide(e.in_features, lanes<T>) * lanes<T>;
}
/// Units of work of `lanes_transpose`: squares of L samples by L features.
template <class T>
constexpr int lanes_transpose_units(const lanes_dense_weight_extents& e) {
  return e.blocks * ceil_divide(e.in_features, lanes<T>);
}
/// x [blocks][in_features][L] -> xt [blocks * L][in_features rounded up to L], the form in which
/// `lanes_dense_weight_gradient` reads it; zeros behind the last feature.
template <class T>
void lanes_transpose(work_range units, const lanes_dense_weight_extents& e, const T* x, T* xt);

/// Units of work of `lanes_dense_weight_gradient`: tiles of outputs by inputs.
template <class T>
constexpr int lanes_dense_weight_gradient_units(const lanes_dense_weight_extents& e) {
  return ceil_divide(e.out_features, detail::dense_rows) *
         ceil_divide(e.in_features, detail::dense_vectors * lanes<T>);
}
/// Tiles that `lanes_dense_weight_gradient` needs for these extents.
template <class T>
constexpr tile_set lanes_dense_weight_gradient_tiles(const lanes_dense_weight_extents& e) {
  return detail::dense_tiles(e.out_features, ceil_divide(e.in_features, lanes<T>)) |
         (e.blocks > detail::blocks_at_once<T> ? detail::long_sums : 0);
}

/// dy [blocks][out_features][L] with zeros in its dead lanes, xt from `lanes_transpose`, finite in
/// its dead rows. Calls `sink(vec<T> value, int64 offset, int count)` once for each run of `count`
/// <= L elements of the plain dw [O][I]; lanes beyond are of no meaning.
template <tile_set Tiles = all_tiles, class T, class Sink>
void lanes_dense_weight_gradient(work_range units, const lanes_dense_weight_extents& e, const T* dy,
                                 const T* xt, const Sink& sink);

/// Units of work of `lanes_channel_sums`: groups of L channels.
template <class T>
constexpr int lanes_channel_sums_units(int channels) {
  return ceil_divide(channels, lanes<T>);
}
/// Sums of x [blocks][channels][pixels][L] over samples and pixels: the gradient of a bias (pixels
/// 1 for a dense layer). Dead lanes are zero. The sink is that of `lanes_dense_weight_gradient`.
template <class T, class Sink>
void lanes_channel_sums(work_range units, int blocks, int channels, std::int64_t pixels, const T* x,
                        Sink sink);

namespace detail {

/// Sum of products over n steps: sum[r][v] += w[r] * x[v], with r-th row `r * row` behind w. Of R
/// rows the last may repeat its neighbour (`last` is its offset), so that tiles of even height
/// suffice.
template <int R, int V, class T>
[[gnu::always_inline]] inline void dense_tile(const T* w, std::int64_t row, std::int64_t last,
                                              std::int64_t w_step, const T* x, std::int64_t vector,
                                              std::int64_t x_step, int n, vec<T> (&sum)[R][V]) {
  // One pointer for three rows: with one for each, g++ runs out of registers and spills them.
  const T* bases[(R + 2) / 3];
#pragma GCC unroll 4
  for (int i = 0; i < (R + 2) / 3; ++i) bases[i] = w + i * 3 * row;
  const T* bottom = w + last;
  for (int k = 0; k < n; ++k, x += x_step) {
    vec<T> v[V];
#pragma GCC unroll 2
    for (int j = 0; j < V; ++j) {
      v[j] = load(x + j * vector);
      if constexpr (few_vector_registers) v[j] = in_register<T>(v[j]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const vec<T> weight(r + 1 < R ? bases[r / 3][r % 3 * row] : *bottom);
#pragma GCC unroll 2
      for (int j = 0; j < V; ++j) sum[r][j] = multiply_add(weight, v[j], sum[r][j]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < (R + 2) / 3; ++i) bases[i] += w_step;
    bottom += w_step;
  }
}

template <int R, int V, class T>
[[gnu::always_inline]] inline void clear(vec<T> (&sum)[R][V]) {
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int j = 0; j < V; ++j) sum[r][j] = vec<T>(T{0});
  }
}

/// total = the sums that `add_blocks(from, to)` leaves there, of so many blocks each, added in
/// double precision.
template <int AtOnce, int R, int V, class T, class AddBlocks>
[[gnu::always_inline]] inline void add_in_double(int blocks, vec<T> (&total)[R][V],
                                                 AddBlocks add_blocks) {
  add_blocks(0, std::min(blocks, AtOnce));
  if (blocks <= AtOnce) return;
  wide_sum<T> sums[R][V];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int j = 0; j < V; ++j) sums[r][j] = wide_sum<T>(total[r][j]);
  }
  for (int start = AtOnce; start < blocks; start += AtOnce) {
    add_blocks(start, std::min(blocks, start + AtOnce));
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
      for (int j = 0; j < V; ++j) sums[r][j] = sums[r][j] + total[r][j];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r) {
#pragma GCC unroll 2
    for (int j = 0; j < V; ++j) total[r][j] = sums[r][j].by_lanes();
  }
}

template <tile_set Tiles, int R, class Tile>
[[gnu::always_inline]] inline bool call_rows(Tile& tile) {
  if constexpr ((Tiles >> R & 1u) != 0) tile(std::integral_constant<int, R>{});
  return true;
}

/// Calls `tile(std::integral_constant<int, R>)` with R = tile_rows(rows).
template <tile_set Tiles, class Tile>
[[gnu::always_inline]] inline void with_tile_rows(int rows, Tile tile) {
  assert((Tiles >> tile_rows(rows) & 1u) != 0 && "the kernel was not compiled for these extents");
  [&]<int... N>(std::integer_sequence<int, N...>) __attribute__((always_inline)) {
    static_cast<void>(((tile_rows(rows) == 2 * N + 2 && call_rows<Tiles, 2 * N + 2>(tile)) || ...));
  }
  (std::make_integer_sequence<int, dense_rows / 2>{});
}

}  // namespace detail

template <tile_set Tiles, class T, class Sink>
[[gnu::noinline]] void lanes_dense(work_range units, const lanes_dense_extents& extents,
                                   const T* __restrict w, const T* __restrict x,
                                   const Sink& given) {
  own_sink<Sink> sink = given;
  constexpr int L = lanes<T>;
  const lanes_dense_extents e = extents;  // a copy stays in registers across the sink's stores
  const int tiles = ceil_divide(e.rows, detail::dense_rows);
  const std::int64_t vector = std::int64_t{e.inner} * L;
  for (int unit = units.first; unit < units.last; ++unit) {
    const int first = unit % tiles * detail::dense_rows, block = unit / tiles * 2;
    const int rows = std::min(detail::dense_rows, e.rows - first);
    const auto tile = [&]<int R, int V>() __attribute__((always_inline)) {
      vec<T> total[R][V];
      detail::clear(total);
      detail::dense_tile(w + first * e.row_stride, e.row_stride, (rows - 1) * e.row_stride,
                         e.column_stride, x + block * vector, vector, L, e.inner, total);
#pragma GCC unroll 2
      for (int j = 0; j < V; ++j) {
#pragma GCC unroll 16
        for (int r = 0; r < R; ++r) {
          if (r + 1 == R && rows < R) break;
          sink(total[r][j], std::int64_t{block + j} * e.rows + first + r, first + r);
        }
      }
    };
    detail::with_tile_rows<Tiles>(
        rows, [&](auto size) __attribute__((always_inline)) {
          if constexpr ((Tiles & detail::two_vectors) != 0) {
            if (block + 1 < e.blocks) return tile.template operator()<size(), 2>();
          }
          if constexpr ((Tiles & detail::one_vector) != 0) tile.template operator()<size(), 1>();
        });
  }
}

template <class T>
[[gnu::noinline]] void lanes_transpose(work_range units, const lanes_dense_weight_extents& e,
                                       const T* __restrict x, T* __restrict xt) {
  constexpr int L = lanes<T>;
  const int squares = ceil_divide(e.in_features, L);
  const std::int64_t width = std::int64_t{squares} * L;
  for (int unit = units.first; unit < units.last; ++unit) {
    const int block = unit / squares, first = unit % squares * L;
    const int n = std::min(L, e.in_features - first);
    const T* from = x + (std::int64_t{block} * e.in_features + first) * L;
    T* to = xt + block * L * width + first;
    vec<T> rows[L];
#pragma GCC unroll 16
    for (int j = 0; j < L; ++j) rows[j] = j < n ? load(from + j * L) : vec<T>(T{0});
    transpose<T>(rows);
#pragma GCC unroll 16
    for (int j = 0; j < L; ++j) store(to + j * width, rows[j]);
  }
}
CELLA_COMPILED_FOR_FLOATS(lanes_transpose);

template <tile_set Tiles, class T, class Sink>
[[gnu::noinline]] void lanes_dense_weight_gradient(work_range units,
                                                   const lanes_dense_weight_extents& extents,
                                                   const T* __restrict dy, const T* __restrict xt,
                                                   const Sink& given) {
  own_sink<Sink> sink = given;
  constexpr int L = lanes<T>, V = detail::dense_vectors;
  const lanes_dense_weight_extents e = extents;
  const int vectors = ceil_divide(e.in_features, L), pairs = ceil_divide(vectors, V);
  const std::int64_t width = std::int64_t{vectors} * L;
  for (int unit = units.first; unit < units.last; ++unit) {
    const int first = unit / pairs * detail::dense_rows, column = unit % pairs * V * L;
    const int rows = std::min(detail::dense_rows, e.out_features - first);
    const auto tile = [&]<int R, int N>() __attribute__((always_inline)) {
      // Only the last vector of a tile can be cut.
      const int last = std::min(L, e.in_features - column - (N - 1) * L);
      vec<T> total[R][N];
      const auto add_blocks = [&](int from, int to) __attribute__((always_inline)) {
        detail::clear(total);
        for (int block = from; block < to; ++block) {
          detail::dense_tile(dy + (std::int64_t{block} * e.out_features + first) * L, L,
                             std::int64_t{rows - 1} * L, 1, xt + block * L * width + column, L,
                             width, L, total);
        }
      };
      if constexpr ((Tiles & detail::long_sums) == 0)
        add_blocks(0, e.blocks);
      else
        detail::add_in_double<detail::blocks_at_once<T>>(e.blocks, total, add_blocks);
#pragma GCC unroll 16
      for (int r = 0; r < R; ++r) {
        if (r + 1 == R && rows < R) break;
#pragma GCC unroll 2
        for (int j = 0; j < N; ++j) {
          sink(total[r][j], std::int64_t{first + r} * e.in_features + column + j * L,
               j + 1 < N ? L : last);
        }
      }
    };
    detail::with_tile_rows<Tiles>(
        rows, [&](auto size) __attribute__((always_inline)) {
          if constexpr ((Tiles & detail::two_vectors) != 0) {
            if (column + L < width) return tile.template operator()<size(), 2>();
          }
          if constexpr ((Tiles & detail::one_vector) != 0) tile.template operator()<size(), 1>();
        });
  }
}

template <class T, class Sink>
[[gnu::noinline]] void lanes_channel_sums(work_range units, int blocks, int channels,
                                          std::int64_t pixels, const T* __restrict x, Sink sink) {
  constexpr int L = lanes<T>;
  for (int unit = units.first; unit < units.last; ++unit) {
    const int first = unit * L, n = std::min(L, channels - first);
    alignas(vec<T>) T total[L]{};
    for (int c = 0; c < n; ++c) {
      long_sum<T> all;
      for (int block = 0; block < blocks; ++block) {
        const T* const at = x + (std::int64_t{block} * channels + first + c) * pixels * L;
        all.add(fold_terms<adding, T>(
            pixels, 1, [&](std::int64_t i) { return load(at + i * L); },
            [&](vec<T> run) { all.add(run); }));
      }
      total[c] = all.over_lanes();
    }
    sink(load(total), std::int64_t{first}, n);
  }
}

}  // namespace cella::cpu
