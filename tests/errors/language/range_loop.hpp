// A loop goes over a var.
//
// A var is a handle of a value that does not exist while the model is traced; its slices are other
// vars.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace range_loop {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const {
    var s = sum(x);
    for (var row : x) s = s + sum(row);
    return s;
  }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const {
    var s = sum(x);
    for (var column : unstack(x, 1)) s = s + sum(column);
    return s;
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace range_loop
