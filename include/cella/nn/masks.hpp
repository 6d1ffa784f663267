// Which keys a query sees: masks of attention, true where it does. They are combined by
// logical_and.
#pragma once

#include <cella/ops/array.hpp>
#include <cella/ops/comparison.hpp>

namespace cella {

namespace detail {

/// The place of each key less that of each query, i64 [queries, keys]; `first` is the place of the
/// first query.
constexpr var key_less_query(var like, int queries, int keys, operand first) {
  builder& b = *like.b;
  tensor_type t{dtype::i64, {queries, keys}};
  const var distance = iota(b, t, 1) - iota(b, t, 0);
  return distance - (first.is_number() ? first : operand(cast(first, dtype::i64), first.at()));
}

}  // namespace detail

/// [queries, keys]: a query sees the keys up to its own place. The first query stands at place
/// `first`, a number or an integer [] that is known at run time only.
constexpr var causal_mask(operand like, int queries, int keys, operand first = 0) {
  const var x = like.in(*like.owner());
  return detail::key_less_query(x, queries, keys, first) <= 0;
}
/// [queries, keys]: a query sees its own place and the `window` - 1 before it.
/// Beltagy et al. 2020; Jiang et al. 2023
constexpr var sliding_window_mask(operand like, int queries, int keys, int window,
                                  operand first = 0) {
  const var x = like.in(*like.owner());
  const var distance = detail::key_less_query(x, queries, keys, first);
  return logical_and(distance <= 0, distance > -window);
}
/// [N,1,1,keys]: of sequences of these lengths [N], what stands before the end. It fits scores
/// [N,heads,queries,keys].
constexpr var padding_mask(operand lengths, int keys) {
  builder& b = *lengths.owner();
  const var n = lengths.in(b);
  if (n.rank() != 1 || !is_integer(n.element())) {
    b.fail(text() << lengths.at() << ": padding_mask: needs integer lengths [N]: "
                  << b.describe(n.id) << " is " << n.type());
    return n;
  }
  tensor_type t{n.element(), {n.extent(0), 1, 1, keys}};
  return iota(b, t, 3) < broadcast_to(reshape(lengths, {n.extent(0), 1, 1, 1}), t.shape);
}

}  // namespace cella
