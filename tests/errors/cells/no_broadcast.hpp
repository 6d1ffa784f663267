// The shapes of two operands do not broadcast.
//
// Axes are matched from the last to the first, as in NumPy: two extents fit if they are equal or if
// one of them is 1. A vector of one number per row needs an axis behind it.
#pragma once

#include <cella/ops/reduction.hpp>
#include <cella/runtime/program.hpp>

namespace no_broadcast {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const { return x - mean(x, {1}); }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return x - mean(x, {1}, true); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace no_broadcast
