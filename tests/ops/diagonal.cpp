#include <cella/ops/diagonal.hpp>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input matrices{.extents = {2, 3, 4}};
constexpr case_input square_matrices{.extents = {2, 3, 3}};
constexpr gradient_case cases[] = {
    {"tril", [](var x) { return tril(x); }, {matrices}},
    {"triu", [](var x) { return triu(x, 1); }, {matrices}},
    {"diag", [](var x) { return diag(x); }, {{.extents = {2, 3}}}},
    {"diagonal", [](var x) { return diagonal(x); }, {square_matrices}},
    {"trace", [](var x) { return trace(square(x)); }, {square_matrices}},
};
constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }

}  // namespace

TEST_CASE("diagonals and triangles: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("triangles keep their diagonal and the sign of k counts upwards") {
  const auto x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(eval([](var v) { return tril(v); }, x).values == reals{1, 0, 0, 4, 5, 0});
  CHECK(eval([](var v) { return tril(v, 1); }, x).values == reals{1, 2, 0, 4, 5, 6});
  CHECK(eval([](var v) { return tril(v, -1); }, x).values == reals{0, 0, 0, 4, 0, 0});
  CHECK(eval([](var v) { return triu(v, 1); }, x).values == reals{0, 2, 3, 0, 0, 6});
}

TEST_CASE("what a triangle cuts off may be infinite") {
  CHECK(eval([](var v) { return tril(v); }, f64({2, 2}, {1, infinity, 2, 3})).values ==
        reals{1, 0, 2, 3});
}

TEST_CASE("diagonal undoes diag, and trace sums it") {
  eager_session s;
  const var x = s(f64({3}, {1, 2, 4}));
  CHECK(s.value(diagonal(diag(x))).values == reals{1, 2, 4});
  CHECK(s.value(trace(diag(x))).values == reals{7});
  CHECK(s.value(diag(x)).values == reals{1, 0, 0, 0, 2, 0, 0, 0, 4});
}

TEST_CASE("the faults of diagonals name the tensor") {
  CHECK(fault([](const vars& v) { return tril(v[0]); }, {f({3})}) ==
        "tril: needs a matrix: x0 is [3]");
  CHECK(fault([](const vars& v) { return triu(v[0]); }, {f({})}) ==
        "triu: needs a matrix: x0 is []");
  CHECK(fault([](const vars& v) { return diag(v[0]); }, {f({})}) ==
        "diag: needs a vector: x0 is []");
  CHECK(fault([](const vars& v) { return diagonal(v[0]); }, {f({2, 3})}) ==
        "diagonal: needs square matrices: x0 is [2,3]");
  CHECK(fault([](const vars& v) { return trace(v[0]); }, {f({3})}) ==
        "diagonal: needs square matrices: x0 is [3]");
}
