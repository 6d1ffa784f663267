// The operations behind linear_algebra.hpp, with their derivatives.
#pragma once

#include <cella/ops/diagonal.hpp>
#include <cella/ops/eigen_kernels.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/sorting.hpp>

namespace cella {

namespace detail {

/// Base of operations on matrices in batches, the last two axes of operands of as many axes: loops
/// over the batches, of which each is read as a whole. `Op::one(options, in, out)` computes one; a
/// vector is a column.
template <class Op>
struct on_matrices : opaque<Op>, computed_in_single {
  static constexpr int operands = 1;
  static constexpr bool square = true;
  static constexpr int result_count = 1;
  static bool fits(const op_application& a) {
    bool fits = a.rank() >= 2 && is_floating(a.in[0].element) &&
                (!Op::square || a.of(0)[a.rank() - 1] == a.of(0)[a.rank() - 2]);
    for (int k = 1; fits && k < Op::operands; ++k)
      fits = a.in[std::size_t(k)].element == a.in[0].element && a.rank(k) == a.rank() &&
             begins_with(a.of(k), a.of(0), a.rank() - 1);
    return fits;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes&) {
    iteration_space s(in.size());
    const int batches = in[0].rank() - 2;
    for (int d = 0; d < batches; ++d) s.add(in[0][d]);
    for (int t = 0; t < int(in.size()) + Op::result_count; ++t) s.along_all(t, 0, batches);
    // The work on one: its rows, its columns, and one more loop over them.
    for (int d : {batches, batches + 1, batches + 1}) s.add(in[0][d], true);
    return s;
  }
  /// Samples are one more batch.
  static constexpr void batch(node_ref n, span<const var> in, unsigned batched, span<var> out) {
    ids all;
    for (std::size_t k = 0; k < in.size(); ++k) all.push_back(batched_operand(in, batched, k).id);
    const node own = n.b->g.nodes[std::size_t(n.id)];  // nodes move when another is appended
    const node_id y = n.b->emit(*own.op, all, own.attributes);
    for (std::size_t k = 0; k < out.size(); ++k) out[k] = {n.b, n.b->get(y, int(k))};
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const int batches = in[0].type.rank() - 2;
    auto room = [&](const tensor_type& t) {
      return matrix(t.rank() > batches ? t[batches] : 1,
                    t.rank() > batches + 1 ? t[batches + 1] : 1);
    };
    list<matrix> x, y;
    for (const tensor_ref& t : in) x.push_back(room(t.type));
    for (const tensor_ref& t : out) y.push_back(room(t.type));
    for (std::int64_t b = 0; b < in[0].type.shape.size(0, batches); ++b) {
      for (std::size_t k = 0; k < x.size(); ++k) {
        const auto n = std::int64_t(x[k].elements.size());
        read_numbers(in[k], b * n, n, x[k].elements.data());
      }
      Op::one(o, x, y);
      for (std::size_t k = 0; k < y.size(); ++k) {
        const auto n = std::int64_t(y[k].elements.size());
        write_numbers(out[k], b * n, n, y[k].elements.data());
      }
    }
  }
};

constexpr var transposed(var x) {
  transpose_op::options o;
  for (int d = 0; d < x.rank(); ++d) o.permutation[std::size_t(d)] = std::int8_t(d);
  std::swap(o.permutation[std::size_t(x.rank() - 2)], o.permutation[std::size_t(x.rank() - 1)]);
  return emit<transpose_op>(o, std::source_location::current(), x);
}
/// The mean of a matrix and its transpose.
constexpr var symmetric_part(var x) { return (x + transposed(x)) * 0.5; }
/// A cotangent, or zeros where nobody asked for that result.
constexpr var or_zeros(var dy, var y) { return dy.id < 0 ? zeros_like(y) : dy; }
/// [...,n] as the factor of each column, or of each row.
constexpr var of_columns(var v) { return expand_dims(v, -2); }
constexpr var of_rows(var v) { return expand_dims(v, -1); }
/// [...,i,j]: 1 / (v_j - v_i), and 0 on the diagonal.
constexpr var reciprocal_differences(var v) {
  const var apart = of_columns(v) - of_rows(v);
  const var same = equal(column_less_row("eigh", apart), 0);
  return select(same, zeros_like(apart), 1 / select(same, ones_like(apart), apart));
}
constexpr var triangular(var a, var b, bool upper, bool transpose, bool unit = false);
constexpr var solved_by_elimination(var a, var b);

}  // namespace detail

/// A -> the lower triangle L of A = L L^T.
struct cholesky_op : detail::on_matrices<cholesky_op> {
  static constexpr std::string_view name = "cholesky";
  static constexpr std::string_view numpy = "np.linalg.cholesky";
  static constexpr std::string_view torch = "torch.linalg.cholesky";
  static constexpr std::string_view formula = "y = L of x = L L^T, lower";
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  /// Source: Murray, "Differentiation of the Cholesky decomposition", 2016
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    const var l = n.output();
    const var p = tril(matmul(l, dy[0], true));
    const var halved = p - diag(diagonal(p)) * 0.5;
    const var left = detail::triangular(l, halved, false, true);
    const var both = detail::triangular(l, detail::transposed(left), false, true);
    dx[0] = detail::symmetric_part(both);
  }
  static void one(const attributes&, span<const detail::matrix> in, span<detail::matrix> out) {
    detail::cholesky_of(in[0], out[0]);
  }
};

/// A, B -> X with T X = B or T^T X = B, where T is a triangle of A.
struct triangular_solve_op : detail::on_matrices<triangular_solve_op> {
  static constexpr std::string_view name = "triangular_solve";
  static constexpr std::string_view numpy = "scipy.linalg.solve_triangular";
  static constexpr std::string_view torch = "torch.linalg.solve_triangular";
  static constexpr std::string_view formula = "y = T^-1 b, T being a triangle of a";
  struct options {
    std::int32_t upper{}, transpose{}, unit{};
  };
  static constexpr int operands = 2;
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[1];
  }
  /// Source: Giles, "Collected matrix derivative results", 2008
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    const auto o = n.as<options>();
    const var y = n.output();
    dx[1] = detail::triangular(n.operand(0), dy[0], o.upper, !o.transpose, o.unit);
    const var all = -(o.transpose ? matmul(y, dx[1], false, true) : matmul(dx[1], y, false, true));
    const int skipped = o.unit ? 1 : 0;
    dx[0] = o.upper ? triu(all, skipped) : tril(all, -skipped);
  }
  static void one(const attributes& a, span<const detail::matrix> in, span<detail::matrix> out) {
    const auto o = a.as<options>();
    out[0] = in[1];
    detail::solve_triangle(in[0], out[0], o.upper, o.transpose, o.unit);
  }
};

/// A, B -> A^-1 B by elimination with pivots.
struct solve_op : detail::on_matrices<solve_op> {
  static constexpr std::string_view name = "solve";
  static constexpr std::string_view numpy = "np.linalg.solve";
  static constexpr std::string_view torch = "torch.linalg.solve";
  static constexpr std::string_view formula = "y = a^-1 b";
  static constexpr int operands = 2;
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[1];
  }
  /// Source: Giles 2008
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    dx[1] = detail::solved_by_elimination(detail::transposed(n.operand(0)), dy[0]);
    dx[0] = -matmul(dx[1], n.output(), false, true);
  }
  static void one(const attributes&, span<const detail::matrix> in, span<detail::matrix> out) {
    detail::matrix a = in[0];
    list<int> order;
    detail::lu_of(a, order);
    for (int i = 0; i < a.rows; ++i)
      for (int j = 0; j < in[1].columns; ++j) out[0](i, j) = in[1](order[std::size_t(i)], j);
    detail::solve_triangle(a, out[0], false, false, true);
    detail::solve_triangle(a, out[0], true, false, false);
  }
};

/// A -> the sign of its determinant, and the logarithm of the determinant's size.
struct slogdet_op : detail::on_matrices<slogdet_op> {
  static constexpr std::string_view name = "slogdet";
  static constexpr std::string_view numpy = "np.linalg.slogdet";
  static constexpr std::string_view torch = "torch.linalg.slogdet";
  static constexpr std::string_view formula = "y = the sign of det x, and ln |det x|";
  static constexpr int result_count = 2;
  static constexpr int results(span<const tensor_type> in, const attributes&,
                               span<tensor_type> out) {
    out[0] = in[0];
    out[0].shape.rank -= 2;
    for (int d : {0, 1}) out[0].shape.extents[out[0].shape.rank + d] = 0;
    out[1] = out[0];
    return 2;
  }
  /// d ln |det A| = trace(A^-1 dA)
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    if (dy[1].id < 0) return;
    const var a = n.operand(0);
    const var each = detail::of_rows(detail::of_rows(dy[1]));
    const var unit = cast(equal(detail::column_less_row("slogdet", a), 0), a.element());
    dx[0] = detail::solved_by_elimination(detail::transposed(a), unit * each);
  }
  static void one(const attributes&, span<const detail::matrix> in, span<detail::matrix> out) {
    detail::matrix a = in[0];
    list<int> order;
    double sign = detail::lu_of(a, order), size = 0;
    for (int i = 0; i < a.rows; ++i) {
      sign *= a(i, i) > 0 ? 1 : a(i, i) < 0 ? -1 : a(i, i);
      size += std::log(std::abs(a(i, i)));
    }
    out[0](0, 0) = sign;
    out[1](0, 0) = size;
  }
};

/// A -> L without its diagonal of ones and U in one matrix, and the row of A that each of theirs
/// is.
struct lu_op : detail::on_matrices<lu_op> {
  static constexpr std::string_view name = "lu";
  static constexpr std::string_view numpy = "scipy.linalg.lu";
  static constexpr std::string_view torch = "torch.linalg.lu";
  static constexpr std::string_view formula = "y = L and U of x with permuted rows = L U";
  static constexpr int result_count = 2;
  static constexpr int results(span<const tensor_type> in, const attributes&,
                               span<tensor_type> out) {
    out[0] = in[0];
    out[1] = {dtype::i64, in[0].shape};
    out[1].shape.erase(in[0].rank() - 1);
    return 2;
  }
  /// Source: de Hoog, Anderssen and Lukas, "Differentiation of matrix functionals using triangular
  /// factorization", Mathematics of Computation 80 (2011)
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx);
  static void one(const attributes&, span<const detail::matrix> in, span<detail::matrix> out) {
    list<int> order;
    out[0] = in[0];
    detail::lu_of(out[0], order);
    for (int i = 0; i < in[0].rows; ++i) out[1](i, 0) = order[std::size_t(i)];
  }
};

/// A [...,m,n], m >= n -> Q [...,m,n], R [...,n,n].
struct qr_op : detail::on_matrices<qr_op> {
  static constexpr std::string_view name = "qr";
  static constexpr std::string_view numpy = "np.linalg.qr";
  static constexpr std::string_view torch = "torch.linalg.qr";
  static constexpr std::string_view formula = "y = Q and R of x = Q R";
  static constexpr bool square = false;
  static constexpr int result_count = 2;
  static bool fits(const op_application& a) {
    return on_matrices::fits(a) && a.of(0)[a.rank() - 2] >= a.of(0)[a.rank() - 1];
  }
  static constexpr int results(span<const tensor_type> in, const attributes&,
                               span<tensor_type> out) {
    out[0] = out[1] = in[0];
    out[1].shape[in[0].rank() - 2] = in[0][in[0].rank() - 1];
    return 2;
  }
  /// Source: Walter and Lehmann, "Algorithmic differentiation of linear algebra functions", 2018
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    const var q = n.output(0), r = n.output(1);
    const var dq = detail::or_zeros(dy[0], q), dr = detail::or_zeros(dy[1], r);
    const var m = matmul(r, dr, false, true) - matmul(dq, q, true);
    const var mirrored = tril(m) + detail::transposed(tril(m, -1));
    const var all = dq + matmul(q, mirrored);
    dx[0] = detail::transposed(detail::triangular(r, detail::transposed(all), true, false));
  }
  static void one(const attributes&, span<const detail::matrix> in, span<detail::matrix> out) {
    detail::qr_of(in[0], out[0], out[1]);
  }
};

/// Symmetric A -> eigenvalues, ascending, and eigenvectors as columns.
struct eigh_op : detail::on_matrices<eigh_op> {
  static constexpr std::string_view name = "eigh";
  static constexpr std::string_view numpy = "np.linalg.eigh";
  static constexpr std::string_view torch = "torch.linalg.eigh";
  static constexpr std::string_view formula = "y = w and V of x = V diag(w) V^T";
  static constexpr int operations_per_point = 20;
  static constexpr int result_count = 2;
  static constexpr int results(span<const tensor_type> in, const attributes&,
                               span<tensor_type> out) {
    out[0] = out[1] = in[0];
    out[0].shape.erase(in[0].rank() - 1);
    return 2;
  }
  /// Source: Giles 2008
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    const var w = n.output(0), v = n.output(1);
    var inner = diag(detail::or_zeros(dy[0], w));
    if (dy[1].id >= 0) inner = inner + detail::reciprocal_differences(w) * matmul(v, dy[1], true);
    dx[0] = detail::symmetric_part(matmul(matmul(v, inner), v, false, true));
  }
  static void one(const attributes&, span<const detail::matrix> in, span<detail::matrix> out) {
    detail::eigh_of(in[0], out[0].elements, out[1]);
  }
};

/// A [...,m,n], m >= n -> U [...,m,n], s [...,n] descending, V [...,n,n].
struct svd_op : detail::on_matrices<svd_op> {
  static constexpr std::string_view name = "svd";
  static constexpr std::string_view numpy = "np.linalg.svd";
  static constexpr std::string_view torch = "torch.linalg.svd";
  static constexpr std::string_view formula = "y = U, s and V of x = U diag(s) V^T";
  static constexpr int operations_per_point = 20;
  static constexpr bool square = false;
  static constexpr int result_count = 3;
  static bool fits(const op_application& a) { return qr_op::fits(a); }
  static constexpr int results(span<const tensor_type> in, const attributes&,
                               span<tensor_type> out) {
    const int last = in[0].rank() - 1;
    out[0] = out[1] = out[2] = in[0];
    out[1].shape.erase(last - 1);
    out[2].shape[last - 1] = in[0][last];
    return 3;
  }
  /// Source: Townsend, "Differentiating the singular value decomposition", 2016
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    const var u = n.output(0), s = n.output(1), v = n.output(2);
    var inner = diag(detail::or_zeros(dy[1], s));
    var outside{};
    const bool has_rest = u.extent(-1) != u.extent(-2);
    if (dy[0].id >= 0 || dy[2].id >= 0) {
      const var f = detail::reciprocal_differences(square_of(s));
      auto turned = [&](var basis, var d) {
        const var p = matmul(basis, d, true);
        return f * (p - detail::transposed(p));
      };
      if (dy[0].id >= 0) inner = inner + turned(u, dy[0]) * detail::of_columns(s);
      if (dy[2].id >= 0) inner = inner + turned(v, dy[2]) * detail::of_rows(s);
      if (dy[0].id >= 0 && has_rest) {
        const var across = dy[0] - matmul(u, matmul(u, dy[0], true));
        outside = matmul(across / detail::of_columns(s), v, false, true);
      }
    }
    dx[0] = matmul(matmul(u, inner), v, false, true);
    if (outside.b) dx[0] = dx[0] + outside;
  }
  static void one(const attributes&, span<const detail::matrix> in, span<detail::matrix> out) {
    detail::svd_of(in[0], out[0], out[1].elements, out[2]);
  }

 private:
  static constexpr var square_of(var x) { return x * x; }
};

// ---- rules

namespace detail {
constexpr var triangular(var a, var b, bool upper, bool transpose, bool unit) {
  return emit<triangular_solve_op>(triangular_solve_op::options{upper, transpose, unit},
                                   std::source_location::current(), a, b);
}
constexpr var solved_by_elimination(var a, var b) {
  return emit<solve_op>({}, std::source_location::current(), a, b);
}
}  // namespace detail

constexpr void lu_op::vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
  if (dy[0].id < 0) return;
  const var packed = n.output(0), d = dy[0];
  const var unit = cast(equal(detail::column_less_row("lu", packed), 0), packed.element());
  const var lower = tril(packed, -1) + unit, upper = triu(packed);
  const var inner =
      tril(matmul(lower, tril(d, -1), true), -1) + triu(matmul(triu(d), upper, false, true));
  const var left = detail::triangular(lower, inner, false, true, true);
  const var all =
      detail::transposed(detail::triangular(upper, detail::transposed(left), true, false));
  // Row i of these is that of permutation[i].
  const var back = argsort(n.output(1), -1);
  dx[0] = gather_elements(all, broadcast_to(detail::of_rows(back), all.shape()), -2);
}

}  // namespace cella
