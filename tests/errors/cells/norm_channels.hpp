// A normalization is for another number of channels.
//
// Channels lie along axis 1 of [N, C, ...], right behind the batch.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace norm_channels {
using namespace cella;

struct Wrong {
  nn::conv2d<3, 16, 3> conv;
  nn::batch_norm<32> norm;

  constexpr var operator()(var x) const { return relu(norm(conv(x))); }
};

// Mended:

struct Mended {
  nn::conv2d<3, 16, 3> conv;
  nn::batch_norm<16> norm;

  constexpr var operator()(var x) const { return relu(norm(conv(x))); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 8, 3, 32, 32>>;

}  // namespace norm_channels
