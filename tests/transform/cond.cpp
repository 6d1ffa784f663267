#include <cella/graph/print.hpp>
#include <cella/ops/functions.hpp>
#include <cella/passes/pass.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/jacobian.hpp>

#include "support/transform_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

int count(const graph& g, std::string_view op) {
  int n = 0;
  for (const region& r : g.regions) {
    for (node_id id : r.nodes) n += g.nodes[std::size_t(id)].op->name == op;
  }
  return n;
}

/// x^2 above 1, x below, with all derivatives.
var kinked(var x) {
  return cond(
      x > 1, [&] { return x * x; }, [&] { return x; });
}

}  // namespace

TEST_CASE("cond takes one branch, in graph mode and in eager mode") {
  for (const auto& [x, y, dy, ddy] : {std::array{3.0, 9.0, 6.0, 2.0}, {0.5, 0.5, 1.0, 0.0}}) {
    auto all = [](const vars& v) {
      return vars{kinked(v[0]), grad(kinked)(v[0]), grad(grad(kinked))(v[0])};
    };
    for (const auto& r : {run_eagerly(all, {scalar(x)}), run_traced(all, {scalar(x)})}) {
      CHECK(r[0].values[0] == y);
      CHECK(r[1].values[0] == dy);
      CHECK(r[2].values[0] == ddy);
    }
  }
}

TEST_CASE("the branch that is not taken is not computed") {
  // 1 / 0 in the other branch would make the derivative infinite times zero.
  auto f = [](var x) {
    return cond(
        x > 0, [&] { return log(x); }, [&] { return x; });
  };
  const auto r = run_traced(
      [&](const vars& v) {
        return vars{f(v[0]), grad(f)(v[0])};
      },
      {scalar(-2)});
  CHECK(r[0].values[0] == -2);
  CHECK(r[1].values[0] == 1);
}

TEST_CASE(
    "both branches stand in the graph once, and in their gradient they store into one place") {
  const traced_function g([](const vars& v) { return vars{grad(kinked)(v[0])}; },
                          {{dtype::f64, {}}});
  const graph p = prune(live_part(g.b.g));
  CHECK(count(p, "cond") <= 2);
  // tanh and exp of either branch: one slot
  const traced_function slots(
      [](const vars& v) {
        return vars{grad([](var x) {
          return cond(
              x > 0, [&] { return tanh(x); }, [&] { return exp(x); });
        })(v[0])};
      },
      {{dtype::f64, {}}});
  for (const node& n : slots.b.g.nodes) {
    if (is<cond_op>(n)) CHECK(n.result_count <= 2);
  }
}

TEST_CASE("branches return tuples, take operands and nest") {
  const auto f = [](const vars& v) {
    const auto [a, b] = cond(
        v[0] > v[1],
        [](var x, var y) {
          return std::tuple{x, y};
        },
        [](var x, var y) {
          return std::tuple{y, x};
        },
        v[0], v[1]);
    return vars{a, b};
  };
  for (const auto& r :
       {run_eagerly(f, {scalar(1), scalar(2)}), run_traced(f, {scalar(1), scalar(2)})}) {
    CHECK(r[0].values[0] == 2);
    CHECK(r[1].values[0] == 1);
  }
}

TEST_CASE("every derivative of a cond whose branches close over values") {
  for (double x : {0.7, -0.6}) {
    check_transforms(
        [](const vars& v) {
          const var y = v[0] * 2;
          return cond(
              v[0] > 0, [&] { return tanh(y) * v[0] * v[1]; },
              [&] { return sin(v[0]) * exp(v[1] * y); });
        },
        {scalar(x), scalar(0.8)});
  }
}

TEST_CASE("every derivative of nested conds that share what they capture") {
  check_transforms(
      [](const vars& v) {
        const var y = exp(v[0]);
        return cond(
            v[0] > 0,
            [&] {
              const var z = y * v[1];
              return y * cond(
                             z > 1, [&] { return z * y * v[0]; }, [&] { return tanh(z); });
            },
            [&] { return y; });
      },
      {scalar(0.7), scalar(0.8)});
}

TEST_CASE("with a predicate per sample, vmap selects; with one predicate it keeps the cond") {
  auto f = [](var x) { return sum(vmap(kinked)(x)); };
  const auto r = run_traced(
      [&](const vars& v) {
        return vars{vmap(kinked)(v[0]), grad(f)(v[0])};
      },
      {f64({3}, {0.5, 2, 3})});
  CHECK(r[0].values == reals{0.5, 4, 9});
  CHECK(r[1].values == reals{1, 4, 6});
  const traced_function g(
      [](const vars& v) {
        return vars{vmap([&](var x) {
          return cond(
              v[1] > 0, [&] { return x * x; }, [&] { return x; });
        })(v[0])};
      },
      {{dtype::f64, {3}}, {dtype::f64, {}}});
  CHECK(count(prune(live_part(g.b.g)), "select") == 0);
}

TEST_CASE("every derivative of a cond per sample whose branches keep lists of other things") {
  // Of samples 0.9, 1.215 and 0.63 the second takes the other way.
  check_transforms(
      [](const vars& v) {
        const var x = v[0];
        return cond(
            x > 1,
            [&] {
              return while_loop([](var y) { return y < 10; }, [&](var y) { return y * 2 + x; }, x);
            },
            [&] {
              const auto step = [&](var y, var n) { return std::tuple{tanh(y) + x * y, n + x}; };
              return std::get<0>(while_loop([](var, var n) { return n < 2; }, step,
                                            std::tuple{x, constant(*x.b, 0, {dtype::f64, {}})}));
            });
      },
      {scalar(0.9)});
}
