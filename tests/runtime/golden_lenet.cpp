#include "training_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {
using training = training_step<models::lenet5, cross_entropy_loss, fixed<optim::sgd{.momentum = 0.9}>>;
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
}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("twenty steps of LeNet-5 follow PyTorch in f32") {
    const auto g = golden::open("training");
    if (!g) return;
    const auto e =
        train_compiled<models::lenet5, lenet_step<dtype::f32>>(*g, "lenet5", 0.05, file_name);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
    CHECK(e.weights < 1e-4);
  }
  TEST_CASE("twenty steps of LeNet-5 follow PyTorch in f64") {
    const auto g = golden::open("training");
    if (!g) return;
    const auto e =
        train_compiled<models::lenet5, lenet_step<dtype::f64>>(*g, "lenet5", 0.05, file_name);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
    CHECK(e.weights < 1e-9);
  }
  TEST_CASE("LeNet-5 follows PyTorch in eager mode, f32") {
    const auto g = golden::open("training");
    if (!g) return;
    const auto e =
        train_at_run_time<training, dtype::f32, 1, 28, 28>(*g, "lenet5", 0.05, true, file_name);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
  }
  TEST_CASE("LeNet-5 follows PyTorch in eager mode, f64") {
    const auto g = golden::open("training");
    if (!g) return;
    const auto e =
        train_at_run_time<training, dtype::f64, 1, 28, 28>(*g, "lenet5", 0.05, true, file_name);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
  }
  TEST_CASE("LeNet-5 follows PyTorch in a graph traced at run time, f32") {
    const auto g = golden::open("training");
    if (!g) return;
    const auto e =
        train_at_run_time<training, dtype::f32, 1, 28, 28>(*g, "lenet5", 0.05, false, file_name);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
  }
  TEST_CASE("LeNet-5 follows PyTorch in a graph traced at run time, f64") {
    const auto g = golden::open("training");
    if (!g) return;
    const auto e =
        train_at_run_time<training, dtype::f64, 1, 28, 28>(*g, "lenet5", 0.05, false, file_name);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
  }
}
