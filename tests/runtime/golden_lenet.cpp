#include <cella/models/lenet.hpp>
#include <cella/train/step.hpp>

#include "support/training_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {
using training =
    training_step<models::lenet5, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>;
template <dtype Element>
using lenet_step =
    program<training, true, Element, tensor<Element, 8, 1, 28, 28>, tensor<dtype::i32, 8>>;
std::string file_name(const std::string& path) {
  const std::vector<std::pair<std::string, std::string>> layers{
      {"conv1", "0"}, {"conv2", "3"}, {"fc1", "7"}, {"fc2", "9"}, {"fc3", "11"}};
  for (const auto& [ours, theirs] : layers) {
    if (path.starts_with(ours + ".")) return theirs + path.substr(ours.size());
  }
  return path;
}
template <dtype Element>
golden_training run_of(const golden& g) {
  return {g, {"lenet5", {Element, {8, 1, 28, 28}}, {dtype::i32, {8}}, 0.05, file_name}};
}
}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("twenty steps of LeNet-5 follow PyTorch in f32") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f32>(g).run_compiled<models::lenet5, lenet_step<dtype::f32>>();
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
    CHECK(e.weights < 1e-4);
  }
  TEST_CASE("twenty steps of LeNet-5 follow PyTorch in f64") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f64>(g).run_compiled<models::lenet5, lenet_step<dtype::f64>>();
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
    CHECK(e.weights < 1e-9);
  }
  TEST_CASE("LeNet-5 follows PyTorch in eager mode, f32") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f32>(g).run<training, dtype::f32>(at_run_time::eagerly);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
  }
  TEST_CASE("LeNet-5 follows PyTorch in eager mode, f64") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f64>(g).run<training, dtype::f64>(at_run_time::eagerly);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
  }
  TEST_CASE("LeNet-5 follows PyTorch in a graph traced at run time, f32") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f32>(g).run<training, dtype::f32>(at_run_time::traced);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
  }
  TEST_CASE("LeNet-5 follows PyTorch in a graph traced at run time, f64") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f64>(g).run<training, dtype::f64>(at_run_time::traced);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
  }
  TEST_CASE("LeNet-5 follows PyTorch in a graph planned at run time, f32") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f32>(g).run<training, dtype::f32>(at_run_time::planned);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
    CHECK(e.weights < 1e-4);
  }
  TEST_CASE("LeNet-5 follows PyTorch in a graph planned at run time, f64") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f64>(g).run<training, dtype::f64>(at_run_time::planned);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
    CHECK(e.weights < 1e-9);
  }
}
