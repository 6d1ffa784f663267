// A cell hides its members.
//
// Reflection finds the parameters of a cell among its public members. A constructor, private
// members or a virtual base hide them, so a cell is a struct whose members have their values where
// they are declared.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace private_members {
using namespace cella;

class Wrong {
  nn::dense<10, 10> fc;

 public:
  constexpr var operator()(var x) const { return fc(x); }
};

// Mended:

struct Mended {
  nn::dense<10, 10> fc;

  constexpr var operator()(var x) const { return fc(x); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace private_members
