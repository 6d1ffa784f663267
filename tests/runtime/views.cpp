// Slices that loops read in their place, concatenations that loops put together, and values that
// several readers share: what the plan holds, and that the values are right.
#include <cella/ops/activation.hpp>
#include <cella/ops/slicing.hpp>

#include "control_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// [N, 3 F] -> [N, 3 F]
struct gates {
  constexpr var operator()(var x) const {
    const auto p = split(x, 3, 1);
    return concat({sigmoid(p[0]) * p[1], tanh(p[2]) + p[1], p[0] - p[2]}, 1);
  }
};
struct gates_squared {
  constexpr var operator()(var x) const { return sum(square(gates{}(x))); }
};
/// Parts along the first axis, and in rows of one element, which cannot be written in place.
struct halves {
  constexpr var operator()(var x) const {
    const auto p = split(x, 2, 0);
    return concat({p[1] * 2, exp(p[0])}, 0);
  }
};
struct columns {
  constexpr var operator()(var x) const {
    const auto p = split(x, x.extent(1), 1);
    return concat({p[1] * 2, exp(p[0]), p[2] + p[1]}, 1);
  }
};
/// A slice with steps; a slice that a product reads, too.
struct strided {
  constexpr var operator()(var x) const {
    const var odd = slice(x, 0, 1, 6, 2);
    return matmul(odd, odd, false, true) + sum(odd * 3);
  }
};
/// Steps of more than 16 bits, of a slice that a loop reads and of a slice of it.
struct far_apart {
  constexpr var operator()(var x) const {
    const var far = slice(x, 0, 2, 200002, 40000) * 3;
    return concat({far, slice(slice(x, 0, 1, 200002, 50000), 0, 0, 4, 2)}, 0);
  }
};
struct far_apart_squared {
  constexpr var operator()(var x) const { return sum(square(far_apart{}(x))); }
};
/// Two results and a value that both need: one loop writes all three.
struct shared {
  constexpr auto operator()(var x) const {
    const var e = exp(x);
    return concat({e * 2, e + x}, 0) + concat({x, x}, 0);
  }
};

template <class Cell, int... Extents>
constexpr const plan_view& plan_of =
    program<Cell, false, dtype::f64, cella::tensor<dtype::f64, Extents...>>::plan;
}  // namespace

TEST_CASE("loops take parts of a tensor to parts of another, without copies") {
  CHECK(plan_of<gates, 5, 42>.step_count == 3);
  CHECK(steps_of_kind<gates, 5, 42>(step_kind::elementwise) == 3);
  const auto x = some_numbers(5 * 42);
  const auto y = run_compiled<gates, 5, 42>(x);
  for (int n = 0; n < 5; ++n) {
    const auto at = [&](int part, int f) { return x[std::size_t(n * 42 + part * 14 + f)]; };
    for (int f = 0; f < 14; ++f) {
      const auto found = [&](int part) { return y[std::size_t(n * 42 + part * 14 + f)]; };
      CHECK(found(0) == doctest::Approx(at(1, f) / (1 + std::exp(-at(0, f)))));
      CHECK(found(1) == doctest::Approx(std::tanh(at(2, f)) + at(1, f)));
      CHECK(found(2) == doctest::Approx(at(0, f) - at(2, f)));
    }
  }
}
TEST_CASE("the gradient of a split is put together without a copy") {
  using program = cella::program<gradient_of<gates_squared>, false, dtype::f64,
                                 cella::tensor<dtype::f64, 5, 42>>;
  int joins = 0;
  for (const node& n : program::graph.nodes) joins += is<concat_op>(n);
  CHECK(joins >= 1);
  CHECK(steps_of_kind<gradient_of<gates_squared>, 5, 42>(step_kind::generic) == 0);
  run_compiled<gradient_of<gates_squared>, 5, 42>(some_numbers(5 * 42));
}
TEST_CASE("parts along the first axis and parts of one element") {
  run_compiled<halves, 6, 7>(some_numbers(42));
  run_compiled<columns, 9, 3>(some_numbers(27));
}
TEST_CASE("a slice may have steps, and other readers get a copy") {
  run_compiled<strided, 6, 20>(some_numbers(120));
}
TEST_CASE("a slice may have steps of more than 16 bits, and so may its gradient") {
  constexpr int n = 200002;
  const auto x = some_numbers(n);
  const auto y = run_compiled<far_apart, n>(x);
  REQUIRE(y.size() == 7);
  std::vector<double> slope(std::size_t(n), 0.0);
  for (std::size_t k = 0; k < 5; ++k) {
    CHECK(y[k] == doctest::Approx(3 * x[2 + 40000 * k]));
    slope[2 + 40000 * k] += 18 * x[2 + 40000 * k];
  }
  for (std::size_t k = 0; k < 2; ++k) {
    CHECK(y[5 + k] == x[1 + 100000 * k]);
    slope[1 + 100000 * k] += 2 * x[1 + 100000 * k];
  }
  const auto dx = run_compiled<gradient_of<far_apart_squared>, n>(x);
  REQUIRE(dx.size() == slope.size());
  for (std::size_t i = 0; i < slope.size(); ++i) REQUIRE(dx[i] == doctest::Approx(slope[i]));
}
TEST_CASE("a loop writes a value that later steps read") {
  run_compiled<shared, 4, 9>(some_numbers(36));
}
