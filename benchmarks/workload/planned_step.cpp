#include "planned_step.hpp"

#include <cella/ops/cost.hpp>
#include <cella/runtime/compiled_once.hpp>

namespace cella::benchmark {

std::vector<tensor_type> argument_types_of(const graph& g) {
  std::vector<tensor_type> types;
  for (std::size_t k = 0; k < g.inputs.size(); ++k) {
    if (g.inputs[k].role == input_role::argument) types.push_back(g.type(g.input(int(k))));
  }
  return types;
}
std::vector<double> scalars_of(const graph& g) {
  bool counts = false;
  std::size_t most = 0;
  for (const input_info& in : g.inputs) {
    if (in.role != input_role::scalar) continue;
    counts |= g.view(in.name) == "step";
    most = std::max(most, std::size_t(in.index) + 1);
  }
  std::vector<double> numbers(most);
  for (const input_info& in : g.inputs) {
    if (in.role == input_role::scalar)
      numbers[std::size_t(in.index)] = g.view(in.name) == "step" ? 2
                                       : counts                  ? 1e-3
                                                                 : learning_rate;
  }
  return numbers;
}

double planned_step::operations() const { return double(operations_of_region(graph_, 0)); }

planned_step::planned_step(graph traced, dtype element, const parameter_store& store,
                           const std::vector<aligned_buffer>& arguments,
                           const std::vector<double>& scalars, thread_pool* threads)
    : graph_(compiled_once::optimize(std::move(traced))),
      slots_(graph_),
      scalars_(scalars.size() * 8),
      run_(graph_, element, threads) {
  for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
    const input_info& in = graph_.inputs[i];
    const std::string_view name = graph_.view(in.name);
    const auto index = std::size_t(in.index);
    std::byte* at = nullptr;
    switch (in.role) {
      case input_role::argument:
        at = arguments[index].data();
        break;
      case input_role::scalar:
        at = scalars_.data() + index * 8;
        write_element({at, graph_.type(graph_.input(int(i)))}, 0, scalars[index]);
        break;
      case input_role::slot:
        at = slots_.value(*slots_.find(name)).data;
        break;
      default:
        at = name == "random" ? reinterpret_cast<std::byte*>(store.random_state())
                              : store.value(*store.find(name)).data;
    }
    run_.bind(int(i), at);
  }
}

}  // namespace cella::benchmark
