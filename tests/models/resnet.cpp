#include <doctest/doctest.h>

#include <cella/models/resnet.hpp>
#include <cella/train/step.hpp>
#include <random>

#include "../runtime/step_check.hpp"

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
  small_net net;
  parameter_store store(net, 1);
  std::mt19937 random(3);
  std::normal_distribution<double> normal;
  std::vector<double> x(samples * 3 * size * size);
  for (double& v : x) v = normal(random);
  std::string where;
  const double worst = check_steps<training>(store, {x, {0, 3, 2, 4}}, {0.1}, where);
  INFO(where);
  CHECK(worst < 1e-4);
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
