// A native loop asks a tensor.
//
// A native `if` on tensor values becomes a branch of the program, one for each way the function can
// go. A native loop would go on deciding without end; while_loop is the loop whose length the data
// decide.
#pragma once

#include <cella/ops/functions.hpp>
#include <cella/runtime/program.hpp>
#include <cella/transform/control.hpp>

namespace native_loop {
using namespace cella;

struct Wrong {
  constexpr var operator()(var x) const {
    while (x > 1) x = x / 2;
    return x;
  }
};

// Mended:

struct Mended {
  constexpr var operator()(var x) const {
    return while_loop([](var v) { return v > 1; }, [](var v) { return v / 2; }, x);
  }
};

/// The program that a cell becomes.
template <class Cell>
using program_of = program<Cell, false, dtype::f32, tensor<dtype::f32>>;

}  // namespace native_loop
