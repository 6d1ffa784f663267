// The sweep that all rewriting passes share: region by region, node by node in order, a rule may
// put another value in a node's place. It works in place: a node that no rule touches costs one
// look.
#pragma once

#include <array>
#include <cella/ops/array.hpp>
#include <utility>

namespace cella {

class rewriter;

/// One identity. `apply` is asked about each node of operation `op` (none: about every node) and
/// answers with the value that takes the node's place, or no_node. What it emits is simplified in
/// turn.
struct rule {
  std::string_view name;
  const op_info* op{};
  node_id (*apply)(rewriter&, node_id){};
};

/// Rules in the order in which they are tried, at most 64, indexed by operation: a sweep in
/// constant evaluation cannot afford to compare each node with each rule.
class rule_table {
 public:
  constexpr rule_table(span<const rule> rules) : rules_(rules) {
    for (std::size_t i = 0; i < rules.size(); ++i) {
      if (rules[i].op)
        candidates_[slot(*rules[i].op)] |= std::uint64_t{1} << i;
      else
        for (std::uint64_t& c : candidates_) c |= std::uint64_t{1} << i;
    }
  }
  /// Bit i: rule i may apply to nodes of this operation.
  constexpr std::uint64_t candidates(const op_info& op) const { return candidates_[slot(op)]; }
  constexpr const rule* rules() const { return rules_.data(); }

 private:
  static constexpr std::size_t slot(const op_info& op) {
    return (op.name.size() * 8 + std::size_t(op.name[0])) % 64;
  }
  span<const rule> rules_;
  std::array<std::uint64_t, 64> candidates_{};
};

/// A graph while a pass rewrites it. Rules look at nodes through it, and emit through it.
class rewriter {
 public:
  constexpr rewriter(graph& g, const rule_table& rules) : g_(g), rules_(rules) {
    renamed_.reserve(g.nodes.size() + 16);
    for (std::size_t i = 0; i < g.nodes.size(); ++i) renamed_.push_back(node_id(i));
  }

  // ---- what a rule sees; operands are the rewritten ones

  constexpr const graph& g() const { return g_; }
  constexpr const op_info& op(node_id n) const { return *g_.nodes[std::size_t(n)].op; }
  template <class Op>
  constexpr bool is(node_id n) const {
    return cella::is<Op>(g_.nodes[std::size_t(n)]);
  }
  constexpr int operand_count(node_id n) const { return g_.nodes[std::size_t(n)].operand_count; }
  constexpr node_id operand(node_id n, int i) const {
    return g_.operand_pool[std::size_t(g_.nodes[std::size_t(n)].first_operand + i)];
  }
  constexpr tensor_type type(node_id n) const { return g_.type(n); }
  constexpr shape shape_of(node_id n) const { return g_.nodes[std::size_t(n)].type.shape; }
  template <class T>
  constexpr T as(node_id n) const {
    return g_.nodes[std::size_t(n)].attributes.as<T>();
  }
  /// Operand `i` of `n` if that is an application of `Op`; else no_node.
  template <class Op>
  constexpr node_id operand_if(node_id n, int i) const {
    const node_id x = operand(n, i);
    return is<Op>(x) ? x : no_node;
  }
  constexpr bool is_constant(node_id n) const { return is<constant_op>(n); }
  constexpr double value(node_id n) const { return as<constant_op::options>(n).value; }
  constexpr bool is_constant(node_id n, double v) const { return is_constant(n) && value(n) == v; }

  /// Whether one other node uses `n`. Needs `count_users()` before the sweep.
  constexpr bool has_one_user(node_id n) const { return users_[std::size_t(n)] == 1; }

  // ---- what a rule makes

  /// Applies `op` in front of the node that is rewritten, and simplifies the application.
  constexpr node_id emit(const op_info& op, std::initializer_list<node_id> in,
                         const attributes& options = {}) {
    return emit(op, span<const node_id>(in.begin(), in.size()), options);
  }
  /// At most eight operands.
  constexpr node_id emit(const op_info& op, span<const node_id> in,
                         const attributes& options = {}) {
    std::array<tensor_type, 8> types{};
    std::size_t k = 0;
    for (node_id i : in) types[k++] = g_.type(i);
    const span<const tensor_type> operands(types.data(), k);
    if (!op.results)
      return simplified(g_.append_like(current_, op, in, options, op.infer(operands, options)));
    std::array<tensor_type, 8> out{};
    const int count = op.results(operands, options, out);
    const node_id made = g_.append_like(current_, op, in, options, {});
    g_.set_results(made, {out.data(), std::size_t(count)});
    return simplified(made);
  }
  template <class Op>
  constexpr node_id emit(std::initializer_list<node_id> in, const attributes& options = {}) {
    return emit(bound<Op>(), in, options);
  }
  /// Result `k` of a node with several.
  constexpr node_id get(node_id from, int k) {
    return simplified(
        g_.append_like(from, get_info_of, {&from, 1}, get_attributes{k}, g_.result_type(from, k)));
  }
  constexpr node_id constant(double value, const tensor_type& t) {
    return emit<constant_op>({}, constant_op::options{value, t.shape, {std::int32_t(t.element)}});
  }
  /// The tensor of type `t` that these words hold.
  constexpr node_id values(const tensor_type& t, const word_list& words) {
    const detail::constant_application a = detail::apply_constant(g_, t, words);
    return emit(*a.op, span<const node_id>{}, a.options);
  }
  /// Exchanges the first two operands of a commutative operation.
  constexpr void swap_operands(node_id n) {
    const auto p = std::size_t(g_.nodes[std::size_t(n)].first_operand);
    std::swap(g_.operand_pool[p], g_.operand_pool[p + 1]);
  }

  // ---- the sweep

  constexpr void count_users() {
    users_.assign(g_.nodes.size(), 0);
    for (const region& r : g_.regions) {
      for (node_id n : r.nodes) {
        for (node_id o : g_.operands(n)) ++users_[std::size_t(o)];
      }
      for (node_id n : r.outputs) ++users_[std::size_t(n)];
    }
  }
  /// Rewrites every region. `visit(n)` answers like a rule for each node whose operands are
  /// rewritten.
  template <class Visit>
  constexpr void sweep(Visit visit) {
    ids old;
    for (std::size_t r = 0; r < g_.regions.size(); ++r) {
      old.swap(g_.regions[r].nodes);
      order_.clear();
      order_.reserve(old.size() + 16);
      for (node_id n : old) {
        const node& x = g_.nodes[std::size_t(n)];
        node_id* const operands = g_.operand_pool.data() + x.first_operand;
        const node_id* const renamed = renamed_.data();
        for (int k = 0; k < x.operand_count; ++k) operands[k] = renamed[operands[k]];
        current_ = n;
        const node_id instead = visit(n);
        if (instead < 0) {
          place(n);
        } else {
          renamed_[std::size_t(n)] = instead;
          if (!users_.empty()) users_[std::size_t(instead)] = users_[std::size_t(n)];
        }
      }
      rename(g_.regions[r].outputs);
      g_.regions[r].nodes.swap(order_);
    }
    for (region& r : g_.regions) rename(r.captured);
  }
  constexpr void apply_rules() {
    sweep([this](node_id n) { return first_match(n); });
  }

 private:
  constexpr node_id first_match(node_id n) {
    const op_info& op = *g_.nodes[std::size_t(n)].op;
    const rule* const rules = rules_.rules();
    for (auto left = rules_.candidates(op); left; left &= left - 1) {
      const rule& r = rules[__builtin_ctzll(left)];
      if (r.op && r.op != &op) continue;
      const node_id instead = r.apply(*this, n);
      if (instead >= 0) return instead;
    }
    return no_node;
  }
  /// What takes the place of a node that was just appended: itself if no rule matches.
  constexpr node_id simplified(node_id n) {
    renamed_.push_back(n);
    if (!users_.empty()) users_.push_back(1);
    const node_id instead = first_match(n);
    if (instead >= 0) return instead;
    place(n);
    return n;
  }
  constexpr void place(node_id n) {
    g_.nodes[std::size_t(n)].position = std::int32_t(order_.size());
    order_.push_back(n);
  }
  constexpr void rename(ids& nodes) const {
    for (node_id& n : nodes) n = renamed_[std::size_t(n)];
  }

  graph& g_;
  const rule_table& rules_;
  ids renamed_;
  ids order_;
  ids users_;  ///< how many uses each node has
  node_id current_ = no_node;
};

/// The graph rewritten by a table of rules, which are tried in order at each node.
constexpr graph rewrite(graph g, const rule_table& rules) {
  rewriter(g, rules).apply_rules();
  return g;
}

}  // namespace cella
