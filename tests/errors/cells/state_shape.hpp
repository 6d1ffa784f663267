// A state is given a value of another shape.
//
// What a cell writes back keeps its type, because the next call reads it again.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace state_shape {
using namespace cella;

struct Wrong {
  state<10> average;

  constexpr var operator()(var x) const {
    assign(x, average, x);
    return x;
  }
};

// Mended:

struct Mended {
  state<10> average;

  constexpr var operator()(var x) const {
    assign(x, average, mean(x, {0}));
    return x;
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, true, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace state_shape
