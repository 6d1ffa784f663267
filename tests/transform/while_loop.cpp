#include <cella/ops/functions.hpp>
#include <cella/passes/pass.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/jacobian.hpp>

#include "support/compare.hpp"
#include "support/transform_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Doubles x until it exceeds 100: x 2^k.
var doubled(var x, int max_steps) {
  return while_loop([](var v) { return v < 100; }, [](var v) { return v * 2; }, x,
                    {.max_steps = max_steps});
}

/// The square root of a by Newton's method, from a.
var newton_root(var a) {
  return while_loop([&](var y) { return abs(y * y - a) > 1e-13; },
                    [&](var y) { return 0.5 * (y + a / y); }, a);
}

}  // namespace

TEST_CASE("a loop runs as often as the data say, forwards and backwards") {
  auto f = [](const vars& v) {
    auto g = [](var x) { return doubled(x, 0); };
    auto bounded = [](var x) { return doubled(x, 20); };
    return vars{g(v[0]), grad(g)(v[0]), jvp(g, v[0], ones_like(v[0])).second, grad(bounded)(v[0])};
  };
  for (const auto& [x, factor] : {std::pair{3.0, 64.0}, {99.0, 2.0}, {100.0, 1.0}}) {
    for (const auto& r : {run_eagerly(f, {scalar(x)}), run_traced(f, {scalar(x)})}) {
      CHECK(r[0].values[0] == x * factor);
      CHECK(r[1].values[0] == factor);
      CHECK(r[2].values[0] == factor);
      CHECK(r[3].values[0] == factor);
    }
  }
}

TEST_CASE("a bound ends the loop") {
  auto f = [](const vars& v) {
    return vars{doubled(v[0], 2), grad([](var x) { return doubled(x, 2); })(v[0])};
  };
  for (const auto& r : {run_eagerly(f, {scalar(3)}), run_traced(f, {scalar(3)})}) {
    CHECK(r[0].values[0] == 12);
    CHECK(r[1].values[0] == 4);
  }
}

TEST_CASE("Newton's method is differentiated through its steps") {
  // d sqrt(a) / da = 1 / (2 sqrt(a)); second derivative -1 / (4 a^1.5)
  auto f = [](const vars& v) {
    return vars{newton_root(v[0]), grad(newton_root)(v[0]), grad(grad(newton_root))(v[0])};
  };
  for (const auto& r : {run_eagerly(f, {scalar(7)}), run_traced(f, {scalar(7)})}) {
    check_close(r[0].values, reals{std::sqrt(7.0)}, 1e-12);
    check_close(r[1].values, reals{0.5 / std::sqrt(7.0)}, 1e-12);
    check_close(r[2].values, reals{-0.25 / std::pow(7.0, 1.5)}, 1e-9);
  }
}

TEST_CASE("a bounded loop stores into memory of a known size, an unbounded one into a list") {
  auto stored = [](int max_steps) {
    const traced_function g(
        [&](const vars& v) {
          return vars{grad([&](var x) {
            return while_loop([](var t) { return t < 100; }, [](var t) { return t * t; }, x,
                              {.max_steps = max_steps});
          })(v[0])};
        },
        {{dtype::f64, {}}});
    bool records = false;
    for (const node& n : prune(g.b.g).nodes) records |= n.type.element == dtype::record;
    return records;
  };
  CHECK(stored(0));
  CHECK_FALSE(stored(9));
}

TEST_CASE("every derivative of a loop over two carries, with and without a bound") {
  for (int steps : {0, 9}) {
    check_transforms(
        [=](const vars& x) {
          const auto [y, k] = while_loop([](var v, var) { return v < 3; },
                                         [&](var v, var n) {
                                           return std::tuple{v * x[0] + x[1] * tanh(v), n + 1};
                                         },
                                         std::tuple{x[0], zeros_like(x[0])}, {.max_steps = steps});
          return y * k;
        },
        {scalar(1.4), scalar(0.3)});
  }
}

TEST_CASE("every derivative of a loop that holds a cond") {
  check_transforms(
      [](const vars& x) {
        const auto [y, k] = while_loop([](var, var n) { return n < 5; },
                                       [&](var v, var n) {
                                         const var z = cond(
                                             v > 0.5, [&] { return sin(v * x[0]); },
                                             [&] { return v + exp(v) * x[0]; });
                                         return std::tuple{z, n + 1};
                                       },
                                       std::tuple{x[0], constant(*x[0].b, 0, {dtype::i64, {}})});
        return y;
      },
      {scalar(0.4)});
}

TEST_CASE("every derivative of a loop in a scan") {
  check_transforms(
      [](const vars& x) {
        const auto [h, y] = scan(
            [&](var a, var u) {
              const var g = while_loop([](var v) { return v * v < 2; },
                                       [&](var v) { return v * (x[0] * x[0] + 1.2) + 0.1; }, a * u);
              return std::pair{tanh(g), g};
            },
            x[1], x[2]);
        return y * h;
      },
      {scalar(0.7), scalar(0.8), f64({3}, {0.3, -0.2, 0.8})});
}

TEST_CASE("samples of a batch leave the loop each in its own time") {
  auto f = [](const vars& v) {
    auto g = [](var x) { return doubled(x, 0); };
    auto total = [&](var x) { return sum(vmap(g)(x) * x); };
    return vars{vmap(g)(v[0]), vmap(grad(g))(v[0]), vmap(vmap(grad(g)))(v[1]), grad(total)(v[0])};
  };
  const std::vector<valued_tensor> in{f64({3}, {3, 99, 100}), f64({2, 2}, {3, 50, 99, 100})};
  for (const auto& r : {run_eagerly(f, in), run_traced(f, in)}) {
    CHECK(r[0].values == reals{192, 198, 100});
    CHECK(r[1].values == reals{64, 2, 1});
    CHECK(r[2].values == reals{64, 2, 2, 1});
    CHECK(r[3].values == reals{384, 396, 200});
  }
}
