// What `derivatives` times: gradients of loops and a Hessian, as a user writes them.
#pragma once

#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <cella/transform/jacobian.hpp>

namespace cella::benchmark {

/// Hunters and prey (Lotka, Volterra): y = {prey, hunters}, p = four rates.
constexpr var lotka_volterra(var y, var p) {
  const auto n = unstack(y, 0);
  const auto k = unstack(p, 0);
  const var meetings = n[0] * n[1];
  return stack({k[0] * n[0] - k[1] * meetings, k[2] * meetings - k[3] * n[1]}, 0);
}
/// One step of the classical Runge-Kutta method.
constexpr var runge_kutta(var y, var p, double h) {
  const var k1 = lotka_volterra(y, p);
  const var k2 = lotka_volterra(y + h / 2 * k1, p);
  const var k3 = lotka_volterra(y + h / 2 * k2, p);
  const var k4 = lotka_volterra(y + h * k3, p);
  return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
}

/// y [2], p [4] -> the gradient of the squared end of `Steps` steps over ten units of time, by
/// both.
template <int Steps>
struct scan_gradient {
  static constexpr var end(var y, var p) {
    const auto step = [p](var, var z) { return runge_kutta(z, p, 10.0 / Steps); };
    return sum(square(for_i(Steps, step, y)));
  }
  constexpr auto operator()(var y, var p) const {
    const auto g = value_and_grad<2>(&end)(y, p).gradient;
    return std::tuple{g[0], g[1]};
  }
};

/// The same until the prey has fallen below a bound: the data decide how many steps there are. With
/// `MaxSteps`, at most so many.
template <int MaxSteps>
struct while_gradient {
  static constexpr var end(var y, var p) {
    const auto many = [](var z) { return sum(slice(z, 0, 0, 1)) > 0.5; };
    const auto step = [p](var z) { return runge_kutta(z, p, 1e-3); };
    return sum(square(while_loop(many, step, y, {.max_steps = MaxSteps})));
  }
  constexpr auto operator()(var y, var p) const {
    const auto g = value_and_grad<2>(&end)(y, p).gradient;
    return std::tuple{g[0], g[1]};
  }
};

/// w [64], x [16,5], t [16,1] -> the Hessian, by w, of the mean squared error of a net 5-9-1.
struct net_hessian {
  constexpr var operator()(var w, var x, var t) const {
    const auto error = [x, t](var v) {
      const var w1 = reshape(slice(v, 0, 0, 45), {5, 9});
      const var b1 = slice(v, 0, 45, 54);
      const var w2 = reshape(slice(v, 0, 54, 63), {9, 1});
      const var b2 = slice(v, 0, 63, 64);
      const var y = matmul(tanh(matmul(x, w1) + b1), w2) + b2;
      return mean(square(y - t));
    };
    return hessian(error)(w);
  }
};

}  // namespace cella::benchmark
