#include <cella/ops/elementwise.hpp>

#include "support/compiled_cases.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr case_input matrix{.extents = {3, 4}};
constexpr case_input row{.extents = {4}};
constexpr case_input column{.extents = {3, 1}};
constexpr case_input number{};
constexpr case_input divisor{.extents = {3, 4}, .low = 0.5, .high = 2};
constexpr case_input bits{.extents = {3, 4}, .low = 0, .high = 2, .element = dtype::boolean};

constexpr gradient_case cases[] = {
    {"add", [](var x, var y) { return x + y; }, {matrix, matrix}},
    {"add, broadcast", [](var x, var y) { return x + y; }, {column, row}},
    {"sub", [](var x, var y) { return x - y; }, {matrix, row}},
    {"mul", [](var x, var y) { return x * y; }, {matrix, column}},
    {"mul by itself", [](var x) { return x * x * x; }, {matrix}},
    {"mul by a scalar", [](var x, var y) { return x * y; }, {matrix, number}},
    {"div", [](var x, var y) { return x / y; }, {row, divisor}},
    {"numbers", [](var x) { return 1 - 2 * x / 3 + 4 - x * 0.5 + 1 / (x + 3); }, {matrix}},
    {"compound assignment",
     [](var x, var y) {
       x += y;
       x *= y;
       x -= 1;
       return x /= 3;
     },
     {matrix, row}},
    {"neg", [](var x) { return -x; }, {matrix}},
    {"identity",
     [](var x) { return emit<identity_op>({}, std::source_location::current(), x); },
     {matrix}},
    {"equal", [](var x, var y) { return equal(x, y); }, {matrix, row}},
    {"not_equal", [](var x, var y) { return not_equal(x, y); }, {matrix, row}},
    {"less", [](var x, var y) { return x < y; }, {matrix, row}},
    {"less_equal", [](var x, var y) { return x <= y; }, {matrix, row}},
    {"greater", [](var x, var y) { return x > y; }, {matrix, row}},
    {"greater_equal", [](var x, var y) { return x >= y; }, {matrix, row}},
    {"logical_and", [](var x, var y) { return logical_and(x, y); }, {bits, bits}},
    {"logical_or", [](var x, var y) { return logical_or(x, y); }, {bits, bits}},
    {"logical_xor", [](var x, var y) { return logical_xor(x, y); }, {bits, bits}},
    {"logical_not", [](var x) { return logical_not(x); }, {bits}},
    {"select", [](var c, var x, var y) { return select(c, x, y); }, {bits, row, column}},
    {"select a number",
     [](var c, var x) { return select(c, x, 2) + select(c, 3, x); },
     {bits, matrix}},
    {"select by comparison",
     [](var x, var y) { return select(x > y, x * y, x / (y + 3)); },
     {matrix, matrix}},
    {"maximum", [](var x, var y) { return maximum(x, y); }, {matrix, row}},
    {"minimum", [](var x, var y) { return minimum(x, y); }, {matrix, column}},
    {"maximum with a number", [](var x) { return maximum(x, 0.3) * minimum(0.2, x); }, {matrix}},
    {"clamp", [](var x) { return clamp(x, -0.5, 0.4) * x; }, {matrix}},
    {"rank 8",
     [](var x, var y) { return x * y; },
     {{.extents = {1, 2, 1, 2, 1, 2, 1, 2}}, {.extents = {2, 1, 2, 1, 2, 1, 2, 1}}}},
};

constexpr tensor_type f(const shape& s) { return {dtype::f64, s}; }

}  // namespace

TEST_CASE("arithmetic and choice: values, traces and derivatives of both orders agree") {
  check_gradients<cases>();
}

TEST_CASE("stop_gradient has its operand's value and no derivative") {
  const auto x = f64({3}, {1, 2, 3});
  CHECK(eval([](var v) { return stop_gradient(v); }, x).values == x.values);
  CHECK(eval([](var v) { return grad([](var t) { return sum(stop_gradient(t) * t); })(v); }, x)
            .values == x.values);
}

TEST_CASE("equal operands of maximum, minimum share the derivative; clamp's bounds have it whole") {
  auto slope = [](auto g) { return eval([g](var v) { return grad(g)(v); }, scalar(2)).values[0]; };
  CHECK(slope([](var t) { return maximum(t, 2); }) == 0.5);
  CHECK(slope([](var t) { return minimum(t, 2); }) == 0.5);
  CHECK(slope([](var t) { return clamp(t, 2, 3); }) == 1);
  CHECK(slope([](var t) { return clamp(t, 1, 2); }) == 1);
  CHECK(slope([](var t) { return clamp(t, -1, 1); }) == 0);
}

TEST_CASE("of bounds that cross the upper one counts") {
  const auto y = eval([](var t) { return clamp(t, 3, 1); }, f64({3}, {0, 2, 5}));
  CHECK(y.values == reals{1, 1, 1});
}

TEST_CASE("maximum and minimum hand NaN on from either side") {
  const auto x = f64({3}, {not_a_number, 1, not_a_number}),
             y = f64({3}, {1, not_a_number, not_a_number});
  for (double v : eval([](var a, var b) { return maximum(a, b); }, x, y).values)
    CHECK(std::isnan(v));
  for (double v : eval([](var a, var b) { return minimum(a, b); }, x, y).values)
    CHECK(std::isnan(v));
  CHECK(std::isnan(eval([](var a) { return clamp(a, 0, 1); }, scalar(not_a_number)).values[0]));
}

TEST_CASE("comparisons with NaN are false, except that it is not equal to anything") {
  const auto x = scalar(not_a_number);
  CHECK(eval([](var a) { return equal(a, a); }, x).values[0] == 0);
  CHECK(eval([](var a) { return not_equal(a, a); }, x).values[0] == 1);
  CHECK(eval([](var a) { return a <= a; }, x).values[0] == 0);
}

TEST_CASE("the branch that select does not take has a zero derivative even if it is infinite") {
  const auto dx =
      eval([](var v) { return grad([](var t) { return sum(select(t > 0, t, 1 / t)); })(v); },
           f64({2}, {3, -1}));
  CHECK(dx.values == reals{1, -1});
  const auto stopped = eval(
      [](var v, var dy) { return vjp([](var t) { return select(t > 0, t, 0); }, v, dy).second; },
      f64({1}, {-1}), f64({1}, {infinity}));
  CHECK(stopped.values[0] == 0);
}

TEST_CASE("64-bit integers are exact beyond the reach of double") {
  eager_session s;
  const var x = s(i64({1}, {9007199254740992.0}));  // 2^53
  const var y = x + 1;
  CHECK(*reinterpret_cast<const std::int64_t*>(s.memory(y.id).data) == 9007199254740993);
  CHECK((y > x).item() == 1);
  CHECK(equal(y, x).item() == 0);
  CHECK((y - x).item() == 1);
}

TEST_CASE("division by zero gives infinity or NaN for reals and 0 for integers") {
  check_close(
      eval([](var a, var b) { return a / b; }, f64({3}, {1, -1, 0}), f64({3}, {0, 0, 0})).values,
      reals{infinity, -infinity, not_a_number}, 0);
  CHECK(eval([](var a, var b) { return a / b; }, i64({2}, {5, -9}), i64({2}, {0, -1})).values ==
        reals{0, 9});
}

TEST_CASE("integers get no derivative") {
  const auto d = run_eagerly(
      [](const vars& v) {
        return vars{grad([](var t, var n) { return sum(t * cast(n, dtype::f64)); })(v[0], v[1]),
                    grad([](var n, var t) { return sum(t * cast(n, dtype::f64)); })(v[1], v[0])};
      },
      {f64({2}, {0.5, 0.25}), i64({2}, {3, 4})});
  CHECK(d[0].values == reals{3, 4});
  CHECK(d[1].values == reals{0, 0});
}

TEST_CASE("the faults of arithmetic and choice name the operands, their types and the remedy") {
  CHECK(fault([](const vars& v) { return v[0] + v[1]; }, {f({2, 3}), f({2})}) ==
        "add: shapes do not broadcast: x0 is [2,3], x1 is [2]");
  CHECK(fault([](const vars& v) { return (v[0] * 2) / v[1]; }, {f({2, 3}), f({3, 2})}) ==
        "div: shapes do not broadcast: mul result is [2,3], x1 is [3,2]");
  CHECK(fault([](const vars& v) { return v[0] < v[1]; }, {f({2}), {dtype::f32, {2}}}) ==
        "less: element types differ: x0 is f64[2], x1 is f32[2]; convert one with cast()");
  CHECK(fault([](const vars& v) { return v[0] * 0.5; }, {{dtype::i32, {2}}}) ==
        "mul: x0 is i32[2] and the number beside it is not an integer; convert the tensor with "
        "cast()");
  CHECK(fault([](const vars& v) { return 1e300 - v[0]; }, {{dtype::i32, {2}}}) ==
        "sub: x0 is i32[2] and the number beside it is not an integer; convert the tensor with "
        "cast()");
  CHECK(fault([](const vars& v) { return select(v[0], v[0], 1); }, {f({2})}) ==
        "select: the condition x0 is f64[2]; it must be bool (compare with >, ==, ...)");
  CHECK(fault([](const vars& v) { return select(v[0] > 0, v[0], v[1]); },
              {f({2}), {dtype::f32, {}}}) ==
        "select: element types differ: x0 is f64[2], x1 is f32[]; convert one with cast()");
  CHECK(fault([](const vars& v) { return select(v[0], v[1], v[2]); },
              {{dtype::boolean, {4}}, f({2}), f({})}) ==
        "select: shapes do not broadcast: the condition is [4], x1 is [2], x2 is []");
}

TEST_CASE("a number that the tensor's type has not is a fault") {
  const auto refusal = [](dtype t, auto number) {
    return fault([&](const vars& v) { return v[0] + number; }, {{t, {2}}});
  };
  const std::string beyond =
      " and the number beside it is none of this type; convert the tensor "
      "with cast()";
  CHECK(refusal(dtype::u8, 256) == "add: x0 is u8[2]" + beyond);
  CHECK(refusal(dtype::u16, -1) == "add: x0 is u16[2]" + beyond);
  CHECK(refusal(dtype::i8, -129) == "add: x0 is i8[2]" + beyond);
  CHECK(refusal(dtype::i64, 9223372036854775808.0) == "add: x0 is i64[2]" + beyond);
  CHECK(refusal(dtype::u64, -1) == "add: x0 is u64[2]" + beyond);
  CHECK(refusal(dtype::u64, std::numeric_limits<std::uint64_t>::max()) ==
        "add: x0 is u64[2] and the number beside it has more than 53 binary digits; make it an "
        "argument");
  for (auto [t, number] :
       {std::pair(dtype::u8, 255.0), std::pair(dtype::i8, -128.0), std::pair(dtype::i64, -0x1p63),
        std::pair(dtype::u64, 0x1p63), std::pair(dtype::f16, 0.5)})
    CHECK(refusal(t, number) == "no fault");
  CHECK(refusal(dtype::i64, std::numeric_limits<std::int64_t>::min()) == "no fault");
}
