// From the graph of a step to the graph that a plan is for, and the plan.
#pragma once

#include <algorithm>
#include <cella/parallel/joined_attention.hpp>
#include <cella/parallel/plan.hpp>
#include <cella/parallel/shared_statistics.hpp>
#include <cella/parallel/stacked.hpp>

namespace cella::parallel {

/// In which form a graph is divided, where that is left to the plan.
struct divided_form {
  bool unstacked = false;  ///< parameters of several matrices are one for each, asked for or not
  bool rings = false;      ///< attention is one operation, which may be a ring
};

/// A graph that can be divided, and how it is.
struct divided_graph {
  cella::graph graph;
  parallel_plan plan;
  divided_form form{};
};

/// The graph that ranks divide: batch norms are sums over samples, and parameters of several
/// matrices are one for each, if the strategy cuts their rows (or if the form says so), so that
/// attention can be cut by heads: see `share_statistics`, `unstack_parameters`, `join_attention`.
inline graph divisible(const graph& g, const strategy& s, const divided_form& form = {}) {
  if (s.mode == mode::serial) return g;
  const graph d = unstack_parameters(share_statistics(g), [&](std::string_view name) {
    bool chosen = form.unstacked;
    for (const tensor_cut& c : s.tensors) chosen |= c.dimension == 0 && matches(c.name, name);
    return chosen;
  });
  return form.rings ? join_attention(d) : d;
}

/// The forms in which a graph may be divided by a strategy, the plainest first. Rings are for what
/// is not divided by samples alone.
inline list<divided_form> forms_for(const strategy& s) {
  const bool is_free = s.mode == mode::automatic,
             is_open = is_free || s.mode == mode::semi_automatic;
  list<divided_form> all;
  for (bool rings : {false, true}) {
    if (rings ? !is_open || s.attention == attention_kind::gathered
              : is_open && s.attention == attention_kind::ring)
      continue;
    for (bool unstacked : {false, true})
      if (is_free || !unstacked) all.push_back({unstacked, rings});
  }
  return all;
}

/// Whether a plan is to be taken rather than the best so far: because it is faster by the model,
/// or, if it has rings, because it takes less memory and no more than 2 % longer.
constexpr bool is_better(const divided_graph& d, const divided_graph& best) {
  if (!d.plan.fault.empty()) return false;
  if (!best.plan.fault.empty()) return true;
  if (d.form.rings && !has_rings(d.plan, d.graph)) return false;
  const double seconds = d.plan.seconds(), least = best.plan.seconds();
  return seconds < least || (d.form.rings && seconds < 1.02 * least &&
                             d.plan.bytes_on_device < best.plan.bytes_on_device);
}

/// Divides a step that has been through the passes, in the form whose plan is the best of those
/// that fit into the memory of a device. Throws `model_error` with the fault of the plan.
inline divided_graph divide(const graph& g, const device_mesh& m, const strategy& s,
                            const search_options& options = {}) {
  divided_graph best;
  list<std::array<std::size_t, 2>> seen;
  for (const divided_form& form : forms_for(s)) {
    divided_graph d{divisible(g, s, form), {}, form};
    // A form of which there is nothing in the graph leaves it as it is.
    const std::array size{d.graph.inputs.size(), d.graph.nodes.size()};
    if (std::find(seen.begin(), seen.end(), size) != seen.end()) continue;
    d.plan = make_parallel_plan(d.graph, m, s, options);
    if (seen.empty() || is_better(d, best)) best = std::move(d);
    seen.push_back(size);
  }
  if (!best.plan.fault.empty()) throw model_error(best.plan.fault);
  return best;
}

}  // namespace cella::parallel
