// The results of a program, as its graph says them: no plan is asked for.
#pragma once

#include <cella/graph/graph.hpp>
#include <cstddef>

namespace cella::detail {

/// Outputs of program P that replace no input.
template <class P>
constexpr int result_count() {
  int n = 0;
  for (const output_info& o : P::graph.outputs) n += o.updates < 0;
  return n;
}
/// The type of the one in place `k` of them.
template <class P>
constexpr tensor_type result_type(int k) {
  std::size_t i = 0;
  while (P::graph.outputs[i].updates >= 0 || k-- > 0) ++i;
  return P::graph.type(P::graph.region_outputs(0)[i]);
}

}  // namespace cella::detail
