// A dropout rate is not a probability below 1.
//
// The rate is the probability with which an element is dropped: a quarter is 0.25, not 25. At 1
// nothing would be left.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace dropout_rate {
using namespace cella;

struct Wrong {
  nn::dropout drop{.rate = 25};

  constexpr var operator()(var x) const { return drop(x); }
};

// Mended:

struct Mended {
  nn::dropout drop{.rate = 0.25};

  constexpr var operator()(var x) const { return drop(x); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, true, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace dropout_rate
