#include <doctest/doctest.h>

#include <cella/nn/attention.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/transform/gradient.hpp>
#include <cmath>
#include <span>

#include "../support/golden.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr int samples = 2, places = 5, width = 8, heads = 2;
using attention_cell = nn::self_attention<width, heads>;

/// The sum of the cell's result, weighted, and the gradients of everything by it.
struct gradient_cell {
  attention_cell cell{};
  struct result {
    var y;
    std::vector<var> gradients;
  };
  constexpr result operator()(var x, var weights) const {
    const var y = cell(x);
    builder& b = *x.b;
    std::vector<var> wrt{x};
    for (const parameter_base* p : {static_cast<const parameter_base*>(&cell.qkv.weight),
                                    static_cast<const parameter_base*>(&cell.qkv.bias),
                                    static_cast<const parameter_base*>(&cell.out.weight),
                                    static_cast<const parameter_base*>(&cell.out.bias)})
      wrt.push_back(operand(*p).in(b));
    return {y, gradients(sum(y * weights), wrt)};
  }
};

using P = program<gradient_cell, false, dtype::f64, tensor<dtype::f64, samples, places, width>,
                  tensor<dtype::f64, samples, places, width>>;

double worst(std::span<const double> ours, const golden_tensor& expected) {
  REQUIRE(ours.size() == expected.values.size());
  double most = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const double d = std::abs(ours[i] - expected.values[i]);
    most = d <= most ? most : d;
  }
  return most;
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("multi-head attention and its gradients equal PyTorch's") {
    const auto g = golden::open("layers");
    const std::string layer = "multi_head_attention.";
    gradient_cell cell;
    parameter_store store(cell, 0, dtype::f64);
    const auto load = [&](const std::string& ours, const std::string& theirs) {
      const auto t = g.tensor(layer + theirs);
      const named_parameter* p = store.find(ours);
      REQUIRE(p);
      std::copy(t.values.begin(), t.values.end(), reinterpret_cast<double*>(store.value(*p).data));
    };
    load("cell.qkv.weight", "in_proj_weight");
    load("cell.qkv.bias", "in_proj_bias");
    load("cell.out.weight", "out_proj.weight");
    load("cell.out.bias", "out_proj.bias");
    store.touch();
    executable<P> run(store);
    const auto x = g.tensor(layer + "x"), dy = g.tensor(layer + "ct");
    run(x.values, dy.values);
    CHECK(worst(run.result<0>(), g.tensor(layer + "y")) < 1e-12);
    CHECK(worst(run.result<1>(), g.tensor(layer + "grad.x")) < 1e-12);
    CHECK(worst(run.result<2>(), g.tensor(layer + "grad.in_proj_weight")) < 1e-12);
    CHECK(worst(run.result<3>(), g.tensor(layer + "grad.in_proj_bias")) < 1e-12);
    CHECK(worst(run.result<4>(), g.tensor(layer + "grad.out_proj.weight")) < 1e-12);
    CHECK(worst(run.result<5>(), g.tensor(layer + "grad.out_proj.bias")) < 1e-12);
  }
}

TEST_CASE("attention and its gradient become one kernel each") {
  int forward = 0, backward = 0, softmaxes = 0;
  for (const plan_step& s : P::plan.steps) {
    forward += s.kind == step_kind::attention;
    backward += s.kind == step_kind::attention_gradient;
    softmaxes += s.kind == step_kind::generic;
  }
  CHECK(forward == 1);
  CHECK(backward == 1);
  CHECK(softmaxes == 0);
}
