#include "support/planned.hpp"

#include <cella/passes/pass.hpp>
#include <cella/runtime/loaded_program.hpp>

namespace cella::test {

bool can_be_planned(const graph& g) {
  return loaded_program::refusal(optimize(g), dtype::f64).empty();
}

std::vector<valued_tensor> run_planned(const graph& g, const std::vector<valued_tensor>& inputs,
                                       int threads, dtype element) {
  thread_pool pool(threads);
  loaded_program run(optimize(g), element, &pool);
  bindings memory;
  for (std::size_t i = 0; i < inputs.size(); ++i) run.bind(int(i), memory.store(inputs[i]).data);
  // The second call meets an arena that the first one has filled.
  for (int call = 0; call < 2; ++call) run();
  std::vector<valued_tensor> results;
  for (std::size_t k = 0; k < g.regions[0].outputs.size(); ++k)
    results.push_back(read(run.result(int(k))));
  return results;
}

}  // namespace cella::test
