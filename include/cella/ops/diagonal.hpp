// Diagonals and triangles of matrices, made of comparisons of row and column numbers.
#pragma once

#include <algorithm>
#include <cella/graph/once.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>

namespace cella {

namespace detail {

/// Column number less row number at each element of the last two axes of x, as i32; a fault and x
/// itself if it has no two axes.
CELLA_ONCE constexpr var column_less_row(std::string_view op, operand x) {
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

/// Column and row numbers of the last two axes of x, [n] and [m,1], in x's own type if that has
/// them all: loops that read x compare the two, and nothing of the matrix's size is made of them.
struct matrix_places {
  var column, row;
};
constexpr matrix_places places_in_matrix(std::string_view op, operand x) {
  const var v = x.in(*x.owner());
  if (v.rank() < 2) return {column_less_row(op, x), v};
  constexpr int exact_in_single = 1 << 24;
  const bool own =
      v.element() == dtype::f64 ||
      (v.element() == dtype::f32 && std::max(v.extent(-2), v.extent(-1)) <= exact_in_single);
  const dtype t = own ? v.element() : dtype::i32;
  return {iota(*v.b, {t, {v.extent(-1)}}, 0), iota(*v.b, {t, {v.extent(-2), 1}}, 0)};
}

/// The elements of x where `keep(column, row)`; zeros elsewhere.
template <class Keep>
constexpr var keep_places(std::string_view op, operand x, Keep keep) {
  const var v = x.in(*x.owner());
  const auto [column, row] = places_in_matrix(op, x);
  if (v.b->failed()) return v;
  return select(broadcast_to(keep(column, row), v.shape()), v, zeros_like(v));
}

}  // namespace detail

/// The lower triangle of each matrix, up to and including diagonal `k`; zeros above.
constexpr var tril(operand x, int k = 0) {
  return detail::keep_places("tril", x, [=](var column, var row) { return column <= row + k; });
}
/// The upper triangle of each matrix, from diagonal `k` on; zeros below.
constexpr var triu(operand x, int k = 0) {
  return detail::keep_places("triu", x, [=](var column, var row) { return column >= row + k; });
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
  return detail::keep_places("diag", rows, [](var column, var row) { return equal(column, row); });
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
  if (n > most) {
    const var kept =
        detail::keep_places("diagonal", x, [](var column, var row) { return equal(column, row); });
    return sum(kept, {-1});
  }
  shape rows = v.shape();
  rows.erase(axis);
  rows[axis] = n * n;
  return slice({reshape(x, rows), x.at()}, axis, 0, n * n, n + 1);
}
/// Sum of the diagonal: [...,n,n] -> [...]
constexpr var trace(operand x) { return sum({diagonal(x), x.at()}, {-1}); }

}  // namespace cella
