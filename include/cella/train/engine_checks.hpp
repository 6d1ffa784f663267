// What an engine finds out when it runs: faults of labels, the loss of predictions, and what a net
// that nothing was compiled of yields. Included by engine.hpp.
#pragma once

#include <cella/graph/live_nodes.hpp>
#include <cella/train/engine.hpp>

namespace cella {

template <class Net, model_inputs Input, auto Loss, auto Optimizer, model_options Options>
double engine<Net, Input, Loss, Optimizer, Options>::loss(const outputs& predictions,
                                                          const inputs& x, const targets& y,
                                                          std::int64_t rows) {
  check_labels(y, rows);
  constexpr std::size_t count =
      output_count + (loss_call::takes_inputs ? input_count : 0) + target_count;
  std::array<tensor_ref, count> all;
  auto end =
      std::ranges::copy(detail::memory_of(predictions, for_rows(output_types_, rows)), all.begin())
          .out;
  if constexpr (loss_call::takes_inputs)
    end = std::ranges::copy(detail::memory_of(x, for_rows(input_types, rows)), end).out;
  const auto types_of_targets = for_rows(target_types_, rows);
  for (std::size_t k = 0; k < target_count; ++k) *end++ = {y[k], types_of_targets[k]};
  std::array<tensor_type, count> types;
  std::ranges::transform(all, types.begin(), &tensor_ref::type);
  runtime_path run({&store_, nullptr, all, {}}, detail::compute_alone<number>());
  losses_
      .get(
          rows, [&](builder& b) { trace_into(b, loss_, types); }, {false, precision},
          threads_.get())
      .run(run);
  return read_element(run.result(0), 0);
}

template <class Net, model_inputs Input, auto Loss, auto Optimizer, model_options Options>
void engine<Net, Input, Loss, Optimizer, Options>::check_labels(
    [[maybe_unused]] const targets& y, [[maybe_unused]] std::int64_t rows,
    [[maybe_unused]] std::int64_t first) const {
  if constexpr (requires { Loss.classes(output_types_[0]); }) {
    const auto* const label = reinterpret_cast<const typename target_columns::first*>(y[0]);
    if (!label && rows > 0) refuse_null_column(detail::argument_name(input_count));
    const std::int64_t classes = Loss.classes(output_types_[0]);
    for (std::int64_t i = 0; i < for_rows(target_types_[0], rows).size(); ++i) {
      if (std::int64_t(label[i]) >= 0 && std::int64_t(label[i]) < classes) continue;
      if constexpr (ignores_labels) {
        if (Loss.ignores(std::int64_t(label[i]))) continue;
      }
      throw error(text() << "label " << std::int64_t(label[i]) << " of sample " << first + i
                         << " of a batch is outside the model's " << classes
                         << " classes, which count from 0; mend the data or the model");
    }
  }
}

template <class Net, model_inputs Input, auto Loss, auto Optimizer, model_options Options>
std::int64_t engine<Net, Input, Loss, Optimizer, Options>::counted(
    [[maybe_unused]] const targets& y, std::int64_t rows) const {
  if constexpr (ignores_labels) {
    const auto* const label = reinterpret_cast<const typename target_columns::first*>(y[0]);
    return rows -
           std::count_if(label, label + rows, [](auto l) { return Loss.ignores(std::int64_t(l)); });
  } else {
    return rows;
  }
}

template <class Net, model_inputs Input, auto Loss, auto Optimizer, model_options Options>
void engine<Net, Input, Loss, Optimizer, Options>::check_addresses(
    [[maybe_unused]] const targets& y) {
  if constexpr (Options.compiled && target_count > 0) {
    static constexpr auto read = [] {
      constexpr auto& g = training::graph;
      std::array<bool, target_count> all{};
      for (std::size_t i = 0; i < g.inputs.size(); ++i) {
        const auto argument = std::size_t(g.inputs[i].index);
        if (g.inputs[i].role == input_role::argument && argument >= input_count)
          all[argument - input_count] = reads_input(g, int(i));
      }
      return all;
    }();
    for (std::size_t k = 0; k < target_count; ++k) {
      if (!y[k] && read[k]) refuse_null_column(detail::argument_name(input_count + k));
    }
  }
}

template <class Net, model_inputs Input, auto Loss, auto Optimizer, model_options Options>
void engine<Net, Input, Loss, Optimizer, Options>::ask_output_types() {
  if (mode == execution::runtime) {
    const graph g = trace(step_.net, input_types, {false, precision});
    for (std::size_t k = 0; k < output_count; ++k)
      output_types_[k] = g.type(g.regions[0].outputs[k]);
  } else {
    const std::array random{store_.random_state()[0], store_.random_state()[1]};
    std::array<std::vector<std::byte>, input_count> zeros;
    inputs x;
    for (std::size_t k = 0; k < input_count; ++k) {
      zeros[k].resize(std::size_t(input_types[k].bytes()));
      x[k] = zeros[k].data();
    }
    const auto arguments = detail::memory_of(x, input_types);
    runtime_path run({&store_, nullptr, arguments, {}}, detail::compute_alone<number>());
    run.run_eagerly([&](builder& b) { trace_into(b, step_.net, input_types); }, {false, precision});
    for (std::size_t k = 0; k < output_count; ++k) output_types_[k] = run.result(int(k)).type;
    std::copy(random.begin(), random.end(), store_.random_state());
  }
  target_types_ = detail::targets_of<Loss, labels, precision, Options.batch>(output_types_[0]);
}

}  // namespace cella
