// Sharing of common subexpressions.
#pragma once

#include <bit>
#include <cella/ops/elementwise.hpp>
#include <cella/passes/rewriting/rewrite.hpp>

namespace cella {

namespace detail {

/// A hash table of the applications seen so far: open addressing, no entry is ever removed.
class application_table {
 public:
  constexpr explicit application_table(const graph& g)
      : g_(g), places_(std::bit_ceil(g.nodes.size() * 2 + 2), no_node) {}

  /// The earlier application that computes the same as `n`; else `n` is entered.
  constexpr node_id find_or_enter(node_id n) {
    const std::size_t mask = places_.size() - 1;
    for (std::size_t p = hash(n) & mask;; p = (p + 1) & mask) {
      if (places_[p] < 0) {
        places_[p] = n;
        return no_node;
      }
      if (same(places_[p], n)) return places_[p];
    }
  }

 private:
  constexpr std::size_t hash(node_id id) const {
    const node& n = g_.nodes[std::size_t(id)];
    std::uint32_t h = std::uint32_t(n.op->name.size() * 37 + std::size_t(n.op->name.front()));
    h = mix(h, n.region);
    const node_id* const in = g_.operand_pool.data() + n.first_operand;
    if (n.operand_count == 2) {  // equal for both orders, in case the operation commutes
      h = mix(h, in[0] < in[1] ? in[0] : in[1]);
      h = mix(h, in[0] < in[1] ? in[1] : in[0]);
    } else {
      for (int k = 0; k < n.operand_count; ++k) h = mix(h, in[k]);
    }
    // Options tell apart what has at most one operand (constants, slices); hashing all words of
    // every node would be most of the pass's time in constant evaluation.
    if (n.operand_count < 2 && n.op->kind != op_kind::elementwise) {
      // Not by `mix`: one call for each word.
      for (std::int32_t w : n.attributes.as<attribute_words>())
        h = (h ^ std::uint32_t(w)) * factor ^ h >> 16;
    }
    return h ^ h >> 15;
  }
  static constexpr std::uint32_t factor = 0x9e3779b1u;
  static constexpr std::uint32_t mix(std::uint32_t h, std::int32_t word) {
    return (h ^ std::uint32_t(word)) * factor ^ h >> 16;
  }
  constexpr bool same(node_id i, node_id j) const {
    const node& x = g_.nodes[std::size_t(i)];
    const node& y = g_.nodes[std::size_t(j)];
    if (x.op != y.op || x.region != y.region || x.operand_count != y.operand_count) return false;
    const node_id* const a = g_.operand_pool.data() + x.first_operand;
    const node_id* const b = g_.operand_pool.data() + y.first_operand;
    bool equal = true;
    for (int k = 0; k < x.operand_count; ++k) equal &= a[k] == b[k];
    if (!equal &&
        !(x.operand_count == 2 && a[0] == b[1] && a[1] == b[0] && x.op->traits.commutative))
      return false;
    return x.attributes == y.attributes && x.type == y.type;
  }

  const graph& g_;
  list<node_id> places_;
};

}  // namespace detail

/// Computes what is written twice once: nodes with the same operation, operands and options become
/// the first of them. Random draws take part, as each names its own stream and so is a function of
/// its operands; inputs and control nodes do not.
constexpr graph cse(graph g) {
  detail::application_table seen(g);
  constexpr rule_table none({});
  rewriter(g, none).sweep([&](node_id n) {
    const node& x = g.nodes[std::size_t(n)];
    if (x.op == &input_info_of || x.op->kind == op_kind::control) return no_node;
    return seen.find_or_enter(n);
  });
  return g;
}

}  // namespace cella
