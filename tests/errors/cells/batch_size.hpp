// Logits and labels are of different batches.
//
// There is one label for each row of logits. Here each sample is used twice, and its label once.
#pragma once

#include <cella/ops/slicing.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/runtime/program.hpp>

namespace batch_size {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x, var y) const {
    x = concat({x, -x}, 0);
    return softmax_cross_entropy(x, y);
  }
};

// Mended:

struct Mended {
  constexpr var operator()(var x, var y) const {
    x = concat({x, -x}, 0);
    return softmax_cross_entropy(x, concat({y, y}, 0));
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of =
    program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>, tensor<dtype::i32, 32>>;

}  // namespace batch_size
