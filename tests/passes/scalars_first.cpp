#include <doctest/doctest.h>

#include <cella/backend/cpu/plan/planning.hpp>
#include <cella/graph/check.hpp>
#include <cella/nn/layers.hpp>
#include <cella/optim/optimizers.hpp>
#include <cella/passes/pass.hpp>
#include <cella/train/step.hpp>

using namespace cella;

namespace {

struct one_layer {
  nn::dense<40, 48> layer{};
  constexpr var operator()(var x) const { return layer(x); }
};
using step = training_step<one_layer, squared_error_loss, fixed<optim::adam{}>>;

graph traced() {
  builder b;
  b.training = true;
  step cell;
  trace_into(b, cell,
             std::array{tensor_type{dtype::f32, {7, 40}}, tensor_type{dtype::f32, {7, 48}}});
  REQUIRE(!b.failed());
  return std::move(b.g);
}

}  // namespace

TEST_CASE("what follows from the numbers of a step is computed before all else") {
  graph g = scalars_first(cse(fold(traced())));
  CHECK(check(g).empty());
  bool others = false;
  int moved = 0;
  for (node_id n : g.regions[0].nodes) {
    const node& x = g.nodes[std::size_t(n)];
    if (x.op == &input_info_of || is<constant_op>(x)) continue;
    if (is<expm1_op>(x)) {
      CHECK(!others);
      ++moved;
    }
    others |= x.type.size() > 1;
  }
  CHECK(moved == 2);
}

TEST_CASE("an update is the epilogue of the product that makes its gradient") {
  const graph g = optimize(traced());
  const planner<cpu::planning> made(g, {});
  REQUIRE(made.fault().empty());
  for (const plan_step& s : made.result().steps) {
    if (s.kind != step_kind::elementwise) continue;
    for (int k = 0; k < s.output_count; ++k)
      CHECK(g.type(s.outputs[std::size_t(k)].value).size() < 40 * 48);
  }
}
