#include "training_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {
template <dtype Element>
using lenet_step = program<training_step<models::lenet5, cross_entropy_loss{}, optim::sgd{.momentum = 0.9}>, true, Element,
                           tensor<Element, 8, 1, 28, 28>, tensor<dtype::i32, 8>>;
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
    const auto e = train_compiled<models::lenet5, lenet_step<dtype::f32>>(*g, "lenet5", 0.05, file_name);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
    CHECK(e.weights < 1e-4);
  }
  TEST_CASE("twenty steps of LeNet-5 follow PyTorch in f64") {
    const auto g = golden::open("training");
    if (!g) return;
    const auto e = train_compiled<models::lenet5, lenet_step<dtype::f64>>(*g, "lenet5", 0.05, file_name);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
    CHECK(e.weights < 1e-9);
  }
}
