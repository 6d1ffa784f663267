// Sums, means and maxima of embedded words.
#pragma once

#include <cella/nn/layers.hpp>

namespace cella {

/// How nn::embedding_bag makes one vector of several.
enum class bag_mode : std::uint8_t { sum, mean, max };

namespace detail {

/// Rows of a table [V,D] by the words of bags [...,L], put together: [...,D].
constexpr var bag_of_rows(operand words, operand table, bag_mode mode, int padding, var weights) {
  builder& b = owner_of(words, table);
  const var w = words.in(b);
  const var t = table.in(b);
  if (w.rank() < 1 || w.rank() >= max_rank || t.rank() != 2) {
    b.fail(text() << words.at()
                  << ": embedding_bag: needs words [...,L] and a table [V,D]: " << b.describe(w.id)
                  << " is " << w.shape() << ", " << b.describe(t.id) << " is " << t.shape());
    return t;
  }
  if (weights.b && (mode != bag_mode::sum || weights.shape() != w.shape())) {
    b.fail(text() << words.at() << ": embedding_bag: weights are for sums, one for each word: "
                  << b.describe(w.id) << " is " << w.shape() << ", " << b.describe(weights.id)
                  << " is " << weights.shape());
    return t;
  }
  const bool skips = padding >= 0;
  const var counts = expand_dims(not_equal(w, padding), -1);  // [...,L,1]
  // What stands at places that do not count must be a row: the first.
  const var rows = embedding(skips ? select(not_equal(w, padding), w, zeros_like(w)) : w, table);
  if (b.failed()) return t;
  const int axis = w.rank() - 1;
  const var seen = broadcast_to(counts, rows.shape());
  if (mode == bag_mode::max) {
    if (!skips) return max({rows, words.at()}, {axis});
    const var some = any(seen, {axis});
    const var most = max(select(seen, rows, std::numeric_limits<double>::lowest()), {axis});
    return select(some, most, zeros_like(most));
  }
  var kept = skips ? select(seen, rows, zeros_like(rows)) : rows;
  if (weights.b) kept = kept * expand_dims(weights, -1);
  const var total = sum({kept, words.at()}, {axis});
  if (mode == bag_mode::sum) return total;
  if (!skips) return total / double(w.extent(axis));
  const var count = sum(cast(counts, t.element()), {axis});  // [...,1]
  return total / maximum(count, 1);
}

}  // namespace detail

namespace nn {

/// Embedded words of bags put together: integers [...,L], 0 to Words - 1 -> [...,Width]. Words that
/// equal `padding` do not count; a bag without others yields zeros.
template <int Words, int Width>
struct embedding_bag {
  parameter<Words, Width> weight{initializer::normal()};
  bag_mode mode = bag_mode::mean;
  int padding = -1;

  /// `weights` [...,L] multiply the rows of a sum; none: all are 1.
  constexpr var operator()(var words, var weights = {},
                           std::source_location at = std::source_location::current()) const {
    const cell_scope scope(words, *this);
    return cella::detail::bag_of_rows({words, at}, {weight, at}, mode, padding, weights);
  }
};

}  // namespace nn
}  // namespace cella
