// Attention of some queries to some keys, written with the operations of one device.
#pragma once

#include <algorithm>
#include <cella/graph/copy.hpp>
#include <cella/ops/attention.hpp>
#include <cella/parallel/attention_operations.hpp>
#include <cella/parallel/layout.hpp>
#include <limits>

namespace cella::parallel::detail {

/// The places of some queries and keys in the sequence, and that of the first query of this rank.
struct pairs_of_places {
  int first_query{}, queries{}, first_key{}, keys{};
  int own_first{};
};

/// Appends attention, and what it is made of, to a graph. Shapes: queries, keys and their like as
/// attention_op_options says, weights [lead..., queries, keys], rows [lead..., queries].
class block_attention {
 public:
  /// `mask` and `bias`, where the options say so: of the queries of this rank, and all keys.
  constexpr block_attention(builder& b, const attention_op_options& o, int rank, var mask, var bias)
      : b_(b), o_(o), rank_(rank), leads_(rank - 2), mask_(mask), bias_(bias) {
    const auto factor = [](int f) { return std::int8_t(f); };
    // Queries that see the same head of keys are rows of one product.
    const int leads = std::clamp(leads_ - grouped(), 0, max_rank - 2);  // g++ takes it for more
    for (int d = 0; d < leads; ++d) {
      const auto axis = std::size_t(d + (d >= key_place()));
      by_query_[axis] = by_key_[axis] = pairs_[std::size_t(d)] = factor(d);
    }
    const auto place = std::size_t(key_place()), width = std::size_t(leads + 1);
    by_query_[place] = pairs_[std::size_t(leads)] = factor(leads);
    by_key_[place] = pairs_[std::size_t(leads) + 1] = factor(leads + 1);
    by_query_[width] = by_key_[width] = factor(leads + 2);
  }

  constexpr const attention_op_options& options() const { return o_; }
  constexpr int leads() const { return leads_; }
  /// The axes of the places of queries, of keys, and of rows.
  constexpr int query_place() const { return o_.place; }
  constexpr int key_place() const { return o_.place - grouped(); }
  constexpr int row_place() const { return leads_; }

  // ---- products

  constexpr var by_pairs(var of_query, var of_key) const {
    const var y = product({by_query_, by_key_, pairs_}, merged(of_query, o_.place), of_key);
    shape s;
    for (int d = 0; d < leads_; ++d)
      s.push_back(of_query.extent(cella::detail::axis_beside_place(o_, d)));
    s.push_back(of_query.extent(o_.place));
    s.push_back(of_key.extent(key_place()));
    return grouped() ? reshape(y, s) : y;
  }
  constexpr var sum_over_keys(var weights, var of_key) const {
    const var y = product({pairs_, by_key_, by_query_}, merged(weights, leads_), of_key);
    if (!grouped()) return y;
    shape s = weights.shape();
    s[rank_ - 1] = of_key.extent(-1);
    return reshape(y, s);
  }
  constexpr var sum_over_queries(var weights, var of_query) const {
    return product({pairs_, by_query_, by_key_}, merged(weights, leads_),
                   merged(of_query, o_.place));
  }

  // ---- weights

  /// scale q k^T + bias, and minus infinity for keys that are hidden.
  constexpr var scores(var q, var k, const pairs_of_places& at) const {
    var s = by_pairs(q, k) * o_.scale;
    if (o_.bias.given()) s = s + spread(as(part(bias_, o_.bias, at), s.element()), s);
    const var seen = seen_of(s, at);
    return seen.b ? select(seen, s, -std::numeric_limits<double>::infinity()) : s;
  }
  /// Zeros for keys that are hidden: where a query sees none, weights are no numbers.
  constexpr var seen_slopes(var slopes, const pairs_of_places& at) const {
    const var seen = seen_of(slopes, at);
    return seen.b ? select(seen, slopes, 0.0) : slopes;
  }
  /// Whether there may be queries that see none of these keys.
  constexpr bool may_be_blind(const pairs_of_places& at) const {
    if (o_.mask.given() || o_.bias.given()) return true;
    for (int t = at.first_query; t < at.first_query + at.queries; ++t) {
      bool sees = false;
      const int last = at.first_key + at.keys - 1;
      // The key that is nearest to the band of those that it sees.
      for (int k : {at.first_key, last, t + o_.lowest, t + o_.highest})
        sees |= k >= at.first_key && k <= last && o_.sees(t, k);
      if (!sees) return true;
    }
    return false;
  }
  constexpr double scale() const { return o_.scale; }
  /// What these slopes, of scores with their bias, add to the gradient of the bias: of the same
  /// axes, for the queries and keys of the slopes.
  constexpr var bias_gradient(var slopes) const {
    unsigned folded = 0;
    shape kept = slopes.shape();
    for (int d = 0; d < rank_; ++d) {
      if (o_.bias.along(d)) continue;
      folded |= 1u << d;
      kept[d] = 1;
    }
    if (!folded) return slopes;
    return reshape(sum_axes(slopes, folded, std::source_location::current()), kept);
  }

  // ---- rows

  constexpr var largest(var weights) const { return max(weights, {leads_ + 1}); }
  constexpr var sum_of(var weights) const { return sum(weights, {leads_ + 1}); }
  /// A row's number for each of its keys.
  constexpr var for_keys(var row, var weights) const {
    return cella::detail::repeat_along(row, weights.shape(), 1u << (leads_ + 1));
  }
  /// A row's number for each element of its place.
  constexpr var for_width(var row, var of_query) const {
    if (o_.place != leads_) {
      list<int> order;
      for (int d = 0; d + 1 < rank_; ++d)
        order.push_back(d == o_.place ? leads_ : d - (d > o_.place));
      row = transpose(row, span<const int>(order));
    }
    return cella::detail::repeat_along(row, of_query.shape(), 1u << (rank_ - 1));
  }
  /// The sum over the width of each place.
  constexpr var sum_of_width(var of_query) const {
    const var y = sum(of_query, {rank_ - 1});
    if (o_.place == leads_) return y;
    list<int> order;
    for (int d = 0; d < leads_; ++d) order.push_back(cella::detail::axis_beside_place(o_, d));
    order.push_back(o_.place);
    return transpose(y, span<const int>(order));
  }

  // ---- element types

  /// Of 16 bits: in single precision, in which sums are made.
  static constexpr var wide(var x) {
    return is_storage_only(x.element()) ? var(cast(x, dtype::f32)) : x;
  }
  static constexpr var as(var x, dtype t) { return x.element() == t ? x : var(cast(x, t)); }

 private:
  constexpr int grouped() const { return o_.grouped ? 1 : 0; }
  constexpr var product(const matmul_op::options& o, var x, var y) const {
    return emit<matmul_op>(o, std::source_location::current(), x, y);
  }
  /// The last leading axis and the places behind it as one axis, if keys do without the former.
  constexpr var merged(var x, int place) const {
    if (!grouped()) return x;
    shape s = x.shape();
    s[place] *= s[place - 1];
    s.erase(place - 1);
    return reshape(x, s);
  }
  constexpr var part(var x, const pairs_operand& p, const pairs_of_places& at) const {
    const auto cut = [&](int axis, int first, int count) {
      if (p.along(axis) && count != x.extent(axis)) x = slice(x, axis, first, first + count);
    };
    cut(leads_, at.first_query - at.own_first, at.queries);
    cut(leads_ + 1, at.first_key, at.keys);
    return x;
  }
  static constexpr var spread(var x, var scores) {
    return x.shape() == scores.shape() ? x : broadcast_to(x, scores.shape());
  }
  /// Which keys are seen, for each score; nothing if all are.
  constexpr var seen_of(var scores, const pairs_of_places& at) const {
    var seen = in_band(scores, at);
    if (!o_.mask.given()) return seen;
    const var by_mask = spread(part(mask_, o_.mask, at), scores);
    return seen.b ? logical_and(seen, by_mask) : by_mask;
  }
  /// Loops that read the scores compare the places, which count from the first query and key.
  constexpr var in_band(var scores, const pairs_of_places& at) const {
    const int shift = at.first_key - at.first_query;
    const bool below = o_.highest < at.keys - 1 + shift;
    const bool above = o_.lowest > shift - (at.queries - 1);
    if (!below && !above) return {};
    const auto [column, row] = cella::detail::places_in_matrix("attention", scores);
    var seen;
    if (below) {
      const int most = o_.highest - shift;
      seen = column <= (most == 0 ? row : row + most);
    }
    if (above) {
      const var far = column >= row + (o_.lowest - shift);
      seen = seen.b ? logical_and(seen, far) : far;
    }
    return broadcast_to(seen, scores.shape());
  }

  builder& b_;
  const attention_op_options o_;
  const int rank_, leads_;
  const var mask_, bias_;
  iteration_space::axes by_query_ = iteration_space::no_axes, by_key_ = iteration_space::no_axes,
                        pairs_ = iteration_space::no_axes;
};

// ------------------------------------------------------------------------------------------------

/// Attention to the keys that were seen so far, for queries and the weights' largest scores: sums
/// of e^(score - top), and of values with these weights.
struct attention_so_far {
  var top, sums, y;
};

/// Attention of queries to a block of keys, in the precision of its operands.
constexpr attention_so_far attend(const block_attention& block, var q, var k, var v,
                                  const pairs_of_places& at) {
  const var scores = block.scores(q, k, at);
  var top = block.largest(scores);
  if (block.may_be_blind(at)) {
    // Of queries that see none of them a number, too, so that sums are zeros.
    const double least = q.element() == dtype::f64 ? std::numeric_limits<double>::lowest()
                                                   : double(std::numeric_limits<float>::lowest());
    top = maximum(top, least);
  }
  const var powers = exp(scores - block.for_keys(top, scores));
  return {top, block.sum_of(powers), block.sum_over_keys(powers, v)};
}
/// Online softmax: both, as if their keys had been one block.
constexpr attention_so_far joined(const block_attention& block, const attention_so_far& a,
                                  const attention_so_far& b) {
  const var top = maximum(a.top, b.top);
  const var before = exp(a.top - top), here = exp(b.top - top);
  return {top, a.sums * before + b.sums * here,
          a.y * block.for_width(before, a.y) + b.y * block.for_width(here, a.y)};
}

/// What a block of keys adds to gradients; `bias` is empty unless there is one.
struct attention_gradients {
  var query, key, value, bias;
};

/// `log_sums` and `means` [lead..., queries]: the logarithm of the sum of e^scores over all keys,
/// and the inner product of the result and its gradient.
constexpr attention_gradients attention_slopes(const block_attention& block, var q, var k, var v,
                                               var log_sums, var means, var dy,
                                               const pairs_of_places& at) {
  const var scores = block.scores(q, k, at);
  const var weights = exp(scores - block.for_keys(log_sums, scores));
  var slopes = weights * (block.by_pairs(dy, v) - block.for_keys(means, weights));
  if (block.may_be_blind(at)) slopes = block.seen_slopes(slopes, at);
  attention_gradients d;
  if (block.options().bias.given()) d.bias = block.bias_gradient(slopes);
  slopes = slopes * block.scale();
  d.query = block.sum_over_keys(slopes, k);
  d.key = block.sum_over_queries(slopes, q);
  d.value = block.sum_over_queries(weights, dy);
  return d;
}

/// The gradient of the bias of a rank, put together of what blocks of keys add.
class bias_gradient_parts {
 public:
  constexpr bias_gradient_parts(const block_attention& block, int blocks)
      : block_(block), parts_(std::size_t(blocks)) {}

  constexpr void add(int block, var d) {
    if (!d.b) return;
    var& sum = parts_[by_key() ? std::size_t(block) : 0];
    sum = sum.b ? sum + d : d;
  }
  /// For keys of blocks that nobody has seen here zeros; `size(block)` is how many they are.
  template <class Size>
  constexpr var whole(Size size) const {
    const int axis = block_.leads() + 1;
    if (!by_key()) return parts_[0];
    var like;
    for (const var& p : parts_)
      if (p.b) like = p;
    list<var> all;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      tensor_type t = like.type();
      t.shape[axis] = size(int(i));
      all.push_back(parts_[i].b ? parts_[i] : constant(*like.b, 0.0, t));
    }
    return concat(span<const var>(all), axis);
  }

 private:
  constexpr bool by_key() const { return block_.options().bias.along(block_.leads() + 1); }

  const block_attention& block_;
  list<var> parts_;
};

}  // namespace cella::parallel::detail
