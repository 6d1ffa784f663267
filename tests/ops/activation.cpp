#include <cella/ops/activation.hpp>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input x{.extents = {3, 4}, .low = -2, .high = 2};
constexpr gradient_case cases[] = {
    {"relu", [](var v) { return relu(v); }, {x}},
    {"relu6", [](var v) { return relu6(4 * v); }, {x}},
    {"leaky_relu", [](var v) { return leaky_relu(v, 0.3); }, {x}},
    {"prelu", [](var v, var slope) { return prelu(v, slope); }, {x, {.extents = {4}}}},
    {"elu", [](var v) { return elu(v, 0.7); }, {x}},
    {"selu", [](var v) { return selu(v); }, {x}},
    {"softplus", [](var v) { return softplus(v); }, {x}},
    {"log_sigmoid", [](var v) { return log_sigmoid(v); }, {x}},
    {"softsign", [](var v) { return softsign(v); }, {x}},
    {"silu", [](var v) { return silu(v); }, {x}},
    {"mish", [](var v) { return mish(v); }, {x}},
    {"gelu", [](var v) { return gelu(v); }, {x}},
    {"gelu_tanh", [](var v) { return gelu_tanh(v); }, {x}},
    {"hard_sigmoid", [](var v) { return hard_sigmoid(2 * v); }, {x}},
    {"hard_swish", [](var v) { return hard_swish(2 * v); }, {x}},
};

template <class F>
reals values(F f, reals at) {
  const int n = int(at.size());
  return eval(f, f64({n}, std::move(at))).values;
}
template <class F>
reals slopes(F f, reals at) {
  return values([f](var v) { return grad([f](var t) { return sum(f(t)); })(v); }, std::move(at));
}

}  // namespace

TEST_CASE("activations: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("activations at 0 have the derivatives that PyTorch gives them") {
  CHECK(slopes([](var v) { return relu(v); }, {0}) == reals{0.0});
  CHECK(slopes([](var v) { return relu6(v); }, {0, 6}) == reals{0.0, 0.0});
  CHECK(slopes([](var v) { return leaky_relu(v, 0.25); }, {0}) == reals{0.25});
  CHECK(slopes([](var v) { return elu(v, 0.5); }, {0}) == reals{0.5});
  CHECK(slopes([](var v) { return softplus(v); }, {0}) == reals{0.5});
  CHECK(slopes([](var v) { return log_sigmoid(v); }, {0}) == reals{0.5});
  CHECK(slopes([](var v) { return softsign(v); }, {0}) == reals{1.0});
  CHECK(slopes([](var v) { return silu(v); }, {0}) == reals{0.5});
  CHECK(slopes([](var v) { return gelu(v); }, {0}) == reals{0.5});
}

TEST_CASE("the second derivative of softplus at 0 is a quarter") {
  const auto second =
      eval([](var v) { return grad(grad([](var t) { return softplus(t); }))(v); }, scalar(0));
  CHECK(second.values[0] == doctest::Approx(0.25).epsilon(1e-15));
}

TEST_CASE("activations reach their limits at infinity") {
  check_close(values([](var v) { return relu(v); }, {-infinity, infinity}), reals{0, infinity}, 0);
  check_close(values([](var v) { return softplus(v); }, {-infinity, infinity, -800, 800}),
              reals{0, infinity, 0, 800}, 0);
  check_close(values([](var v) { return elu(v, 2); }, {-infinity, infinity, 800}),
              reals{-2, infinity, 800}, 0);
  check_close(values([](var v) { return relu6(v); }, {-infinity, infinity}), reals{0, 6}, 0);
  check_close(slopes([](var v) { return elu(v); }, {-800, 800}), reals{0, 1}, 0);
  check_close(slopes([](var v) { return softplus(v); }, {-800, 800}), reals{0, 1}, 0);
}

TEST_CASE("activations hand NaN on") {
  for (const gradient_case& c : cases) {
    if (c.count != 1) continue;
    INFO(std::string(c.name));
    const auto y =
        run_eagerly([&](const vars& v) { return vars{c.f(v)}; }, {f64({1}, {not_a_number})});
    CHECK(std::isnan(y[0].values[0]));
  }
}

TEST_CASE("an infinite cotangent passes relu where x > 0 and stops where it is not") {
  const auto dx =
      eval([](var v, var dy) { return vjp([](var t) { return relu(t); }, v, dy).second; },
           f64({2}, {1, -1}), f64({2}, {infinity, infinity}));
  check_close(dx.values, reals{infinity, 0}, 0);
}

TEST_CASE("both forms of gelu and their derivatives have their limits at infinity") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const reals ends{-infinity, infinity};
  const auto check_ends = [&](auto f) {
    CHECK(values(f, ends) == reals{0, infinity});
    CHECK(slopes(f, ends) == reals{0, 1});
    const auto first = [f](var v) { return grad([f](var t) { return sum(f(t)); })(v); };
    CHECK(slopes(first, ends) == reals{0, 0});
  };
  check_ends([](var v) { return gelu(v); });
  check_ends([](var v) { return gelu_tanh(v); });
}
