// A matrix product of plain tensors as data: where its operands lie and how large they are.
#pragma once

#include <cella/backend/cpu/gemm/operand.hpp>
#include <cstdint>
#include <utility>

namespace cella::cpu {

/// C[i,j] = sum over k of A[i,k] B[k,j] for i < rows, j < columns, k < depth, for each of `batch`
/// products, and these `outer` times. Element (i, j) of C has the offset `i * c_row + j`, and each
/// further product adds `a_batch`, `b_batch` and `c_batch` elements (0 in A or B: the same matrix
/// for all). It is computed in T; A and B are stored as S.
template <class T, class S = T>
struct product {
  int rows{}, columns{}, depth{};
  matrix<S> a{}, b{};
  std::int64_t c_row{};
  int batch = 1;
  std::int64_t a_batch{}, b_batch{}, c_batch{};
  int outer = 1;
  std::int64_t a_outer{}, b_outer{}, c_outer{};
  /// `packed` is what `gemm_pack` made of B, the same for all products of the batch, and `b` does
  /// not count. More than 4 rows and more than one column.
  bool packed_b{};
  const T* packed{};
};

namespace detail {

/// The product of which C is the transposed one.
template <class T, class S>
constexpr product<T, S> exchange(product<T, S> p) {
  std::swap(p.rows, p.columns);
  std::swap(p.a, p.b);
  std::swap(p.a_batch, p.b_batch);
  std::swap(p.a_outer, p.b_outer);
  p.a = p.a.transposed();
  p.b = p.b.transposed();
  return p;
}

}  // namespace detail

}  // namespace cella::cpu
