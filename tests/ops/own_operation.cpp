// A user's own operation: one struct outside the library.
#include <cella/nn/layers.hpp>
#include <cella/ops/functions.hpp>
#include <cella/runtime/executable.hpp>

#include "support/compiled_cases.hpp"

namespace own_operation_test {

using namespace cella;

/// (x + sqrt(x^2 + b)) / 2: a smooth relu without exponentials.  Barron 2021
struct squareplus_op : elementwise<squareplus_op> {
  static constexpr std::string_view name = "squareplus";
  struct options {
    double b{};
  };
  static constexpr auto apply(options o, auto x) {
    using std::sqrt;
    return (x + sqrt(x * x + like(x, o.b))) * like(x, 0.5);
  }
  /// dy/dx = (1 + x / sqrt(x^2 + b)) / 2
  static constexpr var partial(node_ref n, int) {
    const var x = n.operand(0);
    return 0.5 + 0.5 * x * rsqrt(square(x) + n.as<options>().b);
  }
};
constexpr var squareplus(operand x, double b = 4) {
  return emit<squareplus_op>(squareplus_op::options{b}, x.at(), x.in(*x.owner()));
}

double expected(double x, double b = 4) { return (x + std::sqrt(x * x + b)) / 2; }
double expected_slope(double x, double b = 4) { return (1 + x / std::sqrt(x * x + b)) / 2; }
double expected_curvature(double x, double b = 4) { return b / 2 * std::pow(x * x + b, -1.5); }

struct smooth_layer {
  nn::dense<4, 8> fc{};
  constexpr var operator()(var x) const { return squareplus(fc(x), 0.25); }
};
/// x -> {y, dy/dx, d2y/dx2}, all in one graph.
struct curve {
  constexpr std::array<var, 3> operator()(var x) const {
    auto f = [](var t) { return sum(squareplus(t)); };
    auto slope = grad(f);
    auto curvature = grad([slope](var t) { return sum(slope(t)); });
    return {squareplus(x), slope(x), curvature(x)};
  }
};

using namespace cella::test;

constexpr gradient_case cases[] = {
    {"squareplus", [](var v) { return squareplus(v); }, {{.extents = {3, 4}}}},
    {"squareplus with an option", [](var v) { return squareplus(v, 0.5) * v; }, {{.extents = {5}}}},
};

template <class P>
std::vector<float> numbers(std::size_t n) {
  std::vector<float> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = uniform<float>(1, i) * 4 - 2;
  return x;
}

/// Runs a layer for N samples and compares with plain loops.
template <int N>
void check_layer() {
  using P = inference_program<smooth_layer, cella::tensor<dtype::f32, N, 4>>;
  // The product is the only kernel (beside what moves samples into the lanes and back): the
  // operation runs in its registers.
  int products = 0;
  for (int i = 0; i < P::plan.step_count; ++i) {
    const step_kind k = P::plan.steps[std::size_t(i)].kind;
    products += k == step_kind::product;
    CHECK((k == step_kind::product || k == step_kind::pack || k == step_kind::unpack));
  }
  CHECK(products == 1);

  smooth_layer net;
  parameter_store store(net, 3);
  executable<P> run(store);
  const auto x = numbers<P>(std::size_t{N} * 4);
  run(x);
  const auto y = run.template result<0>();
  for (std::size_t n = 0; n < std::size_t{N}; ++n) {
    for (std::size_t o = 0; o < 8; ++o) {
      double sum = double(net.fc.bias.values()[o]);
      for (std::size_t i = 0; i < 4; ++i)
        sum += double(net.fc.weight.values()[o * 4 + i]) * double(x[n * 4 + i]);
      CHECK(double(y[n * 8 + o]) == doctest::Approx(expected(sum, 0.25)).epsilon(1e-5));
    }
  }
}

}  // namespace own_operation_test

using namespace own_operation_test;

TEST_CASE("an own operation is fused into the kernel before it") {
  check_layer<1>();
  check_layer<20>();
}

TEST_CASE("an own operation and its two derivatives are generated kernels in graph mode") {
  using P = inference_program<curve, cella::tensor<dtype::f32, 37>>;
  curve cell;
  parameter_store store(cell, 0);
  executable<P> run(store);
  const auto x = numbers<P>(37);
  run(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double v = double(x[i]);
    CHECK(double(run.result<0>()[i]) == doctest::Approx(expected(v)).epsilon(1e-5));
    CHECK(double(run.result<1>()[i]) == doctest::Approx(expected_slope(v)).epsilon(1e-5));
    CHECK(double(run.result<2>()[i]) == doctest::Approx(expected_curvature(v)).epsilon(1e-5));
  }
  for (int i = 0; i < P::plan.step_count; ++i) {
    const step_kind k = P::plan.steps[std::size_t(i)].kind;
    CHECK((k == step_kind::elementwise || k == step_kind::pack || k == step_kind::unpack));
  }
}

TEST_CASE("an own operation is computed and differentiated twice in eager mode") {
  eager_session s;
  const reals x{-3, -0.5, 0, 0.25, 7};
  const auto y = curve{}(s(f64({5}, x)));
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(s.value(y[0]).values[i] == doctest::Approx(expected(x[i])));
    CHECK(s.value(y[1]).values[i] == doctest::Approx(expected_slope(x[i])));
    CHECK(s.value(y[2]).values[i] == doctest::Approx(expected_curvature(x[i])));
  }
}

TEST_CASE("derivatives of an own operation agree with differences in every mode") {
  check_gradients<cases>();
}
