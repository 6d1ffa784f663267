// Training steps whose gradients are their arguments, so that a rule's arithmetic is all there is.
#pragma once

#include <array>
#include <cella/ops/reduction.hpp>
#include <cella/optim/apply.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/runtime/program.hpp>
#include <cmath>
#include <vector>

namespace cella::test {

/// Two parameters and their gradients, row-major.
struct pair_of_tensors {
  std::array<double, 3> a;
  std::array<double, 4> b;
};

/// d loss / d a = ga, d loss / d b = gb.
template <auto Rule>
struct linear_step {
  parameter<3> a{initializer::constant(1)};
  parameter<2, 2> b{initializer::constant(-2)};
  constexpr var operator()(var ga, var gb) {
    const var loss = sum(a * ga) + sum(b * gb);
    optim::apply(Rule, loss);
    return loss;
  }
};

/// The parameters after each of the steps.
template <auto Rule>
std::vector<pair_of_tensors> trained(const std::vector<pair_of_tensors>& gradients, double rate) {
  using step =
      program<linear_step<Rule>, true, dtype::f64, tensor<dtype::f64, 3>, tensor<dtype::f64, 2, 2>>;
  linear_step<Rule> cell;
  parameter_store store(cell, 1, dtype::f64);
  executable<step> run(store);
  constexpr int rate_at = step::scalar("learning_rate"), step_at = step::scalar("step");
  std::vector<pair_of_tensors> after;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (rate_at >= 0) run.scalar(rate_at, rate);
    if (step_at >= 0) run.scalar(step_at, double(i + 1));
    run(gradients[i].a, gradients[i].b);
    after.emplace_back();
    std::ranges::copy(store.values<double>("a"), after.back().a.begin());
    std::ranges::copy(store.values<double>("b"), after.back().b.begin());
  }
  return after;
}

inline double distance(const pair_of_tensors& x, const pair_of_tensors& y) {
  double most = 0;
  const auto add = [&](double u, double v) {
    const double e = std::abs(u - v);
    most = e <= most ? most : std::isnan(e) ? HUGE_VAL : e;
  };
  for (std::size_t i = 0; i < x.a.size(); ++i) add(x.a[i], y.a[i]);
  for (std::size_t i = 0; i < x.b.size(); ++i) add(x.b[i], y.b[i]);
  return most;
}

/// The fault of a training step; empty if there is none.
template <class Cell>
text fault_of_step(Cell cell) {
  try {
    trace(cell, std::array{tensor_type{dtype::f32, {3}}, tensor_type{dtype::f32, {2, 2}}},
          {.training = true});
    return {};
  } catch (const model_error& e) { return text() << std::string_view(e.what()); }
}

}  // namespace cella::test
