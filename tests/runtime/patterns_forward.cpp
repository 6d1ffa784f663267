#include <doctest/doctest.h>

#include "patterns.hpp"
#include "support/step_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {
template <class Cell, dtype Element, int... Extents>
void check_pattern() {
  using P = program<Cell, false, Element, tensor<Element, Extents...>>;
  const std::int64_t n = shape{Extents...}.size();
  std::vector<double> x(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = uniform<double>(5, i) * 2 - 1;
  check_steps<P>({x}, {}, Element == dtype::f32 ? 2e-6 : 1e-14, 11);
}
}  // namespace

TEST_CASE("fused groups agree with the interpreter: fan-out") {
  check_pattern<fan_out, dtype::f32, 1, 7>();
  check_pattern<fan_out, dtype::f32, 5, 7>();
  check_pattern<fan_out, dtype::f32, 20, 7>();
  check_pattern<fan_out, dtype::f64, 16, 7>();
}
TEST_CASE("fused groups agree with the interpreter: sums") {
  check_pattern<sums, dtype::f32, 1, 37>();
  check_pattern<sums, dtype::f32, 33, 5>();
  check_pattern<sums, dtype::f64, 3, 5>();
}
TEST_CASE("fused groups agree with the interpreter: normalization") {
  check_pattern<normalized, dtype::f32, 2, 4, 5>();
  check_pattern<normalized, dtype::f32, 19, 4, 5>();
}
TEST_CASE("fused groups agree with the interpreter: images") {
  check_pattern<image_net, dtype::f32, 1, 3, 11, 8>();
  check_pattern<image_net, dtype::f32, 18, 3, 11, 8>();
}
TEST_CASE("fused groups agree with the interpreter: products") {
  check_pattern<products, dtype::f32, 2, 3, 4>();
  check_pattern<products, dtype::f32, 17, 3, 4>();
}
TEST_CASE("fused groups agree with the interpreter: choices") {
  check_pattern<choices, dtype::f32, 3, 41>();
  check_pattern<choices, dtype::f32, 33, 3>();
}
TEST_CASE("fused groups agree with the interpreter: movements") {
  check_pattern<movements, dtype::f32, 2, 4, 6>();
  check_pattern<movements, dtype::f32, 17, 4, 6>();
}
