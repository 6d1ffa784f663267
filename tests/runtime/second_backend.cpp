// Programs on a back end that is not the CPU's: other vectors, other kernels, a memory of its own.
#include <doctest/doctest.h>

#include <algorithm>
#include <cella/models/lenet.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/runtime/compile.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>

#include "support/compare.hpp"
#include "support/tiny_backend.hpp"

using namespace cella;

namespace {

template <dtype Element, auto Optimizer>
using lenet_training = program<training_step<models::lenet5, cross_entropy_loss, fixed<Optimizer>>,
                               true, Element, tensor<Element, 4, 1, 28, 28>, tensor<dtype::i32, 4>>;

/// The largest difference of what a few training steps yield on both back ends - losses,
/// predictions, parameters - relative to the largest magnitude of each.
template <dtype Element, auto Optimizer>
double difference_in_training() {
  using P = lenet_training<Element, Optimizer>;
  using T = element<Element>;
  models::lenet5 net, other;
  parameter_store store(net, 3, Element), other_store(other, 3, Element);
  executable<P> cpu(store);
  executable<P, test::tiny::backend> tiny(other_store);
  std::vector<T> images(4 * 784);
  std::vector<std::int32_t> labels(4);
  generator random(7);
  double worst = 0;
  auto compare = [&](const auto& a, const auto& b) {
    REQUIRE(a.size() == b.size());
    double most = 0, apart = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      REQUIRE(std::isfinite(double(b[i])));
      most = std::max(most, std::abs(double(a[i])));
      apart = std::max(apart, std::abs(double(a[i]) - double(b[i])));
    }
    REQUIRE(most > 0);
    worst = std::max(worst, apart / most);
  };
  for (int step = 1; step <= 3; ++step) {
    for (T& pixel : images) pixel = random.normal<T>();
    for (std::int32_t& label : labels) label = std::int32_t(random() % 10);
    cpu.scalar(P::scalar("learning_rate"), 0.01);
    tiny.scalar(P::scalar("learning_rate"), 0.01);
    if constexpr (P::scalar("step") >= 0) {
      cpu.scalar(P::scalar("step"), step);
      tiny.scalar(P::scalar("step"), step);
    }
    cpu(images, labels);
    tiny(images, labels);
    compare(cpu.template result<0>(), tiny.template result<0>());
    compare(cpu.template result<1>(), tiny.template result<1>());
  }
  for (const named_parameter& p : store.entries()) {
    const auto values = [&](const parameter_store& s) {
      return std::span(reinterpret_cast<const T*>(s.value(p).data), std::size_t(p.type.size()));
    };
    compare(values(store), values(other_store));
  }
  return worst;
}

}  // namespace

TEST_CASE("LeNet-5 trains on a back end with other vectors, other kernels and its own memory") {
  CHECK(difference_in_training<dtype::f64, optim::sgd{.momentum = 0.9}>() < 1e-11);
  CHECK(difference_in_training<dtype::f64, optim::adam{}>() < 1e-8);  // divides by small roots
  CHECK(difference_in_training<dtype::f32, optim::sgd{.momentum = 0.9}>() < 1e-4);
}

TEST_CASE("a plan is made for its back end") {
  using P = lenet_training<dtype::f32, optim::sgd{.momentum = 0.9}>;
  using Q = with_backend<P, test::tiny::backend>;
  for (const plan_step& s : Q::plan.steps) {
    CHECK(s.arrangement == layout::plain);
    CHECK((s.kind == step_kind::copy || s.kind == step_kind::generic ||
           test::tiny::planning::machine.kernels.has(s.kind)));
    CHECK(s.read_count <= test::tiny::planning::machine.most_reads + 2);
    CHECK(s.output_count <= test::tiny::planning::machine.most_writes + 2);
  }
  CHECK(Q::plan.step_count != P::plan.step_count);
}

TEST_CASE("results of another back end can be bound, and are those of the same call") {
  using P = inference_program<models::lenet5, tensor<dtype::f32, 2, 1, 28, 28>>;
  models::lenet5 net;
  parameter_store store(net, 1);
  executable<P> cpu(store);
  executable<with_bound_results<P>, test::tiny::backend> tiny(store);
  std::vector<float> images(2 * 784), y(20);
  generator random(5);
  for (float& pixel : images) pixel = random.normal();
  tiny.bind(y);
  for (int call = 0; call < 2; ++call) {
    cpu(images);
    tiny(images);
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == doctest::Approx(cpu.result()[i]));
    std::ranges::reverse(images);
    // A change of the parameters reaches the copy that the device has.
    *reinterpret_cast<float*>(store.data()) += 0.5f;
    store.touch();
  }
}
