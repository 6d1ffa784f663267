// Training steps of one's own: what `optim::apply` updates.
#include <doctest/doctest.h>

#include <array>
#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/optim/clip.hpp>
#include <cella/train/step.hpp>
#include <cella/transform/control.hpp>
#include <string>

#include "linear_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

struct net {
  nn::dense<3, 4> first{};
  nn::dense<4, 2> last{};
  constexpr var operator()(var x) const { return last(relu(first(x))); }
};
constexpr optim::adam decayed_adam{.weight_decay = 0.1};
/// The training step by hand.
struct own_step {
  net inner{};
  constexpr net& wrapped() { return inner; }
  constexpr var operator()(var x, var target) {
    const var loss = mean_squared_error(inner(x), target);
    optim::apply(decayed_adam, loss);
    return loss;
  }
};
/// Half as far as it is told, by a number that all parameters share.
struct half_way {
  constexpr void operator()(optim::context& c, var g) const {
    const var rate = c.shared("half of the rate", 0, [&] { return c.learning_rate() / 2; });
    c.update_parameter(c.parameter() - g * rate);
  }
};
/// With two paths behind the update, the function runs once for each.
template <bool Decides>
struct halved_step {
  net inner{};
  constexpr net& wrapped() { return inner; }
  constexpr var operator()(var x, var target) {
    var loss = mean_squared_error(inner(x), target);
    optim::apply(half_way{}, loss);
    if constexpr (Decides) {
      if (loss < -1) loss = 2 * loss;
    }
    return loss;
  }
};
using x_type = tensor<dtype::f64, 5, 3>;
using y_type = tensor<dtype::f64, 5, 2>;

template <class Cell>
std::vector<double> weights_after(int steps) {
  using P = program<Cell, true, dtype::f64, x_type, y_type>;
  Cell cell;
  parameter_store store(cell.wrapped(), 3, dtype::f64);
  executable<P> run(store);
  run.scalar(P::scalar("learning_rate"), 0.01);
  std::array<double, 15> x;
  std::array<double, 10> y;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(double(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::cos(double(i));
  for (int i = 0; i < steps; ++i) {
    if (P::scalar("step") >= 0) run.scalar(P::scalar("step"), i + 1);
    run(x, y);
  }
  std::vector<double> all;
  for (const auto& e : store.entries()) {
    const auto v = store.values<double>(e.name);
    all.insert(all.end(), v.begin(), v.end());
  }
  return all;
}

/// Two players: d wants d g low, g wants it high. Each sees the other as it was before the step.
struct two_players {
  struct one {
    parameter<3> w{initializer::constant(2)};
  };
  one d{}, g{};
  constexpr var operator()(var ga, var) {
    const var loss = sum(d.w * g.w * ga);
    optim::apply(optim::sgd{}, loss, "d.*");
    optim::apply(optim::clip_by_value(0.5, optim::sgd{}), -loss, "g.*");
    return loss;
  }
};
struct twice {
  parameter<3> a{};
  constexpr var operator()(var ga, var) {
    const var loss = sum(a * ga);
    optim::apply(optim::sgd{}, loss);
    optim::apply(optim::sgd{}, loss, "a*");
    return loss;
  }
};
struct misspelt {
  parameter<3> a{};
  constexpr var operator()(var ga, var) {
    const var loss = sum(a * ga);
    optim::apply(optim::sgd{}, loss, "d.*");
    return loss;
  }
};

struct in_a_branch {
  parameter<3> a{};
  constexpr var operator()(var ga, var) {
    const var loss = sum(a * ga);
    return cond(
        loss > 0,
        [](var l) {
          optim::apply(optim::sgd{}, l);
          return l;
        },
        [](var l) { return l; }, loss);
  }
};

}  // namespace

TEST_CASE("a step of one's own trains like training_step") {
  using known = training_step<net, squared_error_loss, fixed<decayed_adam>>;
  const auto a = weights_after<own_step>(3), b = weights_after<known>(3);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-13));
  CHECK(a != weights_after<own_step>(0));
}

TEST_CASE("what all parameters share is made once, in each run of a step that decides") {
  const auto powers = [](const graph& g) {
    int n = 0;
    for (const node& x : g.nodes) n += is<expm1_op>(x);
    return n;
  };
  // Of Adam's two moments; four parameters read them.
  CHECK(powers(program<own_step, true, dtype::f64, x_type, y_type>::traced()) == 2);
  CHECK(weights_after<halved_step<true>>(3) == weights_after<halved_step<false>>(3));
}

TEST_CASE("two calls update two parts in one step, by the values before it") {
  using P = program<two_players, true, dtype::f64, tensor<dtype::f64, 3>, tensor<dtype::f64, 2, 2>>;
  two_players cell;
  parameter_store store(cell, 1, dtype::f64);
  executable<P> run(store);
  run.scalar(P::scalar("learning_rate"), 0.1);
  const std::array<double, 3> by{1, -0.1, 0.5};
  const std::array<double, 4> unused{};
  run(by, unused);
  for (std::size_t i = 0; i < 3; ++i) {
    const double slope = 2 * by[i];  // of either, as the other is 2
    CHECK(store.values<double>("d.w")[i] == doctest::Approx(2 - 0.1 * slope).epsilon(1e-14));
    const double clipped = std::min(std::max(-slope, -0.5), 0.5);
    CHECK(store.values<double>("g.w")[i] == doctest::Approx(2 - 0.1 * clipped).epsilon(1e-14));
  }
}

TEST_CASE("a parameter that is updated twice is a fault, and so is a pattern without parameters") {
  const text fault = fault_of_step(twice{});
  CHECK(fault.view().starts_with("apply.cpp:"));
  CHECK(
      fault.view().ends_with(": optim::apply: \"a\" is updated twice in one step; give each call a "
                             "pattern of its own, such as \"d.*\""));
  CHECK(fault_of_step(misspelt{}).view() ==
        "optim::apply: no parameter matches \"d.*\"; this net begins with \"a\"");
  CHECK(fault_of_step(in_a_branch{})
            .view()
            .ends_with(": optim::apply updates parameters once in a step; call it outside of loops "
                       "and branches"));
}
