// What a rank runs in the place of attention_op and attention_gradient_op: a ring where the places
// of the sequence are divided, and elsewhere the operations of one device, which back ends know as
// attention.
#pragma once

#include <cella/parallel/paired_attention.hpp>
#include <cella/parallel/ring_attention.hpp>
#include <cella/parallel/sharding.hpp>

namespace cella::parallel {

/// The mesh axis along which attention `n` goes round ranks if its loops are cut like that; -1:
/// none.
constexpr int ring_axis(const graph& g, node_id n, const loop_cut& cut, const device_mesh& m) {
  const node& x = g.nodes[std::size_t(n)];
  if (!is_attention(x)) return -1;
  for (int a = 0; a < m.axis_count; ++a)
    if (cut[a] == place_loop(g.type(g.operand(n, 0))) && m[a].size > 1) return a;
  return -1;
}

namespace detail {

/// Appends them to the graph of a rank, one after the other.
class attention_divider {
 public:
  constexpr attention_divider(builder& b, const graph& g, const device_mesh& m, int rank)
      : b_(b), g_(g), m_(m), rank_(rank) {}

  /// The results of attention `n` on these operands, which are parts as the cut says.
  constexpr ids add(node_id n, const loop_cut& cut, const ids& operands) {
    const node& x = g_.nodes[std::size_t(n)];
    const auto o = x.attributes.as<attention_op_options>();
    const int rank = g_.type(g_.operand(n, 0)).rank();
    const bool gradient = is<attention_gradient_op>(x);
    list<var> in;
    for (node_id i : operands) in.push_back({&b_, i});
    var mask, bias;
    if (o.mask.given()) mask = in[gradient ? 6 : 3];
    if (o.bias.given()) bias = in.back();
    const block_attention block(b_, o, rank, mask, bias);
    list<var> out;
    if (const int a = ring_axis(g_, n, cut, m_); a < 0) {
      out = gradient ? backward(block, n, in) : forward(block, n, in);
    } else {
      const attention_ring ring{a, m_[a].size, m_.coordinate(rank_, a), tags_};
      tags_ += tags_of_ring(ring.count);
      if (o.in_band())
        out = divided<paired_attention>(block, ring, gradient, in);
      else
        out = divided<ring_attention>(block, ring, gradient, in);
    }
    ids made;
    for (const var& v : out) made.push_back(v.id);
    return made;
  }

 private:
  template <class Divided>
  constexpr list<var> divided(const block_attention& block, const attention_ring& ring,
                              bool gradient, const list<var>& in) {
    Divided made(b_, block, ring, in[0].element());
    const var q = in_16_bits(in[0]), k = in_16_bits(in[1]), v = in_16_bits(in[2]);
    if (gradient) return made.backward(q, k, v, in[3], in[4], in_16_bits(in[5]));
    return made.forward(q, k, v);
  }
  /// What was converted from 16 bits as it was before: so it is sent, and converted there.
  constexpr var in_16_bits(var x) {
    ids passed;
    node_id n = x.id;
    while (is<reshape_op>(b_.g.nodes[std::size_t(n)]) ||
           is<transpose_op>(b_.g.nodes[std::size_t(n)])) {
      passed.push_back(n);
      n = b_.g.operand(n, 0);
    }
    if (!is<cast_op>(b_.g.nodes[std::size_t(n)])) return x;
    var y = at(b_.g.operand(n, 0));
    if (!is_storage_only(y.element()) || x.element() != dtype::f32) return x;
    for (std::size_t i = passed.size(); i-- > 0;) {
      const std::array in{y.id};
      y = at(copy_node(b_, passed[i], in));
    }
    return y;
  }
  constexpr var at(node_id n) { return {&b_, n}; }
  /// All places are here.
  static constexpr pairs_of_places all_of(const block_attention& block) {
    return {0, block.options().queries, 0, block.options().places, 0};
  }
  /// Back ends know causal attention by the form of its mask.
  static constexpr bool is_plain(const block_attention& block) {
    const attention_op_options& o = block.options();
    return o.is_causal() && !o.mask.given() && !o.bias.given();
  }
  static constexpr var scores_of(const block_attention& block, const list<var>& in) {
    if (!is_plain(block)) return block.scores(in[0], in[1], all_of(block));
    return cella::detail::causal_scores("attention", block.by_pairs(in[0], in[1]) * block.scale());
  }
  /// As `multi_head_attention` writes it, and differentiation its gradient.
  constexpr list<var> forward(const block_attention& block, node_id n, const list<var>& in) {
    const var scores = block.wide(scores_of(block, in));
    const var weights = block.as(softmax(scores), in[0].element());
    weights_.push_back({n, in[0].id, in[1].id, weights});
    const var top = block.largest(scores);
    const var sums = block.sum_of(exp(scores - block.for_keys(top, scores)));
    return {block.sum_over_keys(weights, in[2]), top + log(sums)};
  }
  constexpr list<var> backward(const block_attention& block, node_id n, const list<var>& in) const {
    const var weights = weights_of(block, n, in);
    const var inner = block.by_pairs(in[5], in[2]);
    var slopes = weights * (inner - sum(inner * weights, {-1}, true));
    if (is_plain(block))
      slopes = select(cella::detail::column_less_row("attention", slopes) <= 0, slopes, 0.0);
    else
      slopes = block.seen_slopes(slopes, all_of(block));
    var bias;
    if (block.options().bias.given()) bias = block.bias_gradient(slopes);
    slopes = slopes * block.scale();
    list<var> all{block.sum_over_keys(slopes, in[1]), block.sum_over_queries(slopes, in[0]),
                  block.sum_over_queries(weights, in[5])};
    if (bias.b) all.push_back(bias);
    return all;
  }
  /// Those of the forward pass, if it was computed on the same parts.
  constexpr var weights_of(const block_attention& block, node_id n, const list<var>& in) const {
    const node_id forward = g_.operand(g_.operand(n, 3), 0);
    for (const kept_weights& w : weights_)
      if (w.n == forward && w.query == in[0].id && w.key == in[1].id) return w.weights;
    const var scores = block.wide(scores_of(block, in));
    return block.as(exp(scores - block.for_keys(in[4], scores)), in[0].element());
  }

  struct kept_weights {
    node_id n{};             ///< the attention
    node_id query{}, key{};  ///< in the graph of the rank
    var weights;
  };

  builder& b_;
  const graph& g_;
  const device_mesh& m_;
  const int rank_;
  int tags_{};  ///< of messages so far
  list<kept_weights> weights_;
};

}  // namespace detail
}  // namespace cella::parallel
