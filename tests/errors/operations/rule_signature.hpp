// A rule of an operation has another signature.
//
// A rule is what it is by its name and its parameters. Here the operand is missing by which the
// derivative is asked for.
#pragma once

#include <cella/ops/elementwise.hpp>
#include <cella/runtime/program.hpp>

namespace rule_signature {
using namespace cella;

struct wrong_cube_op : elementwise<wrong_cube_op> {
  static constexpr std::string_view name = "cube";
  static constexpr auto apply(auto x) { return x * x * x; }
  static constexpr var partial(node_ref n) { return 3 * n.operand(0) * n.operand(0); }
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

}  // namespace rule_signature
