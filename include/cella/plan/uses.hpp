// Who uses which value of a graph, and which values are computed at all.
#pragma once

#include <cella/graph/graph.hpp>
#include <cella/ops/array.hpp>
#include <cella/ops/broadcast.hpp>
#include <cella/ops/op.hpp>

namespace cella {

/// False where an operand or a result of `n` is empty: kernels divide by extents, and have nothing
/// to gain.
constexpr bool has_elements(const graph& g, node_id n) {
  for (node_id o : g.operands(n)) {
    if (g.type(o).size() == 0) return false;
  }
  const node& x = g.nodes[std::size_t(n)];
  for (int k = 0; k < x.result_count; ++k) {
    if (g.result_type(n, k).size() == 0) return false;
  }
  return x.result_count || x.type.size() > 0;
}

/// Answers for the main region of a graph.
class value_uses {
 public:
  const graph& g;

  constexpr explicit value_uses(const graph& source)
      : g(source),
        nodes_(source.nodes.data()),
        live_(source.nodes.size(), 0),
        output_(source.nodes.size(), 0) {
    const auto& order = g.regions[0].nodes;
    for (node_id n : g.regions[0].outputs) live_[std::size_t(n)] = output_[std::size_t(n)] = 1;
    list<int> count(g.nodes.size() + 1, 0);
    for (std::size_t i = order.size(); i-- > 0;) {
      if (!live_[std::size_t(order[i])]) continue;
      for (node_id o : g.operands(order[i])) {
        live_[std::size_t(o)] = 1;
        ++count[std::size_t(o)];
      }
    }
    first_user_.assign(g.nodes.size() + 1, 0);
    for (std::size_t n = 0; n < g.nodes.size(); ++n) first_user_[n + 1] = first_user_[n] + count[n];
    users_.assign(std::size_t(first_user_.back()), no_node);
    list<int> next(first_user_.begin(), first_user_.end());
    for (node_id n : order) {
      if (!live_[std::size_t(n)]) continue;
      for (node_id o : g.operands(n)) users_[std::size_t(next[std::size_t(o)]++)] = n;
    }
  }

  constexpr span<const node_id> users(node_id n) const {
    const int* const first = first_user_.data() + n;
    return {users_.data() + first[0], std::size_t(first[1] - first[0])};
  }
  constexpr node_id only_user(node_id n) const {
    const int* const first = first_user_.data() + n;
    return first[1] - first[0] == 1 && !is_output(n) ? users_.data()[first[0]] : no_node;
  }
  /// The first `get` that reads result `k` of node `n`, or no_node.
  constexpr node_id get_of(node_id n, int k) const {
    for (node_id u : users(n)) {
      if (at(u).attributes.as<get_attributes>().result == k) return u;
    }
    return no_node;
  }
  constexpr bool is_output(node_id n) const { return output_[std::size_t(n)] != 0; }
  constexpr bool live(node_id n) const { return live_[std::size_t(n)] != 0; }
  /// Nobody computes `n`: a kernel does without it.
  constexpr void drop(node_id n) { live_[std::size_t(n)] = 0; }

  constexpr const node& at(node_id n) const { return nodes_[n]; }
  constexpr int position(node_id n) const { return at(n).position; }
  /// In memory before the first step: an input, or a constant tensor.
  constexpr bool is_input(node_id n) const {
    return at(n).op == &input_info_of || is_constant_tensor(n);
  }
  constexpr bool is_constant_tensor(node_id n) const { return at(n).op->traits.stored; }
  /// One number, which kernels have as a literal.
  constexpr bool is_constant(node_id n) const { return is<constant_op>(at(n)); }
  constexpr bool is_leaf(node_id n) const { return is_input(n) || is_constant(n); }
  constexpr bool is_broadcast(node_id n) const { return is<broadcast_op>(at(n)); }
  constexpr bool is_alias(node_id n) const { return at(n).op->traits.alias; }
  /// Through reshapes, which share their operand's memory.
  constexpr node_id source(node_id n) const {
    while (is_alias(n)) n = g.operand(n, 0);
    return n;
  }
  /// The type of a node, or of its first result if it has several.
  constexpr tensor_type value_type(node_id n) const {
    return at(n).result_count ? g.result_type(n, 0) : at(n).type;
  }

 private:
  const node* nodes_;  ///< those of g
  flags live_, output_;
  list<int> first_user_;
  list<node_id> users_;
};

}  // namespace cella
