// Two operands have different element types.
//
// Nothing is converted silently: a conversion costs time and may lose digits, so it is written
// down.
#pragma once

#include <cella/ops/elementwise.hpp>
#include <cella/runtime/program.hpp>

namespace element_type {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x, var y) const { return x * y; }
};

// Mended:

struct Mended {
  constexpr var operator()(var x, var y) const { return x * cast(y, dtype::f32); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32>, tensor<dtype::i32, 32>>;

}  // namespace element_type
