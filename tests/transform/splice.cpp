// Graphs with regions that are traced in one builder and spliced into another.
#include <cella/graph/check.hpp>
#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/passes/simplify/sink_monotone.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/jacobian.hpp>
#include <cella/transform/recursion.hpp>
#include <cella/transform/trace.hpp>

#include "support/compare.hpp"
#include "support/transform_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr var halved(var x, var k) {
  if (sum(x) > k) return call<halved>(x * 0.5, k);
  return tanh(x * constant(x, {1., 0.5, 2.}));
}

/// A scan, a native if in its body, and a recursion that is called twice.
struct network {
  constexpr var operator()(var x) const {
    const auto [h, ys] = scan(
        [](var s, var u) -> std::pair<var, var> {
          if (sum(u) > 0) return {tanh(s + u), u};
          return {sin(s) * u, s};
        },
        sum(x), x);
    const var one = constant(*x.b, 1, {x.element(), {}});
    return call<halved>(ys, one) * call<halved>(ys * 2, one) + sum(h);
  }
};

}  // namespace

TEST_CASE("a spliced graph keeps its regions, shared functions and derivatives") {
  auto spliced = [](const vars& v) {
    (void)constant(v[0], {7., 8.});  // so that tensors of the other graph get other places
    const network net;
    const graph g = trace(net, std::array{v[0].type()}, {.precision = dtype::f64});
    CHECK(check(g).view() == "");
    return splice(*v[0].b, sink_monotone(g), std::array{v[0]})[0];
  };
  auto direct = [](const vars& v) {
    return detail::run_paths(*v[0].b, [&] { return network{}(v[0]); });
  };
  const valued_tensor x = f64({3}, {0.3, -0.8, 0.5});
  check_close(run_checked(spliced, {x}).values, run_checked(direct, {x}).values, 0);
  check_transforms(spliced, {x});
}
