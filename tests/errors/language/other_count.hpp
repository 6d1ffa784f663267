// A cell takes another number of tensors than it is given.
//
// A cell is called with one var for each tensor that the program names.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace other_count {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x, var y) const { return x + y; }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return x + x; }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace other_count
