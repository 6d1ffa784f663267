// Attention of a sequence whose places are divided among ranks: keys and values go round a ring.
//
//   forward    a rank sends the block of keys and values that it has to its neighbour, computes the
//              attention of its queries to that block meanwhile, and receives the next one. Parts
//              of the result are put together by running maxima and sums (online softmax).
//   backward   the blocks go round once more, and the sums that are their gradients behind them;
//              weights are made again from the logarithms of the sums of the forward pass.
//
// No rank ever has more than two blocks. Causal: a block goes from its own rank to the last one
// only, past those that see it, and its gradient home from there.
//
// Milakov and Gimelshein 2018; Liu, Zaharia and Abbeel 2023
#pragma once

#include <cella/parallel/block_attention.hpp>
#include <cella/parallel/exchange_operations.hpp>

namespace cella::parallel::detail {

/// The ranks of a ring, and the one whose graph is made.
struct attention_ring {
  int mesh_axis{};
  int count{};
  int own{};        ///< the place of this rank
  int first_tag{};  ///< of `tags_of_ring` that no other message has

  constexpr int next() const { return (own + 1) % count; }
  constexpr int previous() const { return (own + count - 1) % count; }
};
constexpr int tags_of_ring(int count) { return 4 * (count + 1); }

/// Appends messages between the ranks of a ring to a graph. All ranks append them in the same
/// order, and each is sent before the next one is awaited, so that none waits for ever.
class ring_exchanges {
 public:
  enum message { keys, values, key_gradients, value_gradients };

  constexpr ring_exchanges(builder& b, const attention_op_options& o, const attention_ring& ring)
      : b_(b), o_(o), ring_(ring) {}

  /// Sends x to rank `to`, while a message of the same kind and hop is expected from rank `from`.
  constexpr void start(message kind, int hop, var x, int to, int from) {
    exchange_options e = options_of(kind, hop);
    e.to = to;
    e.from = from;
    tickets_.push_back(b_.emit(bound<start_exchange_op>(), {x.id}, e));
  }
  /// What rank `from` has sent: as x, but with the places of block `block`.
  constexpr var finish(message kind, int hop, var x, int from, int block) {
    exchange_options e = options_of(kind, hop);
    e.from = from;
    e.dimension = o_.place;
    e.extent = size_of_part(o_.places, ring_.count, block);
    return behind_all(x, e);
  }
  /// x, once all that was started is sent.
  constexpr var after_sending(var x) {
    return tickets_.empty() ? x : behind_all(x, options_of(keys, 0));
  }

 private:
  constexpr exchange_options options_of(message kind, int hop) const {
    return {ring_.mesh_axis, ring_.count, -1, -1,
            ring_.first_tag + int(kind) * (ring_.count + 1) + hop};
  }
  constexpr var behind_all(var x, const exchange_options& e) {
    ids in{x.id};
    for (node_id t : tickets_) in.push_back(t);
    tickets_.clear();
    return {&b_, b_.emit(bound<finish_exchange_op>(), in, e)};
  }

  builder& b_;
  const attention_op_options o_;
  const attention_ring ring_;
  ids tickets_;
};

/// Appends what a rank of a ring runs in the place of attention and of its gradient.
class ring_attention {
  using message = ring_exchanges::message;

 public:
  constexpr ring_attention(builder& b, const attention_op_options& o, int rank,
                           const attention_ring& ring)
      : o_(o), ring_(ring), block_(b, o, rank), messages_(b, o, ring) {}

  /// Queries, keys and values of this rank -> its part of both results.
  constexpr list<var> forward(var q, var k, var v) {
    var most, sums, y;
    for (int hop = 0; hop < hops(); ++hop) {
      pass_on(hop, k, v);
      const var scores = scores_of(hop, q, k);
      const var top = block_.largest(scores);
      const var powers = exp(scores - block_.for_keys(top, scores));
      const var sum = block_.sum_of(powers), part = block_.sum_over_keys(powers, v);
      if (hop == 0) {
        most = top;
        sums = sum;
        y = part;
      } else {
        const var now = maximum(most, top);
        const var before = exp(most - now), here = exp(top - now);
        sums = sums * before + sum * here;
        y = y * block_.for_width(before, y) + part * block_.for_width(here, y);
        most = now;
      }
      if (receives(hop)) take_next(hop, k, v);
    }
    y = messages_.after_sending(y / block_.for_width(sums, y));
    return {y, most + log(sums)};
  }

  /// Queries, keys and values of this rank, its results and the gradient of the first -> its parts
  /// of the gradients.
  constexpr list<var> backward(var q, var k, var v, var y, var log_sums, var dy) {
    const var means = block_.sum_of_width(dy * y), own = k;
    var dq, dk, dv, own_dk, own_dv;
    for (int hop = 0; hop < hops(); ++hop) {
      pass_on(hop, k, v);
      const var scores = scores_of(hop, q, k);
      const var weights = exp(scores - block_.for_keys(log_sums, scores));
      const var slopes =
          weights * (block_.by_pairs(dy, v) - block_.for_keys(means, weights)) * block_.scale();
      const var part = block_.sum_over_keys(slopes, k);
      dq = hop == 0 ? part : dq + part;
      // The sums for this block come from the rank that had it before, and go on with this part.
      const var key_part = block_.sum_over_queries(slopes, q);
      const var value_part = block_.sum_over_queries(weights, dy);
      dk = key_part;
      dv = value_part;
      if (hop > 0) {
        const int from = ring_.previous();
        dk = messages_.finish(message::key_gradients, hop - 1, dk, from, block(hop)) + key_part;
        dv = messages_.finish(message::value_gradients, hop - 1, dv, from, block(hop)) + value_part;
      }
      if (o_.causal && hop == 0 && is_last()) {
        own_dk = dk;
        own_dv = dv;
      }
      pass_gradients_on(hop, dk, dv);
      if (receives(hop)) take_next(hop, k, v);
    }
    if (!own_dk.b) {
      const int hop = o_.causal ? ring_.count : ring_.count - 1;
      const int from = o_.causal ? ring_.count - 1 : ring_.previous();
      own_dk = messages_.finish(message::key_gradients, hop, own, from, ring_.own);
      own_dv = messages_.finish(message::value_gradients, hop, own, from, ring_.own);
    }
    return {messages_.after_sending(dq), own_dk, own_dv};
  }

 private:
  constexpr bool is_last() const { return ring_.own == ring_.count - 1; }
  /// How many blocks this rank's queries see. Its own is the first.
  constexpr int hops() const { return o_.causal ? ring_.own + 1 : ring_.count; }
  constexpr int block(int hop) const { return (ring_.own + ring_.count - hop) % ring_.count; }
  constexpr bool sends(int hop) const { return o_.causal ? !is_last() : hop + 1 < ring_.count; }
  constexpr bool receives(int hop) const { return hop + 1 < hops(); }

  /// Of keys of its own block a causal query sees those before it.
  constexpr var scores_of(int hop, var q, var k) const {
    const var s = block_.scores(q, k);
    return o_.causal && hop == 0 ? block_.before_query(s) : s;
  }
  constexpr void pass_on(int hop, var k, var v) {
    if (!sends(hop) && !receives(hop)) return;
    const int to = sends(hop) ? ring_.next() : -1, from = receives(hop) ? ring_.previous() : -1;
    messages_.start(message::keys, hop, k, to, from);
    messages_.start(message::values, hop, v, to, from);
  }
  constexpr void take_next(int hop, var& k, var& v) {
    k = messages_.finish(message::keys, hop, k, ring_.previous(), block(hop + 1));
    v = messages_.finish(message::values, hop, v, ring_.previous(), block(hop + 1));
  }
  constexpr void pass_gradients_on(int hop, var dk, var dv) {
    const bool sends_on = !o_.causal || !is_last();
    const int from = !o_.causal || receives(hop) ? ring_.previous() : -1;
    if (sends_on || from >= 0) {
      const int to = sends_on ? ring_.next() : -1;
      messages_.start(message::key_gradients, hop, dk, to, from);
      messages_.start(message::value_gradients, hop, dv, to, from);
    }
    if (sends_on || hop == 0) return;
    // Home, to the rank whose block it is.
    messages_.start(message::key_gradients, ring_.count, dk, block(hop), -1);
    messages_.start(message::value_gradients, ring_.count, dv, block(hop), -1);
  }

  const attention_op_options o_;
  const attention_ring ring_;
  block_attention block_;
  ring_exchanges messages_;
};

}  // namespace cella::parallel::detail
