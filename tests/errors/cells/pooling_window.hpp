// A pooling window is larger than its image.
//
// The window has to fit into the image at least once. For one number per channel whatever the size
// of the image there is global_average_pool.
#pragma once

#include <cella/ops/pooling.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/runtime/program.hpp>

namespace pooling_window {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const { return average_pool(x, 8); }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return global_average_pool(x); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 8, 4, 7, 7>>;

}  // namespace pooling_window
