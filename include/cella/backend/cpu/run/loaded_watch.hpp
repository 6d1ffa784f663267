// What is wanted to know of a plan that was made at run time: where its first NaN is made, how long
// its kernels take, and what it does. The tables that programs have as constants are made here when
// they are asked for.
#pragma once

#include <cella/backend/cpu/run/loaded_runner.hpp>
#include <cella/backend/cpu/run/peak.hpp>
#include <cella/backend/cpu/run/watch.hpp>
#include <cella/runtime/explain.hpp>
#include <cella/runtime/profile.hpp>
#include <memory>
#include <ostream>

namespace cella::cpu {

/// CELLA_DEBUG=nan: looks at what each step has written. See `run_watched`.
template <class T>
class loaded_watch {
 public:
  explicit loaded_watch(const loaded_runner<T>& of)
      : table_(detail::watch_maker(of.source(), of.plan().steps, of.plan().links).table),
        infinite_(of.source().nodes.size()) {
    // Each input has a memory space of its own, whatever its role.
    table_.inputs.clear();
    for (std::size_t i = 0; i < of.source().inputs.size(); ++i) {
      const node_id n = of.source().input(int(i));
      const tensor_type t = of.source().type(n);
      if (may_be_infinite(t.element))
        table_.inputs.push_back({n, t, {first_argument + std::int32_t(i), 0}});
    }
  }
  [[gnu::cold]] void run(loaded_runner<T>& on) {
    look_at_inputs<lanes<T>>(view_of(table_), on.addresses(), infinite_);
    on.prepare();
    for (std::size_t k = 0; k < on.call_count(); ++k) {
      on.run_call(k);
      if (k + 1 == on.call_count() || on.step_of(k + 1) != on.step_of(k))
        look_at_step<lanes<T>>(view_of(table_), on.addresses(), infinite_, on.step_of(k));
    }
  }

 private:
  growing_watch table_;
  flags infinite_;
};

/// The labels of the calls of a plan: see CELLA_PROFILE.
template <class T>
[[gnu::cold]] std::vector<call_label> labels_of_calls(const loaded_runner<T>& of) {
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
template <class T>
[[gnu::cold]] void explain_plan(std::ostream& out, const loaded_runner<T>& of,
                                const explain_options& options) {
  const growing_plan& p = of.plan();
  cella::detail::program_facts facts{of.source(),
                                     {p.steps.data(), p.steps.size()},
                                     {p.results.data(), p.results.size()},
                                     {p.links.data(), p.links.size()},
                                     p.arena_bytes,
                                     p.arena_bytes_without_reuse,
                                     p.live_bytes,
                                     0,
                                     0,
                                     dtype_of<T>,
                                     lanes<T>,
                                     of.source().changes_inputs()};
  // The caller owns all inputs, each in a memory space of its own.
  for (std::size_t i = 0; i < facts.g.inputs.size(); ++i) {
    facts.g.inputs[i].role = input_role::argument;
    facts.g.inputs[i].index = std::int32_t(i);
  }
  std::string none;
  if (options.graphs) cella::detail::print_stage(out, "planned", facts.g, none);
  cella::detail::print_plan(out, facts, options);
}

}  // namespace cella::cpu
