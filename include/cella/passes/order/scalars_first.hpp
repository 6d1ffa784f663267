// Computes what follows from the numbers of a step (learning rate, step count) before all else.
#pragma once

#include <cella/ops/array.hpp>
#include <cella/passes/rewriting/move_first.hpp>
#include <cella/passes/simplify/fold.hpp>

namespace cella {

/// Moves single numbers that depend on nothing but inputs of the role `scalar` and constants to the
/// front of the main region. An optimizer writes them behind the gradients; there the kernels of
/// the gradients could not read them, and so could not make the update.
constexpr graph scalars_first(graph g) {
  const region& r = g.regions[0];
  // Made of constants and numbers of the step; and of at least one of the latter.
  flags known(g.nodes.size(), 0);
  flags varies(g.nodes.size(), 0);
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    if (g.inputs[i].role != input_role::scalar) continue;
    known[std::size_t(g.input(int(i)))] = varies[std::size_t(g.input(int(i)))] = 1;
  }
  for (node_id n : r.nodes) {
    const node& x = g.nodes[std::size_t(n)];
    if (is<constant_op>(x)) known[std::size_t(n)] = 1;
    if (!x.op->pointwise || x.type.size() != 1 || x.operand_count == 0) continue;
    known[std::size_t(n)] = 1;
    for (node_id o : g.operands(n)) {
      known[std::size_t(n)] &= known[std::size_t(o)];
      varies[std::size_t(n)] |= varies[std::size_t(o)];
    }
  }
  flags wanted(g.nodes.size(), 0);
  for (std::size_t i = r.nodes.size(); i-- > 0;) {
    const auto n = std::size_t(r.nodes[i]);
    wanted[n] |= known[n] && varies[n];
    if (!wanted[n]) continue;
    for (node_id o : g.operands(r.nodes[i])) wanted[std::size_t(o)] = 1;
  }
  move_first(g, wanted);
  return g;
}

}  // namespace cella
