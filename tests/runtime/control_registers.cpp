// Small bodies of loops as code whose values live in registers, held against the interpreter for
// counts of elements that fill registers and that do not.
#include <cella/ops/matmul.hpp>
#include <cmath>

#include "control_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Whether every region of a program but the main one runs in registers.
template <class P>
constexpr bool all_in_registers() {
  return []<std::size_t... R>(std::index_sequence<R...>) {
    return (... && cpu::runs_in_registers<P, int(R) + 1>);
  }
  (std::make_index_sequence<P::graph.regions.size() - 1>{});
}

/// The same program for E beside the interpreter, which computes in double.
template <class Cell, dtype E, int... Extents>
void check(double epsilon) {
  using program = cella::program<Cell, false, E, tensor<E, Extents...>>;
  static_assert(program::accepted && all_in_registers<program>());
  std::vector<element<E>> x;
  for (int i = 0; i < (Extents * ... * 1); ++i)
    x.push_back(static_cast<element<E>>(0.3 + 0.11 * (i * 7 % 5) - 0.02 * i));
  Cell cell;
  parameter_store store(cell, 1, E);
  executable<program> run(store);
  run(x);
  run(x);
  const auto y = run.template result<0>();
  const graph g = thaw(program::graph);
  value_store values;
  values.bind(g.input(0), {reinterpret_cast<std::byte*>(x.data()), g.type(g.input(0))});
  interpret(g, values);
  const tensor_ref expected = values.value(g.regions[0].outputs[0]);
  for (std::size_t i = 0; i < y.size(); ++i)
    CHECK(double(y[i]) ==
          doctest::Approx(read_element(expected, std::int64_t(i))).epsilon(epsilon));
}

/// A little of everything that moves, adds and chooses elements, N at a time.
struct mixture {
  constexpr var operator()(var x) const {
    const int n = x.extent(0);
    const auto step = [x, n](var i, var y) {
      const var turned = concat({slice(y, 0, n / 2, n), slice(y, 0, 0, n / 2)}, 0);
      const var back = reverse(turned, 0);
      const var larger = maximum(back, x * 0.5);
      const var masked = select(larger > x, larger, x - turned);
      const var share = cast(masked > 0.2, x.element());
      const int m = n < 4 ? n : 4;
      const var table = matmul(reshape(y, {n, 1}), reshape(slice(x, 0, 0, m), {1, m}));
      const var weight = cast(i, x.element()) * 0.01;
      return tanh(masked * 0.3 + share * weight + sum(table, {1}) * (0.1 / n)) +
             0.05 * (max(y) - min(y)) - 0.01 * matmul(x, y);
    };
    return for_i(5, step, x);
  }
};

/// Branches inside the body, one of them inside the other.
struct branches {
  constexpr var operator()(var x) const {
    const auto step = [x](var, var y) {
      const var total = sum(y);
      return cond(
          total > 1, [=] { return y * 0.5; },
          [=] {
            return cond(
                total > 0, [=] { return y + x; }, [=] { return y * y + 0.25; });
          });
    };
    return for_i(7, step, x);
  }
};

/// Loops inside the body: one over slices that it makes itself, one that ends by its data.
struct loops {
  constexpr var operator()(var x) const {
    const int n = x.extent(0);
    const auto outer = [x, n](var, var y) {
      const var rows = reshape(concat({y, x}, 0), {2, n});
      const auto add = [](var s, var row) { return std::tuple{s + sin(row), s * row}; };
      const auto [s, seen] = scan(add, y * 0.1, rows, {.reverse = true});
      const auto big = [](var v) { return sum(v * v) > 0.5; };
      const auto halved = [](var v) { return v * 0.5; };
      return while_loop(big, halved, s) + sum(seen, {0}) * 0.1;
    };
    return for_i(3, outer, x);
  }
};

/// A loop whose condition fails at once, and a scan over nothing.
struct no_steps {
  constexpr var operator()(var x) const {
    const auto never = [](var v) { return sum(v) > 1e9; };
    const auto twice = [](var v) { return v * 2; };
    const var y = while_loop(never, twice, x);
    const auto step = [](var s, var row) { return std::tuple{s * 2 + row, s}; };
    const var none = constant(*x.b, 1, {x.element(), {0, x.extent(0)}});
    return std::get<0>(scan(step, y, none));
  }
};

template <class F>
struct loss {
  constexpr var operator()(var x) const { return sum(square(F{}(x))); }
};
template <class F>
struct slope {
  constexpr var operator()(var x) const { return grad(loss<F>{})(x); }
};

template <class Cell, int N>
void check_both() {
  check<Cell, dtype::f64, N>(1e-12);
  check<Cell, dtype::f32, N>(2e-5);
}

}  // namespace

TEST_CASE("small bodies run in registers for any number of elements") {
  check_both<mixture, 2>();
  check_both<mixture, 5>();
  check<mixture, dtype::f64, 13>(1e-12);
  check<mixture, dtype::f32, 9>(2e-5);
}
TEST_CASE("their gradients do, too") {
  check_both<slope<mixture>, 3>();
  check<slope<mixture>, dtype::f64, 7>(1e-12);
}
TEST_CASE("branches in a small body are branches of its code") {
  check_both<slope<branches>, 3>();
  check<branches, dtype::f64, 9>(1e-12);
}
TEST_CASE("loops in a small body keep their values in registers") {
  check_both<slope<loops>, 2>();
  check<loops, dtype::f32, 7>(2e-5);
}
TEST_CASE("a loop that takes no step hands its state through") {
  check_both<no_steps, 3>();
  check<slope<no_steps>, dtype::f64, 5>(1e-12);
}
