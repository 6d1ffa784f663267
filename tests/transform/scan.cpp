#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/passes/pass.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/jacobian.hpp>

#include "support/compare.hpp"
#include "support/transform_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

const valued_tensor weights = f64({2, 2}, {0.3, 0.1, -0.4, 0.5});
const valued_tensor start = f64({2}, {0.1, 0.2});
const valued_tensor inputs = f64({3, 2}, {0.3, -0.2, 0.8, 0.1, 0.5, 0.6});

/// h = tanh(w h + u), y = h times its predecessor; the last state and all ys, summed.
auto recurrence(scan_settings settings) {
  return [settings](const vars& x) {
    const auto [h, y] = scan(
        [&](var state, var u) {
          const var next = tanh(matmul(x[0], state) + u);
          return std::pair{next, next * state};
        },
        x[1], x[2], settings);
    return sum(h) + sum(y);
  };
}

std::size_t live_nodes(int length) {
  const traced_function g(
      [](const vars& v) {
        return vars{grad([&](var w) { return recurrence({})(vars{w, v[1], v[2]}); })(v[0])};
      },
      {weights.type, start.type, {dtype::f64, {length, 2}}});
  return prune(g.b.g).nodes.size();
}

}  // namespace

TEST_CASE("scan carries a state along and stacks what the body yields") {
  auto sums = [](const vars& x) {
    const auto [last, all] = scan([](var s, var u) { return std::pair{s + u, s + u}; }, x[0], x[1]);
    const auto [first, back] = scan(
        [](var s, var u) {
          return std::pair{s + u, s + u};
        },
        x[0], x[1], {.reverse = true});
    return vars{last, all, first, back};
  };
  for (const auto& r : {run_eagerly(sums, {scalar(10), f64({3}, {1, 2, 3})}),
                        run_traced(sums, {scalar(10), f64({3}, {1, 2, 3})})}) {
    CHECK(r[0].values == reals{16});
    CHECK(r[1].values == reals{11, 13, 16});
    CHECK(r[2].values == reals{16});
    CHECK(r[3].values == reals{16, 15, 13});
  }
}

TEST_CASE("the graph of a scan's gradient does not grow with its length") {
  CHECK(live_nodes(1000) == live_nodes(3));
  CHECK(live_nodes(3) < 60);
}

TEST_CASE("for_i counts, map maps") {
  auto f = [](const vars& x) {
    const var power = for_i(
        5, [&](var, var s) { return s * x[0]; }, ones_like(x[0]));
    const var triangle = for_i(
        4, [](var i, var s) { return s + cast(i, dtype::f64); }, zeros_like(x[0]));
    const var squares = map([](var r) { return r * r; }, x[1]);
    const auto [low, high] = map([](var r) { return std::pair{r - 1, r + 1}; }, x[1]);
    return vars{power,
                triangle,
                squares,
                low,
                high,
                for_i(
                    0, [](var, var s) { return s; }, x[0])};
  };
  for (const auto& r : {run_eagerly(f, {scalar(2), f64({2}, {3, 4})}),
                        run_traced(f, {scalar(2), f64({2}, {3, 4})})}) {
    CHECK(r[0].values == reals{32});
    CHECK(r[1].values == reals{6});
    CHECK(r[2].values == reals{9, 16});
    CHECK(r[3].values == reals{2, 3});
    CHECK(r[4].values == reals{4, 5});
    CHECK(r[5].values == reals{2});
  }
}

TEST_CASE("every derivative of a recurrence") {
  check_transforms(recurrence({}), {weights, start, inputs});
}

TEST_CASE("every derivative of a recurrence that runs backwards and is computed again") {
  check_transforms(recurrence({.reverse = true, .recompute = true}), {weights, start, inputs});
}

TEST_CASE("recomputing stores the carries only") {
  auto stored = [](bool recompute) {
    const traced_function g(
        [&](const vars& v) {
          return vars{grad([&](var w) {
            return recurrence({.recompute = recompute})(vars{w, v[1], v[2]});
          })(v[0])};
        },
        {weights.type, start.type, inputs.type});
    for (const node& n : g.b.g.nodes) {
      if (is<scan_op>(n)) return n.result_count;
    }
    return 0;
  };
  CHECK(stored(true) == 3);   // h, y, the carries
  CHECK(stored(false) == 4);  // also tanh
}

TEST_CASE("every derivative of a scan in a scan") {
  check_transforms(
      [](const vars& x) {
        const auto [h, y] = scan(
            [&](var a, var u) {
              const auto [g, z] = scan(
                  [&](var b, var e) {
                    const var q = tanh(b * e + x[0]);
                    return std::pair{q, q * b};
                  },
                  a, x[3]);
              return std::pair{g * u, sum(z)};
            },
            x[1], x[2]);
        return sum(h) * sum(y);
      },
      {start, f64({2}, {0.4, -0.3}), inputs, f64({2, 2}, {0.5, 0.1, -0.2, 0.7})});
}

TEST_CASE("every derivative of a scan whose body has a cond") {
  check_transforms(
      [](const vars& x) {
        const auto [h, y] = scan(
            [&](var a, var u) {
              const var g = cond(
                  sum(u) > 0, [&] { return tanh(a * x[0] + u); }, [&] { return sin(a) * x[0]; });
              return std::pair{g, sum(g)};
            },
            x[1], x[2]);
        return sum(h) * sum(y);
      },
      {start, f64({2}, {0.4, -0.3}), f64({3, 2}, {0.3, -0.2, 0.8, 0.1, -0.5, -0.6})});
}

TEST_CASE("two sweeps over one scan agree with one over the sum") {
  auto f = [](const vars& x) {
    auto parts = [&](var t) {
      return scan(
          [&](var h, var u) {
            const var g = tanh(h * t + u);
            return std::pair{g, sum(g * t)};
          },
          t, x[1]);
    };
    const var t = x[0] * 1;
    const auto [h, y] = parts(t);
    const var both = gradients(sum(h), vars{t})[0] + gradients(sum(y), vars{t})[0];
    const var once = grad([&](var u) {
      const auto p = parts(u);
      return sum(p.first) + sum(p.second);
    })(x[0]);
    return vars{both, once};
  };
  for (const auto& r : {run_eagerly(f, {start, inputs}), run_traced(f, {start, inputs})})
    check_close(r[0].values, r[1].values, 1e-12);
}
