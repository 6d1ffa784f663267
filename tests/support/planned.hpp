// Runs graphs that exist at run time only as the run-time tier does: through the passes, planned,
// on the kernels of the CPU.
#pragma once

#include <vector>

#include "support/traced.hpp"

namespace cella::test {

/// Whether that tier has what the graph needs.
bool can_be_planned(const graph& g);

/// The outputs of a graph for these inputs, computed by up to `threads` threads; parameters, if
/// there are any, are of type `element`.
std::vector<valued_tensor> run_planned(const graph& g, const std::vector<valued_tensor>& inputs,
                                       int threads = 1, dtype element = dtype::f64);

}  // namespace cella::test
