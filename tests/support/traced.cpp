#include "support/traced.hpp"

#include <string_view>

namespace cella::test {

var bindings::bind(builder& b, value_store& values, const valued_tensor& t) {
  const node_id id = b.input(t.type, input_role::argument, "x" + std::to_string(count_++));
  values.bind(id, store(t));
  return {&b, id};
}
tensor_ref bindings::store(const valued_tensor& t) {
  REQUIRE(t.values.size() == std::size_t(t.type.size()));
  memory_.emplace_back(std::size_t(t.type.bytes()) + 1);
  const tensor_ref r{memory_.back().data(), t.type};
  for (std::size_t i = 0; i < t.values.size(); ++i) write_element(r, std::int64_t(i), t.values[i]);
  return r;
}

valued_tensor read(const tensor_ref& r) {
  valued_tensor t{r.type, {}};
  for (std::int64_t i = 0; i < r.type.size(); ++i) t.values.push_back(read_element(r, i));
  return t;
}

struct eager_session::state {
  eager_evaluator evaluator;
  bindings inputs;
};
eager_session::eager_session() : state_(std::make_unique<state>()) {
  b.precision = dtype::f64;
  b.eager = &state_->evaluator;
}
eager_session::~eager_session() = default;
var eager_session::operator()(const valued_tensor& t) {
  return state_->inputs.bind(b, state_->evaluator.values, t);
}
valued_tensor eager_session::value(var v) const { return read(memory(v.id)); }
tensor_ref eager_session::memory(node_id n) const { return state_->evaluator.values.value(n); }
void eager_session::bind(node_id n, const valued_tensor& t) {
  state_->evaluator.values.bind(n, state_->inputs.store(t));
}

std::vector<valued_tensor> run_eagerly(const vars_function& f,
                                       const std::vector<valued_tensor>& inputs) {
  eager_session s;
  vars x;
  for (const valued_tensor& t : inputs) x.push_back(s(t));
  std::vector<valued_tensor> results;
  for (const var& y : f(x)) results.push_back(s.value(y));
  return results;
}

std::vector<valued_tensor> run_graph(const graph& g, const std::vector<valued_tensor>& inputs) {
  value_store values;
  bindings memory;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    values.bind(g.input(int(i)), memory.store(inputs[i]));
  interpret(g, values);
  std::vector<valued_tensor> results;
  for (node_id y : g.regions[0].outputs) results.push_back(read(values.value(y)));
  return results;
}

traced_function::traced_function(const vars_function& f, const std::vector<tensor_type>& types) {
  b.precision = dtype::f64;
  vars x;
  for (const tensor_type& t : types)
    x.push_back({&b, b.input(t, input_role::argument, "x" + std::to_string(x.size()))});
  ids outputs;
  for (const var& y : f(x)) {
    outputs.push_back(y.id);
    b.g.outputs.push_back({});
  }
  b.end(outputs);
}

std::vector<valued_tensor> run_traced(const vars_function& f,
                                      const std::vector<valued_tensor>& inputs) {
  std::vector<tensor_type> types;
  for (const valued_tensor& t : inputs) types.push_back(t.type);
  return traced_function(f, types)(inputs);
}

std::string fault(const std::function<void(const vars&)>& f, const std::vector<tensor_type>& types,
                  std::source_location at) {
  eager_session s;
  vars x;
  for (const tensor_type& t : types)
    x.push_back(s({t, std::vector<double>(std::size_t(t.size()), 0.0)}));
  try {
    f(x);
  } catch (const model_error& e) {
    const std::string sentence = e.what();
    const std::string_view path = at.file_name();
    const std::string file(path.substr(path.rfind('/') + 1));
    if (!sentence.starts_with(file + ":")) return "no place in " + file + ": " + sentence;
    return sentence.substr(sentence.find(": ") + 2);
  }
  return "no fault";
}

}  // namespace cella::test
