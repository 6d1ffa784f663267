// Attention of a sequence whose places are divided among ranks: keys and values go round a ring.
//
//   forward    a rank sends the block of keys and values that it has to its neighbour, computes the
//              attention of its queries to that block meanwhile, and receives the next one. Parts
//              of the result are put together by running maxima and sums (online softmax).
//   backward   the blocks go round once more, and the sums that are their gradients behind them;
//              weights are made again from the logarithms of the sums of the forward pass.
//
// No rank ever has more than two blocks. Where queries see keys of some places only, as in causal
// attention, paired_attention.hpp is used instead.
//
// Milakov and Gimelshein 2018; Liu, Zaharia and Abbeel 2023
#pragma once

#include <cella/parallel/block_attention.hpp>
#include <cella/parallel/ring_exchanges.hpp>

namespace cella::parallel::detail {

/// Appends what a rank of a ring runs in the place of attention and of its gradient, where all
/// places see each other (but for a mask).
class ring_attention {
 public:
  /// Queries, keys and values may be given, and are sent, in 16 bits where all else is `element`.
  constexpr ring_attention(builder& b, const block_attention& block, const attention_ring& ring,
                           dtype element)
      : ring_(ring), block_(block), element_(element), messages_(b, ring) {}

  /// Queries, keys and values of this rank -> its part of both results.
  constexpr list<var> forward(var q, var k, var v) {
    q = block_.wide(q);
    attention_so_far all;
    for (int hop = 0; hop < ring_.count; ++hop) {
      pass_on(hop, k, v);
      const attention_so_far part = attend(block_, q, block_.wide(k), block_.wide(v), pairs(hop));
      all = hop == 0 ? part : joined(block_, all, part);
      if (!is_last(hop)) take_next(hop, k, v);
    }
    const var y = block_.as(all.y / block_.for_width(all.sums, all.y), element_);
    return {messages_.after_sending(y), all.top + log(all.sums)};
  }

  /// Queries, keys and values of this rank, its results and the gradient of the first -> its parts
  /// of the gradients.
  constexpr list<var> backward(var q, var k, var v, var y, var log_sums, var dy) {
    q = block_.wide(q);
    dy = block_.wide(dy);
    const var means = block_.sum_of_width(dy * block_.wide(y));
    bias_gradient_parts bias(block_, ring_.count);
    var dq, own_dk, own_dv;
    for (int hop = 0; hop < ring_.count; ++hop) {
      pass_on(hop, k, v);
      const attention_gradients d = attention_slopes(block_, q, block_.wide(k), block_.wide(v),
                                                     log_sums, means, dy, pairs(hop));
      dq = hop == 0 ? d.query : dq + d.query;
      bias.add(block(hop), d.bias);
      // The sums for this block come from the rank that had it before, and go on with this part.
      var dk = d.key, dv = d.value;
      if (hop > 0) {
        dk = take(ring_message::key_gradients, hop - 1, dk, block(hop)) + d.key;
        dv = take(ring_message::value_gradients, hop - 1, dv, block(hop)) + d.value;
      }
      messages_.start(ring_message::key_gradients, hop, dk, ring_.next(), ring_.previous());
      messages_.start(ring_message::value_gradients, hop, dv, ring_.next(), ring_.previous());
      own_dk = dk;
      own_dv = dv;
      if (!is_last(hop)) take_next(hop, k, v);
    }
    const int last = ring_.count - 1;
    own_dk = take(ring_message::key_gradients, last, own_dk, ring_.own);
    own_dv = take(ring_message::value_gradients, last, own_dv, ring_.own);
    list<var> all{block_.as(messages_.after_sending(dq), element_), block_.as(own_dk, element_),
                  block_.as(own_dv, element_)};
    if (block_.options().bias.given())
      all.push_back(block_.as(bias.whole([&](int i) { return size(i); }), element_));
    return all;
  }

 private:
  constexpr bool is_last(int hop) const { return hop + 1 == ring_.count; }
  constexpr int block(int hop) const { return ring_.before(hop); }
  /// How many keys a block has.
  constexpr int size(int block) const {
    return size_of_part(block_.options().places, ring_.count, block);
  }
  constexpr pairs_of_places pairs(int hop) const {
    const attention_op_options& o = block_.options();
    const int count = ring_.count, first = first_of_part(o.queries, count, ring_.own);
    return {first, size_of_part(o.queries, count, ring_.own),
            first_of_part(o.places, count, block(hop)), size(block(hop)), first};
  }
  constexpr void pass_on(int hop, var k, var v) {
    if (is_last(hop)) return;
    messages_.start(ring_message::keys, hop, k, ring_.next(), ring_.previous());
    messages_.start(ring_message::values, hop, v, ring_.next(), ring_.previous());
  }
  constexpr var take(ring_message kind, int hop, var like, int block) {
    return messages_.finish(kind, hop, like, ring_.previous(), block_.key_place(), size(block));
  }
  constexpr void take_next(int hop, var& k, var& v) {
    k = take(ring_message::keys, hop, k, block(hop + 1));
    v = take(ring_message::values, hop, v, block(hop + 1));
  }

  const attention_ring ring_;
  const block_attention& block_;
  const dtype element_;
  ring_exchanges messages_;
};

}  // namespace cella::parallel::detail
