// A cell has members beside those of its base.
//
// The members of a struct are found by structured bindings, which take those of one class. A base
// that has parameters is made a member.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace base_with_members {
using namespace cella;

struct Base {
  nn::dense<10, 10> first;
};
struct Wrong : Base {
  nn::dense<10, 10> second;

  constexpr var operator()(var x) const { return second(first(x)); }
};

// Mended:

struct Mended {
  Base base;
  nn::dense<10, 10> second;

  constexpr var operator()(var x) const { return second(base.first(x)); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace base_with_members
