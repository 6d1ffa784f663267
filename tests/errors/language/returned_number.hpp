// A cell returns something other than a var.
//
// A number is known to the compiler; a tensor is what the program computes. An extent is made a
// tensor by computing with one.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace returned_number {
using namespace cella;

struct Wrong {
  constexpr double operator()(var x) const { return x.extent(0); }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return sum(x) / x.extent(0); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace returned_number
