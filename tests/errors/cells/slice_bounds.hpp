// A slice reaches beyond its axis.
//
// A slice [start, stop) lies within the axis; negative bounds count from its end.
#pragma once

#include <cella/ops/slicing.hpp>
#include <cella/runtime/program.hpp>

namespace slice_bounds {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const { return slice(x, 1, 4, 12); }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return slice(x, 1, 4, 10); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace slice_bounds
