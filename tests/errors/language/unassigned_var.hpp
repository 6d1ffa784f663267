// A var is used before it has a value.
//
// A var that is declared belongs to no graph yet.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace unassigned_var {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const {
    var h;
    return h + x;
  }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const {
    var h = x * 2;
    return h + x;
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace unassigned_var
