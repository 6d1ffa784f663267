// Graphs of functions of vars, as they are before passes, and what graphs compute from random
// numbers.
#pragma once

#include <cella/ops/array.hpp>
#include <cella/runtime/interpreter.hpp>
#include <functional>
#include <vector>

#include "../support/traced.hpp"

namespace cella::test {

inline graph graph_of(const vars_function& f, const std::vector<tensor_type>& types) {
  builder b;
  b.precision = dtype::f64;
  vars in;
  for (const tensor_type& t : types) in.push_back({&b, b.input(t, input_role::argument, "x")});
  ids out;
  for (var y : f(in)) {
    out.push_back(y.id);
    b.g.outputs.push_back({});
  }
  b.end(out);
  return std::move(b.g);
}

/// All numbers of all results, one after the other.
inline reals values_of(const graph& g) {
  value_store values;
  bindings memory;
  generator random(3);
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    test::tensor t{g.type(g.input(int(i))), {}};
    for (std::int64_t k = 0; k < t.type.size(); ++k) t.values.push_back(random.uniform() - 0.5);
    values.bind(g.input(int(i)), memory.store(t));
  }
  interpret(g, values);
  reals all;
  for (node_id n : g.regions[0].outputs) {
    for (double v : read(values.value(n)).values) all.push_back(v);
  }
  return all;
}

/// Whether two graphs compute the same, but for rounding.
inline void check_same_values(const graph& a, const graph& b) {
  const reals x = values_of(a);
  const reals y = values_of(b);
  REQUIRE(x.size() == y.size());
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(y[i] == doctest::Approx(x[i]).epsilon(1e-12));
}

}  // namespace cella::test
