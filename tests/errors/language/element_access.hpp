// A var is indexed.
//
// One element is a slice; all along an axis come from unstack.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace element_access {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const { return x[0]; }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return slice(x, 0, 0, 1); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace element_access
