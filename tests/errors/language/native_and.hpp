// Conditions are joined by a native operator.
//
// &&, || and ! ask for one truth at once, as an if does, so they take one element each.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace native_and {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const { return select(x > 0 && x < 1, x, 0); }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return select(logical_and(x > 0, x < 1), x, 0); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace native_and
