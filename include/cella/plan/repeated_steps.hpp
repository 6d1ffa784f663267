// Steps that differ in their addresses only, as those of equal blocks do: the back end compiles
// one of them, and hands it the addresses of each.
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/list.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/constant.hpp>
#include <cella/plan/step.hpp>

namespace cella {

/// The addresses of a step as a list: operands, reads, outputs, then what of scratch memory and
/// positions there is. Members say where in the list each begins.
struct step_places {
  int reads, outputs, scratch, positions, size;

  constexpr explicit step_places(const plan_step& s)
      : reads(operands_of(s)),
        outputs(reads + s.read_count),
        scratch(outputs + s.output_count),
        positions(scratch + s.scratch.valid()),
        size(positions + s.pool_argmax.valid()) {}

  /// Address k of the list.
  constexpr const buffer_ref& of(const plan_step& s, int k) const {
    if (k < reads) return s.in[std::size_t(k)];
    if (k < outputs) return s.reads[std::size_t(k - reads)].at;
    if (k < scratch) return s.outputs[std::size_t(k - outputs)].at;
    return k < positions ? s.scratch : s.pool_argmax;
  }

 private:
  static constexpr int operands_of(const plan_step& s) {
    int n = int(s.in.size());
    while (n > 0 && !s.in[std::size_t(n - 1)].valid()) --n;
    return n;
  }
};

/// Compares two steps of a plan for graph `g` in everything but where their values lie: in what
/// they read of each struct of the plan, in the operation that their kernel computes, and in the
/// fused operations, node by node.
template <class Graph>
class step_comparison {
 public:
  constexpr step_comparison(const Graph& g, const plan_step& a, const plan_step& b)
      : g_(g), a_(a), b_(b) {}

  constexpr bool alike() {
    return same_kind() && same_memory() && same_loops() && same_anchor() && same_lines();
  }

 private:
  constexpr const node& at(node_id n) const { return g_.nodes[std::size_t(n)]; }

  /// What most pairs differ in.
  constexpr bool same_kind() const {
    if (a_.kind != b_.kind || a_.arrangement != b_.arrangement) return false;
    if (a_.read_count != b_.read_count || a_.output_count != b_.output_count) return false;
    if (a_.anchor < 0 || b_.anchor < 0) return false;
    const node &x = at(a_.anchor), &y = at(b_.anchor);
    return x.op == y.op && x.type == y.type && a_.shape == b_.shape;
  }
  /// The same spaces, and the same values in the place of others.
  constexpr bool same_memory() const {
    const step_places in_a(a_), in_b(b_);
    if (in_a.reads != in_b.reads || in_a.scratch != in_b.scratch ||
        in_a.positions != in_b.positions || in_a.size != in_b.size)
      return false;
    for (int k = 0; k < in_a.size; ++k) {
      const buffer_ref &x = in_a.of(a_, k), &y = in_b.of(b_, k);
      if (x.space != y.space) return false;
      for (int l = 0; l < k; ++l) {
        if ((x == in_a.of(a_, l)) != (y == in_b.of(b_, l))) return false;
      }
    }
    return true;
  }
  constexpr bool same_loops() {
    if (a_.loops != b_.loops || a_.loop != b_.loop || a_.folded != b_.folded) return false;
    if (a_.prepared_operand != b_.prepared_operand || a_.constant != b_.constant) return false;
    for (std::size_t k = 0; k < std::size_t(a_.read_count); ++k) {
      const operand_read &x = a_.reads[k], &y = b_.reads[k];
      if (x.how != y.how || x.first != y.first || x.strides != y.strides) return false;
      if (x.factor != y.factor || x.depth != y.depth || x.along != y.along) return false;
      if (!pair(x.value, y.value)) return false;
    }
    for (std::size_t k = 0; k < std::size_t(a_.output_count); ++k) {
      const step_output &x = a_.outputs[k], &y = b_.outputs[k];
      if (x.form != y.form || x.part != y.part || x.summed != y.summed) return false;
      if (x.first != y.first || x.strides != y.strides) return false;
      if ((x.value < 0) != (y.value < 0)) return false;
      if (x.value >= 0 && !(g_.type(x.value) == g_.type(y.value))) return false;
      if (x.value >= 0 && !same_factor(x.value, y.value)) return false;
    }
    return true;
  }
  constexpr bool same_anchor() const {
    const node &x = at(a_.anchor), &y = at(b_.anchor);
    if (!(x.attributes == y.attributes) || x.operand_count != y.operand_count) return false;
    if (x.result_count != y.result_count) return false;
    for (int k = 0; k < x.operand_count; ++k) {
      if (!(g_.type(g_.operand(a_.anchor, k)) == g_.type(g_.operand(b_.anchor, k)))) return false;
    }
    for (int k = 0; k < x.result_count; ++k) {
      if (!(g_.result_type(a_.anchor, k) == g_.result_type(b_.anchor, k))) return false;
    }
    return true;
  }
  /// Kernels ask which constant a value was multiplied by.
  constexpr bool same_factor(node_id m, node_id n) const {
    const node &x = at(m), &y = at(n);
    if (x.op != y.op || x.operand_count != y.operand_count) return false;
    for (int k = 0; k < std::min<int>(x.operand_count, 2); ++k) {
      const node &p = at(g_.operand(m, k)), &q = at(g_.operand(n, k));
      if (is<constant_op>(p) != is<constant_op>(q)) return false;
      if (is<constant_op>(p) && !(p.attributes == q.attributes)) return false;
    }
    return true;
  }

  constexpr bool same_lines() {
    if ((a_.accumulated < 0) != (b_.accumulated < 0)) return false;
    if (a_.accumulated >= 0) {
      if (!same_factor(a_.accumulated, b_.accumulated)) return false;
      const bool given = a_.kind != step_kind::elementwise;  // by the kernel
      if (given && !pair(a_.accumulated, b_.accumulated)) return false;
    }
    if (!step_traits(a_.kind).fuses) return true;
    if (a_.stat_count != b_.stat_count) return false;
    for (std::size_t k = 0; k < std::size_t(a_.stat_count); ++k) {
      if (!pair(a_.stats[k], b_.stats[k]) || !same_computation(a_.stats[k], b_.stats[k]))
        return false;
    }
    if (a_.kind == step_kind::reduce && !same_computation(a_.anchor, b_.anchor)) return false;
    for (std::size_t k = 0; k < std::size_t(a_.output_count); ++k) {
      if (a_.outputs[k].value >= 0 && !same_value(a_.outputs[k].value, b_.outputs[k].value))
        return false;
    }
    return true;
  }
  /// Whether m means in the one step what n means in the other.
  constexpr bool same_value(node_id m, node_id n) {
    for (std::size_t k = 0; k < of_a_.size(); ++k) {
      if (of_a_[k] == m || of_b_[k] == n) return of_a_[k] == m && of_b_[k] == n;
    }
    return pair(m, n) && same_computation(m, n);
  }
  constexpr bool same_computation(node_id m, node_id n) {
    const node &x = at(m), &y = at(n);
    if (x.op != y.op || x.operand_count != y.operand_count) return false;
    if (x.op->options && !(x.attributes == y.attributes)) return false;
    // What moves elements computes nothing: its value is its first operand's.
    const int operands = x.op->pointwise || is<cast_op>(x) ? int(x.operand_count)
                                                           : std::min<int>(x.operand_count, 1);
    for (int k = 0; k < operands; ++k) {
      if (!same_value(g_.operand(m, k), g_.operand(n, k))) return false;
    }
    return true;
  }
  /// Notes that the one stands for the other, if their types are the same.
  constexpr bool pair(node_id m, node_id n) {
    if (m < 0 || n < 0) return m == n;
    if (!(g_.type(m) == g_.type(n))) return false;
    of_a_.push_back(m);
    of_b_.push_back(n);
    return true;
  }

  const Graph& g_;
  const plan_step &a_, &b_;
  ids of_a_, of_b_;  ///< nodes that stand for each other
};

/// Whose code a step runs.
struct step_code {
  int of{};           ///< the first step that is like it
  int number{};       ///< of the code, from 0 on
  bool shared{};      ///< whether there is another one: then addresses come from a list
  int first_place{};  ///< where that begins: see places_of_steps
};

/// What runs regions, or calls a function of the host, reads more of its step than addresses.
constexpr bool may_share_code(const plan_step& s) {
  return !s.carried && s.link_count == 0 && s.kind != step_kind::control &&
         s.kind != step_kind::generic;
}

/// Of each step of a plan whose code it runs, how many codes there are, and how many addresses the
/// lists hold.
template <std::size_t Steps>
struct step_code_table {
  std::array<step_code, Steps> of_step{};
  int codes{};
  int places{};

  constexpr const step_code& operator[](int i) const { return of_step[std::size_t(i)]; }
};

/// Finds the steps that share code. A step that is carried by another one shares what that shares.
template <std::size_t Steps, class Graph, class Plan>
constexpr step_code_table<Steps> codes_of_steps(const Graph& g, const Plan& plan) {
  step_code_table<Steps> table;
  const auto at = [&](int i) -> const plan_step& { return plan.steps[std::size_t(i)]; };
  ids firsts;  // of each code
  for (int i = 0; i < int(Steps); ++i) {
    step_code& own = table.of_step[std::size_t(i)];
    const plan_step& s = at(i);
    own.of = i;
    if (!may_share_code(s)) continue;
    for (int k : firsts) {
      const plan_step& first = at(k);
      if (first.kind != s.kind || (first.side < 0) != (s.side < 0)) continue;
      if (!step_comparison(g, first, s).alike()) continue;
      if (s.side >= 0 && !step_comparison(g, at(first.side), at(s.side)).alike()) continue;
      own.of = k;
      own.shared = table.of_step[std::size_t(k)].shared = true;
      if (first.side >= 0) table.of_step[std::size_t(first.side)].shared = true;
      break;
    }
    if (own.of == i) firsts.push_back(i);
  }
  for (int i = 0; i < int(Steps); ++i) {
    step_code& own = table.of_step[std::size_t(i)];
    own.number = own.of == i ? table.codes++ : table[own.of].number;
    if (at(i).carried || !own.shared) continue;
    own.first_place = table.places;
    table.places += step_places(at(i)).size;
    if (at(i).side >= 0) table.places += step_places(at(at(i).side)).size;
  }
  return table;
}

/// These lists one after the other; that of a step that carries another one ends with that's.
template <std::size_t Places, std::size_t Steps, class Plan>
constexpr std::array<buffer_ref, Places> places_of_steps(const step_code_table<Steps>& codes,
                                                         const Plan& plan) {
  std::array<buffer_ref, Places> all{};
  std::size_t n = 0;
  const auto add = [&](const plan_step& s) {
    const step_places listed(s);
    for (int k = 0; k < listed.size; ++k) all[n++] = listed.of(s, k);
  };
  for (int i = 0; i < int(Steps); ++i) {
    const plan_step& s = plan.steps[std::size_t(i)];
    if (s.carried || !codes[i].shared) continue;
    add(s);
    if (s.side >= 0) add(plan.steps[std::size_t(s.side)]);
  }
  return all;
}

}  // namespace cella
