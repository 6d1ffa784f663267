#include <cella/models/lenet.hpp>
#include <cella/train/step.hpp>

#include "golden_nets.hpp"
#include "support/training_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

using residual_step = program<training_step<residual_net, cross_entropy_loss, optim::adam>, true,
                              dtype::f64, tensor<dtype::f64, 6, 3, 9, 9>, tensor<dtype::i32, 6>>;
using lenet_step =
    program<training_step<models::lenet5, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>,
            true, dtype::f32, tensor<dtype::f32, 8, 1, 28, 28>, tensor<dtype::i32, 8>>;

/// Steps of the layout that the choice is known by; of Winograd's, those marked so in their plan.
template <class P>
int convolutions(layout a, bool minimal) {
  int n = 0;
  for (const plan_step& s : P::plan.steps) {
    const bool convolves = s.kind == step_kind::convolution ||
                           s.kind == step_kind::convolution_pool ||
                           s.kind == step_kind::convolution_input_gradient ||
                           s.kind == step_kind::convolution_weight_gradient ||
                           s.kind == step_kind::convolution_pool_weight_gradient;
    n += convolves && s.arrangement == a && has_form(s, convolution_form::winograd) == minimal;
  }
  return n;
}

template <convolution_algorithm A>
training_error follow_residual(const golden& file) {
  const golden_training run(file,
                            {"residual", {dtype::f64, {6, 3, 9, 9}}, {dtype::i32, {6}}, 0.01});
  return run.run_compiled<residual_net, with_algorithm<residual_step, A>>();
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE_TEMPLATE_DEFINE("a residual net follows PyTorch with each choice of convolution",
                            Choice, residual_choices) {
    const auto file = golden::open("training");
    constexpr convolution_algorithm a = Choice::value;
    using step = with_algorithm<residual_step, a>;
    constexpr layout wanted = a == convolution_algorithm::plain   ? layout::plain
                              : a == convolution_algorithm::lanes ? layout::lanes
                                                                  : layout::blocked;
    // Five: two forward, two gradients of filters, one of an image. The first reads few channels.
    constexpr int few = a == convolution_algorithm::minimal ? 3 : 0;
    // Vectors of two are narrower than a stem's channels.
    if (lanes_of<dtype::f64>() > 2) {
      CHECK(convolutions<step>(wanted, false) == 5 - few);
      CHECK(convolutions<step>(wanted, true) == few);
    }
    const training_error e = follow_residual<a>(file);
    MESSAGE(std::string(name(a)) << ": loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
    CHECK(e.weights < 1e-9);
  }
  TEST_CASE_TEMPLATE_INVOKE(
      residual_choices, std::integral_constant<convolution_algorithm, convolution_algorithm::plain>,
      std::integral_constant<convolution_algorithm, convolution_algorithm::lanes>,
      std::integral_constant<convolution_algorithm, convolution_algorithm::direct>,
      std::integral_constant<convolution_algorithm, convolution_algorithm::minimal>);

  TEST_CASE("LeNet-5 follows PyTorch with plain convolutions, where lanes would be chosen") {
    const auto file = golden::open("training");
    const golden_training run(
        file, {"lenet5",
               {dtype::f32, {8, 1, 28, 28}},
               {dtype::i32, {8}},
               0.05,
               [](const std::string& path) {
                 const std::vector<std::pair<std::string, std::string>> layers{
                     {"conv1", "0"}, {"conv2", "3"}, {"fc1", "7"}, {"fc2", "9"}, {"fc3", "11"}};
                 for (const auto& [ours, theirs] : layers) {
                   if (path.starts_with(ours + ".")) return theirs + path.substr(ours.size());
                 }
                 return path;
               }});
    using step = with_algorithm<lenet_step, convolution_algorithm::plain>;
    CHECK(convolutions<lenet_step>(layout::plain, false) == 0);
    CHECK(convolutions<step>(layout::plain, false) == 5);
    const training_error e = run.run_compiled<models::lenet5, step>();
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
    CHECK(e.weights < 1e-4);
  }
}
