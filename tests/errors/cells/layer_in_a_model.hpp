// A layer that does not fit, in a model.
//
// A 5x5 filter without padding takes four pixels off each side: 12x12 become 8x8, and pooling makes
// 4x4 of these. A model has several programs (the training step, inference for a batch and for one
// sample); the fault is reported once.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/ops/activation.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/runtime/program.hpp>

namespace layer_in_a_model {
using namespace cella;

struct Wrong {
  nn::conv2d<1, 8, 5> conv;
  nn::dense<8 * 8 * 8, 10> out;

  constexpr var operator()(var x) const {
    x = max_pool(relu(conv(x)), 2);
    return out(flatten(x));
  }
};

// Mended:

struct Mended {
  nn::conv2d<1, 8, 5> conv;
  nn::dense<8 * 4 * 4, 10> out;

  constexpr var operator()(var x) const {
    x = max_pool(relu(conv(x)), 2);
    return out(flatten(x));
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 1, 12, 12>>;

}  // namespace layer_in_a_model
