#include <cella/ops/linear_algebra.hpp>

#include "support/gradient_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input square_one{.extents = {2, 3, 3}};
constexpr case_input tall{.extents = {4, 3}};
constexpr case_input wide{.extents = {2, 4}};
constexpr case_input right{.extents = {2, 3, 2}};

/// Positive definite, of any matrix.
constexpr var definite(var x) { return matmul(x, x, false, true) + detail::eye_like(x) * 2; }
constexpr var symmetric(var x) { return x + detail::transposed(x); }
/// A matrix that is regular, and whose pivots differ enough not to change places.
constexpr var regular(var x) { return x * 0.3 + detail::eye_like(x) * 2; }
/// Of vectors whose sign is free.
constexpr var without_sign(var v) { return v * v; }

constexpr gradient_case cases[] = {
    {"cholesky", [](var x) { return cholesky(definite(x)); }, {square_one}},
    {"cholesky, upper", [](var x) { return cholesky(definite(x), true); }, {square_one}},
    {"solve_triangular",
     [](var x, var y) { return solve_triangular(regular(x), y); },
     {square_one, right}},
    {"solve_triangular, upper and transposed",
     [](var x, var y) { return solve_triangular(regular(x), y, true, true); },
     {square_one, right}},
    {"solve_triangular, unit",
     [](var x, var y) { return solve_triangular(x, y, true, false, true); },
     {square_one, right}},
    {"solve", [](var x, var y) { return solve(regular(x), y); }, {square_one, right}},
    {"solve, vector",
     [](var x, var y) { return solve(regular(x), y); },
     {{.extents = {3, 3}}, {.extents = {3}}}},
    {"inv", [](var x) { return inv(regular(x)); }, {square_one}},
    {"det", [](var x) { return det(x); }, {square_one}},
    {"slogdet", [](var x) { return slogdet(regular(x)).logabsdet; }, {square_one}},
    {"lu, lower", [](var x) { return lu(x).lower; }, {square_one}},
    {"lu, upper", [](var x) { return lu(x).upper; }, {square_one}},
    {"qr", [](var x) { return matmul(qr(x).q, qr(x).r * qr(x).r); }, {tall}},
    {"qr of batches", [](var x) { return qr(regular(x)).q; }, {square_one}},
    {"eigvalsh", [](var x) { return eigvalsh(symmetric(x)); }, {square_one}},
    {"eigh, vectors",
     [](var x) { return without_sign(eigh(symmetric(x)).eigenvectors); },
     {square_one}},
    {"svd, values", [](var x) { return svd(x).s; }, {tall}},
    {"svd, left vectors", [](var x) { return without_sign(svd(x).u); }, {tall}},
    {"svd, right vectors", [](var x) { return without_sign(svd(x).vh); }, {tall}},
    {"svd, wide", [](var x) { return without_sign(svd(x).u) * svd(x).s; }, {wide}},
    {"pinv", [](var x) { return pinv(x); }, {tall}},
    {"lstsq", [](var x, var y) { return lstsq(x, y); }, {tall, {.extents = {4, 2}}}},
    {"lstsq, wide", [](var x, var y) { return lstsq(x, y); }, {wide, {.extents = {2}}}},
    {"matrix_power", [](var x) { return matrix_power(regular(x), -3); }, {square_one}},
    {"kron", [](var x, var y) { return kron(x, y); }, {tall, wide}},
};

}  // namespace

TEST_CASE("decompositions of matrices: values, traces and derivatives of both orders agree") {
  for (const gradient_case& c : cases) check_gradient(c, {1e-6, 3e-6, 1e-5});
}

TEST_CASE("the factors of a matrix multiply to it, whatever its shape and rank") {
  eager_session s;
  for (int n : {1, 2, 5, 17}) {
    for (int more : {0, 1, 9}) {
      CAPTURE(n);
      CAPTURE(more);
      const var x = s(case_input{.extents = {n + more, n}}.sample(std::uint64_t(n)));
      const auto identity = [&](int k) {
        reals all(std::size_t(k * k), 0.0);
        for (int i = 0; i < k; ++i) all[std::size_t(i * k + i)] = 1;
        return all;
      };
      const auto same = [&](var a, var b) {
        check_close(s.value(a).values, s.value(b).values, 1e-13);
      };
      const qr_result d = qr(x);
      same(matmul(d.q, d.r), x);
      same(triu(d.r), d.r);
      check_close(s.value(matmul(d.q, d.q, true)).values, identity(n), 1e-13);
      for (const var& m : {x, detail::transposed(x)}) {
        const svd_result f = svd(m);
        same(matmul(f.u * expand_dims(f.s, -2), f.vh), m);
        check_close(s.value(matmul(f.u, f.u, true)).values, identity(n), 1e-13);
        check_close(s.value(matmul(f.vh, f.vh, false, true)).values, identity(n), 1e-13);
      }
      const var g = matmul(x, x, false, true);  // of rank n
      const eigh_result e = eigh(g);
      same(matmul(e.eigenvectors * expand_dims(e.eigenvalues, -2), e.eigenvectors, false, true), g);
      check_close(s.value(matmul(e.eigenvectors, e.eigenvectors, true)).values, identity(n + more),
                  1e-13);
      const svd_result f = svd(g);
      same(matmul(f.u * expand_dims(f.s, -2), f.vh), g);
      check_close(s.value(matmul(f.u, f.u, true)).values, identity(n + more), 1e-13);
      const var h = matmul(x, x, true) + detail::eye_like(matmul(x, x, true));
      const lu_result l = lu(h);
      same(gather(h, l.permutation, 0), matmul(l.lower, l.upper));
      same(matmul(cholesky(h), cholesky(h), false, true), h);
      check_close(s.value(matmul(inv(h), h)).values, identity(n), 1e-12);
    }
  }
}

TEST_CASE("a rotation of rows changes the determinant's sign; what is singular has none") {
  const auto of = [](auto f, reals x) {
    return eval([f](var v) { return f(v); }, f64({2, 2}, x)).values;
  };
  check_close(of([](var x) { return det(x); }, {0, 2, 3, 0}), reals{-6}, 1e-15);
  CHECK(of([](var x) { return slogdet(x).sign; }, {1, 2, 2, 4}) == reals{0});
  CHECK(of([](var x) { return slogdet(x).logabsdet; }, {1, 2, 2, 4}) == reals{-infinity});
  CHECK(of([](var x) { return det(x); }, {1, 2, 2, 4}) == reals{0});
  CHECK(std::isnan(of([](var x) { return cholesky(x); }, {1, 2, 2, 1})[0]));
  CHECK(of([](var x) { return matrix_power(x, 0); }, {1, 2, 2, 4}) == reals{1, 0, 0, 1});
}

TEST_CASE("the faults of linear algebra name the matrix and what it lacks") {
  const auto x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  const auto fails = [&](auto f, const char* why) {
    CHECK_THROWS_WITH_AS(eval([f](var v) { return f(v); }, x), doctest::Contains(why), model_error);
  };
  fails([](var v) { return cholesky(v); },
        "cholesky: needs square matrices of floating-point numbers");
  fails([](var v) { return qr(v).r; }, "qr: needs at least as many rows as columns");
  fails([](var v) { return solve(matmul(v, v, true), v); }, "solve: ");
  fails([](var v) { return inv(cast(matmul(v, v, true), dtype::i32)); }, "floating-point");
}
