#include "support/golden_runs.hpp"

#include <cella/ops/reduction.hpp>
#include <cella/transform/gradient.hpp>

#include "support/compare.hpp"
#include "support/planned.hpp"

namespace cella::test {

namespace {

/// The outputs of a case, then the gradients of its inputs (those that have one).
vars outputs_and_gradients(const golden_case& c, const golden_function& f, const vars& in) {
  const auto n = std::ptrdiff_t(c.inputs.size());
  const vars x(in.begin(), in.begin() + n);
  vars y = f(x, c.attrs);
  if (c.cotangents.empty()) return y;
  REQUIRE(y.size() >= c.cotangents.size());
  var loss{};
  for (std::size_t k = 0; k < c.cotangents.size(); ++k) {
    const var part = sum(y[k] * in[std::size_t(n) + k]);
    loss = loss.b ? loss + part : part;
  }
  const auto dx = gradients(loss, x);
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (c.input_gradients[k]) y.push_back(dx[k]);
  }
  return y;
}

valued_tensor of(const golden_tensor& t) { return {{t.element, t.shape}, t.values}; }

}  // namespace

void check_golden_case(const golden_case& c, const golden_function& f, double tolerance) {
  const std::string label = c.label();
  INFO(label);
  std::vector<valued_tensor> in, expected;
  for (const auto& t : c.inputs) in.push_back(of(t));
  for (const auto& t : c.cotangents) in.push_back(of(t));
  for (const auto& t : c.outputs) expected.push_back(of(t));
  for (const auto& t : c.input_gradients) {
    if (t) expected.push_back(of(*t));
  }
  const auto check = [&](const std::string& way, const std::vector<valued_tensor>& found) {
    INFO(way);
    REQUIRE(found.size() == expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      INFO("result ", k);
      CHECK(found[k].type == expected[k].type);
      check_close(found[k].values, expected[k].values, tolerance);
    }
  };
  const auto whole = [&](const vars& x) { return outputs_and_gradients(c, f, x); };
  try {
    check("eagerly", run_eagerly(whole, in));
    std::vector<tensor_type> types;
    for (const valued_tensor& t : in) types.push_back(t.type);
    const traced_function traced(whole, types);
    check("interpreted", traced(in));
    CHECK(can_be_planned(traced.b.g));
    for (int threads : {1, 2}) check("planned", run_planned(traced.b.g, in, threads));
  } catch (const std::exception& e) { FAIL_CHECK(std::string(e.what())); }
}

}  // namespace cella::test
