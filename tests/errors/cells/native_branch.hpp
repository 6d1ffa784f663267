// A native `if` asks a tensor.
//
// As above: a condition on values is a tensor of truth values, which select takes.
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

struct Mended {
  constexpr var operator()(var x) const { return select(x > 0, sqrt(x), x); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32>>;

}  // namespace native_branch
