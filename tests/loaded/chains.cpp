// Lines of cheap operations, which run as chains or forms, and folds of rows, beside the
// interpreter.
#include <doctest/doctest.h>

#include <cella/graph/random.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/diagonal.hpp>
#include <cella/ops/numeric.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/ops/statistics.hpp>
#include <cella/passes/pass.hpp>
#include <cella/runtime/loaded_program.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "support/planned.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Eighths from -5 to 5, so that sums and products are exact, and every so often what is special.
valued_tensor special_numbers(const tensor_type& t, int seed, int every = 11) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double special[] = {std::numeric_limits<double>::quiet_NaN(), inf, -inf, -0.0, 0.0};
  valued_tensor x{t, {}};
  for (std::int64_t i = 0; i < t.size(); ++i) {
    const std::int64_t k = (i + 1) * 7919 + seed * 104729;
    x.values.push_back(k % every == 0 ? special[k / every % 5] : double(k % 81 - 40) / 8);
  }
  return x;
}

/// How many results are not those of the interpreter; NaN is NaN.
int differing(const vars_function& f, const std::vector<shape>& shapes, dtype element,
              int threads = 1, int special_every = 11) {
  std::vector<tensor_type> types;
  std::vector<valued_tensor> in;
  for (const shape& s : shapes) {
    types.push_back({element, s});
    in.push_back(special_numbers(types.back(), int(in.size()), special_every));
  }
  const traced_function traced(f, types);
  const auto expected = traced(in);
  const auto found = run_planned(traced.b.g, in, threads, element);
  int n = 0;
  for (std::size_t k = 0; k < expected.size(); ++k) {
    for (std::size_t i = 0; i < found[k].values.size(); ++i) {
      const double y = found[k].values[i], z = expected[k].values[i];
      n += !(y == z || (y != y && z != z) || std::abs(y - z) <= 1e-6 * std::abs(z));
    }
  }
  return n;
}

/// Of x, y, z of one shape, a row and a column.
const std::vector<vars_function> lines{
    [](const vars& x) { return vars{select(x[0] > 0, x[0], x[0] * 0.25)}; },
    [](const vars& x) { return vars{x[0] * relu6(x[0] + 3) * 0.125}; },
    [](const vars& x) { return vars{nan_to_num(x[0] + x[1], 7, 100) - 1}; },
    [](const vars& x) { return vars{hypot(x[0], x[1])}; },
    [](const vars& x) { return vars{hypot(x[0], x[1]) + hypot(x[1], x[2])}; },
    [](const vars& x) {
      return vars{hard_sigmoid(x[0]), hard_swish(x[1]), relu6(x[2])};
    },
    [](const vars& x) {
      return vars{leaky_relu(x[0]) * elu(x[1], 0.5), selu(x[2])};
    },
    [](const vars& x) { return vars{hard_swish(x[0])}; },
    [](const vars& x) { return vars{silu(x[0])}; },
    [](const vars& x) {
      return vars{silu(x[0]) * x[1], silu(x[2])};
    },
    [](const vars& x) { return vars{logaddexp(x[0], x[1])}; },
    // Forms whose parts others read, or are results, and numbers where one reads operands.
    [](const vars& x) {
      const var y = x[0] * 0.25, z = select(x[0] > 0, x[0], y);
      return vars{z + y, y};
    },
    [](const vars& x) {
      return vars{(x[0] - x[1]) * x[3], x[0] * x[4] * x[3], x[0] * 3 * x[1]};
    },
    [](const vars& x) {
      const var y = x[0] * x[1], z = x[1] - x[2];
      return vars{y * y, z * z + sin(y)};
    },
    [](const vars& x) {
      // An eighth of the sum, which is exact.
      const var m = sum(x[0], {-1}, true) * 0.125, y = x[0] - m;
      return vars{y * rsqrt(sum(square(y), {-1}, true) + 1) * x[3] + x[1]};
    },
    [](const vars& x) {
      return vars{maximum(x[0] + 1, x[1]) - minimum(x[1], x[0] - 1), maximum(x[1], x[0] * 2)};
    },
    [](const vars& x) {
      const var y = x[0] - x[1], z = x[1] - x[0] * 2;
      return vars{y / z, 1 / (abs(z) + 1), z / 8 - y, x[2] * y + z, z - y * x[2], y * z + x[2]};
    },
    [](const vars& x) {
      const var small = abs(x[0]) < x[1] + 1, same = equal(x[0], x[2]);
      const var other = logical_or(logical_not(small), same);
      return vars{select(logical_and(small, logical_not(same)), x[0] + 1, x[1] - 1),
                  select(other, sqrt(abs(x[2])), -x[2]), select(small, x[1], x[2])};
    },
    [](const vars& x) {
      return vars{select(x[0] + 1 >= x[1], 1, 2) + select(x[1] - 1 <= x[0] * 2, 4, 8) +
                  select(not_equal(x[0] * 2, x[1]), 16, 32) + select(x[2] < 0, 64, 128)};
    },
    [](const vars& x) { return vars{clamp(floor(x[0] * 3), -4, 5) + square(relu(x[1]) - 1)}; },
    [](const vars& x) { return vars{select(x[3] - x[4] <= 0, x[0], 0) + x[3] * x[4]}; },
    [](const vars& x) {
      return vars{tril(x[0]), triu(x[1], 1) * 2};
    },
    [](const vars& x) {
      return vars{sum(square(x[1] - 1)), max(abs(x[2]), {-1}), min(x[2], {0})};
    },
    [](const vars& x) {
      const var size = sum(select(abs(x[0]) < 9, abs(x[0]), 0), {-1}, true);
      return vars{select(x[1] < size, x[1] * 2 + 1, size - x[2])};
    },
    [](const vars& x) {
      return vars{cast(count_nonzero(x[0], {-1}), x[0].element()),
                  cast(bincount(clamp(cast(x[1], dtype::i64), 0, 4), 5), x[0].element())};
    },
};

/// A line of a few cheap operations on values that came before, which is the same for a seed.
var random_line(const vars& x, std::uint64_t seed) {
  generator random(seed, 5);
  vars values{x[0], x[1], x[2]};
  const auto any = [&] { return values[random() % values.size()]; };
  for (int i = 0; i < 6; ++i) {
    const var y = any(), z = any();
    const auto kind = random() % 7;
    values.push_back(kind == 0   ? y + z
                     : kind == 1 ? y - z
                     : kind == 2 ? select(y > z, z, any())
                     : kind == 3 ? maximum(y, z)
                     : kind == 4 ? y * 0.25
                                 : y * z);
  }
  return values.back();
}

}  // namespace

TEST_CASE("chains and forms of random lines agree with the interpreter") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    const auto line = [seed](const vars& x) { return vars{random_line(x, seed)}; };
    CHECK(differing(line, {{9, 40}, {40}, {9, 1}}, dtype::f64) == 0);
  }
}

TEST_CASE(
    "chains and forms of cheap operations agree with the interpreter, with NaN and infinities, "
    "too") {
  for (const dtype element : {dtype::f32, dtype::f64}) {
    for (const auto& [rows, columns] :
         {std::array{1, 1}, std::array{3, 5}, std::array{37, 16}, std::array{37, 32},
          std::array{31, 112}, std::array{9, 224}, std::array{9, 40}, std::array{6, 131},
          std::array{2, 1000}, std::array{1, 4099}}) {
      const shape s{rows, columns};
      for (std::size_t k = 0; k < lines.size(); ++k) {
        CAPTURE(k);
        CAPTURE(rows);
        CAPTURE(columns);
        CHECK(differing(lines[k], {s, s, s, {columns}, {rows, 1}}, element) == 0);
      }
    }
  }
}

TEST_CASE(
    "rows of any length that are read and written beside each other or apart, by any threads") {
  const auto nests = [](const vars& x) {
    const int n = x[0].extent(2);
    return vars{x[0] * x[1] + x[2], slice(x[0], 2, 1, n) - slice(x[0], 2, 0, n - 1),
                slice(x[0], 2, 0, n, 2) + slice(x[1], 2, 0, n, 2),
                concat({x[0] + 1, x[0] * x[3], x[0] - x[2]}, 2),
                sqrt(abs(x[0])) / (abs(x[2]) + 1) - x[1]};
  };
  for (const dtype element : {dtype::f32, dtype::f64}) {
    for (int n : {2, 3, 5, 8, 13, 16, 29, 32, 63, 64, 65, 96, 127, 500, 1003}) {
      for (const auto& [outer, rows] : {std::array{1, 1}, std::array{3, 4}, std::array{2, 70}}) {
        CAPTURE(n);
        CAPTURE(rows);
        const shape row{rows, 1}, number{outer, 1, 1};
        const std::vector<shape> shapes{{outer, rows, n}, {outer, 1, n}, row, number};
        CHECK(differing(nests, shapes, element) == 0);
        CHECK(differing(nests, shapes, element, 3) == 0);
      }
    }
  }
}

TEST_CASE("long rows that are updated where they lie") {
  for (const int n : {127, 128, 500, 1003, 4099}) {
    CAPTURE(n);
    builder b;
    const tensor_type matrix{dtype::f32, {7, n}}, column{dtype::f32, {7, 1}};
    const valued_tensor x = special_numbers(matrix, 0), y = special_numbers(matrix, 1),
                        z = special_numbers(column, 2);
    const var p{&b, b.input(matrix, input_role::parameter, "p")};
    const var q{&b, b.input(matrix, input_role::argument, "q")};
    const var r{&b, b.input(column, input_role::argument, "r")};
    const var next = p * 0.5 - q * r;
    b.g.outputs.push_back({.updates = 0});
    b.end(ids(1, next.id));
    loaded_program run(optimize(b.g), dtype::f32);
    bindings memory;
    const tensor_ref at = memory.store(x);
    run.bind(0, at.data);
    run.bind(1, memory.store(y).data);
    run.bind(2, memory.store(z).data);
    run();
    int wrong = 0;
    for (std::int64_t i = 0; i < matrix.size(); ++i) {
      const auto k = std::size_t(i);
      const double found = read_element(at, i);
      const double expected = x.values[k] * 0.5 - y.values[k] * z.values[k / std::size_t(n)];
      wrong += !(found == expected || (found != found && expected != expected));
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("rows and columns of any length are folded, with what follows, by any threads") {
  const auto folds = [](const vars& x) {
    vars all;
    for (const axis_list& axes :
         {axis_list{2}, axis_list{1}, axis_list{0}, axis_list{0, 2}, axis_list{0, 1}}) {
      all.push_back(sum(x[0], axes));
      all.push_back(max(x[0], axes));
      all.push_back(min(x[1], axes) * 2 + 1);
      all.push_back(sum(square(x[1]), axes));
      all.push_back(sum(abs(x[1]), axes) - 3);
    }
    return all;
  };
  for (const dtype element : {dtype::f32, dtype::f64}) {
    for (const int n : {1, 7, 16, 40, 127, 500, 1003}) {
      for (const auto& [outer, rows] : {std::array{1, 1}, std::array{3, 4}, std::array{2, 70}}) {
        CAPTURE(n);
        CAPTURE(rows);
        const std::vector<shape> shapes(2, {outer, rows, n});
        for (const int threads : {1, 3}) {
          CHECK(differing(folds, shapes, element, threads, 1009) == 0);
          CHECK(differing(folds, shapes, element, threads, 1 << 30) == 0);
        }
      }
    }
  }
}

TEST_CASE("chains round what memory would hold in 16 bits") {
  for (const dtype narrow : {dtype::f16, dtype::bf16}) {
    const auto rounds = [narrow](const vars& x) {
      const var y = cast(x[0] * 3.3 + x[1], narrow);
      return vars{cast(y, dtype::f32) * 2 - x[1], y, cast(cast(x[1] / 3, narrow), dtype::f32)};
    };
    for (const shape& s : {shape{5}, shape{1000}, shape{7, 33}})
      CHECK(differing(rounds, {s, s}, dtype::f32) == 0);
  }
}
