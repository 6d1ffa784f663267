// Tiles of very deep products: sums over pieces of the depth, added up in double precision.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/gemm/blocking.hpp>
#include <cstdint>
#include <type_traits>

namespace cella::cpu::detail {

/// `height` rows of some vectors whose sums so far lie in double precision in `wide`, as far apart
/// as the elements of a tile, `row`. Adds a tile to them, or replaces them by it: `first`. `last`:
/// the tile becomes the rounded sums.
inline void add_to_wide(float* tile, double* wide, std::int64_t row, int height, int vectors,
                        bool first, bool last) {
  constexpr int L = lanes<float>, half = lanes<double>;
  for (int i = 0; i < height; ++i, tile += row, wide += row) {
    for (int j = 0; j < vectors * L; j += L) {
      wide_lanes sum = widen(load_unaligned(tile + j));
      if (!first) {
        sum.low = sum.low + load_unaligned(wide + j);
        sum.high = sum.high + load_unaligned(wide + j + half);
      }
      if (last) {
        store_unaligned(tile + j, narrow(sum));
      } else {
        store_unaligned(wide + j, sum.low);
        store_unaligned(wide + j + half, sum.high);
      }
    }
  }
}

/// So many summands are added up at once, in single precision.
inline constexpr int deepest_piece = 1024;

/// A tile whose depth is taken in pieces: `multiply` computes one, as the task says, whose C is
/// whole vectors.
template <class T, class Multiply>
void multiply_in_pieces(int height, int vectors, tile_task<T>& task, Multiply multiply) {
  if constexpr (std::is_same_v<T, float>) {
    const tile_task<T> whole = task;
    alignas(64) double wide[register_tile<T>::rows * blocking<T>::tile_columns];
    for (int k = 0; k < whole.depth; k += task.depth) {
      task.depth = std::min(deepest_piece, whole.depth - k);
      task.a = whole.a + k * task.a_column;
      task.b = whole.b + k * task.b_row;
      multiply();
      add_to_wide(task.c, wide, task.c_row, height, vectors, k == 0, k + task.depth == whole.depth);
    }
    task = whole;
  }
}

}  // namespace cella::cpu::detail
