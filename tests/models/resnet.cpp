#include <doctest/doctest.h>

#include <cella/models/resnet.hpp>
#include <cella/train/runtime_path.hpp>
#include <cella/train/step.hpp>
#include <cstring>
#include <random>

#include "support/step_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Every kind of layer that a residual net has: a stem of few channels, pooling, both kinds of
/// blocks, with and without projection.
struct small_net {
  nn::conv2d<3, 16, 3, false> conv1{.padding = 1};
  nn::batch_norm<16> bn1{};
  models::bottleneck<16, 16> first{};
  models::basic_block<64, 32, 2> second{};
  nn::dense<32, 5> fc{};

  constexpr var operator()(var x) const {
    x = max_pool(relu(bn1(conv1(x))), 3, 2, 1);
    return fc(global_average_pool(second(first(x))));
  }
};
constexpr int samples = 4, size = 29;
using training =
    program<training_step<small_net, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>, true,
            dtype::f32, tensor<dtype::f32, samples, 3, size, size>, tensor<dtype::i32, samples>>;

}  // namespace

TEST_CASE("each kernel of a residual net's training step equals the interpreter") {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> x(samples * 3 * size * size);
  for (double& v : x) v = normal(random);
  check_steps<training>({x, {0, 3, 2, 4}}, {0.1}, 1e-4);
}

TEST_CASE("a residual net's images lie in blocks and no operation is left to a general kernel") {
  int conversions = 0, convolutions = 0;
  for (const plan_step& s : training::plan.steps) {
    CHECK(s.kind != step_kind::generic);
    conversions += s.kind == step_kind::pack_blocks || s.kind == step_kind::unpack_blocks;
    convolutions += s.kind == step_kind::convolution && s.arrangement == layout::blocked;
  }
  // Lanes that are as wide as the stem's channels are many.
  if (lanes_of<dtype::f32>() == 16) {
    CHECK(conversions == 0);
    CHECK(convolutions == 8);
  }
}

namespace {

struct batch {
  std::vector<float> x;
  std::vector<std::int32_t> labels{0, 3, 2, 4};
  batch() {
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    for (int i = 0; i < samples * 3 * size * size; ++i) x.push_back(normal(random));
  }
};
constexpr int steps = 3;
constexpr double rate = 0.02;

/// The parameters after some compiled steps.
std::vector<float> trained(thread_pool* threads) {
  small_net net;
  parameter_store store(net, 1);
  batch b;
  executable<training> step(store, threads);
  for (int i = 0; i < steps; ++i) {
    step.scalar(training::scalar("learning_rate"), rate);
    step(b.x, b.labels);
  }
  const auto* p = reinterpret_cast<const float*>(store.data());
  return {p, p + training::plan.parameter_bytes / 4};
}

}  // namespace

TEST_CASE("steps of a residual net in graph mode equal those in eager mode") {
  using step_cell =
      training_step<small_net, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>;
  step_cell step{};
  parameter_store store(step.wrapped(), 1);
  batch b;
  const std::array types{tensor_type{dtype::f32, {samples, 3, size, size}},
                         tensor_type{dtype::i32, {samples}}};
  const trace_options options{.training = true};
  const slot_store slots(trace(step, types, options));
  const std::array arguments{tensor_ref{reinterpret_cast<std::byte*>(b.x.data()), types[0]},
                             tensor_ref{reinterpret_cast<std::byte*>(b.labels.data()), types[1]}};
  for (int i = 0; i < steps; ++i) {
    const std::array<named_scalar, 1> scalars{{{"learning_rate", rate}}};
    runtime_path({&store, &slots, arguments, scalars}, &compute_on_cpu)
        .run_eagerly([&](builder& to) { trace_into(to, step, types); }, options);
  }
  const auto* eager = reinterpret_cast<const float*>(store.data());
  const std::vector<float> compiled = trained(nullptr);
  double worst = 0;
  for (const auto& e : store.entries()) {
    const auto* first = reinterpret_cast<const float*>(store.value(e).data);
    for (std::int64_t i = 0; i < e.type.size(); ++i) {
      const std::size_t at = std::size_t(first - eager) + std::size_t(i);
      worst = std::max(worst, std::abs(double(compiled[at]) - double(eager[at])));
    }
  }
  CHECK(worst < 1e-4);
}

TEST_CASE("a residual net's steps do not depend on the number of threads, bit for bit") {
  thread_pool two(2), three(3);
  const std::vector<float> one = trained(nullptr);
  CHECK(std::memcmp(one.data(), trained(&two).data(), one.size() * 4) == 0);
  CHECK(std::memcmp(one.data(), trained(&three).data(), one.size() * 4) == 0);
}
