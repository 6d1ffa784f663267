// A cell has an array of cells that is no std::array.
//
// Structured bindings cannot be counted where an array is a member.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace array_member {
using namespace cella;

struct Wrong {
  nn::dense<10, 10> layers[3];

  constexpr var operator()(var x) const {
    for (auto& layer : layers) x = layer(x);
    return x;
  }
};

// Mended:

struct Mended {
  std::array<nn::dense<10, 10>, 3> layers;

  constexpr var operator()(var x) const {
    for (auto& layer : layers) x = layer(x);
    return x;
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace array_member
