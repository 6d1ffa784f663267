// The operations on one matrix of a batch: factors, systems of equations, determinants. They
// compute in double precision, as the operations' own computations do.
#pragma once

#include <cella/backend/cpu/matrices/factors.hpp>
#include <cella/backend/cpu/matrices/orthogonal.hpp>
#include <cella/backend/cpu/matrices/task.hpp>
#include <cella/ops/names.hpp>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <type_traits>

namespace cella::cpu {

namespace detail {

/// What square matrices are factored in.
struct square_room {
  int n, columns;
  written_part a, right;
  int* swaps;

  constexpr square_room(const decomposition_extents& e, part_room& room)
      : n(e.n),
        columns(e.columns),
        a(room.matrix(n, n)),
        right(room.matrix(n, columns)),
        swaps(room.whole_numbers(n)) {}

  /// P A = L U.
  template <class T>
  void factor(const decomposition_task<T>& t) {
    read_rows(t.a, n, n, a);
    eliminate(n, n, a, swaps);
  }
};

template <class T>
void cholesky(const attributes&, const decomposition_task<T>& t, part_room room) {
  const square_room r(t.e, room);
  const std::size_t n = std::size_t(r.n);
  T* const first = t.result(0);
  for_squares<true>(r.n,
                    [&](int i, int j) { r.a(j, i) = t.a[std::size_t(i) * n + std::size_t(j)]; });
  if (!cholesky_in_place(r.n, r.a)) {
    std::fill_n(first, n * n, std::numeric_limits<T>::quiet_NaN());
    return;
  }
  std::fill_n(first, n * n, T(0));
  for_squares<true>(r.n, [&](int i, int j) {
    first[std::size_t(i) * n + std::size_t(j)] = static_cast<T>(r.a(j, i));
  });
}

template <class Op, class T>
void triangular_solve(const attributes& a, const decomposition_task<T>& t, part_room room) {
  const auto o = a.as<typename Op::options>();
  const square_room r(t.e, room);
  read_rows(t.a, r.n, r.n, r.a);
  read_rows(t.b, r.n, r.columns, r.right);
  const triangle side{r.a, o.upper != 0, o.unit != 0};
  solve_triangle(r.n, o.transpose ? side.transposed() : side, r.columns, r.right);
  write_rows(r.right, r.n, r.columns, t.result(0));
}

template <class T>
void solve(const attributes&, const decomposition_task<T>& t, part_room room) {
  square_room r(t.e, room);
  r.factor(t);
  read_rows(t.b, r.n, r.columns, r.right);
  swap_rows(r.n, r.swaps, r.columns, r.right);
  solve_triangle(r.n, {r.a, false, true}, r.columns, r.right);
  solve_triangle(r.n, {r.a, true}, r.columns, r.right);
  write_rows(r.right, r.n, r.columns, t.result(0));
}

template <class T>
void slogdet(const attributes&, const decomposition_task<T>& t, part_room room) {
  square_room r(t.e, room);
  r.factor(t);
  double sign = 1, size = 0;
  for (int k = 0; k < r.n; ++k) {
    const double pivot = r.a(k, k);
    if (r.swaps[k] != k) sign = -sign;
    sign *= pivot > 0 ? 1 : pivot < 0 ? -1 : pivot;
    size += std::log(std::abs(pivot));
  }
  if (t.results[0]) *t.result(0) = static_cast<T>(sign);
  if (t.results[1]) *t.result(1) = static_cast<T>(size);
}

template <class T>
void lu(const attributes&, const decomposition_task<T>& t, part_room room) {
  square_room r(t.e, room);
  r.factor(t);
  if (t.results[0]) write_rows(r.a, r.n, r.n, t.result(0));
  if (!t.results[1]) return;
  auto* const order = t.template result<std::int64_t>(1);
  for (int k = 0; k < r.n; ++k) order[k] = k;
  for (int k = 0; k < r.n; ++k) std::swap(order[k], order[r.swaps[k]]);
}

}  // namespace detail

/// What computes an operation, and the bytes of each of its results for a matrix.
template <class T>
struct decomposition_kernel {
  decomposition<T> run;
  std::array<std::int64_t, 3> bytes;
};
template <class Op, class T>
constexpr decomposition_kernel<T> decomposition_of(const decomposition_extents& e) {
  const std::int64_t one = sizeof(T), n = e.n, square = one * n * n, all = one * n * e.rows;
  if constexpr (std::is_same_v<Op, cholesky_op>)
    return {&detail::cholesky<T>, {square}};
  else if constexpr (std::is_same_v<Op, triangular_solve_op>)
    return {&detail::triangular_solve<Op, T>, {one * n * e.columns}};
  else if constexpr (std::is_same_v<Op, solve_op>)
    return {&detail::solve<T>, {one * n * e.columns}};
  else if constexpr (std::is_same_v<Op, slogdet_op>)
    return {&detail::slogdet<T>, {one, one}};
  else if constexpr (std::is_same_v<Op, lu_op>)
    return {&detail::lu<T>, {square, std::int64_t{8} * n}};
  else if constexpr (std::is_same_v<Op, qr_op>)
    return {&detail::qr<T>, {all, square}};
  else if constexpr (std::is_same_v<Op, eigh_op>)
    return {&detail::eigh<T>, {one * n, square}};
  else
    return {&detail::svd<T>, {all, one * n, square}};
}
/// Bytes of scratch for a matrix.
template <class Op>
constexpr std::int64_t decomposition_scratch(const decomposition_extents& e) {
  part_room room;
  if constexpr (std::is_same_v<Op, qr_op>)
    detail::qr_room(e, room);
  else if constexpr (std::is_same_v<Op, eigh_op>)
    detail::eigh_room(e, room);
  else if constexpr (std::is_same_v<Op, svd_op>)
    detail::svd_room(e, room);
  else
    detail::square_room(e, room);
  return room.bytes();
}

}  // namespace cella::cpu
