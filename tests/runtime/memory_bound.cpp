#include <doctest/doctest.h>

#include "patterns.hpp"
#include "support/step_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

template <class P>
constexpr int steps_of_kind(step_kind kind) {
  int n = 0;
  for (const plan_step& s : P::plan.steps) n += s.kind == kind;
  return n;
}

/// Every step agrees with the interpreter, and all but `without` operations have a kernel (the key
/// of the next call has none).
template <class Cell, dtype Element, int... Extents>
void check_kernels(double tolerance = Element == dtype::f32 ? 4e-6 : 1e-13, int without = 0) {
  using P = program<Cell, true, Element, tensor<Element, Extents...>>;
  CHECK(steps_of_kind<P>(step_kind::generic) == without);
  std::vector<double> x(std::size_t(shape{Extents...}.size()));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = uniform<double>(5, i) * 6 - 3;
  check_steps<P>({x}, {}, tolerance, 11);
}

/// Softmax along each axis of a tensor, and derivatives.
struct distributions {
  constexpr std::array<var, 6> operator()(var x) const {
    const auto entropy = [](var y) {
      return -sum(softmax(y) * log_softmax(y)) + sum(softmax(y, 1) * y) + sum(log_softmax(y, 0));
    };
    return {softmax(x),        softmax(x, 0),
            log_softmax(x, 1), log_softmax(2 * x) + 1,
            grad(entropy)(x),  softmax(transpose(x, {0, 2, 1}))};
  }
};
struct permutations {
  constexpr std::array<var, 4> operator()(var x) const {
    return {transpose(x, {2, 1, 0}), transpose(2 * x, {0, 2, 1}) + 1, transpose(x, {1, 0, 2}),
            cast(transpose(cast(x, dtype::i32), {1, 2, 0}), x.element())};
  }
};

/// Both passes of dropout, behind loops whose rows are of any length, in a sum, and the numbers
/// themselves.
struct dropped {
  constexpr std::array<var, 4> operator()(var x) const {
    const var row = slice(x, 0, 0, 1);
    const auto loss = [](var y) { return sum(square(dropout(y, 0.25))); };
    return {dropout(x, 0.5), dropout(x + row, 0.1) * 2, grad(loss)(x), random_uniform(x)};
  }
};
/// Dropout of the result of a product, its gradient, and in a sum.
struct dropped_layer {
  nn::dense<17, 9> layer{};
  constexpr std::array<var, 3> operator()(var x) const {
    const auto loss = [this](var y) { return sum(square(dropout(relu(layer(y)), 0.5))); };
    return {dropout(relu(layer(x)), 0.5), grad(loss)(x), sum(dropout(x, 0.75), {1})};
  }
};

/// Layer norm and the gradients of all its operands, and what is normalized has other users.
template <int Width>
struct layer_normed {
  nn::layer_norm<Width> norm{};
  constexpr std::array<var, 5> operator()(var x) const {
    const var twice = 2 * x;
    const var gain = norm.weight + sum(x, {0, 1}) * 0.01;
    const var bias = norm.bias + 1 - gain;
    const auto loss = [](var z, var scale, var offset) {
      const var y = layer_norm(z, scale, offset);
      return sum(y * y * y);
    };
    return {norm(twice) + x, grad([&](var z) { return loss(z, gain, bias); })(twice),
            grad([&](var scale) { return loss(twice, scale, bias); })(gain),
            grad([&](var offset) { return loss(twice, gain, offset); })(bias),
            rms_norm(x, norm.weight)};
  }
};
/// A norm whose gradient comes from a product: gain times cotangent is read by the sums over rows
/// and, before them, by what is added to them.
template <int Width>
struct norm_before_product {
  nn::layer_norm<Width> norm{};
  parameter<Width, Width> weight{initializer::normal()};
  constexpr var operator()(var x) const {
    const auto loss = [&](var z) {
      const var y = matmul(norm(z), weight);
      return sum(y * y);
    };
    return grad(loss)(x);
  }
};

}  // namespace

TEST_CASE("softmax along any axis has a kernel") {
  check_kernels<distributions, dtype::f32, 3, 5, 17>();
  check_kernels<distributions, dtype::f64, 2, 9, 8>();
}
TEST_CASE("axes change places in a kernel") {
  using P = program<permutations, false, dtype::f32, tensor<dtype::f32, 3, 17, 33>>;
  static_assert(steps_of_kind<P>(step_kind::permute) == 4);
  std::vector<double> x(3 * 17 * 33);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(i);
  check_steps<P>({x}, {}, 0);
}
TEST_CASE("loops draw the random numbers that eager mode draws, to the bit") {
  check_kernels<dropped, dtype::f32, 5, 17>(0, 1);
  check_kernels<dropped, dtype::f32, 7, 64>(0, 1);
  check_kernels<dropped, dtype::f64, 3, 8>(0, 1);
}
TEST_CASE("products draw as they write") {
  check_kernels<dropped_layer, dtype::f32, 3, 5, 17>(4e-6, 1);
}

/// The sums over rows of a norm, and what follows from them, are one step; so are those of its
/// gradient.
TEST_CASE("normalizations of rows, and their gradients, are swept once") {
  using P = program<layer_normed<17>, true, dtype::f32, tensor<dtype::f32, 3, 4, 17>>;
  CHECK(steps_of_kind<P>(step_kind::rows) == 2);
  check_kernels<layer_normed<17>, dtype::f32, 3, 4, 17>();
  check_kernels<layer_normed<64>, dtype::f32, 1, 9, 64>();
  check_kernels<layer_normed<7>, dtype::f64, 5, 2, 7>();

  using Q = program<norm_before_product<17>, true, dtype::f32, tensor<dtype::f32, 2, 9, 17>>;
  CHECK(steps_of_kind<Q>(step_kind::rows) == 2);
  CHECK(steps_of_kind<Q>(step_kind::elementwise) == 0);
  check_kernels<norm_before_product<17>, dtype::f32, 2, 9, 17>(2e-5);
}
