#include <doctest/doctest.h>

#include "patterns.hpp"
#include "support/step_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {
template <class Cell, dtype Element, int... Extents>
void check_gradient() {
  using P = program<loss_gradients_of<Cell>, true, Element, tensor<Element, Extents...>>;
  std::vector<double> x(static_cast<std::size_t>(shape{Extents...}.size()));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = uniform<double>(5, i) * 2 - 1;
  check_steps<P>({x}, {}, Element == dtype::f32 ? 1e-5 : 1e-13, 11);
}
}  // namespace

TEST_CASE("gradients of fused groups agree with the interpreter: fan-out") {
  check_gradient<fan_out, dtype::f32, 1, 7>();
  check_gradient<fan_out, dtype::f32, 20, 7>();
  check_gradient<fan_out, dtype::f64, 13, 7>();
}
TEST_CASE("gradients of fused groups agree with the interpreter: normalization") {
  check_gradient<normalized, dtype::f32, 2, 4, 5>();
  check_gradient<normalized, dtype::f32, 19, 4, 5>();
}
TEST_CASE("gradients of fused groups agree with the interpreter: images") {
  check_gradient<image_net, dtype::f32, 1, 3, 11, 8>();
  check_gradient<image_net, dtype::f32, 18, 3, 11, 8>();
}
TEST_CASE("gradients of fused groups agree with the interpreter: products") {
  check_gradient<products, dtype::f32, 2, 3, 4>();
  check_gradient<products, dtype::f32, 17, 3, 4>();
}
