// A number beside an integer tensor is not an integer.
//
// A number takes the element type of the tensor beside it, and 0.5 would become 0.
#pragma once

#include <cella/ops/elementwise.hpp>
#include <cella/runtime/program.hpp>

namespace integer_literal {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const { return x * 0.5; }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return cast(x, dtype::f32) * 0.5; }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::i32, 32>>;

}  // namespace integer_literal
