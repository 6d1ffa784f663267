// Diagonals and triangles of matrices, made of comparisons of row and column numbers.
#pragma once

#include <cella/ops/reduction.hpp>

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

constexpr var keep_where(var condition, var x) { return select(condition, x, zeros_like(x)); }

}  // namespace detail

/// The lower triangle of each matrix, up to and including diagonal `k`; zeros above.
constexpr var tril(operand x, int k = 0) {
  return detail::keep_where(detail::column_less_row("tril", x) <= k, x.in(*x.owner()));
}
/// The upper triangle of each matrix, from diagonal `k` on; zeros below.
constexpr var triu(operand x, int k = 0) {
  return detail::keep_where(detail::column_less_row("triu", x) >= k, x.in(*x.owner()));
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
  return detail::keep_where(equal(detail::column_less_row("diag", rows), 0), rows);
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
  return sum(detail::keep_where(equal(detail::column_less_row("diagonal", x), 0), v), {-1});
}
/// Sum of the diagonal: [...,n,n] -> [...]
constexpr var trace(operand x) { return sum({diagonal(x), x.at()}, {-1}); }

}  // namespace cella
