// An axis does not exist.
//
// Axes count from 0, and from -1 backwards: a tensor of rank 2 has the axes 0 and 1, or -2 and -1.
#pragma once

#include <cella/ops/reduction.hpp>
#include <cella/runtime/program.hpp>

namespace missing_axis {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const { return sum(x, {2}); }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return sum(x, {1}); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace missing_axis
