// Runs a function of vars on numbers, in each of the ways the library has, and catches its faults.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cella/graph/random.hpp>
#include <cella/ops/array.hpp>
#include <cella/runtime/interpreter.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace cella::test {

using reals = std::vector<double>;
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// A tensor of any element type with its values as doubles.
struct valued_tensor {
  tensor_type type{};
  reals values;
};

inline valued_tensor f64(const shape& s, reals values) {
  return {{dtype::f64, s}, std::move(values)};
}
inline valued_tensor i64(const shape& s, reals values) {
  return {{dtype::i64, s}, std::move(values)};
}
inline valued_tensor truths(const shape& s, reals values) {
  return {{dtype::boolean, s}, std::move(values)};
}
inline valued_tensor scalar(double value) { return f64({}, {value}); }

using vars = list<var>;
/// A function of several vars with several results, or with one.
using vars_function = std::function<vars(const vars&)>;
using var_function = std::function<var(const vars&)>;

/// Inputs of a builder, with memory for their values.
class bindings {
 public:
  var bind(builder& b, value_store& values, const valued_tensor& t);
  tensor_ref store(const valued_tensor& t);

 private:
  std::deque<aligned_buffer> memory_;
  int count_{};
};

valued_tensor read(const tensor_ref& r);

/// A builder in eager mode.
class eager_session {
 public:
  eager_session();
  ~eager_session();
  var operator()(const valued_tensor& t);
  valued_tensor value(var v) const;
  /// The value of `n` in memory; and `n` given a value.
  tensor_ref memory(node_id n) const;
  void bind(node_id n, const valued_tensor& t);

  builder b;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

/// The results of `f` in eager mode.
std::vector<valued_tensor> run_eagerly(const vars_function& f,
                                       const std::vector<valued_tensor>& inputs);

/// The outputs of a graph for these inputs.
std::vector<valued_tensor> run_graph(const graph& g, const std::vector<valued_tensor>& inputs);

/// A graph that was traced once at run time and runs on any values.
class traced_function {
 public:
  traced_function(const vars_function& f, const std::vector<tensor_type>& types);
  std::vector<valued_tensor> operator()(const std::vector<valued_tensor>& inputs) const {
    return run_graph(b.g, inputs);
  }

  builder b;
};

/// The results of `f` through a graph traced at run time.
std::vector<valued_tensor> run_traced(const vars_function& f,
                                      const std::vector<valued_tensor>& inputs);

/// The value of a function of vars in eager mode: `eval([](var x) { ... }, t)`.
template <class F, class... Tensors>
valued_tensor eval(F f, const Tensors&... inputs) {
  eager_session s;
  const std::array<var, sizeof...(Tensors)> x{s(inputs)...};
  return s.value(std::apply(f, x));
}

/// The sentence that `f` fails with in eager mode, without the place; the place must be in the file
/// of the caller. Inputs are zeros of the given types.
std::string fault(const std::function<void(const vars&)>& f, const std::vector<tensor_type>& types,
                  std::source_location at = std::source_location::current());

}  // namespace cella::test
