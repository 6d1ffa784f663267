// Attention in its general form: other keys and values than queries, fewer of their heads, masks,
// windows, rotations, and a cache of what was seen.
#pragma once

#include <cella/nn/layers.hpp>
#include <cella/nn/masks.hpp>
#include <cella/nn/positions.hpp>
#include <cella/ops/attention.hpp>
#include <cella/ops/put_rows.hpp>

namespace cella {

namespace detail {

/// [...,T,heads * D] -> [...,heads,T,D], and back.
constexpr var heads_first(var x, int heads) {
  const int rank = x.rank();
  shape s = x.shape();
  s[rank - 1] /= heads;
  s.insert(rank - 1, heads);
  list<int> order(std::size_t(rank) + 1, 0);
  for (int d = 0; d <= rank; ++d) order[std::size_t(d)] = d;
  std::swap(order[std::size_t(rank) - 2], order[std::size_t(rank) - 1]);
  return transpose(reshape(x, s), span<const int>(order));
}
constexpr var heads_last(var x) {
  const int rank = x.rank();
  list<int> order(std::size_t(rank), 0);
  for (int d = 0; d < rank; ++d) order[std::size_t(d)] = d;
  std::swap(order[std::size_t(rank) - 3], order[std::size_t(rank) - 2]);
  const var y = transpose(x, span<const int>(order));
  shape s = y.shape();
  s[rank - 2] *= s[rank - 1];
  s.erase(rank - 1);
  return reshape(y, s);
}

/// [...,G,T,D] of `heads` heads as [...,heads / times, times * T, D], or the reverse.
constexpr var merge_queries(var x, int times) {
  shape s = x.shape();
  s[x.rank() - 3] /= times;
  s[x.rank() - 2] *= times;
  return reshape(x, s);
}

}  // namespace detail

/// What the general form of attention may be told.
struct attention_options {
  int heads = 1;
  int key_value_heads = 0;  ///< 0: as many as heads
  double scale = 0;         ///< of the products; 0: 1 / sqrt(width of a head)
};

/// Attention whose keys and values have fewer heads than the queries: head h of the queries sees
/// head h / (heads / key_value_heads) of the others. Queries [...,T,heads * D], keys
/// [...,S,key_value_heads * D], values [...,S,key_value_heads * E] -> [...,T,heads * E]. `mask`,
/// bool, broadcasts to [...,heads,T,S]; a query that sees nothing yields NaN. `bias`, numbers of
/// that shape, is added to the scores.  Shazeer 2019; Ainslie et al. 2023
constexpr var grouped_query_attention(operand query, operand key, operand value,
                                      attention_options options, var mask = {}, var bias = {}) {
  builder& b = owner_of(query, key);
  const var q = query.in(b), k = key.in(b), v = value.in(b);
  const int heads = options.heads,
            groups = options.key_value_heads ? options.key_value_heads : heads;
  const int rank = q.rank();
  bool fits = groups > 0 && heads > 0 && heads % groups == 0 && rank >= 2 && rank < max_rank &&
              k.rank() == rank && v.rank() == rank;
  for (int d = 0; fits && d < rank - 2; ++d)
    fits = q.extent(d) == k.extent(d) && q.extent(d) == v.extent(d);
  fits = fits && k.extent(-2) == v.extent(-2) && q.extent(-1) % heads == 0 &&
         k.extent(-1) % groups == 0 && v.extent(-1) % groups == 0 &&
         q.extent(-1) / heads == k.extent(-1) / groups;
  if (!fits) {
    b.fail(text() << query.at() << ": grouped_query_attention: queries [...,T," << heads
                  << " D], keys [...,S," << groups << " D] and values [...,S," << groups
                  << " E] are needed: " << b.describe(q.id) << " is " << q.shape() << ", "
                  << b.describe(k.id) << " is " << k.shape() << ", " << b.describe(v.id) << " is "
                  << v.shape());
    return q;
  }
  const double width = double(q.extent(-1)) / heads;
  const double scale = options.scale != 0 ? options.scale : 1 / detail::square_root(width);
  // Queries that see the same head of the keys are rows of one product.
  const int times = heads / groups;
  const var rows = detail::merge_queries(detail::heads_first(q, heads), times);
  const var products = matmul({rows, query.at()}, detail::heads_first(k, groups), false, true);
  shape all = products.shape();
  all[rank - 2] *= times;
  all[rank - 1] /= times;
  var scores = reshape(products, all) * operand(scale, query.at());
  if (bias.b) scores = scores + operand(bias, query.at());
  if (mask.b) scores = select(mask, {scores, query.at()}, -std::numeric_limits<double>::infinity());
  const var weights = detail::merge_queries(softmax({scores, query.at()}), times);
  const var seen = matmul(weights, {detail::heads_first(v, groups), value.at()});
  all = seen.shape();
  all[rank - 2] *= times;
  all[rank - 1] /= times;
  return detail::heads_last(reshape(seen, all));
}

/// Keys and values of the places so far, [N,Places,W]: what a net keeps between the words that it
/// writes.
struct key_value_cache {
  var keys;
  var values;
};
/// The cache with `rows` [N,T,W] at the places from `first` on, an integer [] or a number; rows
/// beyond the end are left out.
constexpr var cache_rows(operand cache, operand rows, operand first) {
  builder& b = *cache.owner();
  const var c = cache.in(b), r = rows.in(b);
  if (c.rank() != 3 || r.rank() != 3 || c.extent(0) != r.extent(0) || c.extent(2) != r.extent(2)) {
    b.fail(text() << cache.at() << ": cache_rows: needs a cache [N,Places,W] and rows [N,T,W]: "
                  << b.describe(c.id) << " is " << c.shape() << ", " << b.describe(r.id) << " is "
                  << r.shape());
    return c;
  }
  const var from =
      first.is_number() ? constant(b, first.number(), {dtype::i64, {}}) : cast(first, dtype::i64);
  return put_rows(c, from + iota(b, {dtype::i64, {r.extent(1)}}, 0), rows, 1);
}

namespace nn {

/// Attention of a sequence to itself or to another one, with dense layers for queries, keys, values
/// and the result: [N,T,Width] -> [N,T,Width]. Keys and values may have fewer heads. `causal`: no
/// place sees a later one; `window`: nor one further back (0: any); `rotary_base`: queries and keys
/// are rotated by their places (0: they are not).
template <int Width, int Heads, int KeyValueHeads = Heads, int Memory = Width>
struct attention {
  static constexpr int key_width = detail::size_of_part(Width, Heads) * KeyValueHeads;
  dense<Width, Width> query{};
  dense<Memory, key_width> key{};
  dense<Memory, key_width> value{};
  dense<Width, Width> out{};
  bool causal = false;
  int window = 0;
  double rotary_base = 0;

  constexpr var operator()(var x, std::source_location at = std::source_location::current()) const {
    return (*this)(x, x, var{}, at);
  }
  /// `memory` [N,S,Memory] is what keys and values are made of.
  constexpr var operator()(var x, var memory,
                           std::source_location at = std::source_location::current()) const {
    return (*this)(x, memory, var{}, at);
  }
  /// `mask`, bool, broadcasts to [N,Heads,T,S]: see masks.hpp.
  constexpr var operator()(var x, var memory, var mask,
                           std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    if (!divided(x, at) || !fits(x, Width, at) || !fits(memory, Memory, at)) return x;
    const var q = turned(query(x, at), Heads, 0), k = turned(key(memory, at), KeyValueHeads, 0);
    return finish(q, k, value(memory, at), mask, 0, at);
  }

  /// What a step of writing yields: the result, and the cache that the next one is given.
  struct written {
    var value;
    key_value_cache cache;
  };
  /// The places of x [N,T,Width] from `first` on, an integer [] or a number, see themselves and
  /// what the cache [N,Places,..] has of earlier ones: the same as the whole sequence at once,
  /// `causal`.
  constexpr written step(var x, key_value_cache cache, operand first,
                         std::source_location at = std::source_location::current()) const {
    const cell_scope scope(x, *this);
    if (!divided(x, at) || !fits(x, Width, at)) return {x, cache};
    const var q = turned(query(x, at), Heads, first), k = turned(key(x, at), KeyValueHeads, first);
    cache.keys = cache_rows({cache.keys, at}, k, first);
    cache.values = cache_rows({cache.values, at}, value(x, at), first);
    return {finish(q, cache.keys, cache.values, {}, first, at, true), cache};
  }

 private:
  static constexpr bool divided(var x, std::source_location at) {
    return detail::divides("attention", "heads", Heads, "features", Width, x, at) &&
           detail::divides("attention", "heads of keys", KeyValueHeads, "heads", Heads, x, at);
  }
  static constexpr bool fits(var x, int width, std::source_location at) {
    if (x.rank() == 3 && x.extent(2) == width) return true;
    x.b->fail(text() << at << ": attention: needs sequences [N,T," << width
                     << "]: " << x.b->describe(x.id) << " is " << x.shape());
    return false;
  }
  /// Each head rotated by its places.
  constexpr var turned(var x, int heads, operand first) const {
    if (rotary_base == 0) return x;
    const var places = iota(*x.b, {x.element(), {x.extent(1)}}, 0) +
                       (first.is_number() ? first : operand(cast(first, x.element())));
    return detail::heads_last(rotary(detail::heads_first(x, heads), places, rotary_base));
  }
  constexpr var finish(var q, var k, var v, var mask, operand first, std::source_location at,
                       bool writes = false) const {
    const int queries = q.extent(1), keys = k.extent(1);
    const bool is_causal = causal || writes;
    if (KeyValueHeads == Heads && !mask.b && window == 0 && !writes)
      return out(multi_head_attention({q, at}, {k, at}, {v, at}, Heads, causal), at);
    var sees = mask;
    if (is_causal || window) {
      const var near = window ? sliding_window_mask({q, at}, queries, keys, window, first)
                              : causal_mask({q, at}, queries, keys, first);
      sees = mask.b ? logical_and(mask, near) : near;
    }
    return out(grouped_query_attention({q, at}, {k, at}, {v, at}, {Heads, KeyValueHeads}, sees),
               at);
  }
};

/// Attention of a sequence to another one, [N,T,Width] and [N,S,Memory] -> [N,T,Width].
template <int Width, int Heads, int Memory = Width>
using cross_attention = attention<Width, Heads, Heads, Memory>;

}  // namespace nn
}  // namespace cella
