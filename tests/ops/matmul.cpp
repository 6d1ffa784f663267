#include <cella/ops/matmul.hpp>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input in(const shape& s) { return {.extents = s}; }
constexpr gradient_case cases[] = {
    {"matmul", [](var x, var y) { return matmul(x, y); }, {in({2, 3}), in({3, 4})}},
    {"matmul, left transposed",
     [](var x, var y) { return matmul(x, y, true); },
     {in({3, 2}), in({3, 4})}},
    {"matmul, right transposed",
     [](var x, var y) { return matmul(x, y, false, true); },
     {in({2, 3}), in({4, 3})}},
    {"matmul, both transposed",
     [](var x, var y) { return matmul(x, y, true, true); },
     {in({3, 2}), in({4, 3})}},
    {"matmul by itself", [](var x) { return matmul(x, x, true); }, {in({2, 3})}},
    {"row by matrix", [](var x, var y) { return matmul(x, y); }, {in({3}), in({3, 4})}},
    {"matrix by column", [](var x, var y) { return matmul(x, y); }, {in({2, 3}), in({3})}},
    {"row by column", [](var x, var y) { return matmul(x, y); }, {in({3}), in({3})}},
    {"batches", [](var x, var y) { return matmul(x, y); }, {in({2, 2, 1, 3}), in({2, 2, 3, 2})}},
    {"batches by one matrix",
     [](var x, var y) { return matmul(x, y, false, true); },
     {in({2, 2, 3}), in({2, 3})}},
    {"one matrix by batches",
     [](var x, var y) { return matmul(x, y); },
     {in({2, 3}), in({2, 3, 2})}},
    {"batches by a column", [](var x, var y) { return matmul(x, y); }, {in({2, 2, 3}), in({3})}},
    {"rank 8",
     [](var x, var y) { return matmul(x, y); },
     {in({1, 2, 1, 1, 2, 1, 2, 3}), in({1, 2, 1, 1, 2, 1, 3, 2})}},
    {"outer", [](var x, var y) { return outer(x, y); }, {in({3}), in({2})}},
    {"tensor_dot",
     [](var x, var y) {
       return tensor_dot(x, y, {1, 2}, {0, 1});
     },
     {in({2, 3, 4}), in({3, 4, 2})}},
    {"tensor_dot, crossed",
     [](var x, var y) {
       return tensor_dot(x, y, {2, 0}, {0, 1});
     },
     {in({2, 3, 4}), in({4, 2})}},
    {"tensor_dot of no axes",
     [](var x, var y) { return tensor_dot(x, y, {}, {}); },
     {in({2, 2}), in({3})}},
    {"tensor_dot of all axes",
     [](var x, var y) {
       return tensor_dot(x, y, {0, 1}, {0, 1});
     },
     {in({2, 3}), in({2, 3})}},
};
constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }

}  // namespace

TEST_CASE("contractions: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("a product of small integers is what one computes by hand") {
  const auto x = f64({2, 2}, {1, 2, 3, 4}), y = f64({2, 2}, {5, 6, 7, 8});
  CHECK(eval([](var a, var b) { return matmul(a, b); }, x, y).values == reals{19, 22, 43, 50});
  CHECK(eval([](var a, var b) { return matmul(a, b, true); }, x, y).values ==
        reals{26, 30, 38, 44});
  CHECK(eval([](var a, var b) { return matmul(a, b, false, true); }, x, y).values ==
        reals{17, 23, 39, 53});
  CHECK(eval([](var a, var b) { return matmul(a, b, true, true); }, x, y).values ==
        reals{23, 31, 34, 46});
  CHECK(eval([](var a, var b) { return matmul(a, b); }, i64({1, 2}, {1, 2}), i64({2}, {3, 4}))
            .values == reals{11});
}

TEST_CASE("vectors are rows on the left and columns on the right, and their axis vanishes") {
  const auto m = f64({2, 2}, {1, 2, 3, 4}), v = f64({2}, {10, 1});
  auto product = [](var a, var b) { return matmul(a, b); };
  CHECK(eval(product, v, m).values == reals{13, 24});
  CHECK(eval(product, m, v).values == reals{12, 34});
  CHECK(eval(product, v, v).values == reals{101});
  CHECK(eval(product, v, v).type.shape == shape{});
  CHECK(eval(product, f64({2, 1, 2}, {1, 2, 3, 4}), v).values == reals{12, 34});
  CHECK(eval(product, v, f64({2, 2, 1}, {1, 2, 3, 4})).values == reals{12, 34});
  CHECK(eval([](var a, var b) { return outer(a, b); }, v, v).values == reals{100, 10, 10, 1});
}

TEST_CASE("contracting no elements gives zeros") {
  const auto y = eval([](var a, var b) { return matmul(a, b); }, f64({2, 0}, {}), f64({0, 3}, {}));
  CHECK(y.values == reals(6, 0.0));
}

TEST_CASE("the iteration space of a product tells its multiplications") {
  builder b;
  const var x{&b, b.input(f({5, 2, 3}), input_role::argument, "x")};
  const var y{&b, b.input(f({3, 7}), input_role::argument, "y")};
  const var z = matmul(x, y);
  const node n = b.g.nodes[std::size_t(z.id)];
  const std::array types{x.type(), y.type()};
  const iteration_space s = n.op->space(types, n.attributes);
  CHECK(s.points() == 5 * 2 * 3 * 7);
  CHECK(s.factors.size() == 4);
  const var row{&b, b.input(f({3}), input_role::argument, "row")};
  const node m = b.g.nodes[std::size_t(matmul(row, y).id)];
  const std::array with_row{row.type(), y.type()};
  CHECK(m.op->space(with_row, m.attributes).points() == 3 * 7);
}

TEST_CASE("the faults of contractions name both operands and what does not fit") {
  auto product = [](const vars& v) { return matmul(v[0], v[1]); };
  CHECK(fault(product, {f({2, 3}), f({4, 2})}) ==
        "matmul: inner dimensions differ: x0 is [2,3], x1 is [4,2]");
  CHECK(
      fault([](const vars& v) { return matmul(v[0], v[1], true, true); }, {f({2, 3}), f({4, 3})}) ==
      "matmul: inner dimensions differ: x0 is [2,3] transposed, x1 is [4,3] transposed");
  CHECK(fault(product, {f({}), f({2})}) ==
        "matmul: a scalar has no matrix product: x0 is [], x1 is [2]");
  CHECK(fault(product, {f({2, 2, 3}), f({3, 3, 2})}) ==
        "matmul: batch dimensions differ: x0 is [2,2,3], x1 is [3,3,2]");
  CHECK(fault(product, {f({2, 2}), {dtype::f32, {2, 2}}}) ==
        "matmul: element types differ: x0 is f64[2,2], x1 is f32[2,2]; convert one with cast()");
  CHECK(fault([](const vars& v) { return outer(v[0], v[1]); }, {f({2}), f({2, 1})}) ==
        "outer: both operands must be vectors: x0 is [2], x1 is [2,1]");
  auto dot = [](const axis_list& p, const axis_list& q) {
    return [=](const vars& v) { return tensor_dot(v[0], v[1], p, q); };
  };
  const std::string unpaired =
      "tensor_dot: the axes do not pair up: x0 is f64[2,3], x1 is f64[3,2]";
  CHECK(fault(dot({0}, {0}), {f({2, 3}), f({3, 2})}) == unpaired);
  CHECK(fault(dot({1}, {2}), {f({2, 3}), f({3, 2})}) == unpaired);
  CHECK(fault(dot({-1}, {0}), {f({2, 3}), f({3, 2})}) == unpaired);
  CHECK(fault(dot({1, 0}, {0}), {f({2, 3}), f({3, 2})}) == unpaired);
  CHECK(fault(dot({1, 1}, {0, 0}), {f({2, 3}), f({3, 2})}) == unpaired);
  CHECK(fault(dot({}, {}), {f({1, 1, 1, 1, 1}), f({1, 1, 1, 1})}) ==
        "tensor_dot: the axes do not pair up: x0 is f64[1,1,1,1,1], x1 is f64[1,1,1,1]");
}
