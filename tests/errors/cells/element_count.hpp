// A reshape has another number of elements.
//
// A reshape keeps the elements and their order. One extent may be -1; it is then computed from the
// others.
#pragma once

#include <cella/ops/array.hpp>
#include <cella/runtime/program.hpp>

namespace element_count {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const { return reshape(x, {32, 256}); }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const { return reshape(x, {32, -1}); }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 6, 14, 14>>;

}  // namespace element_count
