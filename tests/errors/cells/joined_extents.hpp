// Tensors to be joined differ along another axis.
//
// Along the axis of a concat extents may differ; along all others they are equal.
#pragma once

#include <cella/ops/slicing.hpp>
#include <cella/runtime/program.hpp>

namespace joined_extents {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x, var y) const { return concat({x, y}, 0); }
};

// Mended:

struct Mended {
  constexpr var operator()(var x, var y) const { return concat({x, y}, 1); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of =
    program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>, tensor<dtype::f32, 32, 20>>;

}  // namespace joined_extents
