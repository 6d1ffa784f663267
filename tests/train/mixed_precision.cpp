// Training with weights in single precision and activations that are stored in 16 bits.
#include <doctest/doctest.h>

#include <array>
#include <cella/graph/random.hpp>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/train/step.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

using namespace cella;

namespace {

constexpr int samples = 64;
constexpr int features = 20;
constexpr int classes = 4;

/// A dense layer that multiplies in the type of its input and adds its bias in single precision.
template <int Inputs, int Outputs>
struct mixed_dense {
  parameter<Outputs, Inputs> weight{initializer::uniform(-0.3, 0.3)};
  parameter<Outputs> bias{};
  constexpr var operator()(var x) const {
    const var y = matmul(x, cast(weight, x.element()), false, true);
    return cast(y, dtype::f32) + bias;
  }
};
/// Two layers whose activations, and the gradients of those, are of type `Stored`.
template <dtype Stored>
struct net {
  mixed_dense<features, 48> first{};
  mixed_dense<48, classes> second{};
  constexpr var operator()(var x) const {
    const var h = cast(relu(first(cast(x, Stored))), Stored);
    return second(h);
  }
};

struct data_set {
  std::vector<float> x;
  std::vector<std::int32_t> y;
  /// The class is the largest of four sums of the features.
  explicit data_set(std::uint64_t seed) {
    generator random(seed), teacher(99);
    std::array<float, classes * features> w{};
    for (float& v : w) v = teacher.uniform(-1.f, 1.f);
    for (int n = 0; n < samples; ++n) {
      std::array<float, classes> score{};
      for (int i = 0; i < features; ++i) {
        x.push_back(random.uniform(-1.f, 1.f));
        for (int c = 0; c < classes; ++c)
          score[std::size_t(c)] += w[std::size_t(c * features + i)] * x.back();
      }
      int best = 0;
      for (int c = 1; c < classes; ++c) {
        if (score[std::size_t(c)] > score[std::size_t(best)]) best = c;
      }
      y.push_back(best);
    }
  }
};

template <dtype Stored>
using step =
    program<training_step<net<Stored>, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>,
            true, dtype::f32, tensor<dtype::f32, samples, features>, tensor<dtype::i32, samples>>;

/// The losses of the steps.
template <dtype Stored>
std::vector<float> losses_of(int steps) {
  using program = step<Stored>;
  net<Stored> cell;
  parameter_store store(cell, 3);
  executable<program> run(store);
  run.scalar(program::scalar("learning_rate"), 0.1);
  const data_set data(1);
  std::vector<float> losses;
  for (int i = 0; i < steps; ++i) {
    run(data.x, data.y);
    losses.push_back(run.result()[0]);
  }
  return losses;
}

/// Products whose operands are stored in 16 bits.
template <dtype Stored>
constexpr int narrow_products() {
  using program = step<Stored>;
  int n = 0;
  for (const plan_step& s : program::plan.steps)
    n += s.kind == step_kind::product && program::graph.type(s.anchor).element == Stored;
  return n;
}

}  // namespace

TEST_CASE("a net whose activations are stored in 16 bits learns as one of single precision does") {
  // Forward, the gradients of both weights, and that of the hidden layer.
  static_assert(narrow_products<dtype::bf16>() == 5);
  static_assert(narrow_products<dtype::f16>() == 5);
  for (const plan_step& s : step<dtype::bf16>::plan.steps) CHECK(s.kind != step_kind::generic);
  const auto exact = losses_of<dtype::f32>(300);
  const auto brain = losses_of<dtype::bf16>(300);
  const auto half = losses_of<dtype::f16>(300);
  CHECK(exact.front() > 1.2f);
  CHECK(exact.back() < 0.05f);
  CHECK(brain.back() < 0.06f);
  CHECK(half.back() < 0.06f);
  // The same net within the rounding of each format, as long as errors have not grown.
  for (std::size_t i = 0; i < 20; ++i) {
    CHECK(brain[i] == doctest::Approx(exact[i]).epsilon(0.03));
    CHECK(half[i] == doctest::Approx(exact[i]).epsilon(0.004));
  }
  CHECK(brain != exact);
}

namespace {

/// Images in blocks of channels; rows that are normalized.
struct residual_net {
  nn::conv2d<3, 32, 3> stem{.padding = 1};
  nn::conv2d<32, 32, 3, false> conv{.padding = 1};
  nn::batch_norm<32> norm{};
  nn::layer_norm<32> rows{};
  nn::dense<32, 10> last{};
  constexpr var operator()(var x) const {
    x = max_pool(relu(stem(x)), 2);
    return last(rows(mean(relu(norm(conv(x)) + x), {2, 3})));
  }
};
template <dtype Compute>
using residual_step =
    program<training_step<residual_net, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>, var,
                          Compute>,
            true, dtype::f32, tensor<dtype::f32, 16, 3, 16, 16>, tensor<dtype::i32, 16>>;

/// The losses of 40 steps on noise with a bright column that tells the class.
template <dtype Compute>
std::vector<float> train_residual_net() {
  using program = residual_step<Compute>;
  residual_net net;
  parameter_store store(net, 1);
  executable<program> run(store);
  run.scalar(program::scalar("learning_rate"), 0.1);
  generator random(4);
  std::vector<float> x(std::size_t(16 * 3 * 256));
  std::vector<std::int32_t> y;
  for (float& v : x) v = random.uniform(-0.5f, 0.5f);
  for (int n = 0; n < 16; ++n) {
    y.push_back(n * 3 % 10);
    for (int k = 0; k < 48; ++k) x[std::size_t((n * 48 + k) * 16 + y.back() + 1)] += 1;
  }
  std::vector<float> losses;
  for (int i = 0; i < 40; ++i) {
    run(x, y);
    losses.push_back(run.result()[0]);
  }
  return losses;
}

}  // namespace

TEST_CASE("an option puts the activations of a compiled net into 16 bits") {
  for (const plan_step& s : residual_step<dtype::bf16>::plan.steps)
    CHECK(s.kind != step_kind::generic);
  const auto exact = train_residual_net<dtype::f32>();
  const auto brain = train_residual_net<dtype::bf16>();
  CHECK(exact.back() < 0.01f);
  CHECK(brain.back() < 0.012f);
  CHECK(brain[0] == doctest::Approx(exact[0]).epsilon(0.0078));
  CHECK(brain != exact);
}
