// A cell points to another.
//
// A model owns its cells: the compiler makes each anew and finds its parameters in it.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace pointer_member {
using namespace cella;

struct Wrong {
  nn::dense<10, 10>* fc = nullptr;

  constexpr var operator()(var x) const { return (*fc)(x); }
};

// Mended:

struct Mended {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace pointer_member
