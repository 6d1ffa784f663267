// Extrema along axes as kernels, products in which one operand serves a whole batch, and values
// that depend on nothing: what the plan holds, and that the values are right.
#include <cella/ops/indexing.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/transform/jacobian.hpp>
#include <cmath>
#include <limits>

#include "control_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

template <int Axis>
struct extrema {
  constexpr var operator()(var x) const { return max(x * 2, {Axis}) - min(exp(x), {Axis}) * 0.5; }
};
struct extremum_of_all {
  constexpr var operator()(var x) const { return max(x) * min(x); }
};
struct squared_extrema {
  constexpr var operator()(var x) const { return sum(square(extrema<0>{}(x))); }
};

/// Rows that the positions of extrema name, and the gradient that is added to them.
struct named_rows {
  static constexpr var total(var x) { return sum(sin(gather(x, argmin(x, 0)))); }
  constexpr var operator()(var x) const { return grad(&total)(x) + gather(x, argmax(x, 1)); }
};

/// One matrix times each of a batch, and the columns of each times one vector.
struct shared_operand {
  constexpr var operator()(var x) const {
    const var batch = reshape(x, {5, 4, 3});
    const var one = reshape(slice(x, 0, 0, 12), {3, 4});
    const var weights = slice(reshape(x, {60, 1}), 0, 0, 4);
    const var left = matmul(one, batch);
    const var columns = matmul(batch, weights, true);
    return left + columns;
  }
};

struct basis_sum {
  static constexpr var wave(var x) { return sum(sin(x) * reverse(x, 0)); }
  constexpr var operator()(var x) const { return hessian(&wave)(x); }
};

std::vector<double> numbers(int n) {
  std::vector<double> x;
  for (int i = 0; i < n; ++i) x.push_back(0.4 * std::sin(1.7 * i) + 0.01 * i);
  return x;
}

template <class Cell, int... Extents>
using program_of = program<Cell, false, dtype::f64, tensor<dtype::f64, Extents...>>;

template <class P>
constexpr int count(step_kind kind, bool constant = false) {
  int n = 0;
  for (const plan_step& s : P::plan.steps) n += s.kind == kind && s.constant == constant;
  return n;
}

}  // namespace

TEST_CASE("extrema along axes are folds like sums") {
  static_assert(count<program_of<extrema<0>, 7, 19>>(step_kind::generic) == 0);
  static_assert(count<program_of<extrema<0>, 7, 19>>(step_kind::reduce) == 2);
  run_compiled<extrema<0>, 7, 19>(numbers(7 * 19));
  run_compiled<extrema<1>, 7, 19>(numbers(7 * 19));
  run_compiled<extremum_of_all, 5, 9>(numbers(45));
  run_compiled<gradient_of<squared_extrema>, 5, 9>(numbers(45));
}
TEST_CASE("an extremum of values with a NaN is NaN") {
  std::vector<double> x = numbers(22);
  x[3] = std::numeric_limits<double>::quiet_NaN();
  extrema<1> cell;
  parameter_store store(cell, 1, dtype::f64);
  executable<program_of<extrema<1>, 2, 11>> run(store);
  run(x);
  CHECK(std::isnan(run.result<0>()[0]));
  CHECK(!std::isnan(run.result<0>()[1]));
}
TEST_CASE("rows that the positions of extrema name") {
  run_compiled<named_rows, 19, 7>(numbers(19 * 7));
}
TEST_CASE("a product with an operand that its batch shares has a kernel") {
  static_assert(count<program_of<shared_operand, 60>>(step_kind::product) == 2);
  run_compiled<shared_operand, 60>(numbers(60));
}
TEST_CASE("what depends on nothing is made once") {
  static_assert(count<program_of<basis_sum, 6>>(step_kind::generic, true) > 0);
  run_compiled<basis_sum, 6>(numbers(6));
}
