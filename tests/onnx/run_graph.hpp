// What a graph that was loaded computes, on kernels.
#pragma once

#include <cella/runtime/compiled_once.hpp>
#include <vector>

namespace cella::test {

/// The results of a graph of f32 arguments and results.
inline std::vector<std::vector<float>> run_graph(const graph& g,
                                                 std::vector<std::vector<float>> arguments) {
  loaded_program program(compiled_once::optimize(g), dtype::f32);
  for (std::size_t k = 0; k < arguments.size(); ++k)
    program.bind(int(k), reinterpret_cast<std::byte*>(arguments[k].data()));
  program();
  std::vector<std::vector<float>> all;
  for (std::size_t k = 0; k < g.outputs.size(); ++k) {
    const tensor_ref y = program.result(int(k));
    const auto* const first = reinterpret_cast<const float*>(y.data);
    all.emplace_back(first, first + y.type.size());
  }
  return all;
}

}  // namespace cella::test
