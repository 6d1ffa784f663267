// Labels are not integers.
//
// The label of a sample is the number of its class. Labels that come as floating-point numbers are
// converted by cast, or given as integers to begin with.
#pragma once

#include <cella/ops/softmax.hpp>
#include <cella/runtime/program.hpp>

namespace label_type {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x, var y) const { return softmax_cross_entropy(x, y); }
};

// Mended:

struct Mended {
  constexpr var operator()(var x, var y) const {
    return softmax_cross_entropy(x, cast(y, dtype::i32));
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of =
    program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>, tensor<dtype::f32, 32>>;

}  // namespace label_type
