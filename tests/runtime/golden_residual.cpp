#include <cella/train/step.hpp>

#include "golden_nets.hpp"
#include "support/training_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

using training = training_step<residual_net, cross_entropy_loss, optim::adam>;
template <dtype Element>
using residual_step =
    program<training, true, Element, tensor<Element, 6, 3, 9, 9>, tensor<dtype::i32, 6>>;
template <dtype Element>
golden_training run_of(const golden& g) {
  return {g, {"residual", {Element, {6, 3, 9, 9}}, {dtype::i32, {6}}, 0.01}};
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("twenty steps of a residual net with batch norm follow PyTorch in f32") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f32>(g).run_compiled<residual_net, residual_step<dtype::f32>>();
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
  }
  TEST_CASE("twenty steps of a residual net with batch norm follow PyTorch in f64") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f64>(g).run_compiled<residual_net, residual_step<dtype::f64>>();
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
    CHECK(e.weights < 1e-9);
  }
  TEST_CASE("a residual net follows PyTorch in eager mode, f32") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f32>(g).run<training, dtype::f32>(at_run_time::eagerly);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
  }
  TEST_CASE("a residual net follows PyTorch in eager mode, f64") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f64>(g).run<training, dtype::f64>(at_run_time::eagerly);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
  }
  TEST_CASE("a residual net follows PyTorch in a graph traced at run time, f32") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f32>(g).run<training, dtype::f32>(at_run_time::traced);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
  }
  TEST_CASE("a residual net follows PyTorch in a graph traced at run time, f64") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f64>(g).run<training, dtype::f64>(at_run_time::traced);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
  }
  TEST_CASE("a residual net follows PyTorch in a graph planned at run time, f32") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f32>(g).run<training, dtype::f32>(at_run_time::planned);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-4);
  }
  TEST_CASE("a residual net follows PyTorch in a graph planned at run time, f64") {
    const auto g = golden::open("training");
    const auto e = run_of<dtype::f64>(g).run<training, dtype::f64>(at_run_time::planned);
    MESSAGE("loss " << e.loss << ", weights " << e.weights);
    CHECK(e.loss < 1e-9);
    CHECK(e.weights < 1e-9);
  }
}
