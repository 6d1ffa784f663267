// The gradient of several numbers is asked for.
//
// A gradient is that of one number. A function that returns a tensor is summed or averaged first,
// or its cotangent is given to vjp.
#pragma once

#include <cella/ops/functions.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/runtime/program.hpp>
#include <cella/transform/gradient.hpp>

namespace grad_of_tensor {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const {
    return grad([](var v) { return square(v); })(x);
  }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const {
    return grad([](var v) { return sum(square(v)); })(x);
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace grad_of_tensor
