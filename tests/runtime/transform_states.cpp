// States that are assigned in functions under vmap, jacobian, hessian and custom_vjp: once, as if
// the function had been called once.
#include <cella/nn/layers.hpp>
#include <cella/transform/custom.hpp>
#include <cella/transform/jacobian.hpp>
#include <cella/transform/recursion.hpp>

#include "support/cell_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

// ---- vmap

struct under_vmap : counter {
  constexpr var operator()(var x) const {
    const var y = vmap([&](var v) {
      set(x, value(x) * 2 + sum(x));
      return v * value(x);
    })(x);
    return y + value(x);
  }
};
struct under_nested_vmap : counter {
  constexpr var operator()(var x) const {
    const auto f = [&](var v) {
      set(x, value(x) + 1);
      return v * value(x);
    };
    return vmap([&](var row) {
      const var y = vmap(f)(row);
      return y + value(x);
    })(reshape(x, {2, 2}));
  }
};
/// A loop whose carry depends on the sample, and whose state does not.
struct loop_under_vmap : counter {
  constexpr var operator()(var x) const {
    return vmap([&](var v) {
      const auto body = [&](var i, var s) {
        set(x, value(x) * 2 + cast(i, dtype::f64));
        return s * v + value(x);
      };
      return for_i(3, body, v);
    })(x);
  }
};
struct gradients_under_vmap : counter {
  constexpr var operator()(var x) const {
    const auto loss = [&](var v) {
      set(x, value(x) + 2);
      return v * v * value(x);
    };
    return vmap(grad(loss))(x);
  }
};

}  // namespace

TEST_CASE("what a function under vmap assigns that is the same for all samples is assigned once") {
  const auto o = check_cell<under_vmap, f64<3>>({{1, 2, 3}}, 2);
  CHECK(o.parameters == reals{22});  // 1 -> 8 -> 22
  CHECK(o.results[0] == reals{44, 66, 88});
  const auto nested = check_cell<under_nested_vmap, f64<4>>({{1, 2, 3, 4}});
  CHECK(nested.parameters == reals{2});
  CHECK(nested.results[0] == reals{4, 6, 8, 10});
}
TEST_CASE("a loop under vmap assigns once per step") {
  const auto o = check_cell<loop_under_vmap, f64<2>>({{1, 2}});
  CHECK(o.parameters == reals{12});  // 1 -> 2 -> 5 -> 12
  CHECK(o.results[0] == reals{1 + 2 + 5 + 12, ((2 * 2 + 2) * 2 + 5) * 2 + 12});
}
TEST_CASE("gradients per example go through a state that all share") {
  const auto o = check_cell<gradients_under_vmap, f64<3>>({{1, 2, 3}});
  CHECK(o.parameters == reals{3});
  CHECK(o.results[0] == reals{6, 12, 18});
}

namespace {

struct normalized {
  nn::batch_norm<2> norm;
  nn::dense<2, 1> head;
  constexpr var operator()(var x) const {
    const auto loss = [&](var v) { return sum(square(head(norm(reshape(v, {1, 2}))))); };
    return vmap(grad(loss))(x);
  }
};

}  // namespace

TEST_CASE("gradients per example of a net with batch norm: evaluated, it assigns nothing") {
  const std::array types{tensor_type{dtype::f64, {5, 2}}};
  normalized net;
  const graph g = trace(net, types, {false, dtype::f64});
  CHECK(g.outputs.size() == 1);
  try {
    trace(net, types, {true, dtype::f64});
    FAIL("statistics of a single sample were accepted");
  } catch (const model_error& e) {
    const std::string s = e.what();
    CHECK(s.find("vmap: norm.running_mean is assigned a value that differs") != s.npos);
  }
}

// ---- jacobian and hessian

namespace {

struct under_jacobians : counter {
  constexpr var f(var x, var v) const {
    const auto body = [&](var, var s) {
      set(x, value(x) + sum(s));
      return s * v * 0.5;
    };
    const var y = for_i(2, body, v);
    return y + v * value(x);
  }
};
/// The sum of v, v / 2, v / 4 as deep as n says; counts its calls.
struct recursion_under_jacobians : counter {
  constexpr var f(var x, var v) const {
    const auto halves = [&](auto self, var y, var n) -> var {
      set(x, value(x) + 1);
      if (n > 0.5) return y + self(y * 0.5, n - 1);
      return y;
    };
    return square(recursive(halves, v.type(), v, number(x, 2)));
  }
};
enum class mode { forward, reverse, twice };
template <class F, mode Mode>
struct jacobian_of : F {
  constexpr var operator()(var x) const {
    const auto f = [&](var v) { return F::f(x, v); };
    if constexpr (Mode == mode::forward) return jacobian_forward(f)(x);
    if constexpr (Mode == mode::reverse) return jacobian_reverse(f)(x);
    return hessian([&](var v) { return sum(f(v)); })(x);
  }
};
template <class F>
struct value_of : F {
  constexpr var operator()(var x) const { return F::f(x, x); }
};

template <class F>
void check_jacobians() {
  const reals x{1.25, -0.5, 2};
  const auto once = check_cell<value_of<F>, f64<3>>({x}, 2);
  const auto forward = check_cell<jacobian_of<F, mode::forward>, f64<3>>({x}, 2, 1e-12);
  const auto reverse = check_cell<jacobian_of<F, mode::reverse>, f64<3>>({x}, 2, 1e-12);
  const auto twice = check_cell<jacobian_of<F, mode::twice>, f64<3>>({x}, 2, 1e-12);
  CHECK(forward.parameters == once.parameters);
  CHECK(reverse.parameters == once.parameters);
  CHECK(twice.parameters == once.parameters);
  // Of the second call, as differences of what the function returns in its second call.
  const double h = 1e-6;
  auto at = [&](double by, std::size_t k) {
    reals moved = x;
    moved[k] += by;
    ways_of_cell<value_of<F>, f64<3>> run;
    return run.traced({moved}).results[0];
  };
  const auto first = check_cell<jacobian_of<F, mode::forward>, f64<3>>({x}, 1, 1e-12);
  for (std::size_t k = 0; k < 3; ++k) {
    const reals up = at(h, k), down = at(-h, k);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(first.results[0][i * 3 + k] ==
            doctest::Approx((up[i] - down[i]) / (2 * h)).epsilon(1e-6));
      CHECK(reverse.results[0][i * 3 + k] ==
            doctest::Approx(forward.results[0][i * 3 + k]).epsilon(1e-12));
    }
  }
}

}  // namespace

TEST_CASE("jacobians and hessians assign what one call of their function does") {
  check_jacobians<under_jacobians>();
}
TEST_CASE("so they do of a function that calls itself") {
  check_jacobians<recursion_under_jacobians>();
}

// ---- custom_vjp

namespace {

/// x^2 plus a count, whose derivative is said to be 10 x.
struct own_rule : counter {
  constexpr var f(var x, var v) const {
    return custom_vjp(
        [&](var w) {
          set(x, value(x) + 1);
          return w * w + value(x);
        },
        [](var w, var, var dy) { return dy * w * 10; })(v);
  }
  constexpr std::array<var, 2> operator()(var x) const {
    const auto [y, dx] = value_and_grad([&](var v) { return sum(f(x, v)); })(x);
    return {y * value(x), dx[0]};
  }
};
struct own_rule_under_vmap : own_rule {
  constexpr std::array<var, 2> operator()(var x) const {
    const var y = vmap([&](var v) { return f(x, v); })(x);
    return {y, vmap(grad([&](var v) { return f(x, v); }))(x)};
  }
};
struct own_rule_forward : own_rule {
  constexpr std::array<var, 2> operator()(var x) const {
    const auto [y, dy] = jvp([&](var v) { return f(x, v); }, x, x * 0 + 1);
    return {y, dy};
  }
};

}  // namespace

TEST_CASE("a function with a derivative of its own assigns, and its rule knows nothing of it") {
  const auto o = check_cell<own_rule, f64<2>>({{1, 2}}, 2);
  CHECK(o.parameters == reals{3});
  CHECK(o.results == std::vector<reals>{{(1 + 4 + 3 + 3) * 3}, {10, 20}});
  const auto batched = check_cell<own_rule_under_vmap, f64<2>>({{1, 2}});
  CHECK(batched.parameters == reals{3});
  CHECK(batched.results == std::vector<reals>{{1 + 2, 4 + 2}, {10, 20}});
  const auto forward = check_cell<own_rule_forward, f64<2>>({{1, 2}});
  CHECK(forward.parameters == reals{2});
  CHECK(forward.results == std::vector<reals>{{1 + 2, 4 + 2}, {10, 20}});
}

// ---- what is refused

namespace {

struct value_of_a_sample : counter {
  constexpr var operator()(var x) const {
    return vmap([&](var v) {
      set(x, v * 2);
      return v;
    })(x);
  }
};
/// Which way a sample takes decides.
struct way_of_a_sample : counter {
  constexpr var operator()(var x) const {
    return vmap([&](var v) {
      if (v > 0) set(x, value(x) + 1);
      return v;
    })(x);
  }
};
struct assigning_rule : counter {
  constexpr var operator()(var x) const {
    return custom_vjp([](var v) { return v; },
                      [&](var, var, var dy) {
                        set(x, value(x) + 1);
                        return dy;
                      })(x);
  }
};

}  // namespace

TEST_CASE("an assignment that depends on the sample, or is made by a rule, is refused in words") {
  const std::string differs =
      "vmap: count is assigned a value that differs from sample to sample, but a state has one "
      "value; return the new values, and assign their mean, say, outside of vmap";
  CHECK(refusal<value_of_a_sample>("transform_states.cpp") == differs);
  CHECK(refusal<way_of_a_sample>("transform_states.cpp") == differs);
  CHECK(refusal<assigning_rule>("transform_states.cpp") ==
        "assign: count is assigned in the rule of custom_vjp, which cannot hand its new value on; "
        "return the value instead");
}
