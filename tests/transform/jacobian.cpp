#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/padding.hpp>
#include <cella/ops/prod.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/transform/jacobian.hpp>

#include "support/compare.hpp"
#include "support/golden.hpp"
#include "support/traced.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Rosenbrock's function of two variables.
constexpr var rosenbrock(var x) {
  const var a = slice(x, 0, 0, 1);
  const var b = slice(x, 0, 1, 2);
  return sum(square(1 - a) + 100 * square(b - square(a)));
}
/// [2] -> [3]: squares and the product.
constexpr var curve(var x) { return concat({x * x, reshape(prod(x), {1})}, 0); }

template <class F>
void both_ways(F f, const std::vector<valued_tensor>& in, const std::vector<reals>& expected,
               double tolerance) {
  for (const auto& r : {run_eagerly(f, in), run_traced(f, in)}) {
    REQUIRE(r.size() == expected.size());
    for (std::size_t k = 0; k < r.size(); ++k) check_close(r[k].values, expected[k], tolerance);
  }
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("the Hessian of a small network equals PyTorch's, three ways") {
    const auto file = golden::open("derivatives");
    auto load = [&](const std::string& key) {
      const auto t = file.tensor("hessian.tanh_mlp." + key);
      return valued_tensor{{t.element, t.shape}, t.values};
    };
    auto derivatives = [](const vars& in) {
      auto f = [&](var t) { return sum(tanh(matmul(in[1], t)) * in[2]) + sum(pow(t, 3)); };
      return vars{
          grad(f)(in[0]), hessian(f)(in[0]), jacobian_reverse(grad(f))(in[0]),
          jacobian_forward([&](var t) {
            return vmap([&](var d) { return jvp(f, t, d).second; })(detail::basis(*t.b, t.type()));
          })(in[0])};
    };
    const reals h = load("hessian").values;
    both_ways(derivatives, {load("x"), load("W"), load("V")}, {load("gradient").values, h, h, h},
              1e-11);
  }
}

TEST_CASE("jvp gives value and directional derivative in one pass") {
  both_ways(
      [](const vars& v) {
        const auto [y, dy] = jvp([&](var x) { return sin(x) * v[1]; }, v[0], v[1]);
        return vars{y, dy};
      },
      {f64({2}, {0.5, 1}), f64({2}, {2, 3})},
      {{2 * std::sin(0.5), 3 * std::sin(1.0)}, {4 * std::cos(0.5), 9 * std::cos(1.0)}}, 1e-15);
}

TEST_CASE("forward mode takes tuples, and does not confuse perturbations") {
  both_ways(
      [](const vars& v) {
        const auto [y, dy] = jvp([](const auto& p) { return std::get<0>(p) * std::get<1>(p); },
                                 std::tuple{v[0], v[1]}, std::tuple{v[1], v[0]});
        // d/dx (x d/dy (x y)) = 2x
        auto outer = [](var x) {
          return x * jvp([x](var t) { return x * t; }, x, ones_like(x)).second;
        };
        return vars{y, dy, jvp(outer, v[0], ones_like(v[0])).second};
      },
      {scalar(3), scalar(5)}, {{15}, {34}, {6}}, 0);
}

TEST_CASE("the Jacobian by either mode is the same, with the result's extents first") {
  both_ways(
      [](const vars& v) {
        return vars{jacobian_forward(curve)(v[0]), jacobian_reverse(curve)(v[0]),
                    jacobian(curve)(v[0])};
      },
      {f64({2}, {2, 3})}, {{4, 0, 0, 6, 3, 2}, {4, 0, 0, 6, 3, 2}, {4, 0, 0, 6, 3, 2}}, 1e-14);
  const auto r = run_traced(
      [](const vars& v) { return vars{jacobian([](var x) { return transpose(x); })(v[0])}; },
      {f64({2, 3}, {1, 2, 3, 4, 5, 6})});
  CHECK(r[0].type.shape == shape{3, 2, 2, 3});
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 2; ++j) {
      for (int k = 0; k < 6; ++k)
        CHECK(r[0].values[std::size_t((i * 2 + j) * 6 + k)] == (k == j * 3 + i ? 1 : 0));
    }
  }
}

TEST_CASE("directions lie behind the values wherever the operations allow it, else in front") {
  // Every operation that takes directions behind its axes, on values with and without them.
  auto all = [](const vars& in) {
    const var& w = in[1];
    return [w](var x) {
      const var z = transpose(reshape(concat({x, x * x}, 0), {4, 3}), {1, 0});
      const var y = matmul(z, w) + select(z > slice(w, 0, 0, 3), z, sum(w, {0}));
      const var padded = pad(y, {1, 0}, {0, 2}, 0.5);
      return sum(reverse(padded, 1) * matmul(w, padded), {0}) + slice(padded, 0, 1, 2) * 3;
    };
  };
  // The softmax has no such rule.
  auto some = [](const vars& in) {
    const var& w = in[1];
    return [w](var x) { return matmul(softmax(x, 1), w); };
  };
  auto both_modes = [](auto make) {
    return [make](const vars& in) {
      return vars{jacobian_forward(make(in))(in[0]), jacobian_reverse(make(in))(in[0])};
    };
  };
  auto equal = [](auto f, const std::vector<valued_tensor>& in) {
    for (const auto& r : {run_eagerly(f, in), run_traced(f, in)}) {
      REQUIRE(r.size() == 2);
      check_close(r[0].values, r[1].values, 1e-14);
    }
  };
  const auto x = f64({2, 3}, {0.5, -1, 2, 0.25, 1.5, -0.75});
  equal(both_modes(some), {x, f64({3, 3}, {1, 2, -1, 0.5, 3, 1, -2, 0.1, 0.7})});
  equal(both_modes(all),
        {x, f64({4, 4}, {1, 2, -1, 0.5, 3, 1, -2, 0.1, 0.7, 0.2, -0.3, 1, 0.4, -1, 0.6, 2})});
}

TEST_CASE("Hessians and their products with a vector have the closed form") {
  // Rosenbrock at (a, b): [[2 + 1200 a^2 - 400 b, -400 a], [-400 a, 200]]
  const double a = -1.2, b = 1;
  const reals h{2 + 1200 * a * a - 400 * b, -400 * a, -400 * a, 200};
  both_ways(
      [](const vars& v) {
        return vars{hessian(rosenbrock)(v[0]), hvp(rosenbrock, v[0], v[1])};
      },
      {f64({2}, {a, b}), f64({2}, {2, -1})}, {h, {2 * h[0] - h[1], 2 * h[2] - h[3]}}, 1e-12);
}

TEST_CASE("transforms compose in any order") {
  // f = x^4: f'' = 12 x^2, f''' = 24 x
  auto f = [](var x) { return x * x * x * x; };
  both_ways(
      [&](const vars& v) {
        auto total = [&](var x) { return sum(vmap(grad(f))(x)); };
        return vars{grad(total)(v[0]), vmap(hessian(f))(v[0]), vmap(grad(grad(grad(f))))(v[0]),
                    jvp(vmap(grad(f)), v[0], ones_like(v[0])).second};
      },
      {f64({2}, {1, 2})}, {{12, 48}, {12, 48}, {24, 48}, {12, 48}}, 1e-13);
}

TEST_CASE("stop_gradient stops every mode") {
  both_ways(
      [](const vars& v) {
        auto f = [](var x) { return x * stop_gradient(x); };
        return vars{grad(f)(v[0]), jvp(f, v[0], ones_like(v[0])).second,
                    vmap(grad(f))(reshape(v[0], {1}))};
      },
      {scalar(3)}, {{3}, {3}, {3}}, 0);
}
