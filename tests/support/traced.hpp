// Runs a function of vars on numbers, in each of the ways the library has, and catches its faults.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cella/graph/random.hpp>
#include <cella/ops/array.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cstdint>
#include <deque>
#include <limits>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace cella::test {

using reals = std::vector<double>;
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// A tensor of any element type with its values as doubles.
struct tensor {
  tensor_type type{};
  reals values;
};

inline tensor f64(const shape& s, reals values) { return {{dtype::f64, s}, std::move(values)}; }
inline tensor i64(const shape& s, reals values) { return {{dtype::i64, s}, std::move(values)}; }
inline tensor truths(const shape& s, reals values) {
  return {{dtype::boolean, s}, std::move(values)};
}
inline tensor scalar(double value) { return f64({}, {value}); }

using vars = std::vector<var>;

/// Inputs of a builder, with memory for their values.
class bindings {
 public:
  var bind(builder& b, value_store& values, const tensor& t) {
    const node_id id = b.input(t.type, input_role::argument, "x" + std::to_string(count_++));
    const tensor_ref memory = store(t);
    values.bind(id, memory);
    return {&b, id};
  }
  tensor_ref store(const tensor& t) {
    REQUIRE(t.values.size() == std::size_t(t.type.size()));
    memory_.emplace_back(std::size_t(t.type.bytes()) + 1);
    const tensor_ref r{memory_.back().data(), t.type};
    for (std::size_t i = 0; i < t.values.size(); ++i)
      write_element(r, std::int64_t(i), t.values[i]);
    return r;
  }

 private:
  std::deque<aligned_buffer> memory_;
  int count_{};
};

inline tensor read(const tensor_ref& r) {
  tensor t{r.type, {}};
  for (std::int64_t i = 0; i < r.type.size(); ++i) t.values.push_back(read_element(r, i));
  return t;
}

/// A builder in eager mode.
struct eager_session {
  builder b;
  eager_evaluator evaluator;
  bindings inputs;

  eager_session() {
    b.precision = dtype::f64;
    b.eager = &evaluator;
  }
  var operator()(const tensor& t) { return inputs.bind(b, evaluator.values, t); }
  tensor value(var v) const { return read(evaluator.values.value(v.id)); }
};

/// The results of `f(vars)` (a list of vars) in eager mode.
template <class F>
std::vector<tensor> run_eagerly(F f, const std::vector<tensor>& inputs) {
  eager_session s;
  vars x;
  for (const tensor& t : inputs) x.push_back(s(t));
  std::vector<tensor> results;
  for (const var& y : f(x)) results.push_back(s.value(y));
  return results;
}

/// A graph that was traced once at run time and runs on any values.
class traced_graph {
 public:
  template <class F>
  traced_graph(F f, const std::vector<tensor_type>& types) {
    b.precision = dtype::f64;
    vars x;
    for (const tensor_type& t : types)
      x.push_back({&b, b.input(t, input_role::argument, "x" + std::to_string(x.size()))});
    for (const var& y : f(x)) outputs_.push_back(y.id);
  }

  std::vector<tensor> operator()(const std::vector<tensor>& inputs) const {
    value_store values;
    bindings memory;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      values.bind(b.g.input(int(i)), memory.store(inputs[i]));
    interpret(b.g, values);
    std::vector<tensor> results;
    for (node_id y : outputs_) results.push_back(read(values.value(y)));
    return results;
  }

  builder b;

 private:
  std::vector<node_id> outputs_;
};

/// The results of `f(vars)` through a graph traced at run time.
template <class F>
std::vector<tensor> run_traced(F f, const std::vector<tensor>& inputs) {
  std::vector<tensor_type> types;
  for (const tensor& t : inputs) types.push_back(t.type);
  return traced_graph(f, types)(inputs);
}

/// The value of a function of vars in eager mode: `eval([](var x) { ... }, t)`.
template <class F, class... Tensors>
tensor eval(F f, const Tensors&... inputs) {
  eager_session s;
  const std::array<var, sizeof...(Tensors)> x{s(inputs)...};
  return s.value(std::apply(f, x));
}

/// The sentence that `f` fails with in eager mode, without the place; the place must be in the file
/// of the caller. Inputs are zeros of the given types.
template <class F>
std::string fault(F f, const std::vector<tensor_type>& types,
                  std::source_location at = std::source_location::current()) {
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
