// A transpose does not name each axis once.
//
// A permutation says for each axis of the result which axis of the operand it is.
#pragma once

#include <cella/ops/array.hpp>
#include <cella/runtime/program.hpp>

namespace permutation {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const { return transpose(x, {0, 2, 2}); }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return transpose(x, {0, 2, 1}); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 8, 16, 4>>;

}  // namespace permutation
