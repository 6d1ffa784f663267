// The operator Gradient of ONNX: derivatives that are known in closed form.
#include <doctest/doctest.h>

#include <cmath>

#include "model_proto.hpp"
#include "run_graph.hpp"

using namespace cella;
using test::model_proto;
using test::says;
using all_floats = std::vector<std::vector<float>>;
using names = std::vector<std::string>;

namespace {

void add_gradient(model_proto& m, const names& xs, const std::string& y, const names& in,
                  const names& out) {
  auto& n = m.node("Gradient", in, out);
  n.set_domain("ai.onnx.preview.training");
  model_proto::set(n, "xs", xs);
  model_proto::set(n, "y", y);
}
/// h = x^2 and y = x h of x and w, both [2]; results are still missing.
model_proto cube() {
  model_proto m;
  auto* domain = m.proto().add_opset_import();
  domain->set_domain("ai.onnx.preview.training");
  domain->set_version(1);
  m.value("x", {2});
  m.value("w", {2});
  m.node("Mul", {"x", "x"}, {"h"});
  m.node("Mul", {"x", "h"}, {"y"});
  return m;
}

}  // namespace

TEST_CASE("gradients of a part of a model") {
  model_proto m = cube();
  add_gradient(m, {"x"}, "y", {"x"}, {"dx"});    // 3 x^2
  add_gradient(m, {"x"}, "y", {"w"}, {"at_w"});  // the same at another place: 3 w^2
  add_gradient(m, {"h"}, "y", {"h"}, {"dh"});    // what makes h does not count: x
  add_gradient(m, {"x"}, "dx", {"x"}, {"ddx"});  // 6 x
  add_gradient(m, {"x", "h"}, "y", {"x", "h"}, {"", "dh_beside_x"});
  for (const char* result : {"dx", "at_w", "dh", "ddx", "dh_beside_x"}) m.result(result, {2});
  CHECK(test::run_graph(m.read(), {{1, -2}, {3, 5}}) ==
        all_floats{{3, 12}, {27, 75}, {1, -2}, {6, -12}, {1, -2}});
}

TEST_CASE("what has no gradient is said") {
  auto fault_of = [](const names& xs, const std::string& y, const names& in) {
    model_proto m = cube();
    m.node("Greater", {"x", "w"}, {"larger"});
    add_gradient(m, xs, y, in, {"d"});
    m.result("d", {2});
    return fault(m);
  };
  says(fault_of({"w"}, "y", {"w"}),
       "node 3 (Gradient) asks for the gradient of \"y\" by \"w\", on which it does not depend");
  says(fault_of({"x"}, "larger", {"x"}), "differentiates a tensor that is not of floating point");
  says(fault_of({"x"}, "none", {"x"}), "has no value \"none\"");
  says(fault_of({"x", "w"}, "y", {"x"}), "has 1 operands for 2 names of xs and zs");
  says(fault_of({}, "y", {}), "names no xs or no y");
}

TEST_CASE("derivatives of the orders that a model can mean") {
  auto derivative = [](int order) {
    model_proto m = cube();
    m.node("Exp", {"x"}, {"d0"});
    for (int k = 0; k < order; ++k)
      add_gradient(m, {"x"}, "d" + std::to_string(k), {"x"}, {"d" + std::to_string(k + 1)});
    m.result("d" + std::to_string(order), {2});
    return m;
  };
  const auto found = test::run_graph(derivative(4).read(), {{1, -2}, {}}).at(0);
  CHECK(found[0] == doctest::Approx(std::exp(1.0)));
  CHECK(found[1] == doctest::Approx(std::exp(-2.0)));
  CHECK_THROWS_WITH_AS(derivative(9).read(), doctest::Contains("an order above 8"),
                       onnx_not_supported);
}
