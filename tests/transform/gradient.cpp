#include <cella/ops/activation.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/trigonometry.hpp>
#include <cella/transform/gradient.hpp>
#include <nlohmann/json.hpp>

#include "support/compare.hpp"
#include "support/golden.hpp"
#include "support/gradient_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }
template <class F>
double at(F g, double x) {
  return eval(g, scalar(x)).values[0];
}

/// One number -> the number and its tenfold.
struct twice_op : opaque<twice_op> {
  static constexpr std::string_view name = "twice";
  static int results(span<const tensor_type> in, const attributes&, span<tensor_type> out) {
    out[0] = out[1] = in[0];
    return 2;
  }
  static void vjp(node_ref, span<const var> dy, span<const char>, span<var> dx) {
    // A result that is not used has no cotangent.
    for (int k = 0; k < 2; ++k) {
      const var d = dy[std::size_t(k)];
      if (d.id >= 0) dx[0] = dx[0].b ? dx[0] + d * (k ? 10 : 1) : d * (k ? 10 : 1);
    }
  }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out) {
    write_element(out[0], 0, read_element(in[0], 0));
    write_element(out[1], 0, 10 * read_element(in[0], 0));
  }
};

/// Functions of which derivatives.json lists orders 0 to 3.
struct listed {
  const char* name;
  var (*f)(var);
};
const listed functions[] = {
    {"tanh(x)*x^2", [](var x) { return tanh(x) * square(x); }},
    {"sin(exp(x))", [](var x) { return sin(exp(x)); }},
    {"x/(1+x^2)", [](var x) { return x / (1 + square(x)); }},
    {"log(1+exp(x))", [](var x) { return log(1 + exp(x)); }},
    {"sigmoid(x)^3", [](var x) { return pow(sigmoid(x), 3); }},
};

/// The derivative of an elementwise function, element by element.
template <class F>
auto slope(F g) {
  return [g](var x) { return grad([g](var t) { return sum(g(t)); })(x); };
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("derivatives of orders 0 to 3 equal PyTorch's") {
    const auto file = golden::open("derivatives");
    int checked = 0;
    for (const auto& c : file.json()) {
      for (const listed& l : functions) {
        if (c.at("function") != l.name) continue;
        INFO(l.name);
        const auto points = file.tensor(c.at("points").get<std::string>());
        const auto g = l.f;
        auto orders = [g](const vars& x) {
          return vars{g(x[0]), slope(g)(x[0]), slope(slope(g))(x[0]), slope(slope(slope(g)))(x[0])};
        };
        const valued_tensor in{{points.element, points.shape}, points.values};
        for (const auto& results : {run_eagerly(orders, {in}), run_traced(orders, {in})}) {
          for (std::size_t order = 0; order < results.size(); ++order) {
            INFO("order ", order);
            const auto name = c.at("values").at(order).get<std::string>();
            check_close(results[order].values, file.tensor(name).values, 1e-11);
            ++checked;
          }
        }
      }
    }
    CHECK(checked == 2 * 4 * 5);
  }

  TEST_CASE("the gradient and the Hessian of a small network equal PyTorch's") {
    const auto file = golden::open("derivatives");
    auto load = [&](const std::string& key) {
      const auto t = file.tensor("hessian.tanh_mlp." + key);
      return valued_tensor{{t.element, t.shape}, t.values};
    };
    const valued_tensor x = load("x"), w = load("W"), v = load("V");
    auto network = [](const vars& in) {
      return [=](var t) { return sum(tanh(matmul(in[1], t)) * in[2]) + sum(pow(t, 3)); };
    };
    const int n = x.type[0];
    auto derivatives = [&](const vars& in) {
      const auto g = network(in);
      vars r{grad(g)(in[0])};
      for (int i = 0; i < n; ++i)  // one row of the Hessian at a time
        r.push_back(grad([&](var t) { return slice(grad(g)(t), 0, i, i + 1); })(in[0]));
      return r;
    };
    for (const auto& r :
         {run_eagerly(derivatives, {x, w, v}), run_traced(derivatives, {x, w, v})}) {
      check_close(r[0].values, load("gradient").values, 1e-11);
      reals hessian;
      for (int i = 0; i < n; ++i)
        hessian.insert(hessian.end(), r[std::size_t(i) + 1].values.begin(),
                       r[std::size_t(i) + 1].values.end());
      check_close(hessian, load("hessian").values, 1e-11);
    }
  }
}

TEST_CASE("what a function closes over stays constant, even if it depends on the argument") {
  // Perturbation confusion would give 3x^2.
  CHECK(at(
            [](var x) {
              const var y = x * x;
              return grad([y](var t) { return t * y; })(x);
            },
            1.5) == 2.25);
  // d/dx (x * d/dy (x + y)) = 1; confusion gives 2. Siskind and Pearlmutter 2005
  CHECK(at(
            [](var x) {
              return grad([](var u) { return u * grad([u](var y) { return u + y; })(u); })(x);
            },
            1.5) == 1);
}

TEST_CASE("derivatives nest three deep and of each other's results") {
  CHECK(at([](var x) { return grad(grad(grad([](var t) { return t * t * t * t; })))(x); }, 1.5) ==
        36);
  // d/dx (x d/dy (y x d/dz (x y z^2) at z = y) at y = x)
  // inner: 2xyz at z = y: 2xy^2; times yx: 2x^2y^3; d/dy: 6x^2y^2, at y = x constant x: 6x^4;
  // times x: 6x^5; d/dx: 30x^4.
  CHECK(at(
            [](var x0) {
              return grad([](var x) {
                return x * grad([x](var y) {
                         return y * x * grad([x, y](var z) { return x * y * z * z; })(y);
                       })(x);
              })(x0);
            },
            2.0) == 480);
}

TEST_CASE("gradients with respect to several arguments come in one sweep") {
  const auto r = run_eagerly(
      [](const vars& v) {
        const auto g =
            value_and_grad<2>([](var x, var y, var z) { return sum(x * y * z); })(v[0], v[1], v[2]);
        return vars{g.value, g.gradient[0], g.gradient[1]};
      },
      {f64({2}, {1, 2}), f64({2}, {3, 4}), f64({2}, {5, 6})});
  CHECK(r[0].values == reals{63});
  CHECK(r[1].values == reals{15, 24});
  CHECK(r[2].values == reals{5, 12});
}

TEST_CASE("the same value as two arguments is two arguments") {
  const auto r = run_eagerly(
      [](const vars& v) {
        const auto g = value_and_grad<2>([](var x, var y) { return x * x * y; })(v[0], v[0]);
        return vars{g.gradient[0], g.gradient[1]};
      },
      {scalar(3)});
  CHECK(r[0].values == reals{18});
  CHECK(r[1].values == reals{9});
}

TEST_CASE("grad differentiates the first argument and passes the others on") {
  CHECK(eval([](var x, var y) { return grad([](var t, var u) { return t * t * u; })(x, y); },
             scalar(3), scalar(5))
            .values == reals{30});
}

TEST_CASE("vjp pulls a cotangent of any shape back") {
  const auto r = run_eagerly(
      [](const vars& v) {
        const auto [y, dx] = vjp([&](var t) { return matmul(v[1], t); }, v[0], v[2]);
        return vars{y, dx};
      },
      {f64({2}, {1, 2}), f64({3, 2}, {1, 2, 3, 4, 5, 6}), f64({3}, {1, 10, 100})});
  CHECK(r[0].values == reals{5, 11, 17});
  CHECK(r[1].values == reals{531, 642});
}

TEST_CASE("a function that does not depend on its argument has a zero gradient") {
  const auto r = run_eagerly(
      [](const vars& v) {
        return vars{grad([&](var) { return sum(v[1]); })(v[0]),
                    grad([](var t) { return sum(zeros_like(t)); })(v[0]),
                    grad([](var t) { return sum(floor(t)); })(v[0]),
                    vjp([&](var) { return v[1]; }, v[0], v[1]).second,
                    gradients(sum(v[1]), vars{v[0], v[1]})[0]};
      },
      {f64({2}, {1.5, 2.5}), f64({3}, {1, 2, 3})});
  for (const valued_tensor& t : r) CHECK(t.values == reals{0, 0});
}

TEST_CASE("the identity has a gradient of one, also when nothing is computed") {
  CHECK(at([](var x) { return grad([](var t) { return t; })(x); }, 3) == 1);
  CHECK(at([](var x) { return vjp([](var t) { return t; }, x, x).second; }, 3) == 3);
  CHECK(at([](var x) { return gradients(x, std::array{x})[0]; }, 3) == 1);
}

TEST_CASE("an integer operand gets zeros of its own type and stops no other derivative") {
  const auto r = run_eagerly(
      [](const vars& v) {
        auto g = [](var x, var n) {
          return sum(x * cast(n, dtype::f64)) + sum(select(n > 2, x, 0));
        };
        const auto d = value_and_grad<2>(g)(v[0], v[1]);
        return vars{d.gradient[0], d.gradient[1]};
      },
      {f64({2}, {1, 2}), i64({2}, {2, 3})});
  CHECK(r[0].values == reals{2, 4});
  CHECK(r[1].type == tensor_type{dtype::i64, {2}});
  CHECK(r[1].values == reals{0, 0});
}

TEST_CASE("a value that is used often collects every derivative") {
  CHECK(at(
            [](var x) {
              return grad([](var t) {
                const var y = t * t;
                var s = y;
                for (int i = 0; i < 9; ++i) s += y * i;
                return s + t;
              })(x);
            },
            0.5) == 38);  // 37 times 2x, plus 1
}

TEST_CASE("a loop over layers differentiates by every layer's weights") {
  auto network = [](const vars& w, var x) {
    for (const var& layer : w) x = tanh(matmul(layer, x));
    return sum(x);
  };
  auto derivatives = [&](const vars& v) {
    const vars w(v.begin() + 1, v.end());
    return gradients(network(w, v[0]), w);
  };
  std::vector<valued_tensor> in{case_input{.extents = {3}}.sample(1)};
  for (std::uint64_t i = 0; i < 4; ++i) in.push_back(case_input{.extents = {3, 3}}.sample(10 + i));
  const auto eager = run_eagerly(derivatives, in);
  const auto traced = run_traced(derivatives, in);
  auto loss = [&](const std::vector<valued_tensor>& x) {
    return run_eagerly(
               [&](const vars& v) { return vars{network(vars(v.begin() + 1, v.end()), v[0])}; },
               x)[0]
        .values[0];
  };
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(eager[k].values == traced[k].values);
    check_close(eager[k].values, differences(loss, in, k + 1, 1e-5), 1e-9);
  }
}

TEST_CASE("a loss of one element may have any rank") {
  CHECK(eval([](var x) { return grad([](var t) { return sum(t * t, {}, true); })(x); },
             f64({1, 2}, {3, 4}))
            .values == reals{6, 8});
}

TEST_CASE("a node with several results collects the cotangents of those that are used") {
  auto part = [](var t, int k) {
    return var{t.b, t.b->get(t.b->emit(bound<twice_op>(), {t.id}), k)};
  };
  CHECK(at([&](var x) { return grad([&](var t) { return part(t, 0); })(x); }, 2) == 1);
  CHECK(at([&](var x) { return grad([&](var t) { return part(t, 1); })(x); }, 2) == 10);
  CHECK(at(
            [&](var x) {
              return grad([&](var t) {
                const node_id both = t.b->emit(bound<twice_op>(), {t.id});
                return var{t.b, t.b->get(both, 0)} + var{t.b, t.b->get(both, 1)};
              })(x);
            },
            2) == 11);
}

TEST_CASE("derivatives are taken in the compiler as well") {
  constexpr auto count = [] {
    builder b;
    const var x{&b, b.input({dtype::f64, {3}}, input_role::argument, "x")};
    const var d = grad([](var t) { return sum(grad([](var u) { return sum(tanh(u)); })(t)); })(x);
    return d.type() == x.type() ? int(b.g.nodes.size()) : -1;
  }();
  static_assert(count > 0);
  CHECK(count > 0);
}

TEST_CASE("the faults of derivatives name the type and the remedy") {
  CHECK(fault([](const vars& v) { return grad([](var t) { return t * 2; })(v[0]); }, {f({2})}) ==
        "grad: the function returns f64[2]; a gradient needs one floating-point number (sum or "
        "mean it, or use vjp)");
  CHECK(fault([](const vars& v) { return grad([](var t) { return t; })(v[0]); },
              {{dtype::i64, {}}}) ==
        "grad: the function returns i64[]; a gradient needs one floating-point number (sum or "
        "mean it, or use vjp)");
  CHECK(fault([](const vars& v) { return gradients(v[0], v); }, {f({2})}) ==
        "grad: the function returns f64[2]; a gradient needs one floating-point number (sum or "
        "mean it, or use vjp)");
  CHECK(fault([](const vars& v) { return vjp([](var t) { return sum(t); }, v[0], v[0]); },
              {f({2})}) == "vjp: the function returns f64[] but the cotangent is f64[2]");
}
