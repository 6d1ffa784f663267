// Graphs of functions of vars, as they are before passes, and what graphs compute from random
// numbers.
#pragma once

#include <source_location>
#include <vector>

#include "../support/compare.hpp"
#include "../support/traced.hpp"

namespace cella::test {

inline graph graph_of(const vars_function& f, const std::vector<tensor_type>& types) {
  return std::move(traced_function(f, types).b.g);
}

/// All numbers of all results, one after the other.
inline reals values_of(const graph& g) {
  generator random(3);
  std::vector<valued_tensor> inputs;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    valued_tensor& t = inputs.emplace_back(valued_tensor{g.type(g.input(int(i))), {}});
    for (std::int64_t k = 0; k < t.type.size(); ++k) t.values.push_back(random.uniform() - 0.5);
  }
  reals all;
  for (const valued_tensor& t : run_graph(g, inputs))
    all.insert(all.end(), t.values.begin(), t.values.end());
  return all;
}

/// Whether two graphs compute the same, but for rounding.
inline void check_same_values(const graph& a, const graph& b,
                              std::source_location at = std::source_location::current()) {
  check_close(values_of(b), values_of(a), 1e-12, at);
}

}  // namespace cella::test
