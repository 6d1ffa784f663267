#include <doctest/doctest.h>

#include <array>
#include <cella/nn/layers.hpp>
#include <cella/ops/arranging.hpp>
#include <cella/ops/control.hpp>
#include <cella/ops/numeric.hpp>
#include <cella/ops/padding.hpp>
#include <cella/passes/pass.hpp>
#include <cella/runtime/loaded_program.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/trace.hpp>
#include <vector>

#include "support/compare.hpp"
#include "support/planned.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Runs f on f32 tensors of these shapes, planned, and compares with the interpreter.
void check_in_single(const vars_function& f, const std::vector<shape>& shapes, double limit) {
  std::vector<tensor_type> types;
  std::vector<valued_tensor> in;
  for (const shape& s : shapes) {
    types.push_back({dtype::f32, s});
    in.push_back({types.back(), {}});
    for (std::int64_t i = 0; i < types.back().size(); ++i)
      in.back().values.push_back(double(float((i * 7919 + 13) % 101) / 101.0f - 0.4f));
  }
  const traced_function traced(f, types);
  const auto expected = traced(in);
  bindings memory;
  loaded_program run(optimize(traced.b.g), dtype::f32);
  for (std::size_t i = 0; i < in.size(); ++i) run.bind(int(i), memory.store(in[i]).data);
  run();
  for (std::size_t k = 0; k < expected.size(); ++k) {
    CAPTURE(k);
    CHECK(relative_difference(read(run.result(int(k))).values, expected[k].values, 1e-3) < limit);
  }
}

/// An elementwise operation of a user.
struct bump_op : elementwise<bump_op> {
  static constexpr std::string_view name = "bump";
  static constexpr std::string_view formula = "y = x + x^2";
  static constexpr auto apply(auto x) { return x + x * x; }
  static constexpr var partial(node_ref n, int) { return 1 + 2 * n.operand(0); }
};

}  // namespace

TEST_CASE("rows longer and shorter than a block, and what is left of a vector") {
  for (const shape& s : {shape{1}, shape{7}, shape{1000}, shape{3, 5}, shape{257, 3},
                         shape{5, 4099}, shape{2, 3, 4, 5}}) {
    CAPTURE(s.rank);
    CAPTURE(s.size());
    check_in_single(
        [](const vars& x) {
          const var y = exp(x[0]) * x[1] + 2;
          return vars{y, select(y > x[1], y, -x[1]), sum(y), tanh(y) * sum(x[1])};
        },
        {s, s}, 2e-6);
  }
}

TEST_CASE("tiles of products with what follows them, also where a vector or a block ends in them") {
  for (const auto& [rows, depth, columns] : {std::array{1, 3, 5}, std::array{29, 40, 64},
                                             std::array{45, 7, 83}, std::array{3, 600, 2100}}) {
    CAPTURE(rows);
    CAPTURE(columns);
    check_in_single(
        [](const vars& x) {
          const var y = matmul(x[0], x[1]);
          const var slot = x[4] * 0.9 + y * y * 0.1;
          return vars{slot, x[3] - y * x[2], x[4] - y / (sqrt(slot * slot) + 1) * mean(x[4])};
        },
        {shape{rows, depth}, shape{depth, columns}, shape{columns}, shape{rows, 1},
         shape{rows, columns}},
        2e-5);
  }
}

TEST_CASE("a vector beside products: by row, by column, or seen as a matrix and repeated") {
  for (const auto& [rows, columns] : {std::array{3, 2}, std::array{2, 3}, std::array{2, 2}}) {
    CAPTURE(rows);
    const shape matrix{rows, columns}, column{rows, 1};
    const auto check = [&, k = columns](int size, auto seen) {
      check_in_single([=](const vars& x) { return vars{matmul(x[0], x[1]) + seen(x[2])}; },
                      {shape{2, rows, 4}, shape{2, 4, k}, shape{size}}, 1e-5);
    };
    check(columns, [](var v) { return v; });
    check(rows, [=](var v) { return reshape(v, column); });
    check(rows * columns, [=](var v) { return reshape(v, matrix); });
    check(rows * columns, [=](var v) { return square(reshape(exp(v), matrix)); });
  }
}

TEST_CASE("several rows together: numbers of each, and sums over them") {
  for (const auto& [rows, width] : {std::array{2, 3}, std::array{37, 32}, std::array{37, 61},
                                    std::array{130, 256}, std::array{5, 3001}}) {
    CAPTURE(rows);
    CAPTURE(width);
    check_in_single(
        [](const vars& x) {
          const var distance = x[0] - mean(x[0], {-1}, true);
          const var scale = rsqrt(mean(square(distance), {-1}, true) + square(x[2]) + 0.1);
          const var y = distance * scale;
          const var back = x[3] - y * mean(x[3] * y, {-1}, true);
          return vars{y * x[1] + x[3], scale, back, sum(x[3] * y, {0}), sum(back, {0})};
        },
        {shape{rows, width}, shape{width}, shape{rows, 1}, shape{rows, width}}, 2e-5);
  }
}

TEST_CASE("normalizations of rows, with all that they are scaled by and without") {
  for (const auto& [rows, width] :
       {std::array{2, 3}, std::array{37, 32}, std::array{5, 61}, std::array{3, 3001}}) {
    CAPTURE(rows);
    CAPTURE(width);
    const shape x{rows, width}, column{width};
    const auto check = [&](auto f) { check_in_single(f, {x, column, column}, 2e-5); };
    check([](const vars& v) { return vars{layer_norm(v[0], v[1], v[2])}; });
    check([](const vars& v) { return vars{rms_norm(v[0], v[1])}; });
    check([](const vars& v) { return vars{rms_norm(v[0], v[1]) + v[2]}; });
    check([](const vars& v) { return vars{l2_normalize(v[0], {1})}; });
    check([](const vars& v) { return vars{v[0] * rsqrt(mean(square(v[0]), {1}, true)) - v[2]}; });
    const auto scaled = [](var v) {
      const var distance = v - mean(v, {1}, true);
      return distance * rsqrt(mean(square(distance), {1}, true) + 0.1);
    };
    check([=](const vars& v) { return vars{scaled(v[0])}; });
    check([=](const vars& v) { return vars{scaled(v[0]) * v[1]}; });
    check([=](const vars& v) { return vars{scaled(v[0]) * v[1] + v[0]}; });
  }
}

TEST_CASE("a sum over what is chosen by repeated truth values, which have no place in its loops") {
  const auto chosen = [](var x, var y, auto by) {
    const var truth = broadcast_to(y < 0, x.shape());
    return sum(select(by(x < 0, truth), x, x + 1), {1, 2});
  };
  for (const bool either : {false, true}) {
    check_in_single(
        [=](const vars& x) {
          return vars{chosen(x[0], x[1], [=](var a, var b) {
            return either ? logical_and(logical_or(a, b), not_equal(a, b)) : not_equal(a, b);
          })};
        },
        {shape{3, 3, 4}, shape{3, 4}}, 1e-6);
  }
}

TEST_CASE("a sweep over rows takes no more than it has places for what others read of it") {
  const shape rows{6, 32, 3};
  check_in_single(
      [](const vars& x) {
        const var large = tile(x[0], {2, 2, 1});
        const var scale = mean(large, {0, 1});
        const var y = layer_norm(large, scale, scale, {2});
        const var z = roll(l2_normalize(y, {2}), 2, 0), scaled = scale * y;
        const var loss = sum(z * x[1]) + sum(scaled * x[2]);
        return vars{z, scaled, gradients(loss, std::array{x[0]})[0]};
      },
      {shape{3, 16, 3}, rows, rows}, 1e-3);
}

TEST_CASE("variances along any axes") {
  for (const shape& s : {shape{300, 17}, shape{17, 300}, shape{9, 64}, shape{6, 7, 40}}) {
    CAPTURE(s.size());
    for (int d = 0; d < s.rank; ++d)
      check_in_single([=](const vars& x) { return vars{variance(x[0], {d})}; }, {s}, 1e-5);
    check_in_single([](const vars& x) { return vars{variance(x[0])}; }, {s}, 1e-5);
    check_in_single([](const vars& x) { return vars{sum(square(x[0] - x[1]), {0})}; }, {s, s},
                    1e-5);
    check_in_single([](const vars& x) { return vars{sum(square(x[0] - x[1]))}; },
                    {s, shape{s[s.rank - 1]}}, 1e-5);
  }
}

TEST_CASE("comparisons of sizes, by themselves and with what follows from them") {
  for (const shape& s : {shape{7}, shape{5000}, shape{31, 33}}) {
    check_in_single(
        [](const vars& x) {
          const var y = x[0] + x[1];
          const var inside = abs(x[0] * 3) < 1;
          return vars{is_finite(x[0]),
                      abs(x[0]) >= abs(x[1]),
                      abs(y) > 0.3,
                      logical_not(abs(y) < 1),
                      select(abs(x[1]) <= 0.2, x[0], y),
                      inside,
                      select(inside, y, x[0])};
        },
        {s, s}, 1e-6);
  }
  check_in_single([](const vars& x) { return vars{is_finite(1 / (x[0] - x[0]))}; }, {shape{100}},
                  1e-6);
  check_in_single([](const vars& x) { return vars{abs(x[0]) < abs(x[0])}; }, {shape{100}}, 1e-6);
}

TEST_CASE("sums along any axes, of values that are computed on the way") {
  for (const shape& s : {shape{300, 17}, shape{17, 300}, shape{6, 7, 40}, shape{2, 3000}}) {
    CAPTURE(s.size());
    check_in_single(
        [](const vars& x) {
          vars all;
          for (int d = 0; d < x[0].rank(); ++d) {
            all.push_back(sum(x[0] * x[0], {d}));
            all.push_back(max(x[0] + 1, {d}) * 2);
            all.push_back(min(x[0], {d}));
          }
          return all;
        },
        {s}, 2e-6);
  }
}

TEST_CASE("sums of many numbers are as right as in compiled programs") {
  const std::int64_t count = 1'000'003;
  const traced_function g([](const vars& x) { return vars{mean(cast(x[0], dtype::f32))}; },
                          {{dtype::f32, {int(count)}}});
  loaded_program run(optimize(g.b.g), dtype::f32);
  std::vector<float> x(std::size_t(count), 1000.25f);
  run.bind(0, reinterpret_cast<std::byte*>(x.data()));
  run();
  CHECK(read(run.result(0)).values[0] == doctest::Approx(1000.25).epsilon(1e-6));
}

TEST_CASE("numbers of 16 bits are widened as they are read and rounded as they are written") {
  for (dtype narrow : {dtype::f16, dtype::bf16}) {
    CAPTURE(narrow);
    check_in_single(
        [narrow](const vars& x) {
          const var y = cast(cast(x[0] * 3 + 1, narrow), dtype::f32);
          return vars{y * y, cast(cast(exp(y), narrow), dtype::f32)};
        },
        {shape{33, 5}}, 1e-6);
  }
}

TEST_CASE("what cannot be planned at run time is refused with the reason") {
  const traced_function own(
      [](const vars& x) {
        return vars{cond(
            sum(x[0]) > 0, [&] { return emit<bump_op>({}, {}, x[0]); }, [&] { return x[0]; })};
      },
      {{dtype::f64, {3}}});
  CHECK(loaded_program::refusal(optimize(own.b.g), dtype::f64).view() ==
        "there is no kernel for bump on these types");
  CHECK_THROWS_WITH_AS(
      loaded_program(optimize(own.b.g), dtype::f64),
      "this graph cannot be planned at run time: there is no kernel for bump on these types",
      error);
  const traced_function plain([](const vars& x) { return vars{x[0] * 2}; }, {{dtype::f64, {3}}});
  CHECK_THROWS_WITH_AS(
      loaded_program(optimize(plain.b.g), dtype::bf16),
      "this graph cannot be planned at run time: programs compute in f32 or f64, not in bf16",
      error);
}
