// The sides of a branch yield different shapes.
//
// What follows a branch is one program for both sides, so both yield tensors of the same types. Here
// one side sums, the other does not.
#pragma once

#include <cella/ops/functions.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/runtime/program.hpp>
#include <cella/transform/control.hpp>

namespace branch_shapes {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const {
    const auto total = [x] { return sum(x); };
    const auto twice = [x] { return x * 2; };
    return cond(sum(x) > 0, total, twice);
  }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const {
    const auto total = [x] { return sum(x); };
    const auto twice = [x] { return sum(x * 2); };
    return cond(sum(x) > 0, total, twice);
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 3>>;

}  // namespace branch_shapes
