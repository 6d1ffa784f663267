// N steps of batches make what one step of the large batch makes.
#include <doctest/doctest.h>

#include <cella/backend/host/buffer.hpp>
#include <cella/optim/accumulate.hpp>
#include <cella/optim/averaged.hpp>
#include <cella/optim/clip.hpp>
#include <cella/train/slots.hpp>

#include "linear_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Gradients of twelve batches, and the means of each three.
const std::vector<pair_of_tensors> batches = [] {
  std::vector<pair_of_tensors> all(12);
  double k = 0;
  for (auto& g : all) {
    for (double& x : g.a) x = std::sin(3 * ++k);
    for (double& x : g.b) x = std::cos(5 * ++k);
  }
  return all;
}();
const std::vector<pair_of_tensors> means = [] {
  std::vector<pair_of_tensors> all(4);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    for (std::size_t k = 0; k < 3; ++k) all[i / 3].a[k] += batches[i].a[k] / 3;
    for (std::size_t k = 0; k < 4; ++k) all[i / 3].b[k] += batches[i].b[k] / 3;
  }
  return all;
}();

template <auto Rule>
void check_rule() {
  const auto small = trained<optim::accumulate<3>(Rule)>(batches, 0.1);
  const auto large = trained<Rule>(means, 0.1);
  REQUIRE(small.size() == 12);
  for (std::size_t i = 0; i < large.size(); ++i)
    CHECK(distance(small[3 * i + 2], large[i]) < 1e-13);
  // In between nothing moves, and then something does.
  CHECK(distance(small[1], {{1, 1, 1}, {-2, -2, -2, -2}}) == 0);
  CHECK(distance(small[2], small[4]) == 0);
  CHECK(distance(small[4], small[5]) > 1e-3);
}

}  // namespace

TEST_CASE("accumulated batches are one batch: momentum with dampening, Adam, NAdam") {
  check_rule<optim::sgd{.momentum = 0.9, .dampening = 0.1}>();
  check_rule<optim::adam{}>();
  check_rule<optim::nadam{}>();
}

TEST_CASE("inside, norms are those of the mean") {
  check_rule<optim::clip_by_global_norm(0.3, optim::sgd{.momentum = 0.5})>();
}

namespace {

/// The average in the slot of a step, and the weights, after each step.
struct averages {
  std::vector<double> weight, average;
};
template <auto Rule>
averages averaged(int steps) {
  using step =
      program<linear_step<Rule>, true, dtype::f64, tensor<dtype::f64, 3>, tensor<dtype::f64, 2, 2>>;
  linear_step<Rule> cell;
  parameter_store store(cell, 1, dtype::f64);
  executable<step> run(store);
  const slot_store names(thaw(step::graph));
  averages r;
  for (int i = 0; i < steps; ++i) {
    run.scalar(step::scalar("learning_rate"), 0.1);
    run.scalar(step::scalar("step"), i + 1);
    const auto& g = batches[std::size_t(i)];
    run(g.a, g.b);
    r.weight.push_back(store.values<double>("a")[1]);
    const named_slot* slot = names.find("average.a");
    REQUIRE(slot);
    r.average.push_back(read_element({run.slots() + slot->offset, slot->type}, 1));
  }
  return r;
}

}  // namespace

TEST_CASE("the average begins with the weights behind the first step and follows them") {
  const auto r = averaged<optim::averaged(0.75, optim::sgd{})>(6);
  double expected = r.weight[0];
  for (std::size_t i = 0; i < r.weight.size(); ++i) {
    if (i > 0) expected = 0.75 * expected + 0.25 * r.weight[i];
    CHECK(r.average[i] == doctest::Approx(expected).epsilon(1e-14));
  }
  CHECK(std::abs(r.average[5] - r.weight[5]) > 1e-3);
}

TEST_CASE("inside of accumulated batches an average counts updates, not batches") {
  const auto r = averaged<optim::accumulate<3>(optim::averaged(0.75, optim::sgd{}))>(6);
  CHECK(r.average[2] == r.weight[2]);
  CHECK(r.average[4] == r.weight[2]);
  CHECK(r.average[5] == doctest::Approx(0.75 * r.weight[2] + 0.25 * r.weight[5]).epsilon(1e-14));
}

TEST_CASE("all weights from a step on have the same part in a mean") {
  const auto r = averaged<optim::equally_averaged(3, optim::sgd{})>(6);
  CHECK(r.average[1] == 0);
  CHECK(r.average[2] == r.weight[2]);
  const double sum = r.weight[2] + r.weight[3] + r.weight[4] + r.weight[5];
  CHECK(r.average[5] == doctest::Approx(sum / 4).epsilon(1e-14));
  CHECK(fault_of_step(linear_step<optim::equally_averaged(0, optim::sgd{})>{}).view() ==
        "optim::equally_averaged: the first step is 0; steps count from 1");
}

TEST_CASE("batches are counted beyond the steps that f32 can tell apart") {
  constexpr auto rule = optim::accumulate<3>(optim::sgd{});
  using step =
      program<linear_step<rule>, true, dtype::f32, tensor<dtype::f32, 3>, tensor<dtype::f32, 2, 2>>;
  linear_step<rule> cell;
  parameter_store store(cell, 1, dtype::f32);
  executable<step> run(store);
  const std::vector<float> a{1, 2, 3}, b{1, 1, 1, 1};
  std::vector<float> weights;
  for (int i = 1; i <= 6; ++i) {
    run.scalar(step::scalar("learning_rate"), 0.25);
    if constexpr (step::scalar("step") >= 0) run.scalar(step::scalar("step"), 0x1p24 + i);
    run(a, b);
    weights.push_back(store.values<float>("a")[0]);
  }
  CHECK(weights == std::vector<float>{1, 1, 0.75f, 0.75f, 0.75f, 0.5f});
}

TEST_CASE("a decay that makes no average is refused") {
  CHECK(fault_of_step(linear_step<optim::averaged(1, optim::sgd{})>{}).view() ==
        "optim::averaged: the decay is 1; it must lie in [0, 1)");
}

TEST_CASE("two wrappers that would share a slot are refused") {
  constexpr optim::sgd rule{};
  CHECK(fault_of_step(linear_step<optim::accumulate<2>(optim::accumulate<3>(rule))>{}).view() ==
        "two rules keep \"accumulated_batches.a\"; one parameter has one slot of each name");
}
