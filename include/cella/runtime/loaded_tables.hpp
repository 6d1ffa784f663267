// What is told of a plan that was made at run time: the labels of its calls, and what it does. The
// tables that programs have as constants are made here when they are asked for.
#pragma once

#include <cella/runtime/explain.hpp>
#include <cella/runtime/profile.hpp>
#include <ostream>
#include <vector>

namespace cella {

/// The labels of the calls of a plan: see CELLA_PROFILE.
template <class Runner>
[[gnu::cold]] std::vector<call_label> labels_of_calls(const Runner& of) {
  std::vector<step_label> steps;
  for (const plan_step& s : of.plan().steps) {
    const node& n = of.source().nodes[std::size_t(s.anchor)];
    steps.push_back(
        {s.kind, s.arrangement, n.cell, n.file, n.line, double(s.flops), double(s.bytes)});
  }
  std::vector<int> calls;
  for (std::size_t k = 0; k < of.call_count(); ++k) calls.push_back(of.step_of(k));
  return labels_of(steps, of.source().characters, calls);
}

/// What `explain` prints of a program: its graph, steps and memory.
template <class Runner>
[[gnu::cold]] void explain_plan(std::ostream& out, const Runner& of,
                                const explain_options& options) {
  const growing_plan& p = of.plan();
  detail::program_facts facts{of.source(),
                              {p.steps.data(), p.steps.size()},
                              {p.results.data(), p.results.size()},
                              {p.links.data(), p.links.size()},
                              p.arena_bytes,
                              p.arena_bytes_without_reuse,
                              p.live_bytes,
                              0,
                              0,
                              Runner::element,
                              Runner::vector_lanes,
                              of.source().changes_inputs()};
  // The caller owns all inputs, each in a memory space of its own.
  for (std::size_t i = 0; i < facts.g.inputs.size(); ++i) {
    facts.g.inputs[i].role = input_role::argument;
    facts.g.inputs[i].index = std::int32_t(i);
  }
  std::string none;
  if (options.graphs) detail::print_stage(out, "planned", facts.g, none);
  detail::print_plan(out, facts, options);
}

}  // namespace cella
