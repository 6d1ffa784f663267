// Diagonals and triangles of matrices, made of comparisons of row and column numbers.
#pragma once

#include <algorithm>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>

namespace cella {

namespace detail {

/// Column number less row number at each element of the last two axes of x, as i32; a fault and x
/// itself if it has no two axes.
constexpr var column_less_row(std::string_view op, operand x) {
  const var v = x.in(*x.owner());
  if (v.rank() < 2) {
    v.b->fail(text() << x.at() << ": " << op << ": needs a matrix: " << v.b->describe(v.id)
                     << " is " << v.shape());
    return v;
  }
  const shape matrix{v.extent(-2), v.extent(-1)};
  const tensor_type t{dtype::i32, matrix};
  return broadcast_to(iota(*v.b, t, 1) - iota(*v.b, t, 0), v.shape());
}

/// The same in numbers of x's own type, if that has them all: loops that read x make them of a row
/// and a column.
constexpr var own_column_less_row(std::string_view op, operand x) {
  const var v = x.in(*x.owner());
  constexpr int exact_in_single = 1 << 24;
  const bool own =
      v.element() == dtype::f64 || (v.element() == dtype::f32 && v.rank() >= 2 &&
                                    std::max(v.extent(-2), v.extent(-1)) <= exact_in_single);
  if (!own || v.rank() < 2) return column_less_row(op, x);
  const var column = iota(*v.b, {v.element(), {v.extent(-1)}}, 0);
  const var row = iota(*v.b, {v.element(), {v.extent(-2), 1}}, 0);
  return broadcast_to(column - row, v.shape());
}

constexpr var keep_where(var condition, var x) { return select(condition, x, zeros_like(x)); }

}  // namespace detail

/// The lower triangle of each matrix, up to and including diagonal `k`; zeros above.
constexpr var tril(operand x, int k = 0) {
  return detail::keep_where(detail::own_column_less_row("tril", x) <= k, x.in(*x.owner()));
}
/// The upper triangle of each matrix, from diagonal `k` on; zeros below.
constexpr var triu(operand x, int k = 0) {
  return detail::keep_where(detail::own_column_less_row("triu", x) >= k, x.in(*x.owner()));
}
/// [...,n] -> [...,n,n] with the vector on the diagonal.
constexpr var diag(operand x) {
  builder& b = *x.owner();
  const var v = x.in(b);
  if (v.rank() == 0 || v.rank() == max_rank) {
    b.fail(text() << x.at() << ": diag: needs a vector: " << b.describe(v.id) << " is "
                  << v.shape());
    return v;
  }
  shape s = v.shape();
  s.push_back(v.extent(-1));
  const var rows = broadcast_to(expand_dims(v, -1), s);
  return detail::keep_where(equal(detail::own_column_less_row("diag", rows), 0), rows);
}
/// [...,n,n] -> [...,n]
constexpr var diagonal(operand x) {
  builder& b = *x.owner();
  const var v = x.in(b);
  if (v.rank() < 2 || v.extent(-1) != v.extent(-2)) {
    b.fail(text() << x.at() << ": diagonal: needs square matrices: " << b.describe(v.id) << " is "
                  << v.shape());
    return v;
  }
  // Of the matrix as a row they are n + 1 apart.
  const int n = v.extent(-1), axis = v.rank() - 2;
  constexpr int most = 46340;  // whose square is an extent
  if (n > most)
    return sum(detail::keep_where(equal(detail::own_column_less_row("diagonal", x), 0), v), {-1});
  shape rows = v.shape();
  rows.erase(axis);
  rows[axis] = n * n;
  return slice({reshape(x, rows), x.at()}, axis, 0, n * n, n + 1);
}
/// Sum of the diagonal: [...,n,n] -> [...]
constexpr var trace(operand x) { return sum({diagonal(x), x.at()}, {-1}); }

}  // namespace cella
