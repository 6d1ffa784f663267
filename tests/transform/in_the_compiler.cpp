// Graphs with regions that are made in constant evaluation have the nodes of those made at run
// time, and compute the same. The order of nodes may differ: C++ leaves open which operand comes
// first.
#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/passes/pass.hpp>
#include <cella/transform/jacobian.hpp>
#include <cella/transform/recursion.hpp>
#include <cella/transform/trace.hpp>

#include "support/compare.hpp"
#include "support/traced.hpp"

using namespace cella;
using namespace cella::test;

namespace {

struct recurrent_gradient {
  constexpr var operator()(var x, var h, var w) const {
    return grad([&](var weights) {
      const auto [last, losses] = scan(
          [&](var s, var u) {
            const var g = tanh(matmul(weights, s) + u);
            return std::pair{g, sum(g)};
          },
          h, x);
      return sum(losses);
    })(w);
  }
};
/// Second derivatives through a scan, a loop of unknown length and a native if.
struct nested_hessian {
  constexpr var operator()(var x, var h, var w) const {
    return hessian([&](var t) {
      const auto [last, ys] = scan(
          [&](var s, var u) {
            var g = while_loop([](var a) { return sum(a * a) < 2; },
                               [&](var a) { return a * 1.5 + t; }, s * u);
            if (sum(g) > 1) g = g * t;
            return std::pair{tanh(g), sum(g * t)};
          },
          h, x);
      return sum(ys) * sum(w);
    })(h);
  }
};
struct batched_recursion {
  constexpr var operator()(var x, var h, var w) const {
    return vmap(grad([](var t) {
             return recursive(
                 [&](auto self, var y) -> var {
                   if (sum(y) > 1) return self(y * 0.5) * t;
                   return y * y;
                 },
                 {dtype::f64, {}}, t);
           }))(h * 4) +
           sum(x) + sum(w);
  }
};

constexpr std::array<tensor_type, 3> types{
    {{dtype::f64, {4, 2}}, {dtype::f64, {2}}, {dtype::f64, {2, 2}}}};

template <class Cell>
constexpr graph optimized() {
  builder b;
  b.precision = dtype::f64;
  Cell cell{};
  trace_into(b, cell, types);
  return optimize(std::move(b.g));
}
template <class Cell>
struct make {
  constexpr graph operator()() const { return optimized<Cell>(); }
};

reals run(const graph& g) {
  value_store values;
  bindings memory;
  const std::vector<valued_tensor> in{f64({4, 2}, {0.3, -0.2, 0.8, 0.1, 0.5, 0.6, -0.4, 0.9}),
                                      f64({2}, {0.4, 0.7}), f64({2, 2}, {0.3, 0.1, -0.4, 0.5})};
  for (std::size_t i = 0; i < 3; ++i) values.bind(g.input(int(i)), memory.store(in[i]));
  interpret(g, values);
  return read(values.value(g.regions[0].outputs[0])).values;
}

/// Every node as a line, in order of the alphabet.
std::vector<std::string> inventory(const graph& g) {
  std::vector<std::string> lines;
  for (const node& n : g.nodes) {
    text t;
    t << n.op->name << " " << n.type << " " << n.operand_count << " " << n.result_count;
    for (int word : n.attributes.as<attribute_words>()) t << " " << word;
    lines.emplace_back(t.view());
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

template <class Cell>
void same_in_both_worlds() {
  const graph compiled = thaw(frozen<make<Cell>>);
  const graph traced = optimized<Cell>();
  CHECK(check(compiled).view() == "");
  CHECK(compiled.regions.size() > 1);
  CHECK(compiled.regions.size() == traced.regions.size());
  CHECK(inventory(compiled) == inventory(traced));
  const reals values = run(compiled);
  check_close(values, run(traced), 1e-13);
  for (double v : values) CHECK(std::isfinite(v));
}

}  // namespace

TEST_CASE("the gradient of a scan") { same_in_both_worlds<recurrent_gradient>(); }
TEST_CASE("the Hessian of a scan that holds a loop and a native if") {
  same_in_both_worlds<nested_hessian>();
}
TEST_CASE("the batched gradient of a recursion") { same_in_both_worlds<batched_recursion>(); }
