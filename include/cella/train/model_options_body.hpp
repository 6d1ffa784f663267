// What model_options.hpp declares.
#pragma once

#include <cella/interop/in_quotes.hpp>
#include <cella/train/model_options.hpp>
#include <cstdlib>
#include <string_view>

namespace cella::detail {

CELLA_BODY execution mode_of_environment(bool compiled, bool on_mesh) {
  const char* name = std::getenv("CELLA_EXECUTION");
  if (!name || !*name) {
    return on_mesh                ? execution::runtime
           : compiled             ? execution::graph
           : has_compiled_kernels ? execution::runtime
                                  : execution::eager;
  }
  const std::string_view value = name;
  if (value == "graph") return execution::graph;
  if (value == "eager") return execution::eager;
  if (value == "runtime") return execution::runtime;
  throw error("CELLA_EXECUTION is " + interop::in_quotes(value) +
              "; set it to graph, eager or runtime");
}

CELLA_BODY void check_mode(execution mode, bool compiled, bool on_mesh) {
  if (on_mesh && mode != execution::runtime)
    throw error(
        "a model on a mesh plans its steps when it runs; leave run_options::mode and "
        "CELLA_EXECUTION unset, or say runtime");
  if (mode == execution::graph && !compiled)
    throw error(
        "this model has nothing compiled (model_options::compiled is false); run it with "
        "execution::eager or execution::runtime");
  if (mode == execution::runtime && !has_compiled_kernels)
    throw error(
        "execution::runtime needs the kernels that are compiled once; link cella::kernels, or "
        "run the model with execution::graph or execution::eager");
}

}  // namespace cella::detail
