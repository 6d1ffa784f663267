#include <cella/graph/check.hpp>
#include <cella/ops/functions.hpp>
#include <cella/passes/pass.hpp>
#include <cella/passes/simplify/prune.hpp>
#include <cella/transform/custom.hpp>
#include <cella/transform/jacobian.hpp>

#include "support/transform_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// x^2 with a derivative that is told, and told wrong (3 x), so that it shows which one is taken.
const auto odd_square =
    custom_vjp([](var x) { return x * x; }, [](var x, var, var dy) { return 3 * x * dy; });

struct clipped_identity {
  constexpr var operator()(var x) const { return with_bprop(*this, x); }
  constexpr var forward(var x) const { return x; }
  constexpr var bprop(var, var, var dy) const { return clamp(dy, -1, 1); }
};

struct true_cube {
  constexpr var operator()(var x) const { return with_bprop(*this, x); }
  constexpr var forward(var x) const { return x * x * x; }
  constexpr var bprop(var x, var, var dy) const { return 3 * x * x * dy; }
};

}  // namespace

TEST_CASE("the rule that is told is the derivative, in every mode") {
  auto f = [](const vars& v) {
    return vars{odd_square(v[0]), grad(odd_square)(v[0]),
                jvp(odd_square, v[0], ones_like(v[0])).second, grad(grad(odd_square))(v[0]),
                vmap(grad(odd_square))(reshape(v[0], {1}))};
  };
  for (const auto& r : {run_eagerly(f, {scalar(5)}), run_traced(f, {scalar(5)})}) {
    CHECK(r[0].values == reals{25});
    CHECK(r[1].values == reals{15});
    CHECK(r[2].values == reals{15});
    CHECK(r[3].values == reals{3});
    CHECK(r[4].values == reals{15});
  }
}

TEST_CASE("a cell brings its own backward pass") {
  auto f = [](var x) { return 10 * clipped_identity{}(x)*x; };
  // dy of the cell is 10 x = 5, clipped to 1; the other factor gives 10 x.
  CHECK(eval(grad(f), scalar(0.5)).values == reals{6});
}

TEST_CASE("a hook sees the gradient on its way, and what it returns goes on") {
  const auto f = [](const vars& v) {
    const auto loss = [](var x) {
      const var clipped = gradient_hook(x, [](var dy) { return clamp(dy, -1, 1); });
      return sum(square(clipped)) + sum(gradient_hook(x, [](var dy) { return dy * 10; }));
    };
    return vars{loss(v[0]), grad(loss)(v[0])};
  };
  const valued_tensor x = f64({3}, {-2, 0.25, 3});
  for (const auto& r : {run_eagerly(f, {x}), run_traced(f, {x})}) {
    CHECK(r[0].values == reals{4 + 0.0625 + 9 + 1.25});
    CHECK(r[1].values == reals{9, 10.5, 11});
  }
}

TEST_CASE("every derivative of functions with their own right rules") {
  const auto f = custom_vjp([](var x, var y) { return x * x * y; },
                            [](var x, var y, var, var dy) {
                              return std::array{2 * x * y * dy, x * x * dy};
                            });
  check_transforms([=](const vars& x) { return f(sin(x[0]), x[1]) * true_cube{}(x[0]); },
                   {f64({2}, {0.3, 0.7}), f64({2}, {0.2, 0.9})});
}

TEST_CASE(
    "what the function closes over is constant to its rule, and the node is gone when pruned") {
  builder b;
  b.precision = dtype::f64;
  const var x{&b, b.input({dtype::f64, {}}, input_role::argument, "x")};
  const var k{&b, b.input({dtype::f64, {}}, input_role::argument, "k")};
  const auto f = custom_vjp([&](var t) { return t * k; }, [&](var, var, var dy) { return dy * k; });
  const var y = f(x);
  const auto g = gradients(y, vars{x, k});
  b.g.outputs.assign(3, {});
  b.end(std::array{y.id, g[0].id, g[1].id});
  CHECK(check(b.g).view() == "");
  const graph p = prune(b.g);
  CHECK(check(p).view() == "");
  CHECK(p.regions.size() == 1);
  for (const node& n : p.nodes) CHECK_FALSE(is<custom_op>(n));
}
