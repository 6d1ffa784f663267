// A native `if` asks a tensor.
//
// A comparison of tensors is a tensor of truth values, and select takes it. A native `if` on
// numbers that are known while tracing (extents, options, training()) is fine.
#pragma once

#include <cella/ops/functions.hpp>
#include <cella/runtime/program.hpp>

namespace native_branch {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const {
    if (x > 0) return sqrt(x);
    return x;
  }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return select(x > 0, sqrt(x), x); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32>>;

}  // namespace native_branch
