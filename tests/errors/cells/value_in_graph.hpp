// A value is read while the model is traced.
//
// In graph mode the compiler runs the cell before there are any numbers, so that a native `if` has
// nothing to decide on. A choice that depends on values is a select; in eager mode values can be
// read.
#pragma once

#include <cella/ops/functions.hpp>
#include <cella/runtime/program.hpp>

namespace value_in_graph {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const {
    if (x.item() > 0) return sqrt(x);
    return x;
  }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return select(x > 0, sqrt(x), x); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32>>;

}  // namespace value_in_graph
