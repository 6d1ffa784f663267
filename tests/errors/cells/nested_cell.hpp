// A fault inside a cell of a cell.
//
// Parameters are named by the path of their cell, and the line is the one where the layer is
// called, wherever the model stands that uses the block.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace nested_cell {
using namespace cella;

struct Block {
  nn::dense<64, 32> narrow;
  nn::dense<64, 64> wide;

  constexpr var operator()(var x) const { return x + wide(relu(narrow(x))); }
};
struct Wrong {
  Block first, second;

  constexpr var operator()(var x) const { return second(first(x)); }
};

// Mended:

struct MendedBlock {
  nn::dense<64, 32> narrow;
  nn::dense<32, 64> wide;

  constexpr var operator()(var x) const { return x + wide(relu(narrow(x))); }
};
struct Mended {
  MendedBlock first, second;

  constexpr var operator()(var x) const { return second(first(x)); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 64>>;

}  // namespace nested_cell
