// Attention and its gradient, found in a graph and put into one operation each, so that ranks can
// divide the places of a sequence as a ring.
#pragma once

#include <cella/graph/copy.hpp>
#include <cella/parallel/attention_operations.hpp>
#include <cella/parallel/found_attention.hpp>
#include <cella/passes/simplify/dce.hpp>
#include <cella/plan/uses.hpp>

namespace cella::parallel {

/// The same graph with attention_op and attention_gradient_op in place of attention of a sequence
/// to itself or to another one, whose queries, keys, values and results lie alike: with any mask
/// and a bias, and with heads of queries that share keys. Other attention stays as it is.
constexpr graph join_attention(const graph& g);

// ------------------------------------------------------------------------------------------------

namespace detail {

class attention_joiner {
 public:
  constexpr explicit attention_joiner(const graph& g)
      : g_(g), importer_(b_, g), here_(g.nodes.size(), no_node), found_of_(g.nodes.size(), -1) {
    const value_uses uses(g);
    attention_search search(uses);
    for (node_id n : g.regions[0].nodes) {
      if (!is<softmax_op>(g.nodes[std::size_t(n)]) || !uses.live(n)) continue;
      const found_attention found = search.find(n);
      if (found.result < 0) continue;
      const auto is_of_it = [&](node_id m) { found_of_[std::size_t(m)] = int(all_.size()); };
      is_of_it(found.result);
      for (node_id m : found.gradients)
        if (m >= 0) is_of_it(m);
      for (node_id m : found.bias_gradients) is_of_it(m);
      all_.push_back(attention{found});
    }
  }

  constexpr graph run() {
    if (all_.empty()) return g_;
    importer_.rewrite(here_, [&](node_id n) { add(n); });
    return dce(std::move(b_.g));
  }

 private:
  struct attention {
    found_attention found;
    node_id query = no_node, mask = no_node, bias = no_node;  ///< in the new graph, as these:
    node_id joined = no_node, gradient = no_node;
  };

  constexpr const node& at(node_id n) const { return g_.nodes[std::size_t(n)]; }
  constexpr var here(node_id n) { return {&b_, here_[std::size_t(n)]}; }

  constexpr void add(node_id n) {
    const int k = found_of_[std::size_t(n)];
    node_id& made = here_[std::size_t(n)];
    if (k < 0) {
      ids in;
      for (node_id o : g_.operands(n)) in.push_back(here_[std::size_t(o)]);
      made = is<reshape_op>(at(n)) ? reshaped({&b_, in[0]}, at(n).type.shape).id
                                   : importer_.copy(n, in);
      return;
    }
    attention& a = all_[std::size_t(k)];
    b_.current_cell(b_.g.intern(g_.view(at(n).cell)));
    var x;
    if (n == a.found.result)
      x = result(a, 0);
    else
      x = gradient(a, n);
    made = reshaped(x, at(n).type.shape).id;
  }
  /// Of a reshape its operand is reshaped instead.
  constexpr var reshaped(var x, const shape& s) const {
    const node& y = b_.g.nodes[std::size_t(x.id)];
    if (is<reshape_op>(y)) x.id = b_.g.operand(x.id, 0);
    return x.shape() == s ? x : reshape(x, s);
  }
  constexpr var result(attention& a, int k) {
    if (a.joined == no_node) {
      const found_attention& f = a.found;
      prepare(a);
      a.query = queries(a, f.query);
      ids in{a.query, here(f.key).id, here(f.value).id};
      for (node_id n : {a.mask, a.bias})
        if (n >= 0) in.push_back(n);
      a.joined = b_.emit(bound<attention_op>(), in, a.found.options);
    }
    return {&b_, b_.get(a.joined, k)};
  }
  constexpr var gradient(attention& a, node_id n) {
    const found_attention& f = a.found;
    if (a.gradient == no_node) {
      const node_id y = result(a, 0).id;
      ids in{a.query, here(f.key).id, here(f.value).id, y};
      in.push_back(result(a, 1).id);
      in.push_back(queries(a, f.cotangent));
      for (node_id o : {a.mask, a.bias})
        if (o >= 0) in.push_back(o);
      a.gradient = b_.emit(bound<attention_gradient_op>(), in, a.found.options);
    }
    int k = 3;
    for (int i = 0; i < 3; ++i)
      if (f.gradients[std::size_t(i)] == n) k = i;
    return {&b_, b_.get(a.gradient, k)};
  }
  /// Queries, or their like, with the heads of a group apart.
  constexpr node_id queries(const attention& a, node_id n) {
    const var x = here(n);
    if (a.found.times == 1) return x.id;
    shape s = x.shape();
    s[s.rank - 2] /= a.found.times;
    s.insert(s.rank - 2, a.found.times);
    return reshaped(x, s).id;
  }
  /// Mask and bias with an axis for each of the scores, of one place where all are the same; and
  /// the options that say which.
  constexpr void prepare(attention& a) {
    found_attention& f = a.found;
    attention_op_options& o = f.options;
    var mask;
    for (const found_pairs& p : f.masks) {
      const var x = as_pairs(f, p);
      if (!mask.b) {
        mask = x;
        continue;
      }
      shape s = x.shape();
      for (int d = 0; d < s.rank; ++d) s[d] = std::max(s[d], mask.extent(d));
      mask = logical_and(broadcast_to(mask, s), broadcast_to(x, s));
    }
    if (mask.b) a.mask = apart(f, mask, o.mask).id;
    if (o.bias.given()) a.bias = apart(f, as_pairs(f, f.bias), o.bias).id;
  }
  constexpr var as_pairs(const found_attention& f, const found_pairs& p) {
    shape s = f.pairs;
    for (int d = 0; d < s.rank; ++d)
      if (!(p.axes >> d & 1)) s[d] = 1;
    return reshaped(here(p.n), s);
  }
  /// The heads of a group are an axis of their own.
  constexpr var apart(const found_attention& f, var x, pairs_operand& p) const {
    if (f.times == 1) return x;
    const int head = f.pairs.rank - 3;
    const unsigned below = p.axes & ((1u << head) - 1);
    const unsigned behind = p.axes & ~pairs_operand::is_given & ~((2u << head) - 1);
    shape s = x.shape();
    s.insert(head + 1, 1);
    unsigned heads = 0;
    if (p.along(head)) {
      s[head] /= f.times;
      s[head + 1] = f.times;
      heads = 3u << head;
    }
    p.axes = pairs_operand::is_given | below | heads | behind << 1;
    return reshaped(x, s);
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
