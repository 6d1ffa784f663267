// Small nets, to be timed call by call. Both passes of a layer and its update are kernels of one
// training step, in the layout that the compiler chooses and with the epilogues that it fuses, as
// in the workload itself.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/pooling.hpp>

#include "../workload/bound.hpp"
#include "kernels.hpp"

namespace cella::benchmark {

/// Half of the mean square: a loss of which both passes are one loop. The target counts for
/// nothing.
struct half_square {
  constexpr var operator()(var y, var) const { return 0.5 * mean(y * y); }
};

/// A step of training of `Net` on an input of the type `Input`, by the loss `Loss` of a target of
/// the type `Target`.
template <class Net, class Input, dtype E = dtype::f32, class Loss = half_square,
          class Target = tensor<E, 1>>
constexpr kernel_case trained(std::string_view family, std::string_view shape) {
  using step =
      program<training_step<Net, Loss, fixed<optim::sgd{.momentum = 0.9}>>, true, E, Input, Target>;
  return {family, shape, E,
          [](int threads, double s) { return bound<Net, step, 1000, 1000>(threads).profile(s); }};
}
/// A prediction of `Net`.
template <class Net, class Input, dtype E = dtype::f32>
constexpr kernel_case predicted(std::string_view family, std::string_view shape) {
  using call = program<Net, false, E, Input>;
  return {family, shape, E,
          [](int threads, double s) { return bound<Net, call, 1000, 1000>(threads).profile(s); }};
}

/// One layer after the other. The first of two gets no gradient of its input, the second does.
template <class... Layers>
struct chain;
template <class First>
struct chain<First> {
  First first{};
  constexpr var operator()(var x) const { return first(x); }
};
template <class First, class... Rest>
struct chain<First, Rest...> {
  First first{};
  chain<Rest...> rest{};
  constexpr var operator()(var x) const { return rest(first(x)); }
};

}  // namespace cella::benchmark
