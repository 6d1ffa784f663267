#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/transform/jacobian.hpp>
#include <cella/transform/recursion.hpp>

#include "support/compare.hpp"
#include "support/transform_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// x^n by squaring, n a tensor.
constexpr var power(var x, var n) {
  if (n < 0.5) return ones_like(x);
  const var half = floor(n / 2);
  const var root = call<power>(x, half);
  if (n - 2 * half > 0.5) return root * root * x;
  return root * root;
}

constexpr var even_part(var x, var k);
constexpr var odd_part(var x, var k) {
  return cond(
      k > 0.5, [&] { return x * call<even_part>(x, k - 1); }, [&] { return x; });
}
constexpr var even_part(var x, var k) {
  return cond(
      k > 0.5, [&] { return sin(x) * call<odd_part>(x, k - 1); }, [&] { return x * x; });
}

/// A binary tree of calls, as deep as k says.
var tree(var x, var k) {
  return recursive(
      [](auto self, var y, var n) {
        return cond(
            n > 0.5, [&] { return self(y * 0.9, n - 1) * self(sin(y), n - 2); },
            [&] { return y + 1; });
      },
      {dtype::f64, {}}, x, k);
}

}  // namespace

TEST_CASE(
    "a function calls itself until a tensor value ends it, and is differentiated through that") {
  auto f = [](const vars& v) {
    auto g = [&](var x) { return power(x, v[1]); };
    return vars{g(v[0]), grad(g)(v[0]), grad(grad(g))(v[0]), jvp(g, v[0], ones_like(v[0])).second};
  };
  for (double n : {0.0, 1.0, 5.0, 8.0}) {
    for (const auto& r :
         {run_eagerly(f, {scalar(1.5), scalar(n)}),
          run_traced(
              [&](const vars& v) { return detail::run_paths(*v[0].b, [&] { return f(v); }); },
              {scalar(1.5), scalar(n)})}) {
      check_close(r[0].values, reals{std::pow(1.5, n)}, 1e-13);
      check_close(r[1].values, reals{n * std::pow(1.5, n - 1)}, 1e-13);
      check_close(r[2].values, reals{n * (n - 1) * std::pow(1.5, n - 2)}, 1e-13);
      check_close(r[3].values, r[1].values, 1e-13);
    }
  }
}

TEST_CASE("a function that is called by name stands in the graph once") {
  const traced_function g(
      [](const vars& v) {
        return vars{call<power>(v[0], v[1]) * call<power>(sin(v[0]), v[1] + 1)};
      },
      {{dtype::f64, {}}, {dtype::f64, {}}});
  int floors = 0;
  for (const region& r : g.b.g.regions) {
    for (node_id n : r.nodes) floors += g.b.g.nodes[std::size_t(n)].op->name == "floor";
  }
  CHECK(floors == 1);
}

TEST_CASE("every derivative of a recursion that closes over a value") {
  check_transforms(
      [](const vars& x) {
        return recursive(
            [&](auto self, var y, var k) {
              return cond(
                  k > 0.5, [&] { return x[0] * tanh(self(y, k - 1)) + y; },
                  [&] { return sin(y * x[0]); });
            },
            {dtype::f64, {}}, x[0], x[1]);
      },
      {scalar(0.7), scalar(2)});
}

TEST_CASE("every derivative of a recursion with two calls") {
  check_transforms([](const vars& x) { return tree(x[0], x[1]); }, {scalar(0.7), scalar(3)});
}

TEST_CASE("every derivative of two functions that call each other") {
  check_transforms([](const vars& x) { return call<even_part>(x[0], x[1]); },
                   {scalar(0.8), scalar(3)});
}

TEST_CASE("every derivative of recursions that end only for samples that they are for") {
  // x times itself n times, however n gets to be 0.
  auto times = [](var x, var n, double by) {
    return recursive(
        [&](auto self, var y, var k) -> var {
          return cond(
              equal(k, 0), [&] { return y * x; }, [&] { return sin(self(y * x, k + by)) + y; });
        },
        {dtype::f64, {}}, x, n);
  };
  // Of samples 0.9, 1.215 and 0.63 the second takes the other way.
  check_transforms(
      [&](const vars& v) {
        const var n = floor(v[0] * 4 - 4);
        return cond(
            n < 0, [&] { return times(v[0], n, 1) * times(v[0] + v[1], n, 1); },
            [&] { return times(v[0] * v[1], n + 2, -1); });
      },
      {scalar(0.9), scalar(0.8)});
}

TEST_CASE("checkpoint changes what is stored, not what is computed") {
  auto f = [](const vars& x) {
    auto layer = [&](var t) { return tanh(matmul(x[1], t)) * sin(t); };
    return checkpoint(layer)(checkpoint(layer)(x[0]));
  };
  check_transforms(f, {f64({2}, {0.3, 0.1}), f64({2, 2}, {0.3, 0.1, -0.4, 0.5})});
  const traced_function g(
      [&](const vars& x) {
        return vars{grad([&](var t) { return sum(f(vars{t, x[1]})); })(x[0])};
      },
      {{dtype::f64, {2}}, {dtype::f64, {2, 2}}});
  // Forward calls return their result and nothing else; backward calls get their argument.
  int calls = 0;
  for (node_id n : g.b.g.regions[0].nodes) {
    const node& x = g.b.g.nodes[std::size_t(n)];
    if (!is<call_op>(x)) continue;
    CHECK(x.result_count == 1);
    ++calls;
  }
  CHECK(calls == 4);
}
