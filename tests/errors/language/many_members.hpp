// A cell has more members than reflection counts.
//
// Members are counted up to 32, which keeps compilation short.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/runtime/program.hpp>

namespace many_members {
using namespace cella;

struct Wrong {
  int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z;
  int a1, b1, c1, d1, e1, f1, g1;

  constexpr var operator()(var input) const { return input * a; }
};

// Mended:

struct Mended {
  std::array<int, 33> options{};

  constexpr var operator()(var input) const { return input * options[0]; }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32, 32, 10>>;

}  // namespace many_members
