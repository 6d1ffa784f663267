// What the steps of a program compute, as formulas over the values that lie in memory.
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/print.hpp>
#include <cella/runtime/program.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cella::detail {

/// What is printed of a program, as plain data: one instance serves all programs.
struct program_facts {
  graph g;
  std::span<const plan_step> steps;
  std::span<const plan_value> results;
  std::span<const buffer_ref> links;
  std::int64_t arena, arena_without_reuse, live, parameters, slots;
  dtype element;
  int lanes;
  bool training;
};
template <class P>
program_facts facts_of() {
  const auto& p = P::plan;
  return {thaw(P::graph),
          {p.steps.data(), std::size_t(p.step_count)},
          {p.results.data(), std::size_t(p.result_count)},
          {p.links.data(), p.links.size()},
          p.arena_bytes,
          p.arena_bytes_without_reuse,
          p.live_bytes,
          p.parameter_bytes,
          p.slot_bytes,
          P::element_type,
          P::backend::planning::machine.lanes(P::element_type),
          P::training};
}

/// Writes what a step computes as formulas over the values that lie in memory.
class formulas {
 public:
  explicit formulas(const program_facts& p) : g_(p.g), stored_(g_.nodes.size(), 0), names_(g_) {
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) stored_[std::size_t(g_.input(int(i)))] = 1;
    for (node_id n : g_.regions[0].nodes) stored_[std::size_t(n)] |= at(n).op->traits.stored;
    for (const plan_step& s : p.steps) {
      for (int k = 0; k < s.output_count; ++k) {
        if (s.outputs[std::size_t(k)].value >= 0)
          stored_[std::size_t(s.outputs[std::size_t(k)].value)] = 1;
      }
      if (s.pool_argmax.valid()) stored_[std::size_t(pool_argmax(s))] = 1;
      if (s.kind != step_kind::control) continue;
      for (node_id n : control_results(s)) {
        if (n >= 0) stored_[std::size_t(n)] = 1;
      }
    }
  }

  /// `%12`, `fc1.weight`, or `fc1.weight'` for its new value.
  std::string name(node_id n) const {
    n = source(n);
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      if (g_.outputs[k].updates >= 0 && g_.regions[0].outputs[k] == n)
        return input_name(g_.input(g_.outputs[k].updates)) + "'";
    }
    if (g_.nodes[std::size_t(n)].op == &input_info_of) return input_name(n);
    return names_[n];
  }
  /// The value of node n, whether it lies in memory or not.
  std::string definition(node_id n) const { return apply(n, 0); }

  /// The positions that a pooling step writes.
  node_id pool_argmax(const plan_step& s) const {
    return result_of(g_.operand(s.accumulated, 0), 1);
  }
  /// What a control step writes; no_node where nobody reads it.
  std::vector<node_id> control_results(const plan_step& s) const {
    std::vector<node_id> all;
    for (int k = 0; k < at(s.anchor).result_count; ++k) all.push_back(result_of(s.anchor, k));
    return all;
  }
  /// Through reshapes, which share their operand's memory; of several nodes that read one result,
  /// the first.
  node_id source(node_id n) const {
    while (at(n).op->traits.alias) n = g_.operand(n, 0);
    if (at(n).op != &get_info_of) return n;
    const node_id first = result_of(g_.operand(n, 0), at(n).attributes.as<get_attributes>().result);
    return first < 0 ? n : first;
  }
  /// What is read in place of a value: broadcasts repeat their operand, products have two.
  node_id read_value(const operand_read& r) const {
    if (r.factor >= 0) return g_.operand(r.value, r.factor);
    return is<broadcast_op>(at(r.value)) ? g_.operand(r.value, 0) : r.value;
  }

 private:
  const node& at(node_id n) const { return g_.nodes[std::size_t(n)]; }
  /// The node that reads result k of another.
  node_id result_of(node_id owner, int k) const {
    for (node_id n : g_.regions[0].nodes) {
      if (at(n).op == &get_info_of && g_.operand(n, 0) == owner &&
          at(n).attributes.as<get_attributes>().result == k)
        return n;
    }
    return no_node;
  }
  std::string input_name(node_id n) const { return names_[n].substr(1); }

  std::string term(node_id n, int precedence) const {
    n = source(n);
    if (is<broadcast_op>(at(n)) && !stored_[std::size_t(n)])
      return term(g_.operand(n, 0), precedence);
    const bool is_constant = is<constant_op>(at(n));
    return stored_[std::size_t(n)] && !is_constant ? name(n) : apply(n, precedence);
  }
  std::string apply(node_id n, int precedence) const {
    n = source(n);
    const node& x = at(n);
    if (is<constant_op>(x)) return number(x.attributes.as<constant_op::options>().value);
    if (x.op == &get_info_of) {
      const int result = x.attributes.as<get_attributes>().result;
      return apply(g_.operand(n, 0), precedence) + (result ? "." + std::to_string(result) : "");
    }
    if (x.op->name == "neg") return "-" + term(g_.operand(n, 0), 4);
    if (const int binds = x.op->precedence) {
      const std::string s = term(g_.operand(n, 0), binds) + std::string(x.op->infix) +
                            term(g_.operand(n, 1), binds + 1);
      return binds < precedence ? "(" + s + ")" : s;
    }
    std::string s(x.op->name);
    s += "(";
    for (int k = 0; k < x.operand_count; ++k) s += (k ? ", " : "") + term(g_.operand(n, k), 0);
    return s + ")";
  }

  const graph& g_;
  flags stored_;
  node_names names_;
};

}  // namespace cella::detail
