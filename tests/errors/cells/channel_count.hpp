// A convolution takes another number of channels than its image has.
//
// A filter is [Out, In, Kernel, Kernel], and In is the number of channels of the image [N, C, H,
// W].
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/runtime/program.hpp>

namespace channel_count {
using namespace cella;

struct Wrong {
  nn::conv2d<1, 6, 5> conv1{.padding = 2};
  nn::conv2d<16, 16, 5> conv2;

  constexpr var operator()(var x) const {
    x = max_pool(relu(conv1(x)), 2);
    return conv2(x);
  }
};

// Mended:

struct Mended {
  nn::conv2d<1, 6, 5> conv1{.padding = 2};
  nn::conv2d<6, 16, 5> conv2;

  constexpr var operator()(var x) const {
    x = max_pool(relu(conv1(x)), 2);
    return conv2(x);
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 1, 28, 28>>;

}  // namespace channel_count
