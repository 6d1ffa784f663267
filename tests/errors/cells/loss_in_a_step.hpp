// A fault of the loss in a training step.
//
// A training step compiles the network, its loss, the gradients and the updates as one program. A
// fault in any of them is reported like one of the network.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>
#include <cella/train/step.hpp>

namespace loss_in_a_step {
using namespace cella;

struct Classifier {
  nn::dense<784, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};
inline constexpr auto wrong_loss = [](var prediction, var target) {
  return mean(square(prediction - target));
};
using Wrong = training_step<Classifier, fixed<wrong_loss>, fixed<optim::sgd{}>>;

// Mended:

inline constexpr auto mended_loss = [](var prediction, var target) {
  return softmax_cross_entropy(prediction, target);
};
using Mended = training_step<Classifier, fixed<mended_loss>, fixed<optim::sgd{}>>;

/// The program that a cell becomes.
template <class Cell>
using program_of =
    program<Cell, true, dtype::f32, tensor<dtype::f32, 32, 784>, tensor<dtype::i32, 32>>;

}  // namespace loss_in_a_step
