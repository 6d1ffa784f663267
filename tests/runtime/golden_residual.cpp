#include "training_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {
template <dtype Element>
using residual_step = program<training_step<residual_net, cross_entropy_loss{}, optim::adam{}>, true, Element,
                              tensor<Element, 6, 3, 9, 9>, tensor<dtype::i32, 6>>;
const auto same_name = [](const std::string& path) { return path; };
}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("twenty steps of a residual net with batch norm follow PyTorch in f32") {
    const auto g = golden::open("training");
    if (!g) return;
    const auto e = train_compiled<residual_net, residual_step<dtype::f32>>(*g, "residual", 0.01, same_name);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
  }
  TEST_CASE("twenty steps of a residual net with batch norm follow PyTorch in f64") {
    const auto g = golden::open("training");
    if (!g) return;
    const auto e = train_compiled<residual_net, residual_step<dtype::f64>>(*g, "residual", 0.01, same_name);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
    CHECK(e.weights < 1e-9);
  }
}
