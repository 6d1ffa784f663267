// A parameter is used that is not a member of the model.
//
// The parameters of a model are found as members of its cell and of the cells in it. One that lives
// elsewhere would be neither trained nor saved.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace foreign_parameter {
using namespace cella;

inline constexpr parameter<10> shared_bias{initializer::zeros()};

struct Wrong {
  constexpr var operator()(var x) const { return x + shared_bias; }
};

// Mended:

struct Mended {
  parameter<10> bias{initializer::zeros()};

  constexpr var operator()(var x) const { return x + bias; }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace foreign_parameter
