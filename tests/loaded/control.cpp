// Loops, branches and calls in plans that are made at run time, held against closed forms, the
// interpreter and compiled programs.
#include <cella/nn/recurrent.hpp>
#include <cella/ops/random.hpp>
#include <cella/ops/trigonometry.hpp>
#include <cella/transform/recursion.hpp>
#include <cmath>
#include <functional>

#include "formats.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Square roots by Newton's method; the trip count depends on the values.
var roots(var x, int max_steps = 0) {
  const auto far = [x](var y) {
    const var d = y * y - x;
    return sum(d * d) > 1e-24;
  };
  const auto nearer = [x](var y) { return (y + x / y) * 0.5; };
  return while_loop(far, nearer, ones_like(x), {.max_steps = max_steps});
}
/// Each slice is squared or doubled, by its sign.
var squared_or_doubled(var x) {
  const auto step = [](var y, var u) {
    const var next = y + cond(
                             sum(u) > 0, [&] { return u * u; }, [&] { return tanh(y) * 2; });
    return std::tuple{next, next * u};
  };
  return std::get<1>(scan(step, reshape(slice(x, 0, 0, 1), {x.extent(1)}), x));
}
/// A loop that yields both carries as they were before each turn, one of them twice.
vars recorded_carries(var x, bool reverse) {
  const auto step = [](std::tuple<var, var> carries, var u) {
    const auto [a, b] = carries;
    return std::tuple{std::tuple{tanh(matmul(a, u)), b + a}, std::tuple{a, b, a}};
  };
  const var start = reshape(slice(x, 0, 0, 1), {8, 8});
  const auto [last, all] = scan(step, std::tuple{start, start * 2}, x, {.reverse = reverse});
  const auto [first_record, second_record, again] = all;
  return {first_record, second_record, again, std::get<0>(last), std::get<1>(last)};
}
/// A sum of x_t^(2^k), with as many squarings as it takes to fall below a bound.
var nested(var x) {
  const auto outer = [](var sum_of, var u) {
    const var power =
        while_loop([](var p) { return max(abs(p)) > 0.01; }, [](var p) { return p * p; }, tanh(u));
    return std::tuple{sum_of + power, power};
  };
  return std::get<0>(scan(outer, zeros_like(reshape(slice(x, 0, 0, 1), {x.extent(1)})), x));
}
/// A binary tree of calls, as deep as k says.
var tree(var x, var k) {
  return recursive(
      [](auto self, var y, var n) {
        return cond(
            n > 0.5, [&] { return self(y * 0.9, n - 1) * self(sin(y), n - 2); },
            [&] { return y + 1; });
      },
      x.type(), x, k);
}

recurrent_weights weights_in(const vars& x) { return {x[1], x[2], x[3], x[4]}; }
std::vector<shape> recurrent_shapes(int gates) {
  return {{5, 6, 3}, {gates * 16, 3}, {gates * 16, 16}, {gates * 16}, {gates * 16}};
}

/// The sentence that a run of `f` throws under CELLA_DEBUG=nan.
std::string fault_of(const vars_function& f, const valued_tensor& x) {
  ::setenv("CELLA_DEBUG", "nan", 1);
  const traced_function traced(f, {x.type});
  loaded_program run(optimize(traced.b.g), x.type.element);
  ::unsetenv("CELLA_DEBUG");
  bindings memory;
  run.bind(0, memory.store(x).data);
  try {
    run();
  } catch (const number_error& e) { return e.what(); }
  return {};
}

}  // namespace

TEST_CASE("recurrent nets and their gradients are planned") {
  check_plans(with_gradients([](const vars& x) {
                const sequence_result y = lstm(x[0], weights_in(x));
                return vars{y.hidden, y.outputs};
              }),
              recurrent_shapes(4), layout::plain);
  check_plans(with_gradients([](const vars& x) {
                const sequence_result y = gru(x[0], weights_in(x));
                return vars{y.outputs, y.hidden};
              }),
              recurrent_shapes(3), layout::plain);
}

TEST_CASE("a loop goes on as long as the data say, and so does its gradient") {
  const valued_tensor x = f64({4}, {1.5, 2, 0.7, 300});
  reals wanted, slopes;
  for (double v : x.values) {
    wanted.push_back(std::sqrt(v));
    slopes.push_back(0.5 / std::sqrt(v));
  }
  for (int max_steps : {0, 40}) {
    CAPTURE(max_steps);
    const traced_function traced(
        [=](const vars& v) {
          const auto f = [=](var u) { return roots(u, max_steps); };
          return vars{f(v[0]), grad([=](var u) { return sum(f(u)); })(v[0])};
        },
        {x.type});
    for (int threads : {1, 3}) {
      const auto found = run_planned(traced.b.g, {x}, threads);
      check_close(found[0].values, wanted, 1e-13);
      check_close(found[1].values, slopes, 1e-13);
    }
  }
}

TEST_CASE("branches in loops, loops in loops, and their gradients") {
  check_plans(with_gradients([](const vars& x) { return vars{squared_or_doubled(x[0])}; }),
              {{7, 5}}, layout::plain);
  check_plans(with_gradients([](const vars& x) { return vars{nested(x[0])}; }), {{4, 3}},
              layout::plain);
}

TEST_CASE("carries that are recorded move along their records, in loops of any length") {
  for (bool reverse : {false, true}) {
    for (int length : {1, 5}) {
      CAPTURE(reverse);
      CAPTURE(length);
      check_plans([=](const vars& x) { return recorded_carries(x[0], reverse); }, {{length, 8, 8}},
                  layout::plain);
    }
  }
}

TEST_CASE("functions call themselves, and keep records for their gradients") {
  const valued_tensor x = f64({3}, {0.3, 0.5, 0.8});
  const traced_function traced(
      [](const vars& v) {
        return vars{tree(v[0], v[1]), grad([&](var u) { return sum(tree(u, v[1])); })(v[0])};
      },
      {x.type, {dtype::f64, {}}});
  REQUIRE(can_be_planned(traced.b.g));
  for (double depth : {0.0, 2.0, 6.0}) {
    const std::vector<valued_tensor> in{x, scalar(depth)};
    const auto found = run_planned(traced.b.g, in), wanted = traced(in);
    for (std::size_t k = 0; k < 2; ++k)
      CHECK(relative_difference(found[k].values, wanted[k].values, 1e-3) < 1e-12);
  }
}

TEST_CASE("a number that a loop makes is found in the turn that makes it") {
  const auto f = [](const vars& v) {
    const auto step = [](var y, var u) {
      y = matmul(y, u) - 1;
      return std::tuple{log(y), y};
    };
    const var start = reshape(slice(v[0], 0, 0, 1), {8, 8});
    return vars{std::get<0>(scan(step, start, v[0]))};
  };
  valued_tensor x{{dtype::f64, {3, 8, 8}}, reals(3 * 64, 2.0)};
  CHECK(fault_of(f, x).empty());
  for (std::size_t i = 2 * 64; i < 3 * 64; ++i) x.values[i] = -2;  // the last turn's
  const std::string said = fault_of(f, x);
  CAPTURE(said);
  CHECK(said.find("log at control.cpp:") != std::string::npos);
  CHECK(said.find("made nan") != std::string::npos);
}
