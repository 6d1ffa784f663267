// Clipped gradients against the formulas of PyTorch's clip_grad_value_ and clip_grad_norm_.
#include <doctest/doctest.h>

#include <cella/optim/clip.hpp>
#include <cella/optim/frozen.hpp>
#include <string>

#include "linear_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr optim::sgd plain{};
const pair_of_tensors gradient{{3, -0.2, 0.5}, {0.1, -4, 0, 1}};
const pair_of_tensors small{{0.1, 0, -0.1}, {0.2, 0, 0, 0.1}};

template <class Values>
double norm(const Values& v) {
  double sum = 0;
  for (double x : v) sum += x * x;
  return std::sqrt(sum);
}
double factor(double norm, double limit) { return std::min(1.0, limit / (norm + 1e-6)); }
/// 1 - rate fa ga, and -2 - rate fb gb.
pair_of_tensors expected(const pair_of_tensors& g, double fa, double fb) {
  pair_of_tensors w{};
  for (std::size_t i = 0; i < 3; ++i) w.a[i] = 1 - 0.1 * fa * g.a[i];
  for (std::size_t i = 0; i < 4; ++i) w.b[i] = -2 - 0.1 * fb * g.b[i];
  return w;
}
constexpr int many = 1 << 20;
struct large_step {
  parameter<many> w{initializer::constant(0)};
  constexpr var operator()(var g) {
    const var loss = sum(w * g);
    optim::apply(optim::clip_by_norm(1, plain), loss);
    return loss;
  }
};
double global(const pair_of_tensors& g) { return std::hypot(norm(g.a), norm(g.b)); }

}  // namespace

TEST_CASE("elements are clipped") {
  pair_of_tensors cut = gradient;
  for (double& x : cut.a) x = std::min(std::max(x, -0.4), 0.4);
  for (double& x : cut.b) x = std::min(std::max(x, -0.4), 0.4);
  const auto w = trained<optim::clip_by_value(0.4, plain)>({gradient}, 0.1);
  CHECK(distance(w[0], expected(cut, 1, 1)) < 1e-15);
}

TEST_CASE("each parameter's gradient is scaled by its own norm") {
  constexpr auto rule = optim::clip_by_norm(3.5, plain);
  const auto w = trained<rule>({gradient}, 0.1);
  CHECK(factor(norm(gradient.a), 3.5) == 1);
  CHECK(factor(norm(gradient.b), 3.5) < 1);
  CHECK(distance(w[0], expected(gradient, 1, factor(norm(gradient.b), 3.5))) < 1e-15);
}

TEST_CASE("all gradients are scaled by the norm of them all") {
  constexpr auto rule = optim::clip_by_global_norm(1, plain);
  const double f = factor(global(gradient), 1);
  CHECK(f < 0.5);
  CHECK(distance(trained<rule>({gradient}, 0.1)[0], expected(gradient, f, f)) < 1e-15);
  CHECK(distance(trained<rule>({small}, 0.1)[0], expected(small, 1, 1)) < 1e-15);
}

TEST_CASE("frozen parameters do not count, on whichever side of the wrapper they are frozen") {
  const double f = factor(norm(gradient.b), 1);
  const auto inside =
      trained<optim::clip_by_global_norm(1, optim::freeze<"a">(plain))>({gradient}, 0.1);
  const auto outside =
      trained<optim::freeze<"a">(optim::clip_by_global_norm(1, plain))>({gradient}, 0.1);
  CHECK(distance(inside[0], expected(gradient, 0, f)) < 1e-15);
  CHECK(distance(outside[0], expected(gradient, 0, f)) < 1e-15);
}

TEST_CASE("the norm of a million numbers is exact to single precision") {
  using step = program<large_step, true, dtype::f32, tensor<dtype::f32, many>>;
  large_step cell;
  parameter_store store(cell, 1);
  executable<step> run(store);
  run.scalar(step::scalar("learning_rate"), 1);
  std::vector<float> g(many);
  double sum = 0;
  for (std::size_t i = 0; i < g.size(); ++i) {
    g[i] = 0.1f + 0.3f * float(i % 7);
    sum += double{g[i]} * double{g[i]};
  }
  run(g);
  for (std::size_t i = 0; i < 7; ++i) {
    const double found = -double{store.values<float>("w")[i]};
    CHECK(found == doctest::Approx(double{g[i]} / std::sqrt(sum)).epsilon(1e-6));
  }
}

TEST_CASE("a limit that is no positive number is refused") {
  const auto fault = [](auto rule) {
    builder b;
    b.input({dtype::f32, {3}}, input_role::parameter, "w");
    optim::check(rule, b);
  };
  CHECK_THROWS_WITH_AS(fault(optim::clip_by_value(0, plain)),
                       "optim::clip_by_value: the limit is 0; it must be above 0, and finite",
                       model_error);
  CHECK_THROWS_WITH_AS(fault(optim::clip_by_norm(-1, plain)),
                       "optim::clip_by_norm: the limit is -1; it must be above 0, and finite",
                       model_error);
  CHECK_THROWS_AS(fault(optim::clip_by_global_norm(std::nan(""), plain)), model_error);
  // Wrappers ask what they wrap.
  CHECK_THROWS_WITH_AS(fault(optim::clip_by_norm(1, optim::freeze<"v">(plain))),
                       "freeze: no parameter matches \"v\"; this net begins with \"w\"",
                       model_error);
}

TEST_CASE("centered RMSProp stays finite where gradients do not change") {
  // Their variance goes to 0, and rounding brings it below.
  const std::vector<pair_of_tensors> same(6000, {{0.1, 0.3, 0.7}, {1, 3, 1e-3, 17}});
  const auto w = trained<optim::rmsprop{.centered = true}>(same, 1e-5).back();
  for (const double v : w.a) CHECK(std::isfinite(v));
  for (const double v : w.b) CHECK(std::isfinite(v));
}
