// The state of a loop changes its shape.
//
// A body is compiled once and runs on what it has returned, so a state keeps its type from step to
// step. Here a row is added in each.
#pragma once

#include <cella/ops/slicing.hpp>
#include <cella/runtime/program.hpp>
#include <cella/transform/control.hpp>

namespace loop_state {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const {
    return for_i(3, [](var, var y) { return concat({y, y}, 0); }, x);
  }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const {
    for (int i = 0; i < 3; ++i) x = concat({x, x}, 0);
    return x;
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 2, 3>>;

}  // namespace loop_state
