// A convolution is given rows instead of images.
//
// Images are [N, C, H, W]. A batch of rows has to be given its channels, height and width first.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace image_rank {
using namespace cella;

struct Wrong {
  nn::conv2d<1, 6, 5> conv1;

  constexpr var operator()(var x) const { return conv1(x); }
};

// Mended:

struct Mended {
  nn::conv2d<1, 6, 5> conv1;

  constexpr var operator()(var x) const { return conv1(reshape(x, {32, 1, 28, 28})); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 784>>;

}  // namespace image_rank
