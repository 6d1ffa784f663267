// An axis does not divide into equal parts.
//
// The parts of a split are of equal extent. Unequal parts are slices.
#pragma once

#include <cella/ops/slicing.hpp>
#include <cella/runtime/program.hpp>

namespace unequal_parts {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const { return split(x, 3, 1)[0]; }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return split(x, 2, 1)[0]; }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace unequal_parts
