// A constant has another number of values than its shape.
//
// A constant takes its shape from the arrays that hold its values, or is told it. Then it needs a
// value for each element.
#pragma once

#include <cella/ops/elementwise.hpp>
#include <cella/runtime/program.hpp>

namespace constant_count {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const { return x * constant(x, {0.5f, 1.f}, {3, 1, 1}); }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return x * constant(x, {0.5f, 1.f, 2.f}, {3, 1, 1}); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 8, 3, 28, 28>>;

}  // namespace constant_count
