// Attention of a sequence whose places are divided among ranks, where queries see keys of some
// places only: causal attention, and windows. Blocks of keys that no query of a block sees are
// neither sent nor computed.
//
//   turn 0     each rank attends to its own keys.
//   turn t     a rank and the one t places before it: one of the two has the queries, the other one
//              the keys that these see. The later rank computes the pair. If the keys are the other
//              one's, they are sent to it; if the queries are, these are, and what they have seen
//              is sent home and joined there. After half as many turns as there are ranks all pairs
//              were met; of an even number of ranks the last turn meets them twice, and either rank
//              computes half of the queries. So all ranks compute the same number of pairs.
//
// Where a mask or a bias has numbers of its own for each query, which ranks with other queries do
// not have, and where blocks see each other both ways, ranks compute for their own queries alone.
//
// Milakov and Gimelshein 2018; Li, Shao et al. 2023 (DistFlashAttn)
#pragma once

#include <cella/parallel/block_attention.hpp>
#include <cella/parallel/ring_exchanges.hpp>

namespace cella::parallel::detail {

/// What a rank has to do in a turn.
struct turn_of_rank {
  int before{}, behind{};  ///< the ranks that it meets
  bool attends{};          ///< its queries see the keys of the one before it,
  bool helps{};            ///< or it computes for queries of that one
  bool is_attended{};      ///< the one behind it needs its keys,
  bool is_helped{};        ///< or computes for its queries
  int left_out{};          ///< of its own queries, if it attends: these are helped
  int helped{};            ///< queries of the one before it that it computes for
  int given{};             ///< queries of its own that the one behind it computes for
};

/// Which blocks of queries see which blocks of keys, and who computes that.
class attention_turns {
 public:
  constexpr attention_turns(const attention_op_options& o, int leads, int count)
      : o_(o),
        count_(count),
        shares_(!o.reads_by_query(leads) && !o.is_across() && (o.lowest >= 0 || o.highest <= 0)) {}

  constexpr int queries(int block) const { return size_of_part(o_.queries, count_, block); }
  constexpr int keys(int block) const { return size_of_part(o_.places, count_, block); }
  constexpr pairs_of_places pairs(int of_queries, int of_keys) const {
    const int first = first_of_part(o_.queries, count_, of_queries);
    return {first, queries(of_queries), first_of_part(o_.places, count_, of_keys), keys(of_keys),
            first};
  }
  constexpr bool sees(int of_queries, int of_keys) const {
    const pairs_of_places p = pairs(of_queries, of_keys);
    const int nearest = p.first_key - (p.first_query + p.queries - 1);
    const int farthest = p.first_key + p.keys - 1 - p.first_query;
    return nearest <= o_.highest && farthest >= o_.lowest;
  }
  /// Behind turn 0.
  constexpr int last() const { return shares_ ? count_ / 2 : count_ - 1; }
  /// Turns in which ranks that stand for all have something to do.
  constexpr int with_messages() const {
    int turns = 0;
    for (int turn = 1; turn <= last(); ++turn) {
      bool any = false;
      for (int a : {0, turn, count_ - 1}) {
        const int b = (a + count_ - turn) % count_;
        any |= attends(a, b) || helps(a, b);
      }
      turns += any;
    }
    return turns;
  }
  /// Turn 0 is not among them.
  constexpr turn_of_rank of(int rank, int turn) const {
    turn_of_rank t;
    if (turn > last()) return t;
    t.before = (rank + count_ - turn) % count_;
    t.behind = (rank + turn) % count_;
    t.attends = attends(rank, t.before);
    t.is_attended = attends(t.behind, rank);
    const bool meets_twice = shares_ && 2 * turn == count_;
    t.helped = helps(rank, t.before) ? helped(t.before, turn) : 0;
    t.given = helps(t.behind, rank) ? helped(rank, turn) : 0;
    t.helps = t.helped > 0;
    t.is_helped = t.given > 0;
    if (t.attends && meets_twice) t.left_out = helped(rank, turn);
    return t;
  }
  /// How many pairs of a query and a key a rank computes in all turns.
  constexpr std::int64_t pairs_of(int rank) const {
    std::int64_t sum = std::int64_t(queries(rank)) * keys(rank);
    for (int turn = 1; turn <= last(); ++turn) {
      const turn_of_rank t = of(rank, turn);
      if (t.attends) sum += std::int64_t(queries(rank) - t.left_out) * keys(t.before);
      sum += std::int64_t(t.helped) * keys(rank);
    }
    return sum;
  }

 private:
  /// How many of the first queries of a block the rank with the keys computes, if it does.
  constexpr int helped(int block, int turn) const {
    return 2 * turn == count_ ? queries(block) / 2 : queries(block);
  }
  /// What a rank computes in a turn with the one before it: for its own queries, or for those of
  /// the other.
  constexpr bool attends(int rank, int other) const { return sees(rank, other); }
  constexpr bool helps(int rank, int other) const { return shares_ && sees(other, rank); }

  const attention_op_options o_;
  const int count_;
  bool shares_;
};

/// Appends what a rank runs in the place of attention and of its gradient.
class paired_attention {
 public:
  /// Queries, keys and values may be given, and are sent, in 16 bits where all else is `element`.
  constexpr paired_attention(builder& b, const block_attention& block, const attention_ring& ring,
                             dtype element)
      : ring_(ring),
        block_(block),
        element_(element),
        turns_(block.options(), block.leads(), ring.count),
        messages_(b, ring) {}

  /// Queries, keys and values of this rank -> its part of both results.
  constexpr list<var> forward(var q, var k, var v) {
    const auto send = [&](int turn) {
      send_keys(turn, k, v);
      send_queries(ring_message::queries, turn, q, block_.query_place());
    };
    const var own_q = block_.wide(q), own_k = block_.wide(k), own_v = block_.wide(v);
    send(1);
    attention_so_far all = attend(block_, own_q, own_k, own_v, pairs(ring_.own, ring_.own));
    // What others have computed comes a turn later. `half`: what is there of the other queries.
    const auto take_results = [&](int turn, const attention_so_far& half) {
      if (!at(turn).is_helped) return;
      const var y = take_back(ring_message::results, turn, all.y, block_.query_place());
      const var log_sums = take_back(ring_message::log_sums, turn, all.top, block_.row_place());
      const var top = maximum(log_sums, least_of(log_sums));
      const attention_so_far x{top, exp(log_sums - top), y};
      all = joined(block_, all, half.y.b ? one_behind_the_other(x, half) : x);
    };
    for (int turn = 1; turn <= turns_.last(); ++turn) {
      const turn_of_rank t = at(turn);
      var other_k, other_v, other_q, others_y, others_log;
      if (t.attends) {
        other_k = block_.wide(take_keys(ring_message::keys, turn, k, t.before));
        other_v = block_.wide(take_keys(ring_message::values, turn, v, t.before));
      }
      if (t.helps)
        other_q = block_.wide(take_queries(ring_message::queries, turn, q, block_.query_place()));
      send(turn + 1);
      attention_so_far part;
      if (t.attends)
        part = attend(block_, rest(own_q, block_.query_place(), t.left_out), other_k, other_v,
                      pairs(ring_.own, t.before, t.left_out));
      if (t.helps) {
        const attention_so_far x =
            attend(block_, other_q, own_k, own_v, pairs(t.before, ring_.own, 0, t.helped));
        // Sums are 1 at least, or nothing was seen.
        const var sums = maximum(x.sums, 1.0);
        others_y = x.y / block_.for_width(sums, x.y);
        others_log = x.top + log(x.sums);
      }
      return_queries(ring_message::results, turn, others_y, all.y);
      return_queries(ring_message::log_sums, turn, others_log, all.top);
      if (t.attends && !t.left_out) all = joined(block_, all, part);
      if (turn > 1) take_results(turn - 1, {});
      if (turn == turns_.last()) take_results(turn, t.left_out ? part : attention_so_far{});
    }
    const var y = block_.as(all.y / block_.for_width(all.sums, all.y), element_);
    return {messages_.after_sending(y), all.top + log(all.sums)};
  }

  /// Queries, keys and values of this rank, its results and the gradient of the first -> its parts
  /// of the gradients.
  constexpr list<var> backward(var q, var k, var v, var y, var log_sums, var dy) {
    const int query_place = block_.query_place(), row_place = block_.row_place();
    const var own_q = block_.wide(q), own_k = block_.wide(k), own_v = block_.wide(v),
              own_dy = block_.wide(dy);
    const var means = block_.sum_of_width(own_dy * block_.wide(y));
    const auto send = [&](int turn) {
      send_keys(turn, k, v);
      send_queries(ring_message::queries, turn, q, query_place);
      send_queries(ring_message::query_cotangents, turn, dy, query_place);
      send_queries(ring_message::log_sums, turn, log_sums, row_place);
      send_queries(ring_message::means, turn, means, row_place);
    };
    bias_gradient_parts bias(block_, ring_.count);
    send(1);
    attention_gradients own = attention_slopes(block_, own_q, own_k, own_v, log_sums, means, own_dy,
                                               pairs(ring_.own, ring_.own));
    bias.add(ring_.own, own.bias);
    const auto take_gradients = [&](int turn, var half) {
      const turn_of_rank t = at(turn);
      if (t.is_attended) {
        own.key = own.key + take_keys_back(ring_message::key_gradients, turn, own.key);
        own.value = own.value + take_keys_back(ring_message::value_gradients, turn, own.value);
      }
      if (!t.is_helped) return;
      const var x = take_back(ring_message::query_gradients, turn, own.query, query_place);
      own.query = own.query + (half.b ? concat({x, half}, query_place) : x);
    };
    for (int turn = 1; turn <= turns_.last(); ++turn) {
      const turn_of_rank t = at(turn);
      var other_k, other_v, other_q, other_dy, other_log, other_means;
      if (t.attends) {
        other_k = block_.wide(take_keys(ring_message::keys, turn, k, t.before));
        other_v = block_.wide(take_keys(ring_message::values, turn, v, t.before));
      }
      if (t.helps) {
        other_q = block_.wide(take_queries(ring_message::queries, turn, q, query_place));
        other_dy = block_.wide(take_queries(ring_message::query_cotangents, turn, dy, query_place));
        other_log = take_queries(ring_message::log_sums, turn, log_sums, row_place);
        other_means = take_queries(ring_message::means, turn, means, row_place);
      }
      send(turn + 1);
      attention_gradients mine, others;
      if (t.attends) {
        const auto left = [&](var x, int axis) { return rest(x, axis, t.left_out); };
        mine = attention_slopes(block_, left(own_q, query_place), other_k, other_v,
                                left(log_sums, row_place), left(means, row_place),
                                left(own_dy, query_place), pairs(ring_.own, t.before, t.left_out));
        bias.add(t.before, mine.bias);
      }
      if (t.helps) {
        others = attention_slopes(block_, other_q, own_k, own_v, other_log, other_means, other_dy,
                                  pairs(t.before, ring_.own, 0, t.helped));
        bias.add(ring_.own, others.bias);
        own.key = own.key + others.key;
        own.value = own.value + others.value;
      }
      return_keys(ring_message::key_gradients, turn, mine.key, own.key);
      return_keys(ring_message::value_gradients, turn, mine.value, own.value);
      return_queries(ring_message::query_gradients, turn, others.query, own.query);
      if (t.attends && !t.left_out) own.query = own.query + mine.query;
      if (turn > 1) take_gradients(turn - 1, {});
      if (turn == turns_.last()) take_gradients(turn, t.left_out ? mine.query : var{});
    }
    list<var> all{block_.as(messages_.after_sending(own.query), element_),
                  block_.as(own.key, element_), block_.as(own.value, element_)};
    if (block_.options().bias.given())
      all.push_back(block_.as(bias.whole([&](int i) { return turns_.keys(i); }), element_));
    return all;
  }

 private:
  constexpr turn_of_rank at(int turn) const { return turns_.of(ring_.own, turn); }
  /// Some queries of a block, and the keys of another one.
  constexpr pairs_of_places pairs(int queries, int keys, int left_out = 0, int count = -1) const {
    pairs_of_places p = turns_.pairs(queries, keys);
    p.first_query += left_out;
    p.queries = count < 0 ? p.queries - left_out : count;
    return p;
  }
  static constexpr var rest(var x, int axis, int left_out) {
    return left_out == 0 ? x : slice(x, axis, left_out, x.extent(axis));
  }
  static constexpr double least_of(var x) {
    return x.element() == dtype::f64 ? std::numeric_limits<double>::lowest()
                                     : double(std::numeric_limits<float>::lowest());
  }
  constexpr attention_so_far one_behind_the_other(const attention_so_far& a,
                                                  const attention_so_far& b) const {
    return {concat({a.top, b.top}, block_.row_place()),
            concat({a.sums, b.sums}, block_.row_place()), concat({a.y, b.y}, block_.query_place())};
  }

  // ---- messages: keys and queries to the rank behind, what it makes of them back

  constexpr void send_keys(int turn, var k, var v) {
    const turn_of_rank t = at(turn);
    const int to = t.is_attended ? t.behind : -1, from = t.attends ? t.before : -1;
    messages_.start(ring_message::keys, turn, k, to, from);
    messages_.start(ring_message::values, turn, v, to, from);
  }
  constexpr void send_queries(ring_message kind, int turn, var x, int axis) {
    const turn_of_rank t = at(turn);
    if (t.is_helped && t.given < x.extent(axis)) x = slice(x, axis, 0, t.given);
    messages_.start(kind, turn, x, t.is_helped ? t.behind : -1, t.helps ? t.before : -1);
  }
  constexpr var take_keys(ring_message kind, int turn, var like, int block) {
    return messages_.finish(kind, turn, like, block, block_.key_place(), turns_.keys(block));
  }
  constexpr var take_queries(ring_message kind, int turn, var like, int axis) {
    const turn_of_rank t = at(turn);
    return messages_.finish(kind, turn, like, t.before, axis, t.helped);
  }
  /// `like` is of the type of what comes in return.
  constexpr void return_queries(ring_message kind, int turn, var x, var like) {
    const turn_of_rank t = at(turn);
    messages_.start(kind, turn, x.b ? x : like, t.helps ? t.before : -1,
                    t.is_helped ? t.behind : -1);
  }
  constexpr void return_keys(ring_message kind, int turn, var x, var like) {
    const turn_of_rank t = at(turn);
    messages_.start(kind, turn, x.b ? x : like, t.attends ? t.before : -1,
                    t.is_attended ? t.behind : -1);
  }
  constexpr var take_back(ring_message kind, int turn, var like, int axis) {
    const turn_of_rank t = at(turn);
    return messages_.finish(kind, turn, like, t.behind, axis, t.given);
  }
  constexpr var take_keys_back(ring_message kind, int turn, var like) {
    return messages_.finish(kind, turn, like, at(turn).behind, block_.key_place(),
                            turns_.keys(ring_.own));
  }

  const attention_ring ring_;
  const block_attention& block_;
  const dtype element_;
  const attention_turns turns_;
  ring_exchanges messages_;
};

}  // namespace cella::parallel::detail
