// How a model runs, and what its type is made for.
#pragma once

#include <cella/graph/dtype.hpp>
#include <cella/runtime/compiled_once.hpp>
#include <cstdint>

namespace cella {

/// How a model runs.
enum class execution : std::uint8_t {
  graph,   ///< by programs that are compiled with it
  eager,   ///< node by node, with values that can be read
  runtime  ///< traced and planned when it is first used, on the kernels of cella::kernels
};

/// What a model's type is made for.
struct model_options {
  int batch = 32;  ///< samples per training step
  dtype precision = dtype::f32;
  /// False: no programs are compiled, which takes most of the compiler's time, and the model runs
  /// in the other two modes: eagerly, where cells may branch on values, or planned at run time.
  bool compiled = !in_development;
};

}  // namespace cella
