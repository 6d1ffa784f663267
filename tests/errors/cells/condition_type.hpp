// The condition of a select is not a truth value.
//
// A number is not a truth value; say which numbers are meant.
#pragma once

#include <cella/ops/elementwise.hpp>
#include <cella/runtime/program.hpp>

namespace condition_type {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x, var y) const { return select(y, x, 0); }
};

// Mended:

struct Mended {
  constexpr var operator()(var x, var y) const { return select(y > 0, x, 0); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32>, tensor<dtype::f32, 32>>;

}  // namespace condition_type
