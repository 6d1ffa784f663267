// Decompositions of matrices and what follows from them: systems of equations, inverses,
// determinants, least squares. Leading axes are batches. All of it is computed in double precision.
#pragma once

#include <cella/ops/decompositions.hpp>

namespace cella {

// ---- public functions

namespace detail {
/// A fault unless x consists of floating-point matrices, square ones if asked.
constexpr bool has_matrices(std::string_view op, var x, bool square, std::source_location at) {
  const bool fits =
      x.rank() >= 2 && is_floating(x.element()) && (!square || x.extent(-1) == x.extent(-2));
  if (!fits)
    x.b->fail(text() << at << ": " << op << ": needs " << (square ? "square " : "")
                     << "matrices of floating-point numbers: " << x.b->describe(x.id) << " is "
                     << x.type());
  return fits;
}
/// `x` with the batches of `batches` instead of its own.
constexpr var with_batches(var x, const shape& batches) {
  shape s = batches;
  s.push_back(x.extent(-2));
  s.push_back(x.extent(-1));
  return broadcast_to(x, s);
}
constexpr shape stack_shape_of(var x) {
  shape s = x.shape();
  s.rank -= 2;
  return s;
}
/// What solves A X = B for matrices or one vector B: checks both, and calls f(A, B).
template <class F>
constexpr var solved(std::string_view op, operand a, operand b, F f) {
  builder& g = owner_of(a, b);
  const var m = a.in(g);
  const var given = b.in(g);
  if (!has_matrices(op, m, true, a.at())) return given;
  const bool is_vector = given.rank() == 1;
  const var right = is_vector ? expand_dims(given, -1) : given;
  shape batches = right.rank() >= 2 ? stack_shape_of(right) : shape{};
  const bool fits = right.rank() >= 2 && right.element() == m.element() &&
                    right.extent(-2) == m.extent(-1) && broadcast_with(batches, stack_shape_of(m));
  if (!fits) {
    g.fail(text() << b.at() << ": " << op << ": " << g.describe(given.id) << " " << given.type()
                  << " has not one row for each of " << g.describe(m.id) << " " << m.type());
    return given;
  }
  const var x = f(with_batches(m, batches), with_batches(right, batches));
  return is_vector && batches.rank == 0 ? squeeze(x, -1) : x;
}
/// Identity matrices like x.
constexpr var eye_like(var x) { return cast(equal(column_less_row("eye", x), 0), x.element()); }
}  // namespace detail

/// The lower triangle L of a symmetric positive definite A = L L^T (`upper`: L^T). Only A's lower
/// triangle is read. NaN where A is not positive definite.
constexpr var cholesky(operand a, bool upper = false) {
  const var x = a.in(*a.owner());
  if (!detail::has_matrices("cholesky", x, true, a.at())) return x;
  const var l = emit<cholesky_op>({}, a.at(), x);
  return upper ? detail::transposed(l) : l;
}

/// X with T X = B, T being the lower (or `upper`) triangle of A; with `transpose` T^T X = B; with
/// `unit` T's diagonal counts as ones. B may be a vector.
constexpr var solve_triangular(operand a, operand b, bool upper = false, bool transpose = false,
                               bool unit = false) {
  return detail::solved("solve_triangular", a, b, [&](var m, var right) {
    return emit<triangular_solve_op>(triangular_solve_op::options{upper, transpose, unit}, b.at(),
                                     m, right);
  });
}
/// X with A X = B by elimination with pivots; infinite or NaN where A is singular. B may be a
/// vector.
constexpr var solve(operand a, operand b) {
  return detail::solved("solve", a, b,
                        [&](var m, var right) { return emit<solve_op>({}, b.at(), m, right); });
}
/// The inverse of square matrices; infinite or NaN where there is none.
constexpr var inv(operand a) {
  const var x = a.in(*a.owner());
  if (!detail::has_matrices("inv", x, true, a.at())) return x;
  return solve(a, detail::eye_like(x));
}

/// What `slogdet` returns.
struct slogdet_result {
  var sign;       ///< 1, -1 or 0
  var logabsdet;  ///< minus infinity where the matrix is singular
};
/// Sign and logarithm of the size of the determinant: [...,n,n] -> [...], twice.
constexpr slogdet_result slogdet(operand a) {
  builder& b = *a.owner();
  const var x = a.in(b);
  if (!detail::has_matrices("slogdet", x, true, a.at())) return {x, x};
  const var y = emit<slogdet_op>({}, a.at(), x);
  return {{&b, b.get(y.id, 0)}, {&b, b.get(y.id, 1)}};
}
/// The determinant. Its derivative at singular matrices is NaN.
constexpr var det(operand a) {
  const slogdet_result d = slogdet(a);
  return d.sign * exp(d.logabsdet);
}

/// What `lu` returns.
struct lu_result {
  var permutation;  ///< [...,n] i64: row i of L U is row permutation[i] of A
  var lower;        ///< with a diagonal of ones
  var upper;
};
/// A with permuted rows = L U, for square A.
constexpr lu_result lu(operand a) {
  builder& b = *a.owner();
  const var x = a.in(b);
  if (!detail::has_matrices("lu", x, true, a.at())) return {x, x, x};
  const var y = emit<lu_op>({}, a.at(), x);
  const var packed{&b, b.get(y.id, 0)};
  return {{&b, b.get(y.id, 1)}, tril(packed, -1) + detail::eye_like(x), triu(packed)};
}

/// What `qr` returns.
struct qr_result {
  var q, r;
};
/// A = Q R, for [...,m,n] with m >= n: Q [...,m,n] with orthonormal columns, R [...,n,n] upper. NaN
/// where A is not finite.
constexpr qr_result qr(operand a) {
  builder& b = *a.owner();
  const var x = a.in(b);
  if (!detail::has_matrices("qr", x, false, a.at())) return {x, x};
  if (x.extent(-2) < x.extent(-1)) {
    b.fail(text() << a.at() << ": qr: needs at least as many rows as columns: " << b.describe(x.id)
                  << " is " << x.shape());
    return {x, x};
  }
  const var y = emit<qr_op>({}, a.at(), x);
  return {{&b, b.get(y.id, 0)}, {&b, b.get(y.id, 1)}};
}

/// What `eigh` returns.
struct eigh_result {
  var eigenvalues;   ///< [...,n] ascending
  var eigenvectors;  ///< [...,n,n], one a column
};
/// A = V diag(w) V^T, for symmetric A, of which the lower triangle is read. The largest element of
/// each vector is positive. All results of a matrix are NaN where it is not finite, or where the
/// method, which takes a few steps for a value, has not found one after 60. The derivative of the
/// vectors is infinite where two values are equal.
constexpr eigh_result eigh(operand a) {
  builder& b = *a.owner();
  const var x = a.in(b);
  if (!detail::has_matrices("eigh", x, true, a.at())) return {x, x};
  const var y = emit<eigh_op>({}, a.at(), x);
  return {{&b, b.get(y.id, 0)}, {&b, b.get(y.id, 1)}};
}
/// The eigenvalues of symmetric matrices, ascending.
constexpr var eigvalsh(operand a) { return eigh(a).eigenvalues; }

/// What `svd` returns.
struct svd_result {
  var u;   ///< [...,m,k], k being the lesser of m and n
  var s;   ///< [...,k] descending
  var vh;  ///< [...,k,n]
};
/// A = U diag(s) V^T, for [...,m,n]. The largest element of each row of V^T, or of each column of U
/// if A has fewer rows than columns, is positive. All results of a matrix are NaN where it is not
/// finite, or where the method, which takes a few steps for a value, has not found one after 60.
/// The derivative of the vectors is infinite where two values are equal or one is 0.
constexpr svd_result svd(operand a) {
  builder& b = *a.owner();
  const var x = a.in(b);
  if (!detail::has_matrices("svd", x, false, a.at())) return {x, x, x};
  const bool wide = x.extent(-2) < x.extent(-1);
  const var y = emit<svd_op>({}, a.at(), wide ? detail::transposed(x) : x);
  const var u{&b, b.get(y.id, 0)}, s{&b, b.get(y.id, 1)}, v{&b, b.get(y.id, 2)};
  if (wide) return {v, s, detail::transposed(u)};
  return {u, s, detail::transposed(v)};
}

/// The pseudo-inverse by singular values; those below `tolerance` times the largest count as 0.
constexpr var pinv(operand a, double tolerance = 1e-15) {
  const svd_result d = svd(a);
  if (d.u.b->failed()) return d.u;
  const var least = max(d.s, {-1}, true) * tolerance;
  const var keeps = d.s > least;
  const var inverse = select(keeps, 1 / select(keeps, d.s, ones_like(d.s)), zeros_like(d.s));
  return matmul(detail::transposed(d.vh) * expand_dims(inverse, -2), d.u, false, true);
}

/// The x of least |A x - B|^2, and among these of least size, by a QR decomposition: A [...,m,n]
/// has full rank. B is [...,m,k] or a vector [m].
constexpr var lstsq(operand a, operand b) {
  builder& g = owner_of(a, b);
  const var m = a.in(g);
  const var given = b.in(g);
  if (!detail::has_matrices("lstsq", m, false, a.at())) return given;
  const bool is_vector = given.rank() == 1;
  const var right = is_vector ? expand_dims(given, -1) : given;
  if (right.rank() != m.rank() || right.element() != m.element() ||
      right.extent(-2) != m.extent(-2)) {
    g.fail(text() << b.at() << ": lstsq: " << g.describe(given.id) << " " << given.type()
                  << " has not one row for each of " << g.describe(m.id) << " " << m.type());
    return given;
  }
  var x{};
  if (m.extent(-2) >= m.extent(-1)) {
    const qr_result d = qr(a);
    x = solve_triangular(d.r, matmul(d.q, right, true), true);
  } else {
    const qr_result d = qr({detail::transposed(m), a.at()});
    x = matmul(d.q, solve_triangular(d.r, right, true, true));
  }
  return is_vector ? squeeze(x, -1) : x;
}

/// A multiplied with itself: power 0 is the identity, a negative one that of the inverse.
constexpr var matrix_power(operand a, int power) {
  var x = a.in(*a.owner());
  if (!detail::has_matrices("matrix_power", x, true, a.at())) return x;
  if (power < 0) x = inv(a);
  var result{};
  for (int rest = power < 0 ? -power : power; rest; rest /= 2) {
    if (rest % 2) result = result.b ? matmul(result, x) : x;
    if (rest > 1) x = matmul(x, x);
  }
  return result.b ? result : detail::eye_like(x);
}

/// Kronecker's product of matrices: [m,n], [p,q] -> [m p,n q].
constexpr var kron(operand left, operand right) {
  builder& b = owner_of(left, right);
  const var x = left.in(b);
  const var y = right.in(b);
  if (x.rank() != 2 || y.rank() != 2) {
    b.fail(text() << right.at() << ": kron: both operands must be matrices: " << b.describe(x.id)
                  << " is " << x.shape() << ", " << b.describe(y.id) << " is " << y.shape());
    return x;
  }
  const var wide = reshape(left, {x.extent(0), 1, x.extent(1), 1});
  const var narrow = reshape(right, {1, y.extent(0), 1, y.extent(1)});
  return reshape(wide * operand(narrow, right.at()),
                 {x.extent(0) * y.extent(0), x.extent(1) * y.extent(1)});
}

}  // namespace cella
