// Plans as compile-time constants.
#pragma once

#include <cella/graph/freeze.hpp>
#include <cella/graph/slots.hpp>
#include <cella/ops/control.hpp>
#include <cella/plan/planner.hpp>

namespace cella {

namespace detail {

/// A plan in room to spare, so that planning runs once: unused places cost nothing.
struct roomy_plan {
  slots<plan_step, 4096> steps;
  slots<plan_value, 256> results;
  slots<buffer_ref, 4096> links;
  plan_bytes bytes;
  bool fits{};

  template <int Steps, int Results, int Links>
  constexpr basic_plan<Steps, Results, Links> shrink() const {
    basic_plan<Steps, Results, Links> p;
    steps.copy_to(p.steps);
    results.copy_to(p.results);
    links.copy_to(p.links);
    static_cast<plan_bytes&>(p) = bytes;
    return p;
  }
};

/// Records are addresses: plans and kernels move them as 64-bit numbers.
constexpr graph with_stored_records(graph g) {
  for (node& n : g.nodes) n.type = stored(n.type);
  for (tensor_type& t : g.results) t = stored(t);
  return g;
}
template <class Planning>
constexpr roomy_plan draft_plan(graph source, plan_options options) {
  const graph g = with_stored_records(std::move(source));
  const planner<Planning> made(g, options);
  const growing_plan& p = made.result();
  roomy_plan r;
  for (const plan_step& s : p.steps) r.steps.push_back(s);
  for (const plan_value& v : p.results) r.results.push_back(v);
  for (const buffer_ref& l : p.links) r.links.push_back(l);
  r.bytes = p;
  r.fits = made.fault().empty() && r.steps.fits() && r.results.fits() && r.links.fits();
  return r;
}

}  // namespace detail

/// The plan of the graph that the function object `Make` returns, for the back end of `Planning`.
template <class Planning, auto Make, plan_options Options>
consteval auto make_plan() {
  constexpr auto draft = detail::draft_plan<Planning>(Make(), Options);
  static_assert(draft.fits, "this program is too large for one plan; split it");
  return draft.template shrink<draft.steps.size, draft.results.size, draft.links.size>();
}

/// What becomes of an output of a region that runs as a program: a result, or nothing, or the input
/// that it replaces.
inline constexpr int region_result = -1, not_wanted = -2;

/// Region `r` of `g` as the main region of a graph with the same nodes; its inputs are arguments,
/// and output k goes where `fates[k]` says.
constexpr graph region_graph(graph g, int r, span<const int> fates) {
  g.regions[0] = g.regions[std::size_t(r)];
  g.inputs.clear();
  g.outputs.clear();
  for (std::size_t i = 0; i < g.regions[0].inputs.size(); ++i)
    g.inputs.push_back({input_role::argument, {}, std::int32_t(i)});
  const ids outputs = g.regions[0].outputs;
  g.regions[0].outputs.clear();
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    if (fates[k] == not_wanted) continue;
    g.regions[0].outputs.push_back(outputs[k]);
    g.outputs.push_back({fates[k], {}});
  }
  return g;
}

}  // namespace cella
