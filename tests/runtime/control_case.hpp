// A function of one vector as compiled programs: its value, its gradient and the gradient of a
// function of that gradient, beside the interpreter's results.
#pragma once

#include <doctest/doctest.h>

#include <cella/ops/functions.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <vector>

namespace cella::test {

template <class F>
struct value_of {
  constexpr var operator()(var x) const { return F{}(x); }
};
template <class F>
struct gradient_of {
  constexpr var operator()(var x) const { return grad(value_of<F>{})(x); }
};
/// The gradient of sum(sin(gradient)).
template <class F>
struct second_of {
  static constexpr var wave(var x) { return sum(sin(gradient_of<F>{}(x))); }
  constexpr var operator()(var x) const { return grad(&wave)(x); }
};

/// What the program of `Cell` yields for `x`, called twice since a call must leave nothing behind.
/// Checks that the interpreter says the same.
template <class Cell, int... Extents>
std::vector<double> run_compiled(const std::vector<double>& x) {
  using program = cella::program<Cell, false, dtype::f64, tensor<dtype::f64, Extents...>>;
  static_assert(program::accepted);
  Cell cell;
  parameter_store store(cell, 1, dtype::f64);
  executable<program> run(store);
  run(x);
  run(x);
  const auto y = run.template result<0>();

  const graph g = thaw(program::graph);
  value_store values;
  auto copy = x;
  values.bind(g.input(0), {reinterpret_cast<std::byte*>(copy.data()), g.type(g.input(0))});
  interpret(g, values);
  const tensor_ref expected = values.value(g.regions[0].outputs[0]);
  for (std::size_t i = 0; i < y.size(); ++i) {
    CHECK(double(y[i]) == doctest::Approx(read_element(expected, std::int64_t(i))).epsilon(1e-12));
  }
  return {y.begin(), y.end()};
}

/// How many steps of a kind the program of `Cell` has.
template <class Cell, int... Extents>
constexpr int steps_of_kind(step_kind kind) {
  int count = 0;
  for (const plan_step& s :
       program<Cell, false, dtype::f64, tensor<dtype::f64, Extents...>>::plan.steps)
    count += s.kind == kind;
  return count;
}

/// Between -0.4 and 0.6, of no order.
inline std::vector<double> some_numbers(int n) {
  std::vector<double> v;
  for (int i = 0; i < n; ++i) v.push_back(double(i * 37 % 29) / 29 - 0.4);
  return v;
}

inline void check_close(const std::vector<double>& found, const std::vector<double>& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    CHECK(found[i] == doctest::Approx(wanted[i]).epsilon(1e-9));
}

/// f(x_i) for each element.
template <class F>
std::vector<double> each(const std::vector<double>& x, F f) {
  std::vector<double> y;
  for (double v : x) y.push_back(f(v));
  return y;
}

}  // namespace cella::test
