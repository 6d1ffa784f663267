// Attention and its gradient, found in a graph and put into one operation each, so that ranks can
// divide the places of a sequence as a ring.
#pragma once

#include <cella/graph/copy.hpp>
#include <cella/parallel/attention_operations.hpp>
#include <cella/passes/simplify/dce.hpp>
#include <cella/plan/attention_pattern.hpp>
#include <cella/plan/uses.hpp>

namespace cella::parallel {

/// The same graph with attention_op and attention_gradient_op in place of what `attention_finder`
/// recognizes: attention of a sequence to itself, whole or causal, whose queries, keys, values and
/// results lie alike and are as wide, in single or double precision. Attention with another mask or
/// a bias stays as it is.
constexpr graph join_attention(const graph& g);

// ------------------------------------------------------------------------------------------------

namespace detail {

class attention_joiner {
 public:
  constexpr explicit attention_joiner(const graph& g)
      : g_(g), importer_(b_, g), here_(g.nodes.size(), no_node), found_of_(g.nodes.size(), -1) {
    const value_uses uses(g);
    for (node_id n : g.regions[0].nodes) {
      if (!is<matmul_op>(g.nodes[std::size_t(n)]) || !uses.live(n)) continue;
      const attention_pattern p = attention_finder(uses).find(n);
      if (p.found) look_at(p);
    }
  }

  constexpr graph run() {
    if (all_.empty()) return g_;
    importer_.rewrite(here_, [&](node_id n) { add(n); });
    return dce(std::move(b_.g));
  }

 private:
  /// The products of an attention, and what they are taken of.
  struct attention {
    attention_op_options options;
    node_id query = no_node, key = no_node, value = no_node, cotangent = no_node;
    node_id result = no_node;
    std::array<node_id, 3> gradients{no_node, no_node, no_node};
    node_id joined = no_node, joined_gradient = no_node;  ///< in the new graph
  };

  constexpr const node& at(node_id n) const { return g_.nodes[std::size_t(n)]; }
  static constexpr const iteration_space::axes& axes(const matmul_op::options& o, int side) {
    return side == 0 ? o.a : side == 1 ? o.b : o.result;
  }
  /// Tensor `side` of product `m` (2: its result).
  constexpr node_id tensor(node_id m, int side) const { return side < 2 ? g_.operand(m, side) : m; }

  /// The axis of the places of tensor `side` of product `m`, whose tensor `weights` is
  /// [lead..., queries, keys]; the places are the queries, if `rows`. -1: it lies otherwise than
  /// [lead..., width] with the places inserted.
  constexpr int place_of(node_id m, int weights, int side, bool rows) const {
    const auto o = at(m).attributes.as<matmul_op::options>();
    const auto &here = axes(o, side), &there = axes(o, weights);
    const int rank = g_.type(tensor(m, weights)).rank();
    if (g_.type(tensor(m, side)).rank() != rank) return -1;
    const int place = there[std::size_t(rank - (rows ? 2 : 1))];
    int found = -1, leads = 0;
    for (int d = 0; d + 1 < rank; ++d) {
      if (here[std::size_t(d)] == place && found < 0)
        found = d;
      else if (here[std::size_t(d)] != there[std::size_t(leads++)])
        return -1;
    }
    return leads == rank - 2 ? found : -1;
  }
  /// The operand of product `m` that is not of the weights' kind: the other one has `weights`.
  constexpr int side_beside(node_id m, node_id weights) const {
    return g_.operand(m, 0) == weights ? 1 : 0;
  }
  constexpr void look_at(const attention_pattern& p) {
    attention a;
    const node_id scores = p.members[0], result = p.members.back();
    const node_id weights = p.members[p.members.size() - 2];
    const tensor_type t = g_.type(weights);
    const int rank = t.rank();
    if (p.queries != p.keys || p.width != p.value_width) return;
    if (t.element != dtype::f32 && t.element != dtype::f64) return;
    const auto o = at(scores).attributes.as<matmul_op::options>();
    const int row = o.result[std::size_t(rank) - 2];
    int query_side = 1;
    for (std::int8_t f : o.a)
      if (f == row) query_side = 0;
    a.query = tensor(scores, query_side);
    a.key = tensor(scores, 1 - query_side);
    const int value_side = side_beside(result, weights);
    a.value = tensor(result, value_side);
    a.result = result;
    const int place = place_of(scores, 2, query_side, true);
    bool alike = place >= 0 && place == place_of(scores, 2, 1 - query_side, false) &&
                 place == place_of(result, 1 - value_side, value_side, false) &&
                 place == place_of(result, 1 - value_side, 2, true);
    if (p.has_gradient) {
      ids products;
      for (node_id n : p.gradient_members)
        if (is<matmul_op>(at(n))) products.push_back(n);
      // As attention_finder lists them: of the weights, of values, of queries, of keys.
      if (products.size() != 4) return;
      const node_id dv = products[1], dq = products[2], dk = products[3];
      a.gradients = {dq, dk, dv};
      const int cotangent = side_beside(dv, weights);
      a.cotangent = tensor(dv, cotangent);
      node_id slopes = no_node;  // what both have as an operand
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j)
          if (g_.operand(dq, i) == g_.operand(dk, j)) slopes = g_.operand(dq, i);
      const int key = side_beside(dq, slopes), query = side_beside(dk, slopes);
      alike = alike && place == place_of(dv, 1 - cotangent, cotangent, true) &&
              place == place_of(dv, 1 - cotangent, 2, false) &&
              place == place_of(dq, 1 - key, 2, true) && place == place_of(dk, 1 - query, 2, false);
    }
    for (node_id n : {a.query, a.key, a.value, a.result}) alike &= g_.type(n).element == t.element;
    double scale = 0;
    const node_id factor = g_.operand(p.scale, 1);
    if (is<constant_op>(at(factor))) scale = at(factor).attributes.as<constant_op::options>().value;
    if (!alike || scale == 0) return;
    a.options = {scale, p.keys, place, p.causal};
    for (node_id n : a.gradients)
      if (n != no_node) found_of_[std::size_t(n)] = int(all_.size());
    found_of_[std::size_t(result)] = int(all_.size());
    all_.push_back(a);
  }

  constexpr void add(node_id n) {
    ids in;
    const int k = found_of_[std::size_t(n)];
    if (k < 0) {
      for (node_id o : g_.operands(n)) in.push_back(here_[std::size_t(o)]);
      here_[std::size_t(n)] = importer_.copy(n, in);
      return;
    }
    attention& a = all_[std::size_t(k)];
    b_.current_cell(b_.g.intern(g_.view(at(n).cell)));
    for (node_id o : {a.query, a.key, a.value}) in.push_back(here_[std::size_t(o)]);
    if (n == a.result) {
      a.joined = b_.emit(bound<attention_op>(), in, a.options);
      here_[std::size_t(n)] = b_.get(a.joined, 0);
      return;
    }
    if (a.joined_gradient == no_node) {
      for (node_id o : {b_.get(a.joined, 0), b_.get(a.joined, 1), here_[std::size_t(a.cotangent)]})
        in.push_back(o);
      a.joined_gradient = b_.emit(bound<attention_gradient_op>(), in, a.options);
    }
    for (int i = 0; i < 3; ++i)
      if (a.gradients[std::size_t(i)] == n) here_[std::size_t(n)] = b_.get(a.joined_gradient, i);
  }

  const graph& g_;
  builder b_;
  graph_importer importer_;
  ids here_;            ///< by old node
  list<int> found_of_;  ///< by old node: the attention whose result or gradient it is; -1: none
  list<attention> all_;
};

}  // namespace detail

constexpr graph join_attention(const graph& g) { return detail::attention_joiner(g).run(); }

}  // namespace cella::parallel
