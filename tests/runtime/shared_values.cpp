// Values that several others follow from: a group computes each once, and is found in a time that
// does not depend on the number of paths through them.
#include <cella/ops/functions.hpp>
#include <cella/runtime/executable.hpp>
#include <cmath>

#include "control_case.hpp"

using namespace cella;
using namespace cella::test;

namespace {

constexpr int extent = 21;

/// Each level reads the one before twice: 2^Levels paths lead from the last to the first.
template <int Levels, class Number>
constexpr std::array<Number, 2> climb(Number a, Number b) {
  using std::cos;
  for (int k = 0; k < Levels; ++k) {
    const Number product = a * b;
    b = cos(a + b);
    a = product;
  }
  return {a, b};
}
template <int Levels>
struct ladder {
  constexpr std::array<var, 2> operator()(var x) const { return climb<Levels>(x, x + 1); }
};
template <class Cell>
using program_of = program<Cell, false, dtype::f64, cella::tensor<dtype::f64, 1, extent>>;

template <int Levels>
void check_ladder() {
  using P = program_of<ladder<Levels>>;
  ladder<Levels> cell;
  parameter_store store(cell, 1, dtype::f64);
  executable<P> run(store);
  std::array<double, extent> x{};
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.1 * double(i) - 1;
  run(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const auto expected = climb<Levels>(x[i], x[i] + 1);
    CHECK(run.template result<0>()[i] == doctest::Approx(expected[0]).epsilon(1e-12));
    CHECK(run.template result<1>()[i] == doctest::Approx(expected[1]).epsilon(1e-12));
  }
}
}  // namespace

TEST_CASE("a group computes a value once, however many others follow from it") {
  constexpr int levels = 12;
  using P = program_of<ladder<levels>>;
  static_assert(P::plan.steps.size() == 1);
  // x, the number 1, x + 1, and three operations a level.
  static_assert(cpu::line_of_outputs<P, 0>::length == 3 + 3 * levels);
  static_assert(cpu::line_of_outputs<P, 0>::reads == 1);
  check_ladder<levels>();
}

TEST_CASE("groups are found in a time that the number of paths does not tell") {
  check_ladder<60>();
}
