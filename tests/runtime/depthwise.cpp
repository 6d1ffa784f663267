#include <doctest/doctest.h>

#include <cella/nn/layers.hpp>
#include <cella/nn/losses.hpp>
#include <cella/ops/activation.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/train/step.hpp>
#include <random>

#include "support/step_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// A depthwise convolution, batch norm, a 1x1 convolution: the blocks of small nets for telephones.
/// Howard et al. 2017
template <int In, int Out, int Kernel, int Stride>
struct separable {
  nn::conv2d<In, In, Kernel, false, In> depthwise{.stride = Stride, .padding = Kernel / 2};
  nn::batch_norm<In> norm{};
  nn::conv2d<In, Out, 1, false> pointwise{};
  nn::batch_norm<Out> last_norm{};
  constexpr var operator()(var x) const {
    return relu(last_norm(pointwise(relu(norm(depthwise(x))))));
  }
};
struct small_net {
  nn::conv2d<3, 16, 3, false> stem{.stride = 2, .padding = 1};
  separable<16, 32, 3, 1> first{};
  separable<32, 32, 3, 2> second{};
  separable<32, 32, 5, 1> third{};
  /// Four groups of eight channels, which have no kernel in blocks.
  nn::conv2d<32, 32, 3, true, 4> grouped{.padding = 1};
  nn::dense<32, 5> fc{};

  constexpr var operator()(var x) const {
    return fc(global_average_pool(relu(grouped(third(second(first(stem(x))))))));
  }
};
constexpr int samples = 3, size = 19;
using training =
    program<training_step<small_net, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>, true,
            dtype::f32, tensor<dtype::f32, samples, 3, size, size>, tensor<dtype::i32, samples>>;
using inference = inference_program<small_net, tensor<dtype::f32, samples, 3, size, size>>;

std::vector<double> images() {
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> x(samples * 3 * size * size);
  for (double& v : x) v = normal(random);
  return x;
}

int in_blocks(std::span<const plan_step> steps) {
  int n = 0;
  for (const plan_step& s : steps) n += has_form(s, convolution_form::depthwise);
  return n;
}

}  // namespace

TEST_CASE("each kernel of a training step with depthwise convolutions equals the interpreter") {
  check_steps<training>({images(), {0, 3, 2}}, {0.1}, 1e-4);
}

TEST_CASE("the same for inference, whose filters are scaled by batch norm") {
  check_steps<inference>({images()}, {}, 1e-4);
}

TEST_CASE("depthwise convolutions and both gradients stay in blocks") {
  for (const plan_step& s : training::plan.steps) CHECK(s.kind != step_kind::generic);
  if (lanes_of<dtype::f32>() != 16) return;
  CHECK(in_blocks({training::plan.steps.data(), training::plan.steps.size()}) >= 9);
  CHECK(in_blocks({inference::plan.steps.data(), inference::plan.steps.size()}) >= 3);
}
