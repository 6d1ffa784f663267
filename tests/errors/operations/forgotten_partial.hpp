// An elementwise operation does not say its derivative.
//
// A derivative that nobody wrote is no derivative of zero. Where it is zero almost everywhere, as
// that of a rounding, the operation says so: `struct round_op : elementwise<round_op>,
// zero_derivative`.
#pragma once

#include <cella/ops/elementwise.hpp>
#include <cella/runtime/program.hpp>

namespace forgotten_partial {
using namespace cella;

struct wrong_cube_op : elementwise<wrong_cube_op> {
  static constexpr std::string_view name = "cube";
  static constexpr auto apply(auto x) { return x * x * x; }
};

// Mended:

struct cube_op : elementwise<cube_op> {
  static constexpr std::string_view name = "cube";
  static constexpr auto apply(auto x) { return x * x * x; }
  static constexpr var partial(node_ref n, int) { return 3 * n.operand(0) * n.operand(0); }
};

/// The program of a cell that applies an operation.
template <class Op>
struct applied {
  constexpr var operator()(var x) const { return emit<Op>({}, std::source_location::current(), x); }
};
template <class Op>
using program_of = program<applied<Op>, false, dtype::f32, tensor<dtype::f32, 32>>;

}  // namespace forgotten_partial
