#include <cella/ops/complex.hpp>
#include <cella/ops/constant.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/trigonometry.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/vmap.hpp>
#include <complex>
#include <vector>

#include "support/compiled_cases.hpp"
#include "support/transform_check.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr std::array<std::array<double, 3>, 4> table{
    {{0.1, 0.2, 0.3}, {1.1, 1.2, 1.3}, {2.1, 2.2, 2.3}, {3.1, 3.2, 3.3}}};

constexpr case_input square{.extents = {3, 3}};
constexpr gradient_case cases[] = {
    {"a scale for each channel",
     [](var x) {
       return x * constant(x, {0.5, 1., -2.}, {3, 1, 1});
     },
     {{.extents = {2, 3, 2, 2}}}},
    {"a shift of single numbers",
     [](var x) {
       return sin(x) + constant(x, {0.5f, 1.f, -2.f}, x.element());
     },
     {square}},
    {"a table of weights", [](var x) { return matmul(constant(x, table), x); }, {square}},
    {"rows of a table",
     [](var x) {
       const var words = constant(x, {3, 0, 3});
       return x * gather(constant(x, table), words);
     },
     {square}},
    {"truth values",
     [](var x) {
       return select(constant(x, {true, false, true}), sin(x), x * x);
     },
     {{.extents = {3}}}},
    {"for each sample",
     [](var x) {
       return vmap([](var row) { return exp(row * constant(row, {0.5, 1., -2.})); })(x);
     },
     {square}},
    {"itself for each sample",
     [](var x) { return x * vmap([](var row) {
                          return constant(row, {0.5, 1., -2.});
                        })(x); },
     {square}},
};

/// Loops, which the tiny back end does not have.
constexpr gradient_case loops[] = {
    {"in the body of a loop",
     [](var x) {
       return scan(
           [](var s, var u) {
             return tanh(s * constant(s, {0.5, 1., -2.}) + u);
           },
           constant(x, {1., 2., 3.}), x);
     },
     {square}},
    {"a product in a loop",
     [](var x) {
       return scan(
           [](var s, var u) {
             return tanh(matmul(constant(s, {0.5, 1., -0.3, 0.2}, {2, 2}), s) + u);
           },
           constant(x, {1., 2.}), x);
     },
     {{.extents = {4, 2}}}},
    {"in a branch",
     [](var x) {
       return cond(
           sum(x) > 0,
           [&] {
             return x * constant(x, {0.5, 1., -2.});
           },
           [&] {
             return x * constant(x, {0.5, 1., 3.});
           });
     },
     {square}},
};

/// The elements of a constant, as eager mode reads them.
template <class Make>
std::vector<double> values_of(Make make) {
  builder b;
  eager_evaluator evaluator;
  b.eager = &evaluator;
  const var x{&b, b.input({dtype::f32, {}}, input_role::argument, "x")};
  const var y = make(x);
  std::vector<double> all;
  for (std::int64_t i = 0; i < y.type().size(); ++i) all.push_back(y.read(i));
  return all;
}
/// The type of a constant, and whether it is one repeated value.
struct made {
  tensor_type type;
  bool repeats;
  friend constexpr bool operator==(const made&, const made&) = default;
};
template <class Make>
constexpr made type_of(Make make) {
  builder b;
  const var x{&b, b.input({dtype::f32, {}}, input_role::argument, "x")};
  const var y = make(x);
  return {y.type(), is<constant_op>(b.g.nodes[std::size_t(y.id)])};
}

// Types and shapes follow from the values, or are given.
// clang-format off
static_assert(type_of([](var x) { return constant(x, std::array{1.f, 2.f}); }) == made{{dtype::f32, {2}}, false});
static_assert(type_of([](var x) { return constant(x, {1., 2.}); }) == made{{dtype::f64, {2}}, false});
static_assert(type_of([](var x) { return constant(x, {1, 2}); }) == made{{dtype::i32, {2}}, false});
static_assert(type_of([](var x) { return constant(x, {true, false}); }) == made{{dtype::boolean, {2}}, false});
static_assert(type_of([](var x) { return constant(x, std::array<std::int64_t, 2>{1, 2}); }) == made{{dtype::i64, {2}}, false});
static_assert(type_of([](var x) { return constant(x, table); }) == made{{dtype::f64, {4, 3}}, false});
static_assert(type_of([](var x) { return constant(x, table, {2, 6}); }) == made{{dtype::f64, {2, 6}}, false});
static_assert(type_of([](var x) { return constant(x, table, dtype::bf16); }) == made{{dtype::bf16, {4, 3}}, false});
static_assert(type_of([](var x) { return constant(x, std::vector{1.f, 2.f, 3.f, 4.f}, {2, 2}); }) == made{{dtype::f32, {2, 2}}, false});
static_assert(type_of([](var x) { const int grid[2][2]{{1, 2}, {3, 4}}; return constant(x, grid); }) == made{{dtype::i32, {2, 2}}, false});
// Equal elements are one value, and so is a number.
static_assert(type_of([](var x) { return constant(x, 2.f); }) == made{{dtype::f32, {}}, true});
static_assert(type_of([](var x) { return constant(x, {2.f, 2.f, 2.f}); }) == made{{dtype::f32, {3}}, true});
static_assert(type_of([](var x) { return constant(x, {7}); }) == made{{dtype::i32, {1}}, true});
static_assert(type_of([](var x) { return constant(x, std::array<std::array<bool, 3>, 3>{}); }) == made{{dtype::boolean, {3, 3}}, true});
static_assert(type_of([](var x) { return constant(x, std::vector<float>(), {0, 3}); }) == made{{dtype::f32, {0, 3}}, true});
// Not so if they differ in a bit, or if a double cannot tell them.
static_assert(type_of([](var x) { return constant(x, {0., -0.}); }) == made{{dtype::f64, {2}}, false});
static_assert(type_of([](var x) { return constant(x, {(std::int64_t{1} << 53) + 1}); }) == made{{dtype::i64, {1}}, false});
static_assert(type_of([](var x) { return constant(x, {2.f, 2.f, 3.f}); }) == made{{dtype::f32, {3}}, false});
// clang-format on

}  // namespace

TEST_CASE("constant tensors and derivatives beside them in all ways") { check_gradients<cases>(); }
TEST_CASE("constant tensors in regions, and derivatives of loops over them") {
  for (const gradient_case& c : loops) check_gradient(c);
  check_compiled<cpu::backend, loops, 0, std::size(loops)>();
}

TEST_CASE("both modes of differentiation, batching and their compositions") {
  check_transforms(
      [](const vars& v) {
        const var x = v[0];
        const var rows = gather(constant(x, table), constant(x, {2, 0}));  // [2,3]
        return tanh(matmul(rows, x) + constant(x, {0.5, -1.})) * constant(x, {3., 2.});
      },
      {f64({3}, {0.3, -0.2, 0.8})});
}

TEST_CASE("elements are those that were given, in the order of memory") {
  using numbers = std::vector<double>;
  CHECK(values_of([](var x) { return constant(x, {0.5f, 1.f, 2.f}); }) == numbers{0.5, 1, 2});
  CHECK(values_of([](var x) { return constant(x, {1, -2, 3, 4, 5}); }) == numbers{1, -2, 3, 4, 5});
  CHECK(values_of([](var x) { return constant(x, {true, false, true}); }) == numbers{1, 0, 1});
  CHECK(values_of([](var x) {
          return constant(x, std::vector<std::uint8_t>{255, 0, 3}, {3});
        }) == numbers{255, 0, 3});
  CHECK(values_of([](var x) {
          return constant(x, std::array{1.f, 2.f}, dtype::f64);
        }) == numbers{1, 2});
  CHECK(values_of([](var x) { return constant(x, {2.f, 2.f}); }) == numbers{2, 2});
  const auto rows = values_of([](var x) { return constant(x, table); });
  REQUIRE(rows.size() == 12);
  for (std::size_t i = 0; i < 12; ++i) CHECK(rows[i] == table[i / 3][i % 3]);
}
TEST_CASE("conversions round and saturate as a cast does") {
  using numbers = std::vector<double>;
  CHECK(values_of([](var x) {
          return constant(x, {0.1, 0.2}, dtype::f32);
        }) == numbers{double(0.1f), double(0.2f)});
  CHECK(values_of([](var x) {
          return constant(x, {1.7, -1.7, 300.}, dtype::i8);
        }) == numbers{1, -1, 127});
  CHECK(values_of([](var x) { return constant(x, {0, 2}, dtype::boolean); }) == numbers{0, 1});
  CHECK(values_of([](var x) { return constant(x, {1., 1.001}, dtype::bf16); }) == numbers{1, 1});
  CHECK(values_of([](var x) {
          return constant(x, {1., 65504.}, dtype::f16);
        }) == numbers{1, 65504});
}
TEST_CASE("a wrong number of values is one sentence with both numbers") {
  auto refused = [](auto make) {
    try {
      values_of(make);
    } catch (const model_error& e) { return std::string(e.what()); }
    return std::string();
  };
  const std::string array = refused([](var x) { return constant(x, table, {3, 3}); });
  CHECK(array.find(": constant: 12 values do not fit [3,3] (9 elements)") != std::string::npos);
  const std::string list = refused([](var x) { return constant(x, std::vector<int>(5), {2, 3}); });
  CHECK(list.find(": constant: 5 values do not fit [2,3] (6 elements)") != std::string::npos);
  CHECK(list.find("constant.cpp:") == 0);
}

TEST_CASE("complex numbers and integers of 64 bits are constants, too") {
  using namespace std::complex_literals;
  constexpr std::array numbers{1.0 + 2.0i, -0.5i, 3.0 + 0.0i};
  constexpr std::array<std::uint64_t, 2> large{~std::uint64_t{0}, ~std::uint64_t{0}};
  const auto f = [&](const vars& x) {
    const var c = constant(x[0], numbers);
    return vars{real(c * c), imag(c * c),
                cast(equal(constant(x[0], large), constant(x[0], large)), dtype::f64)};
  };
  const auto y = run_eagerly(f, {valued_tensor{{dtype::f64, {1}}, {0}}});
  CHECK(y[0].values == reals{-3, -0.25, 9});
  CHECK(y[1].values == reals{4, 0, 0});
  CHECK(y[2].values == reals{1, 1});
  builder b;
  const var x{&b, b.input({dtype::f64, {1}}, input_role::argument, "x")};
  CHECK(constant(x, numbers).element() == dtype::c128);
  CHECK(constant(x, std::array{1.0f + 1.0if}).element() == dtype::c64);
  // No double holds 2^64 - 1: it is no repeated number, but values.
  CHECK(is<values_op>(b.g.nodes[std::size_t(constant(x, large).id)]));
  CHECK_THROWS_WITH_AS(constant(x, numbers, dtype::f32),
                       doctest::Contains("constant: the values are c128, which f32 does not hold"),
                       model_error);
}
