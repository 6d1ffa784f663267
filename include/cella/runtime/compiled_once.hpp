// What programs need that meet graphs at run time, and what takes the compiler longest there: the
// passes, the kernels of single operations, and those of plans. Linked with `cella::kernels` a
// program has them compiled once, in kernels.cpp; without, it compiles what it needs itself.
#pragma once

#include <cella/graph/graph.hpp>
#include <cella/graph/once.hpp>
#include <cella/graph/op_info.hpp>
#include <cella/ops/names.hpp>
#include <cella/runtime/loaded_program.hpp>

namespace cella {

/// Defined in kernels.cpp.
namespace compiled_once {

/// The graph after the standard passes.
graph optimize(graph g);
/// Computes one operation on plain tensors: a `compute_function`.
void compute(const op_info& op, const attributes& options, span<const tensor_ref> in,
             span<const tensor_ref> out);

}  // namespace compiled_once

}  // namespace cella
