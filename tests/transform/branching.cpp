#include <cella/graph/check.hpp>
#include <cella/ops/functions.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/jacobian.hpp>
#include <cella/transform/recursion.hpp>
#include <cella/transform/trace.hpp>

#include "support/compare.hpp"
#include "support/transform_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Four ways through, two of which meet again.
constexpr var winding(var t, var a) {
  var u = t * 2 * a;
  if (t > 0) {
    u = tanh(u) * t;
    if (u * t > 0.9) return u * u;
  } else {
    u = exp(u * a);
  }
  u = u + t * a;
  if (u > 0.5) return sin(u);
  return u * u * t;
}

int count(const graph& g, std::string_view op) {
  int n = 0;
  for (const region& r : g.regions) {
    for (node_id id : r.nodes) n += g.nodes[std::size_t(id)].op->name == op;
  }
  return n;
}

struct branching_cell {
  constexpr var operator()(var x) const {
    const var y = exp(x);
    if (sum(y) > 3) return y * x;
    return y;
  }
};

/// A statistic that only one way updates.
struct counting_cell {
  cella::state<1> positives{};
  constexpr var operator()(var x) const {
    if (sum(x) > 0) {
      assign(x, positives, operand(positives).in(*x.b) + 1);
      return x;
    }
    return -x;
  }
};

}  // namespace

TEST_CASE(
    "a native if in a traced cell becomes a cond; what precedes it stands in the graph once") {
  const branching_cell cell;
  const graph g = trace(cell, std::array{tensor_type{dtype::f64, {2}}});
  CHECK(check(g).view() == "");
  CHECK(count(g, "cond") == 1);
  CHECK(count(g, "exp") == 1);
}

TEST_CASE("every path of native ifs computes what C++ computes, with every derivative") {
  for (double x : {0.7, -0.6, 1.6, 0.2}) {
    auto f = [](const vars& v) { return winding(v[0], v[1]); };
    const double found = run_checked(f, {scalar(x), scalar(0.8)}).values[0];
    CHECK(found == eval(winding, scalar(x), scalar(0.8)).values[0]);
    check_transforms(f, {scalar(x), scalar(0.8)});
  }
}

TEST_CASE("every derivative of native ifs in the body of a scan") {
  check_transforms(
      [](const vars& x) {
        const auto [h, y] = scan(
            [&](var a, var u) {
              var g = a * x[0];
              if (sum(u) > 0)
                g = tanh(g + u);
              else if (sum(a) > 0.1)
                g = sin(g) * u;
              return std::pair{g, sum(g)};
            },
            x[1], x[2]);
        return sum(h) * sum(y);
      },
      {scalar(0.7), f64({2}, {0.3, 0.1}), f64({3, 2}, {0.3, -0.2, 0.8, 0.1, -0.5, -0.6})});
}

TEST_CASE("every derivative of a native if in a recursion and in a loop") {
  check_transforms(
      [](const vars& x) {
        return recursive(
            [&](auto self, var y, var k) -> var {
              if (k > 0.5) return x[0] * tanh(self(y, k - 1)) + y;
              return sin(y * x[0]);
            },
            {dtype::f64, {}}, x[0], x[1]);
      },
      {scalar(0.7), scalar(2)});
  check_transforms(
      [](const vars& x) {
        return while_loop([](var v) { return v < 5; },
                          [&](var v) -> var {
                            if (v > 2) return v * 1.3 + x[0] * x[0];
                            return v + exp(x[0]);
                          },
                          x[0]);
      },
      {scalar(0.6)});
}

TEST_CASE("gradients() behind a native if sees what precedes it") {
  auto f = [](const vars& v) {
    const var t = v[0] * 1;
    var y = t * t;
    y = y > 4 ? y * t : sin(y);
    return vars{gradients(y, vars{t})[0]};
  };
  for (const auto& [x, slope] : {std::pair{3.0, 27.0}, {1.0, 2 * std::cos(1.0)}}) {
    auto traced = [&](const vars& v) { return detail::run_paths(*v[0].b, [&] { return f(v); }); };
    check_close(run_traced(traced, {scalar(x)})[0].values, reals{slope}, 1e-14);
    check_close(run_eagerly(f, {scalar(x)})[0].values, reals{slope}, 1e-14);
  }
}

TEST_CASE("a state that one path updates keeps its value on the others") {
  counting_cell cell;
  const graph g = trace(cell, std::array{tensor_type{dtype::f64, {2}}}, {.precision = dtype::f64});
  CHECK(check(g).view() == "");
  CHECK(g.outputs.size() == 2);
  for (const auto& [x, count] : {std::pair{1.0, 8.0}, {-1.0, 7.0}}) {
    value_store values;
    bindings memory;
    values.bind(g.input(0), memory.store(f64({1}, {7})));
    values.bind(g.input(1), memory.store(f64({2}, {x, x})));
    interpret(g, values);
    CHECK(read(values.value(g.regions[0].outputs[0])).values == reals{1, 1});
    CHECK(read(values.value(g.regions[0].outputs[1])).values == reals{count});
  }
}

TEST_CASE("a native if in a function of vmap selects per sample") {
  const auto r = run_traced(
      [](const vars& v) {
        auto f = [](var x) {
          if (x > 1) return x * x;
          return -x;
        };
        return vars{vmap(f)(v[0]), vmap(grad(f))(v[0])};
      },
      {f64({3}, {0.5, 2, 3})});
  CHECK(r[0].values == reals{-0.5, 4, 9});
  CHECK(r[1].values == reals{-1, 4, 6});
}

TEST_CASE("too many paths, paths of different types and a condition of many values are refused") {
  auto message = [](auto cell) -> std::string {
    try {
      trace(cell, std::array{tensor_type{dtype::f64, {2}}});
    } catch (const model_error& e) {
      const std::string s = e.what();
      return s.substr(s.find(": ") + 2);
    }
    return "no fault";
  };
  CHECK(message([](var x) {
          while (sum(x) < 100) x = x * 2;
          return x;
        }) ==
        "if: a function decides more than 64 times in a row on tensor values; use while_loop() for "
        "a loop, cond() for a branch");
  CHECK(message([](var x) {
          for (int i = 0; i < 7; ++i) x = sum(x) > i ? x * 2 : x + 1;
          return x;
        }) ==
        "if: more than 64 paths lead through a function that decides on tensor values; use "
        "while_loop() for a loop, cond() for a branch");
  CHECK(message([](var x) {
          if (sum(x) > 0) return x;
          return sum(x);
        }) ==
        "if: the function returns f64[2] on one path and f64[] on another; all paths must "
        "return the same types");
  CHECK(message([](var x) {
          if (x > 0) return x;
          return -x;
        }) ==
        "if: the condition greater result is bool[2]; it must be one bool (compare with >, "
        "equal, ...; any() or all() make one of many; select() and logical_and() go element by "
        "element)");
}
