// What CELLA_DEBUG=nan looks at: a table of what each step of a program writes.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/host/finite.hpp>
#include <cella/graph/frozen_graph.hpp>
#include <cella/graph/slots.hpp>
#include <cella/ops/arithmetic.hpp>
#include <cella/ops/constant.hpp>
#include <cella/ops/control.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/plan/options.hpp>
#include <cella/plan/plan.hpp>

namespace cella::cpu {

/// A value that a step writes, and how its elements lie: dense, or, where a loop nest writes a part
/// of a tensor, `strides` elements apart.
struct watched_value {
  node_id value = no_node;
  tensor_type type{};
  buffer_ref at{};
  layout arrangement{};
  int loops{};  ///< 0: dense
  std::int64_t first{};
  std::array<std::int64_t, max_loops> loop{}, strides{};
};

/// A range of another table.
struct table_range {
  int first{};
  int last{};
};

struct watched_step {
  step_kind kind{};
  bool infinite{};  ///< it computes with an infinite constant
  table_range outputs{};
  table_range sources{};     ///< the values that it is computed from
  table_range operations{};  ///< what it computes: the first few of `computed`
  int computed{};
};

/// What a program reads, and where that lies.
struct placed_input {
  node_id value = no_node;
  buffer_ref at{};
};

/// Operations that a message names of one step.
inline constexpr int most_named = 6;

/// The table while it is made, and as a constant.
struct growing_watch {
  list<watched_step> steps;
  list<watched_value> inputs, outputs;
  list<node_id> sources;
  list<placed_operation> operations;
};
template <int Steps, int Inputs, int Outputs, int Sources, int Operations>
struct watch_table {
  std::array<watched_step, std::size_t(Steps)> steps{};
  std::array<watched_value, std::size_t(Inputs)> inputs{};
  std::array<watched_value, std::size_t(Outputs)> outputs{};
  std::array<node_id, std::size_t(Sources)> sources{};
  std::array<placed_operation, std::size_t(Operations)> operations{};
};

namespace detail {

/// Makes the table of a program over `g`: a graph, or in the compiler a frozen one, which takes
/// longer to thaw than to read.
template <class Graph>
class watch_maker {
 public:
  constexpr watch_maker(const Graph& g, span<const placed_input> placed,
                        span<const plan_step> plan_steps, span<const buffer_ref> plan_links)
      : g_(g), links_(plan_links), seen_(g.nodes.size(), 0) {
    for (const placed_input& in : placed) {
      seen_[std::size_t(in.value)] = 1;
      add(table.inputs, in.value, in.at);
    }
    for (const plan_step& s : plan_steps) {
      watched_step w{.kind = s.kind};
      w.outputs.first = int(table.outputs.size());
      add_outputs(s);
      // A sum that this step's kernel yields as well is described by a step without a kernel.
      if (s.side >= 0) put_outputs(plan_steps[std::size_t(s.side)]);
      w.outputs.last = int(table.outputs.size());
      describe(s, w);
      table.steps.push_back(w);
    }
  }

  growing_watch table;

 private:
  constexpr void add_outputs(const plan_step& s) {
    if (is_conversion(s.kind) || s.kind == step_kind::move || s.carried) return;
    put_outputs(s);
  }
  constexpr void put_outputs(const plan_step& s) {
    if (s.kind == step_kind::control) {
      const node& n = g_.nodes[std::size_t(s.anchor)];
      for (int k = 0; k < n.result_count; ++k) {
        const tensor_type t = g_.result_type(s.anchor, k);
        if (!may_be_infinite(t.element)) continue;
        table.outputs.push_back(
            {s.anchor, t, links_[std::size_t(s.first_link + n.operand_count + k)]});
      }
      return;
    }
    for (int k = 0; k < s.output_count; ++k) {
      const step_output& o = s.outputs[std::size_t(k)];
      if (o.value < 0) continue;
      watched_value* const v = add(table.outputs, o.value, o.at);
      if (!v) continue;
      v->arrangement = o.form;
      if (o.summed) v->type.shape = {s.as<rows_step>().units(), s.as<rows_step>().width};
      if (!o.part) continue;
      for (int i = 0; i < s.loops; ++i) {
        if (s.folded >> i & 1) continue;
        v->loop[std::size_t(v->loops)] = s.loop[std::size_t(i)];
        v->strides[std::size_t(v->loops++)] = o.strides[std::size_t(i)];
      }
      v->first = o.first;
    }
  }
  constexpr watched_value* add(list<watched_value>& to, node_id n, buffer_ref at) {
    if (!may_be_infinite(g_.type(n).element)) return nullptr;
    to.push_back({n, g_.type(n), at});
    return &to.back();
  }

  // ---- what a step computes

  constexpr void describe(const plan_step& s, watched_step& w) {
    w.sources.first = int(table.sources.size());
    w.operations.first = int(table.operations.size());
    members_.clear();
    for (int i = w.outputs.first; i < w.outputs.last; ++i)
      collect(table.outputs[std::size_t(i)].value, w);
    if (w.outputs.first < w.outputs.last) add_operations(s, w);
    w.sources.last = int(table.sources.size());
    w.operations.last = int(table.operations.size());
  }
  /// The nodes behind `n` that no step before has computed.
  constexpr void collect(node_id n, watched_step& w) {
    const node& x = g_.nodes[std::size_t(n)];
    if (is<constant_op>(x)) {
      const double value = x.attributes.template as<constant_op::options>().value;
      w.infinite |= !is_finite(value);
      return;
    }
    if (is<values_op>(x)) {
      if (!is_integer(x.type.element)) w.infinite |= holds_infinity(n);
      return;
    }
    if (seen_[std::size_t(n)]) {
      table.sources.push_back(n);
      return;
    }
    seen_[std::size_t(n)] = 1;
    for (node_id o : g_.operands(n)) collect(o, w);
    members_.push_back(n);
  }
  /// In constant evaluation, too, where infinities cannot be computed with.
  static constexpr bool is_finite(double value) {
    constexpr double largest = std::numeric_limits<double>::max();
    return value >= -largest && value <= largest;
  }
  /// Whether a constant tensor holds what is not finite.
  constexpr bool holds_infinity(node_id n) const {
    bool infinite = false;
    const tensor_type t = g_.type(n);
    with_element(t.element, [&]<class T>() {
      for_each_element<T>(g_.values_of(n), std::size_t(t.size()), [&](std::size_t, T x) {
        if constexpr (is_complex(dtype_of<T>))
          infinite |= !is_finite(x.real()) || !is_finite(x.imag());
        else
          infinite |= !is_finite(double(x));
      });
    });
    return infinite;
  }
  constexpr void add_operations(const plan_step& s, watched_step& w) {
    // A small body runs as one function, of which only the results are seen.
    if (s.kind == step_kind::control) {
      for (int r : g_.nodes[std::size_t(s.anchor)].regions) {
        if (r < 0) continue;
        add_nodes_of(g_, r);
      }
    }
    ids seen;
    for (node_id n : members_) {
      const node& x = g_.nodes[std::size_t(n)];
      const bool summed_up = is<matmul_op>(x) && s.kind == step_kind::elementwise;
      const bool computes = x.op->pointwise || x.op->kind == op_kind::control || n == s.anchor ||
                            n == s.accumulated || summed_up;
      if (!computes || x.op == &get_info_of || is<identity_op>(x)) continue;
      if (known(seen, x)) continue;
      seen.push_back(n);
      if (w.computed++ < most_named) table.operations.push_back(place_of_operation(x));
    }
  }
  constexpr bool known(const ids& seen, const node& x) const {
    for (node_id n : seen) {
      if (place_of_operation(g_.nodes[std::size_t(n)]) == place_of_operation(x)) return true;
    }
    return false;
  }
  constexpr void add_nodes_of(const graph& g, int r) {
    const auto& body = g.regions[std::size_t(r)].nodes;
    members_.insert(members_.end(), body.begin(), body.end());
  }
  template <graph_sizes Sizes>
  constexpr void add_nodes_of(const frozen_graph<Sizes>& g, int r) {
    const frozen_region& body = g.regions[std::size_t(r)];
    for (int k = 0; k < body.node_count; ++k) members_.push_back(body.first_node + k);
  }

  const Graph& g_;
  span<const buffer_ref> links_;
  flags seen_;
  ids members_;
};

/// Inputs that have a memory space each: those of regions.
constexpr list<placed_input> inputs_of_region(const auto& g, int region) {
  list<placed_input> all;
  const frozen_region& r = g.regions[std::size_t(region)];
  for (int k = 0; k < r.input_count; ++k)
    all.push_back({r.first_node + k, {first_argument + k, 0}});
  return all;
}
/// Those of a program, where its executable has them.
constexpr list<placed_input> inputs_of_program(const auto& g) {
  list<placed_input> all;
  const input_offsets parameters = offsets_of(g, {input_role::parameter, input_role::state});
  const input_offsets slots = offsets_of(g, {input_role::slot});
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const input_info& in = g.inputs[i];
    buffer_ref at{first_argument + in.index, 0};
    if (parameters.offset[i] >= 0) at = {parameter_space, parameters.offset[i]};
    if (slots.offset[i] >= 0) at = {slot_space, slots.offset[i]};
    if (in.role == input_role::scalar) at = {scalar_space, in.index * std::int64_t{8}};
    all.push_back({g.input(int(i)), at});
  }
  return all;
}
template <class P>
constexpr growing_watch make_watch() {
  const auto inputs = [] {
    if constexpr (requires { P::region; })
      return inputs_of_region(P::graph, P::region);
    else
      return inputs_of_program(P::graph);
  }();
  return watch_maker(P::graph, inputs, P::plan.steps, P::plan.links).table;
}

/// The table in room to spare, so that it is made once; but where uncommonly much is read.
template <std::size_t Steps, std::size_t Nodes>
struct roomy_watch {
  cella::detail::slots<watched_step, Steps> steps;
  cella::detail::slots<watched_value, Nodes> inputs, outputs;
  cella::detail::slots<node_id, 4 * Nodes> sources;
  cella::detail::slots<placed_operation, most_named * Steps> operations;

  constexpr explicit roomy_watch(const growing_watch& w) {
    for (const watched_step& x : w.steps) steps.push_back(x);
    for (const watched_value& x : w.inputs) inputs.push_back(x);
    for (const watched_value& x : w.outputs) outputs.push_back(x);
    sources.append(w.sources);
    for (const placed_operation& x : w.operations) operations.push_back(x);
  }
  constexpr bool fits() const {
    return steps.fits() && inputs.fits() && outputs.fits() && sources.fits() && operations.fits();
  }
};
template <class P>
inline constexpr roomy_watch<P::plan.steps.size(), P::graph.nodes.size()> watch_draft(
    make_watch<P>());

/// The table of program P as a constant.
template <class P>
constexpr auto make_watch_table() {
  constexpr auto& draft = watch_draft<P>;
  watch_table<draft.steps.size, draft.inputs.size, draft.outputs.size, draft.sources.size,
              draft.operations.size>
      t;
  if constexpr (draft.fits()) {
    draft.steps.copy_to(t.steps);
    draft.inputs.copy_to(t.inputs);
    draft.outputs.copy_to(t.outputs);
    draft.sources.copy_to(t.sources);
    draft.operations.copy_to(t.operations);
  } else {
    const growing_watch w = make_watch<P>();
    std::copy(w.steps.begin(), w.steps.end(), t.steps.begin());
    std::copy(w.inputs.begin(), w.inputs.end(), t.inputs.begin());
    std::copy(w.outputs.begin(), w.outputs.end(), t.outputs.begin());
    std::copy(w.sources.begin(), w.sources.end(), t.sources.begin());
    std::copy(w.operations.begin(), w.operations.end(), t.operations.begin());
  }
  return t;
}

template <class P>
inline constexpr auto watch_table_of = make_watch_table<P>();

}  // namespace detail

}  // namespace cella::cpu
