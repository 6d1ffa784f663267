// C -= A B for parts of matrices in double precision: what decompositions spend their time with.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/gemm/tile.hpp>
#include <concepts>
#include <cstdint>

namespace cella::cpu {

/// Part of a matrix, or of its transpose: element (i, j) at `at + i * row + j * column`.
template <class T>
struct matrix_part {
  T* at;
  std::int64_t row, column = 1;

  T& operator()(int i, int j) const { return at[i * row + j * column]; }
  matrix_part from(int i, int j) const { return {&(*this)(i, j), row, column}; }
  matrix_part transposed() const { return {at, column, row}; }
  operator matrix_part<const T>() const { return {at, row, column}; }
};
using known_part = matrix_part<const double>;
using written_part = matrix_part<double>;  ///< whose `column` is 1

/// C [rows,columns] -= A [rows,depth] B [depth,columns]. This and what is made of it are templates,
/// so that programs without decompositions do not compile them.
template <std::same_as<double> T = double>
void subtract_product(int rows, int columns, int depth, known_part a, written_part b,
                      written_part c) {
  constexpr int height = register_tile<T>::rows, width = register_tile<T>::columns;
  constexpr int L = lanes<T>, deepest = 128;
  alignas(64) T negative[deepest * width];  // a strip of -B
  for (int k = 0; k < depth; k += deepest) {
    const int part = std::min(deepest, depth - k);
    for (int j = 0; j < columns; j += width) {
      const int here = std::min(width, columns - j), vectors = (here + L - 1) / L;
      for (int p = 0; p < part; ++p)
        for (int v = 0; v < vectors; ++v)
          store(negative + p * width + v * L,
                -load_first(&b(k + p, j + v * L), std::min(L, here - v * L)));
      for (int i = 0; i < rows; i += height)
        multiply_tile<tile_form::strided, T>(
            std::min(height, rows - i), vectors,
            {part, &a(i, k), a.row, a.column, negative, width, nullptr, &c(i, j), c.row,
             here - (vectors - 1) * L, true});
    }
  }
}

}  // namespace cella::cpu
