// What an optimizer keeps for the parameters of a net.
#pragma once

#include <cella/graph/builder.hpp>
#include <cella/optim/update.hpp>
#include <cella/transform/trace.hpp>
#include <utility>

namespace cella::detail {

/// The optimizer's rule for each parameter: its inputs are those of the training step, without the
/// net, which may not be traceable.
template <auto Optimizer, class Cell>
graph optimizer_graph(Cell& net, dtype precision) {
  builder b;
  b.precision = precision;
  bind_cell(b, net);
  const std::size_t owned = b.g.inputs.size();
  optim::gradient_list g{&b};
  for (std::size_t i = 0; i < owned; ++i) {
    const input_info& in = b.g.inputs[i];
    if (in.role != input_role::parameter || !optim::takes(Optimizer, b.g.view(in.name))) continue;
    const tensor_type t = b.g.type(b.g.input(int(i)));
    g.all.push_back({std::int32_t(i), {&b, b.input(t, input_role::argument, "gradient")}});
  }
  optim::detail::update_all(Optimizer, g);
  return std::move(b.g);
}

}  // namespace cella::detail
