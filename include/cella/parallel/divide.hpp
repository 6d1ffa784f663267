// From the graph of a step to the graph that a plan is for, and the plan.
#pragma once

#include <cella/parallel/plan.hpp>
#include <cella/parallel/shared_statistics.hpp>
#include <cella/parallel/stacked.hpp>

namespace cella::parallel {

/// A graph that can be divided, and how it is.
struct divided_graph {
  cella::graph graph;
  parallel_plan plan;
  bool all_unstacked = false;  ///< found, not asked for
};

/// The graph that ranks divide: batch norms are sums over samples, and parameters of several
/// matrices are one for each, if the strategy cuts their rows (or if `all`), so that attention can
/// be cut by heads: see `share_statistics` and `unstack_parameters`.
inline graph divisible(const graph& g, const strategy& s, bool all = false) {
  if (s.mode == mode::serial) return g;
  return unstack_parameters(share_statistics(g), [&](std::string_view name) {
    bool chosen = all;
    for (const tensor_cut& c : s.tensors) chosen |= c.dimension == 0 && matches(c.name, name);
    return chosen;
  });
}

/// Divides a step that has been through the passes; where everything is left to the search, it
/// takes parameters apart if that is cheaper. Throws `model_error` with the fault of the plan.
inline divided_graph divide(const graph& g, const device_mesh& m, const strategy& s,
                            const search_options& options = {}) {
  divided_graph d{divisible(g, s), {}};
  d.plan = make_parallel_plan(d.graph, m, s, options);
  if (s.mode == mode::automatic) {
    divided_graph other{divisible(g, s, true), {}, true};
    if (other.graph.inputs.size() > d.graph.inputs.size()) {
      other.plan = make_parallel_plan(other.graph, m, s, options);
      const bool fits = other.plan.fault.empty();
      if (fits && (!d.plan.fault.empty() || other.plan.seconds() < d.plan.seconds()))
        d = std::move(other);
    }
  }
  if (!d.plan.fault.empty()) throw model_error(d.plan.fault);
  return d;
}

}  // namespace cella::parallel
