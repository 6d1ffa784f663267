#include <cella/ops/bitwise.hpp>
#include <cella/transform/vmap.hpp>

#include "support/compiled_cases.hpp"
#include "support/planned.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// f of two constants of type T, as numbers.
template <class T, std::size_t N, class F>
reals on(F f, const T (&x)[N], const T (&y)[N]) {
  std::array<T, N> a{}, b{};
  std::copy(x, x + N, a.begin());
  std::copy(y, y + N, b.begin());
  return eval([=](var v) { return f(constant(v, a), constant(v, b)); }, f64({1}, {0})).values;
}

}  // namespace

TEST_CASE("binary digits of integers of either kind") {
  using i8 = std::int8_t;
  using u8 = std::uint8_t;
  CHECK(on<u8>([](var x, var y) { return bitwise_and(x, y); }, {12, 255}, {10, 129}) ==
        reals{8, 129});
  CHECK(on<u8>([](var x, var y) { return bitwise_or(x, y); }, {12, 1}, {10, 128}) ==
        reals{14, 129});
  CHECK(on<u8>([](var x, var y) { return bitwise_xor(x, y); }, {12, 255}, {10, 1}) ==
        reals{6, 254});
  CHECK(on<u8>([](var x, var) { return bitwise_not(x); }, {0, 1}, {0, 0}) == reals{255, 254});
  CHECK(on<i8>([](var x, var) { return bitwise_not(x); }, {0, -1}, {0, 0}) == reals{-1, 0});
  CHECK(on<i8>([](var x, var y) { return bitwise_and(x, y); }, {-1, -2}, {5, 3}) == reals{5, 2});
  CHECK(on<bool>([](var x, var y) { return bitwise_xor(x, y); }, {true, true}, {true, false}) ==
        reals{0, 1});
}

TEST_CASE("digits move; what leaves the type is gone") {
  using i16 = std::int16_t;
  using u8 = std::uint8_t;
  CHECK(on<u8>([](var x, var y) { return left_shift(x, y); }, {1, 255}, {7, 4}) == reals{128, 240});
  CHECK(on<u8>([](var x, var y) { return right_shift(x, y); }, {128, 255}, {7, 4}) == reals{1, 15});
  CHECK(on<u8>([](var x, var y) { return left_shift(x, y); }, {1, 1}, {8, 200}) == reals{0, 0});
  CHECK(on<i16>([](var x, var y) { return right_shift(x, y); }, {-8, -1}, {1, 100}) ==
        reals{-4, -1});
  CHECK(on<std::uint64_t>([](var x, var y) { return right_shift(x, y); }, {~std::uint64_t{0}, 8},
                          {63, 1}) == reals{1, 4});
}

TEST_CASE("numbers stand beside tensors, and extents are broadcast") {
  const auto y =
      eval([](var v) { return bitwise_and(cast(v, dtype::i32), 6); }, f64({3}, {5, 7, 8}));
  CHECK(y.values == reals{4, 6, 0});
  const auto grid = eval(
      [](var v) {
        const var i = cast(v, dtype::i32);
        return bitwise_or(reshape(i, {2, 1}), reshape(i * 4, {1, 2}));
      },
      f64({2}, {1, 2}));
  CHECK(grid.values == reals{5, 9, 6, 10});
}

TEST_CASE("samples of a batch, some operands without") {
  const auto y = eval(
      [](var v) {
        return vmap([](var i) { return bitwise_xor(i, constant(i, {1, 2})); })(cast(v, dtype::i32));
      },
      f64({2, 2}, {1, 1, 3, 3}));
  CHECK(y.values == reals{0, 3, 2, 1});
}

TEST_CASE("numbers with a point have no digits to work on") {
  CHECK_THROWS_WITH_AS(eval([](var v) { return bitwise_not(v); }, f64({1}, {1})),
                       doctest::Contains("must consist of integers or truth values"), model_error);
  CHECK_THROWS_WITH_AS(
      eval([](var v) { return bitwise_and(cast(v, dtype::i32), v); }, f64({1}, {1})),
      doctest::Contains("bitwise_and"), model_error);
}

TEST_CASE("kernels have the digits of all integers that the operations have") {
  const auto f = [](const vars& x) {
    return vars{bitwise_and(x[0], x[1]), bitwise_or(x[0], x[1]), bitwise_xor(x[0], x[1]),
                bitwise_not(x[0]),       left_shift(x[0], x[1]), right_shift(x[0], x[1])};
  };
  for (const dtype t : {dtype::i8, dtype::i16, dtype::i32, dtype::i64, dtype::u8, dtype::u16,
                        dtype::u32, dtype::u64}) {
    CAPTURE(name(t));
    valued_tensor x{{t, {20'000}}, {}}, y = x;
    for (int i = 0; i < 20'000; ++i) {
      x.values.push_back(is_unsigned(t) ? i % 251 : i % 251 - 125);
      y.values.push_back(i % 67 - (is_unsigned(t) ? 0 : 2));
    }
    const traced_function g(f, {x.type, y.type});
    REQUIRE(can_be_planned(g.b.g));
    const auto expected = run_eagerly(f, {x, y}), found = run_planned(g.b.g, {x, y}, 2);
    for (std::size_t k = 0; k < expected.size(); ++k) CHECK(found[k].values == expected[k].values);
  }
  const auto truth = [](const vars& x) {
    return vars{bitwise_xor(x[0], x[1]), bitwise_not(x[0]), bitwise_or(x[0], x[1])};
  };
  const valued_tensor x = truths({4}, {0, 0, 1, 1}), y = truths({4}, {0, 1, 0, 1});
  const traced_function g(truth, {x.type, y.type});
  const auto found = run_planned(g.b.g, {x, y});
  CHECK(found[0].values == reals{0, 1, 1, 0});
  CHECK(found[1].values == reals{1, 1, 0, 0});
  CHECK(found[2].values == reals{0, 1, 1, 1});
}
