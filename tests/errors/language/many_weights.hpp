// A parameter is larger than any memory.
//
// Extents of a million by a million are a slip most of the time. A model that means them says so.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace many_weights {
using namespace cella;

struct Wrong {
  nn::dense<1000000, 1000000, false> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

// Mended:

struct Mended {
  nn::dense<10, 10, false> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace many_weights
