// A layer takes more features than the one before it makes.
//
// A dense layer multiplies by the transpose of its weight [Out, In], so its In must be the last
// extent of what it is given. Here fc1 makes 120 features and fc2 takes 256.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace inner_dimension {
using namespace cella;

struct Wrong {
  nn::dense<400, 120> fc1;
  nn::dense<256, 10> fc2;

  constexpr var operator()(var x) const {
    x = relu(fc1(x));
    return fc2(x);
  }
};

// Mended:

struct Mended {
  nn::dense<400, 120> fc1;
  nn::dense<120, 10> fc2;

  constexpr var operator()(var x) const {
    x = relu(fc1(x));
    return fc2(x);
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 400>>;

}  // namespace inner_dimension
