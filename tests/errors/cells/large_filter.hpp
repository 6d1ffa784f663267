// A filter is larger than its image.
//
// A filter has to fit into the image with its padding at least once. Pooling halves the image each
// time, so deep in a network little is left of it.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/runtime/program.hpp>

namespace large_filter {
using namespace cella;

struct Wrong {
  nn::conv2d<1, 4, 3> conv1{.padding = 1};
  nn::conv2d<4, 8, 5> conv2;

  constexpr var operator()(var x) const {
    x = max_pool(relu(conv1(x)), 2);
    return conv2(x);
  }
};

// Mended:

struct Mended {
  nn::conv2d<1, 4, 3> conv1{.padding = 1};
  nn::conv2d<4, 8, 5> conv2{.padding = 2};

  constexpr var operator()(var x) const {
    x = max_pool(relu(conv1(x)), 2);
    return conv2(x);
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 8, 1, 8, 8>>;

}  // namespace large_filter
