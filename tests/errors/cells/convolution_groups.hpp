// The groups of a convolution do not divide its filters.
//
// With groups, each group of filters sees its own share of the channels, so the number of groups
// divides both the channels and the filters.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace convolution_groups {
using namespace cella;

struct Wrong {
  nn::conv2d<8, 6, 3, true, 4> conv;

  constexpr var operator()(var x) const { return conv(x); }
};

// Mended:

struct Mended {
  nn::conv2d<8, 12, 3, true, 4> conv;

  constexpr var operator()(var x) const { return conv(x); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 8, 8, 16, 16>>;

}  // namespace convolution_groups
