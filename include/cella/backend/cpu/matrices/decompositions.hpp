// The operations on one matrix of a batch: factors, systems of equations, determinants. They
// compute in double precision, as the operations' own computations do.
#pragma once

#include <cella/backend/cpu/matrices/factors.hpp>
#include <cella/ops/names.hpp>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>

namespace cella::cpu {

/// A square matrix, and right sides of equations if the operation has any.
struct decomposition_extents {
  int n{};
  int columns{};  ///< of the right sides

  /// Elements from row to row: rows that lie a power of 2 apart would share few lines of a cache.
  static constexpr std::int64_t room(int columns) { return (columns + 7) / 8 * 8 + 8; }
  constexpr std::int64_t scratch_bytes() const {
    return std::int64_t{8} * n * (room(n) + room(columns)) + std::int64_t{4} * n;
  }
};

/// Operands and results of one matrix of the batch. A second result is of T, or of i64.
template <class T>
struct decomposition_task {
  decomposition_extents e;
  const T* a;
  const T* b;  ///< null if there are no right sides
  T* first;
  std::byte* second;
};
template <class T>
using decomposition = void (*)(const attributes&, const decomposition_task<T>&, std::byte* scratch);

namespace detail {

/// What is computed on, in scratch.
template <class T>
struct decomposition_room {
  int n, columns;
  written_part a, right;
  int* swaps;

  decomposition_room(const decomposition_task<T>& t, std::byte* scratch)
      : n(t.e.n),
        columns(t.e.columns),
        a{reinterpret_cast<double*>(scratch), t.e.room(n)},
        right{a.at + n * a.row, t.e.room(columns)},
        swaps(reinterpret_cast<int*>(right.at + n * right.row)) {}

  static void read(const T* from, int rows, int row_length, written_part to) {
    for (int i = 0; i < rows; ++i, from += row_length) std::copy_n(from, row_length, &to(i, 0));
  }
  static void write(written_part from, int rows, int row_length, T* to) {
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < row_length; ++j) *to++ = static_cast<T>(from(i, j));
  }
  /// P A = L U.
  void factor(const decomposition_task<T>& t) {
    read(t.a, n, n, a);
    eliminate(n, n, a, swaps);
  }
};

/// f(i, j) for the lower triangle of an n x n matrix, in squares that a transpose has in a cache.
template <class F>
void for_lower_triangle(int n, F f) {
  constexpr int side = 16;
  for (int i = 0; i < n; i += side)
    for (int j = 0; j <= i; j += side)
      for (int k = i; k < std::min(i + side, n); ++k)
        for (int p = j; p < std::min(j + side, k + 1); ++p) f(k, p);
}

template <class T>
void cholesky(const attributes&, const decomposition_task<T>& t, std::byte* scratch) {
  const decomposition_room<T> r(t, scratch);
  const std::size_t n = std::size_t(r.n);
  for_lower_triangle(r.n,
                     [&](int i, int j) { r.a(j, i) = t.a[std::size_t(i) * n + std::size_t(j)]; });
  if (!cholesky_in_place(r.n, r.a)) {
    std::fill_n(t.first, n * n, std::numeric_limits<T>::quiet_NaN());
    return;
  }
  std::fill_n(t.first, n * n, T(0));
  for_lower_triangle(r.n, [&](int i, int j) {
    t.first[std::size_t(i) * n + std::size_t(j)] = static_cast<T>(r.a(j, i));
  });
}

template <class Op, class T>
void triangular_solve(const attributes& a, const decomposition_task<T>& t, std::byte* scratch) {
  const auto o = a.as<typename Op::options>();
  const decomposition_room<T> r(t, scratch);
  r.read(t.a, r.n, r.n, r.a);
  r.read(t.b, r.n, r.columns, r.right);
  const triangle side{r.a, o.upper != 0, o.unit != 0};
  solve_triangle(r.n, o.transpose ? side.transposed() : side, r.columns, r.right);
  r.write(r.right, r.n, r.columns, t.first);
}

template <class T>
void solve(const attributes&, const decomposition_task<T>& t, std::byte* scratch) {
  decomposition_room<T> r(t, scratch);
  r.factor(t);
  r.read(t.b, r.n, r.columns, r.right);
  swap_rows(r.n, r.swaps, r.columns, r.right);
  solve_triangle(r.n, {r.a, false, true}, r.columns, r.right);
  solve_triangle(r.n, {r.a, true}, r.columns, r.right);
  r.write(r.right, r.n, r.columns, t.first);
}

template <class T>
void slogdet(const attributes&, const decomposition_task<T>& t, std::byte* scratch) {
  decomposition_room<T> r(t, scratch);
  r.factor(t);
  double sign = 1, size = 0;
  for (int k = 0; k < r.n; ++k) {
    const double pivot = r.a(k, k);
    if (r.swaps[k] != k) sign = -sign;
    sign *= pivot > 0 ? 1 : pivot < 0 ? -1 : pivot;
    size += std::log(std::abs(pivot));
  }
  *t.first = static_cast<T>(sign);
  *reinterpret_cast<T*>(t.second) = static_cast<T>(size);
}

template <class T>
void lu(const attributes&, const decomposition_task<T>& t, std::byte* scratch) {
  decomposition_room<T> r(t, scratch);
  r.factor(t);
  r.write(r.a, r.n, r.n, t.first);
  auto* const order = reinterpret_cast<std::int64_t*>(t.second);
  for (int k = 0; k < r.n; ++k) order[k] = k;
  for (int k = 0; k < r.n; ++k) std::swap(order[k], order[r.swaps[k]]);
}

}  // namespace detail

/// That of an operation.
template <class Op, class T>
constexpr decomposition<T> decomposition_of() {
  if constexpr (std::is_same_v<Op, cholesky_op>)
    return &detail::cholesky<T>;
  else if constexpr (std::is_same_v<Op, triangular_solve_op>)
    return &detail::triangular_solve<Op, T>;
  else if constexpr (std::is_same_v<Op, solve_op>)
    return &detail::solve<T>;
  else if constexpr (std::is_same_v<Op, slogdet_op>)
    return &detail::slogdet<T>;
  else
    return &detail::lu<T>;
}

}  // namespace cella::cpu
