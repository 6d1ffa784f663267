// Tensors without elements, beside the interpreter: what is left of their axes is still computed.
#include <doctest/doctest.h>

#include <array>
#include <cella/ops/activation.hpp>
#include <cella/ops/attention.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/cumulative.hpp>
#include <cella/ops/normalization.hpp>
#include <cella/ops/numeric.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/prod.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/ops/sorting.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "support/planned.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Leaves NaNs where the next calls have their variables: what nobody sets is seen.
[[gnu::noinline]] void dirty_stack() {
  std::array<double, 32768> numbers;
  numbers.fill(std::numeric_limits<double>::quiet_NaN());
  asm volatile("" : : "r"(numbers.data()) : "memory");
}

/// Elements that differ from the interpreter's, of results of f of tensors of these shapes.
int wrong(const vars_function& f, const std::vector<shape>& shapes, dtype element = dtype::f32) {
  std::vector<tensor_type> types;
  std::vector<valued_tensor> in;
  for (const shape& s : shapes) {
    types.push_back({element, s});
    in.push_back({types.back(), {}});
    for (std::int64_t i = 0; i < s.size(); ++i) in.back().values.push_back(double(1 + i % 5));
  }
  const traced_function traced(f, types);
  const auto expected = traced(in);
  int count = 0;
  for (int threads : {1, 2}) {
    dirty_stack();
    const auto found = run_planned(traced.b.g, in, threads, dtype::f32);
    REQUIRE(found.size() == expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      REQUIRE(found[k].values.size() == expected[k].values.size());
      for (std::size_t i = 0; i < expected[k].values.size(); ++i) {
        const double a = found[k].values[i], b = expected[k].values[i];
        count += !(a == b || (std::isnan(a) && std::isnan(b)));
      }
    }
  }
  return count;
}

}  // namespace

TEST_CASE("folding an axis without elements") {
  for (const shape& s : {shape{0}, shape{0, 4}, shape{4, 0}, shape{2, 0, 4}, shape{2, 3, 0},
                         shape{0, 2, 70}, shape{3, 0, 1000}, shape{0, 0, 5}, shape{2, 0, 3, 40}}) {
    for (int d = 0; d < s.rank; ++d) {
      CAPTURE(s.rank);
      CAPTURE(s[s.rank - 1]);
      CAPTURE(d);
      const auto fold = [&](auto f) {
        return wrong([&](const vars& x) { return vars{f(x[0], d)}; }, {s});
      };
      CHECK(fold([](var x, int axis) { return sum(x, {axis}); }) == 0);
      CHECK(fold([](var x, int axis) { return sum(x * x + 1, {axis}) * 2; }) == 0);
      CHECK(fold([](var x, int axis) { return max(x, {axis}); }) == 0);
      CHECK(fold([](var x, int axis) { return min(x, {axis}); }) == 0);
      CHECK(fold([](var x, int axis) { return max(exp(x), {axis}) + 1; }) == 0);
      CHECK(fold([](var x, int axis) { return mean(x, {axis}); }) == 0);
      CHECK(fold([](var x, int axis) { return prod(x, {axis}); }) == 0);
      CHECK(fold([](var x, int axis) { return variance(x, {axis}); }) == 0);
      CHECK(fold([](var x, int axis) { return logsumexp(x, {axis}); }) == 0);
      CHECK(fold([](var x, int axis) { return softmax(x, axis); }) == 0);
      CHECK(fold([](var x, int axis) { return cumsum(x, axis); }) == 0);
      CHECK(fold([](var x, int axis) { return sort(x, axis); }) == 0);
      CHECK(fold([](var x, int axis) { return concat({x, x}, axis); }) == 0);
      for (dtype whole : {dtype::i32, dtype::u8}) {
        const auto count = [&](auto f) {
          return wrong([&](const vars& x) { return vars{f(x[0])}; }, {s}, whole);
        };
        CHECK(count([&](var x) { return sum(x, {d}); }) == 0);
        CHECK(count([&](var x) { return prod(x, {d}); }) == 0);
        CHECK(count([&](var x) { return max(x, {d}); }) == 0);
        CHECK(count([&](var x) { return min(x, {d}); }) == 0);
      }
    }
  }
}
TEST_CASE("products over axes without elements") {
  const auto product = [](const vars& x) { return vars{matmul(x[0], x[1]) + 1}; };
  for (const auto& [rows, depth, columns] :
       {std::array{3, 0, 5}, std::array{0, 4, 5}, std::array{3, 4, 0}, std::array{70, 0, 130}})
    CHECK(wrong(product, {shape{rows, depth}, shape{depth, columns}}) == 0);
  CHECK(wrong(product, {shape{2, 3, 0}, shape{2, 0, 40}}) == 0);
  CHECK(wrong(product, {shape{5, 0}, shape{0}}) == 0);
}
TEST_CASE("layers of no samples") {
  const auto layers = [](const vars& x) {
    const var images = relu(conv2d(x[0], x[1]));
    return vars{images, max_pool(images, 2), sum(images, {0}), layer_norm(x[0], x[2], x[3])};
  };
  CHECK(wrong(layers, {shape{0, 16, 6, 6}, shape{16, 16, 3, 3}, shape{6}, shape{6}}) == 0);
}
TEST_CASE("attention to nothing, and by no queries") {
  const auto attend = [](const vars& x) {
    return vars{scaled_dot_product_attention(x[0], x[1], x[2])};
  };
  for (const auto& [queries, keys, width, value_width] :
       {std::array{0, 5, 8, 4}, std::array{3, 0, 8, 4}, std::array{3, 5, 8, 0}})
    CHECK(wrong(attend, {shape{2, queries, width}, shape{2, keys, width},
                         shape{2, keys, value_width}}) == 0);
}
