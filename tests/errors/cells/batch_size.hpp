// Logits and labels are of different batches.
//
// There is one label for each row of logits.
#pragma once

#include <cella/ops/softmax.hpp>
#include <cella/runtime/program.hpp>

namespace batch_size {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x, var y) const { return softmax_cross_entropy(x, y); }
};

struct Mended {
  constexpr var operator()(var x, var y) const {
    return softmax_cross_entropy(slice(x, 0, 0, 16), y);
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of =
    program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>, tensor<dtype::i32, 16>>;

}  // namespace batch_size
