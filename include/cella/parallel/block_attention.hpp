// Attention of some queries to some keys, written with the operations of one device.
#pragma once

#include <cella/graph/copy.hpp>
#include <cella/ops/attention.hpp>
#include <cella/parallel/attention_operations.hpp>
#include <limits>

namespace cella::parallel::detail {

/// Appends attention, and what it is made of, to a graph. Shapes: queries, keys and their like as
/// attention_op_options says, weights [lead..., queries, keys], rows [lead..., queries].
class block_attention {
 public:
  constexpr block_attention(builder& b, const attention_op_options& o, int rank)
      : b_(b), o_(o), rank_(rank), leads_(rank - 2) {
    const auto factor = [](int f) { return std::int8_t(f); };
    for (int d = 0; d < leads_; ++d) {
      const auto axis = std::size_t(cella::detail::axis_beside_place(o, d));
      by_query_[axis] = by_key_[axis] = pairs_[std::size_t(d)] = factor(d);
    }
    const auto place = std::size_t(o.place), width = std::size_t(rank - 1);
    by_query_[place] = pairs_[std::size_t(leads_)] = factor(leads_);
    by_key_[place] = pairs_[std::size_t(leads_) + 1] = factor(leads_ + 1);
    by_query_[width] = by_key_[width] = factor(leads_ + 2);
  }

  constexpr var at(node_id n) const { return {&b_, n}; }

  // ---- products

  constexpr var by_pairs(var of_query, var of_key) const {
    return product({by_query_, by_key_, pairs_}, of_query, of_key);
  }
  constexpr var sum_over_keys(var weights, var of_key) const {
    return product({pairs_, by_key_, by_query_}, weights, of_key);
  }
  constexpr var sum_over_queries(var weights, var of_query) const {
    return product({pairs_, by_query_, by_key_}, weights, of_query);
  }

  // ---- weights

  /// scale q k^T
  constexpr var scores(var q, var k) const { return by_pairs(q, k) * o_.scale; }
  /// Minus infinity for keys behind the query, where both count from the same place. Loops that
  /// read the scores compare the places.
  constexpr var before_query(var scores) const {
    const auto [column, row] = cella::detail::places_in_matrix("attention", scores);
    return select(broadcast_to(column <= row, scores.shape()), scores,
                  -std::numeric_limits<double>::infinity());
  }
  /// Zeros for keys behind the query.
  constexpr var seen(var slopes) const {
    return select(cella::detail::column_less_row("attention", slopes) <= 0, slopes, 0.0);
  }
  constexpr double scale() const { return o_.scale; }

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

 private:
  constexpr var product(const matmul_op::options& o, var x, var y) const {
    return emit<matmul_op>(o, std::source_location::current(), x, y);
  }

  builder& b_;
  const attention_op_options o_;
  const int rank_, leads_;
  iteration_space::axes by_query_ = iteration_space::no_axes, by_key_ = iteration_space::no_axes,
                        pairs_ = iteration_space::no_axes;
};

}  // namespace cella::parallel::detail
