// What runtime_path.hpp declares.
#pragma once

#include <array>
#include <cella/backend/default.hpp>
#include <cella/graph/live_nodes.hpp>
#include <cella/train/runtime_path.hpp>
#include <cstring>
#include <string>

namespace cella {

[[gnu::cold]] CELLA_BODY void refuse_shared_state() {
  throw error(
      "this net changes its states or draws random numbers when it predicts, so that predictors "
      "cannot share it; give each thread a model of its own");
}

[[gnu::cold]] CELLA_BODY void refuse_null_column(std::string_view name) {
  throw error("the address of column \"" + std::string(name) +
              "\" is null, but the step reads it; hand over its memory");
}

CELLA_BODY runtime_path::runtime_path(const input_memory& memory, compute_function with)
    : memory_(memory), compute_(with) {}
CELLA_BODY runtime_path::~runtime_path() = default;

CELLA_BODY void runtime_path::run(const graph& g) {
  const default_backend::arithmetic guard;
  check_addresses(g);
  for (std::size_t i = 0; i < g.inputs.size(); ++i) bind(g, int(i));
  interpret(g, values_, compute_);
  finish(g);
}
CELLA_BODY void runtime_path::run(const graph& g, loaded_program& planned) {
  if (memory_.shared && g.changes_inputs()) refuse_shared_state();
  check_addresses(g);
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    planned.bind(int(i),
                 locate(g.inputs[i], g.view(g.inputs[i].name), g.type(g.input(int(i)))).data);
  }
  planned();
  int results = 0;
  for (const output_info& o : g.outputs) {
    if (o.updates < 0) results_.push_back(planned.result(results++));
  }
}
CELLA_BODY void runtime_path::run_eagerly(const std::function<void(builder&)>& trace,
                                          trace_options options) {
  const default_backend::arithmetic guard;
  builder b;
  b.training = options.training;
  b.precision = options.precision;
  b.eager = this;
  graph_ = &b.g;
  trace(b);
  finish(b.g);
}

CELLA_BODY void runtime_path::evaluate(const graph& g, node_id n) {
  bind_operands(g, g.operands(n));
  values_.evaluate(g, n, compute_);
}
CELLA_BODY double runtime_path::read(node_id n, std::int64_t i) const {
  if (values_.has(n)) return read_element(values_.value(n), i);
  const std::array input{n};  // nobody has computed with it yet
  runtime_path first(memory_, compute_);
  first.bind_operands(*graph_, input);
  return read_element(first.values_.value(n), i);
}

/// In eager mode inputs appear while the cell runs: an optimizer asks for its slots.
CELLA_BODY void runtime_path::bind_operands(const graph& g, std::span<const node_id> operands) {
  for (node_id o : operands) {
    if (values_.has(o)) continue;
    for (std::size_t i = 0; i < g.inputs.size(); ++i) {
      if (g.input(int(i)) != o) continue;
      if (is_nowhere(g, int(i))) refuse_null_column(g.view(g.inputs[i].name));
      bind(g, int(i));
    }
  }
}
CELLA_BODY void runtime_path::bind(const graph& g, int i) {
  values_.bind(g.input(i), locate(g.inputs[std::size_t(i)], g.view(g.inputs[std::size_t(i)].name),
                                  g.type(g.input(i))));
}

CELLA_BODY bool runtime_path::is_nowhere(const graph& g, int i) const {
  const input_info& in = g.inputs[std::size_t(i)];
  if (in.role != input_role::argument) return false;
  const tensor_ref& at = memory_.arguments[std::size_t(in.index)];
  return !at.data && at.type.bytes() > 0;
}
CELLA_BODY void runtime_path::check_addresses(const graph& g) const {
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    if (is_nowhere(g, int(i)) && reads_input(g, int(i)))
      refuse_null_column(g.view(g.inputs[i].name));
  }
}

CELLA_BODY tensor_ref runtime_path::locate(const input_info& in, std::string_view name,
                                           const tensor_type& type) {
  switch (in.role) {
    case input_role::argument:
      return memory_.arguments[std::size_t(in.index)];
    case input_role::slot:
      if (const named_slot* s = memory_.slots ? memory_.slots->find(name) : nullptr)
        return memory_.slots->value(*s);
      break;
    case input_role::scalar:
      for (const named_scalar& s : memory_.scalars) {
        if (s.name != name) continue;
        check_step(name, s.value);
        return number(type, s.value);
      }
      break;
    default:
      if (name == "random")
        return {reinterpret_cast<std::byte*>(memory_.parameters->random_state()), type};
      if (const named_parameter* p = memory_.parameters->find(name))
        return memory_.parameters->value(*p);
  }
  throw error(text() << "the input \"" << name
                     << "\" of the step has no memory: it is neither a parameter nor a slot nor "
                        "a number that the model hands over; rename it");
}
CELLA_BODY tensor_ref runtime_path::number(const tensor_type& type, double value) {
  numbers_.emplace_back(std::size_t(8));
  const tensor_ref r{numbers_.back().data(), type};
  write_element(r, 0, value);
  return r;
}

/// Keeps the results, then replaces updated inputs: an update that is itself an input is copied
/// before that input changes.
CELLA_BODY void runtime_path::finish(const graph& g) {
  const auto& outputs = g.regions[0].outputs;
  if (memory_.shared && g.changes_inputs()) refuse_shared_state();
  bind_operands(g, outputs);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const tensor_ref v = values_.value(outputs[k]);
    if (g.outputs[k].updates < 0 || g.nodes[std::size_t(outputs[k])].op == &input_info_of) {
      numbers_.emplace_back(std::size_t(v.type.bytes()));
      const tensor_ref copy{numbers_.back().data(), v.type};
      if (v.type.bytes()) std::memcpy(copy.data, v.data, std::size_t(v.type.bytes()));
      updated_.push_back(copy);
    } else {
      updated_.push_back(v);
    }
    if (g.outputs[k].updates < 0) results_.push_back(updated_.back());
  }
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (g.outputs[k].updates < 0 || !updated_[k].type.bytes()) continue;
    const std::array target{g.input(g.outputs[k].updates)};
    bind_operands(g, target);
    std::memcpy(values_.value(target[0]).data, updated_[k].data,
                std::size_t(updated_[k].type.bytes()));
  }
}

}  // namespace cella
