#include <cella/ops/creation.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/runtime/executable.hpp>

#include "support/gradient_check.hpp"
#include "support/planned.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }
const auto one = f64({1}, {0});
const valued_tensor single{{dtype::f32, {1}}, {0}};

using creation = var (*)(var);
/// In eager mode; a plan yields the same.
valued_tensor made(creation make, const valued_tensor& beside = one) {
  eager_session s;
  const valued_tensor eager = s.value(make(s(beside)));
  traced_function g([make](const vars& x) { return vars{make(x[0])}; }, {beside.type});
  REQUIRE(can_be_planned(g.b.g));
  const valued_tensor planned = run_planned(g.b.g, {beside})[0];
  CHECK(planned.type == eager.type);
  CHECK(planned.values == eager.values);
  return eager;
}

struct grid_cell {
  parameter<2> scale{initializer::constant(3)};
  constexpr var operator()(var x) const {
    const var row = reshape(arange(x, 1, 4), {1, 3});
    return matmul(x, eye(scale, 2, 3, 1)) + row * ones(scale, {2, 1}) - linspace(x, 0, 1, 3);
  }
};

}  // namespace

TEST_CASE("tensors of one number have the shape that is asked for, and the type") {
  CHECK(made([](var x) { return zeros(x, {2, 3}); }).values == reals(6, 0.0));
  CHECK(made([](var x) { return ones(x, {2}); }).values == reals{1, 1});
  CHECK(made([](var x) { return full(x, {2, 1}, 2.5); }).type == f({2, 1}));
  CHECK(made([](var x) { return full(x, {2}, 7, dtype::i8); }).type == tensor_type{dtype::i8, {2}});
  CHECK(made([](var x) { return ones(x, {3}, dtype::boolean); }).values == reals{1, 1, 1});
  CHECK(made([](var x) { return zeros(x, {0, 3}); }).values.empty());
  CHECK(made([](var x) { return full(x, {}, 4); }).values == reals{4});
}

TEST_CASE("arange counts as NumPy does") {
  CHECK(made([](var x) { return arange(x, 4); }).values == reals{0, 1, 2, 3});
  CHECK(made([](var x) { return arange(x, 2.5); }).values == reals{0, 1, 2});
  CHECK(made([](var x) { return arange(x, 3, 6); }).values == reals{3, 4, 5});
  CHECK(made([](var x) { return arange(x, 5, 0, -2); }).values == reals{5, 3, 1});
  CHECK(made([](var x) { return arange(x, 1, 1); }).values.empty());
  CHECK(made([](var x) { return arange(x, 0, 5, -1); }).values.empty());
  const auto whole = made([](var x) { return arange(x, -2, 6, 3, dtype::i32); });
  CHECK(whole.type == tensor_type{dtype::i32, {3}});
  CHECK(whole.values == reals{-2, 1, 4});
  CHECK(made([](var x) { return arange(x, 250, 256, 1, dtype::u8); }).values ==
        reals{250, 251, 252, 253, 254, 255});
}

TEST_CASE("what is no whole number is rounded once") {
  const auto tenths = made([](var x) { return arange(x, 0, 100, 0.1); }, single);
  REQUIRE(tenths.values.size() == 1000);
  const auto parts = made([](var x) { return linspace(x, -1, 2, 1001); }, single);
  REQUIRE(parts.values.size() == 1001);
  for (int i = 0; i < 1000; ++i) {
    CHECK(tenths.values[std::size_t(i)] == double(float(i * 0.1)));
    const double part = i / 1000.0;
    CHECK(parts.values[std::size_t(i)] == double(float(-(1 - part) + 2 * part)));
  }
  CHECK(parts.values.back() == 2);
  // Above 2^24 not every whole number is an f32; those that are come out exact.
  CHECK(made([](var x) { return arange(x, 16777216, 16777222, 2); }, single).values ==
        reals{16777216, 16777218, 16777220});
  const auto half = made([](var x) { return arange(x, 4096, 4100, 2, dtype::bf16); });
  CHECK(half.values == reals{4096, 4096});
}

TEST_CASE("linspace ends where it is told, or one step before") {
  CHECK(made([](var x) { return linspace(x, 0, 1, 5); }).values == reals{0, 0.25, 0.5, 0.75, 1});
  CHECK(made([](var x) { return linspace(x, 0, 1, 4, false); }).values ==
        reals{0, 0.25, 0.5, 0.75});
  CHECK(made([](var x) { return linspace(x, 3, 9, 1); }).values == reals{3});
  CHECK(made([](var x) { return linspace(x, 3, 9, 0); }).values.empty());
}

TEST_CASE("eye has its ones on the diagonal that is named") {
  CHECK(made([](var x) { return eye(x, 2); }).values == reals{1, 0, 0, 1});
  CHECK(made([](var x) { return eye(x, 2, 3); }).values == reals{1, 0, 0, 0, 1, 0});
  CHECK(made([](var x) { return eye(x, 2, 3, 1); }).values == reals{0, 1, 0, 0, 0, 1});
  CHECK(made([](var x) { return eye(x, 3, 2, -1); }).values == reals{0, 0, 1, 0, 0, 1});
  CHECK(made([](var x) { return eye(x, 2, {}, 0, dtype::i32); }).type ==
        tensor_type{dtype::i32, {2, 2}});
}

TEST_CASE("a compiled program has them beside vars and parameters") {
  using p = program<grid_cell, false, dtype::f32, tensor<dtype::f32, 2, 2>>;
  grid_cell cell;
  parameter_store store(cell, 1);
  executable<p> run(store);
  run(std::array{1.f, 2.f, 3.f, 4.f});
  const auto y = run.result();
  CHECK(reals(y.begin(), y.end()) == reals{1, 2.5, 4, 1, 4.5, 6});
}

TEST_CASE("faults of creations say what was asked for") {
  const auto said = [](creation make, const tensor_type& t = {dtype::f64, {1}}) {
    return fault([make](const vars& v) { return make(v[0]); }, {t});
  };
  CHECK(said([](var x) { return zeros(x, {2, -1}); }) == "full: [2,-1] has a negative extent");
  CHECK(said([](var x) { return arange(x, 0, 5, 0); }) ==
        "arange: from 0 to 5 by 0 there is no end; the step is not 0");
  CHECK(said([](var x) { return arange(x, 1e300); }) ==
        "arange: from 0 to 1e+300 by 1 are more numbers than an axis has");
  CHECK(said([](var x) { return arange(x, 0, 1, 0.25); }, {dtype::i32, {1}}) ==
        "arange: from 0 to 1 by 0.25 are not all numbers of i32; name another type: "
        "arange(x, start, stop, step, dtype::f32)");
  CHECK(said([](var x) { return arange(x, 300); }, {dtype::u8, {1}}) ==
        "arange: from 0 to 300 by 1 are not all numbers of u8; name another type: "
        "arange(x, start, stop, step, dtype::f32)");
  CHECK(said([](var x) { return arange(x, 3, dtype::boolean); }) ==
        "arange: counts in numbers, not in bool; name a type: arange(x, 8, dtype::f32)");
  CHECK(said([](var x) { return linspace(x, 0, 1, 3); }, {dtype::i32, {1}}) ==
        "linspace: numbers between others are no i32; name a type: dtype::f32");
  CHECK(said([](var x) { return linspace(x, 0, 1, -3); }) == "linspace: there are no -3 numbers");
  CHECK(said([](var x) { return eye(x, -2); }) == "eye: [-2,-2] has a negative extent");
}
