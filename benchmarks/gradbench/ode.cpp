// ode: y_i' = x_i y_{i-1} from y = 0 (and y_{-1} = 1) by the classical Runge-Kutta method, and the
// gradient of the last y by x.
#include <cella/ops/functions.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/custom.hpp>
#include <cella/transform/gradient.hpp>

#include "sizes.hpp"

using namespace cella;
using namespace gradbench;

namespace {

/// y_{i-1} at place i; 1 at place 0. Its derivative moves back and leaves a zero behind.
constexpr var before(var y) {
  const auto move = [](var v) {
    const int n = v.extent(0);
    return concat({constant(*v.b, 1, {v.element(), {1}}), slice(v, 0, 0, n - 1)}, 0);
  };
  const auto move_back = [](var v, var, var dy) {
    const int n = v.extent(0);
    return concat({slice(dy, 0, 1, n), constant(*v.b, 0, {v.element(), {1}})}, 0);
  };
  return custom_vjp(move, move_back)(y);
}

template <int Steps>
constexpr var solution(var x) {
  const double h = 2.0 / Steps;
  const auto f = [x](var y) { return x * before(y); };
  const auto step = [f, h](var, var y) {
    const var k1 = f(y);
    const var k2 = f(y + h / 2 * k1);
    const var k3 = f(y + h / 2 * k2);
    const var k4 = f(y + h * k3);
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
  };
  return for_i(Steps, step, zeros_like(x));
}

/// x as a row, [1,n].
template <int Steps>
struct solution_cell {
  constexpr var operator()(var x) const { return solution<Steps>(reshape(x, {x.extent(1)})); }
};
template <int Steps>
struct gradient_cell {
  static constexpr var last(var x) {
    const int n = x.extent(0);
    return sum(slice(solution<Steps>(x), 0, n - 1, n));
  }
  constexpr var operator()(var x) const { return grad(&last)(reshape(x, {x.extent(1)})); }
};

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [](evaluation& e) {
    const numbers x = e.input.at("x");
    const std::array found{int(x.size()), int(e.input.at("s"))};
    e.with_sizes<ode_sizes>(found, [&]<int N, int Steps>() {
      e.function<vector_function<solution_cell<Steps>, N>>("primal", x);
      e.function<vector_function<gradient_cell<Steps>, N>>("gradient", x);
    });
  });
}
