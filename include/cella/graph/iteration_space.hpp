// The loops of an operation, and how its tensors lie along them: what sharding, costs, bounds of
// loops and the search for parts that nobody reads follow from.
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/list.hpp>
#include <cella/graph/shape.hpp>
#include <cella/graph/span.hpp>
#include <cstdint>

namespace cella {

/// How the points that share an element of a result make it.
enum class combination : std::uint8_t {
  none,  ///< each element has one point
  sum,
  product,
  maximum,
  minimum
};

/// The loops ("factors") that an operation runs over, and where each point of them lies in the
/// operands and in the results. A convolution, for one, has nine: images, groups, filters of a
/// group, rows, columns, channels of a group, and two of taps; a row of its image lies at
/// `stride row + dilation tap - padding`.
struct iteration_space {
  static constexpr std::int8_t none = -1;
  using axes = std::array<std::int8_t, max_rank>;
  static constexpr axes no_axes{none, none, none, none, none, none, none, none};

  /// One more dimension behind the others, which walks along `factor`.
  static constexpr void append(axes& a, std::int8_t factor) {
    std::size_t rank = 0;
    while (a[rank] >= 0) ++rank;
    a[rank] = factor;
  }

  /// One loop.
  struct factor {
    std::int64_t extent{};
    /// A result at one place of it needs the operands at others: the axis of a softmax, of a
    /// running sum, the samples of a batch norm. Whoever cuts it has to exchange more than sums.
    bool whole{};
  };
  /// A summand of the position along one axis of a tensor: `step` times that of a factor. Without a
  /// factor it is an offset. Positions outside of the tensor are padding: nothing lies there.
  struct walk {
    std::int16_t tensor{};  ///< operands from 0, behind them the results
    std::int8_t axis{};
    std::int8_t factor = none;
    std::int32_t step = 1;
  };
  /// An axis along which the data tell the position: the rows of a table that indices name.
  struct indexed_axis {
    std::int16_t tensor{};
    std::int8_t axis{};
  };

  explicit constexpr iteration_space(std::size_t operand_count)
      : operands(std::int16_t(operand_count)) {}

  list<factor> factors;
  list<walk> walks;  ///< axes that none names are read as a whole by every point
  list<indexed_axis> indexed;
  std::int16_t operands{};
  combination over = combination::none;  ///< of what shares an element of the result

  // ---- to ask

  constexpr std::int64_t points() const {
    std::int64_t n = 1;
    for (const factor& f : factors) n *= f.extent;
    return n;
  }
  constexpr int result(int k = 0) const { return operands + k; }
  /// The factor that alone tells the position along an axis; none if others do, too.
  constexpr int factor_along(int tensor, int axis) const {
    int found = none;
    for (const walk& w : walks) {
      if (w.tensor != tensor || w.axis != axis) continue;
      if (found != none || w.factor == none || w.step != 1) return none;
      found = w.factor;
    }
    return found;
  }
  constexpr bool walks_along(int tensor, int f) const {
    for (const walk& w : walks) {
      if (w.tensor == tensor && w.factor == f) return true;
    }
    return false;
  }
  /// How many elements of a tensor of this type the points touch, at most: of a table, rows for all
  /// indices.
  constexpr std::int64_t elements_of(int tensor, const tensor_type& t) const {
    for (const indexed_axis& a : indexed) {
      if (a.tensor == tensor) return std::min(t.size(), points());
    }
    return t.size();
  }

  // ---- to describe

  constexpr int add(std::int64_t extent, bool whole = false) {
    factors.push_back({extent, whole});
    return int(factors.size()) - 1;
  }
  /// A factor for each axis of a shape; returns the first.
  constexpr int add(const shape& s) {
    const int first = int(factors.size());
    for (int e : s) factors.push_back({e, false});
    return first;
  }
  /// The position along an axis grows with a factor; without one nothing happens.
  constexpr void along(int tensor, int axis, int f, int step = 1) {
    if (f != none) walks.push_back({std::int16_t(tensor), std::int8_t(axis), std::int8_t(f), step});
  }
  constexpr void offset(int tensor, int axis, int by) {
    if (by) walks.push_back({std::int16_t(tensor), std::int8_t(axis), none, by});
  }
  /// The axes of a tensor, from `axis` on, walk along `count` factors from `first` on.
  constexpr void along_all(int tensor, int first, int count, int axis = 0) {
    for (int d = 0; d < count; ++d) along(tensor, axis + d, first + d);
  }
  constexpr void by_data(int tensor, int axis) {
    indexed.push_back({std::int16_t(tensor), std::int8_t(axis)});
  }
};

/// Each point is an element of all tensors: of `operands` operands and `results` results.
constexpr iteration_space pointwise_space(const shape& s, std::size_t operands, int results = 1) {
  iteration_space space(operands);
  space.add(s);
  for (int t = 0; t < int(operands) + results; ++t) space.along_all(t, 0, s.rank);
  return space;
}
/// The same along an axis whose elements need each other.
constexpr iteration_space pointwise_but_along(int axis, const shape& s, std::size_t operands) {
  iteration_space space = pointwise_space(s, operands);
  space.factors[std::size_t(axis)].whole = true;
  return space;
}

/// The element of tensor `t`, of shape `s` and row-major, at a point; -1 if that is padding.
constexpr std::int64_t element_at(const iteration_space& space, int t, const shape& s,
                                  span<const std::int64_t> point) {
  std::array<std::int64_t, max_rank> at{};
  for (const iteration_space::walk& w : space.walks) {
    if (w.tensor != t) continue;
    const bool moves = w.factor != iteration_space::none;
    at[std::size_t(w.axis)] += moves ? w.step * point[std::size_t(w.factor)] : w.step;
  }
  std::int64_t element = 0;
  for (int d = 0; d < s.rank; ++d) {
    const std::int64_t i = at[std::size_t(d)];
    if (i < 0 || i >= s[d]) return -1;
    element = element * s[d] + i;
  }
  return element;
}
/// Calls f(point) for each point, the last factor fastest.
template <class F>
constexpr void for_each_point(const iteration_space& space, F f) {
  const std::int64_t n = space.points();
  list<std::int64_t> point(space.factors.size(), 0);
  for (std::int64_t k = 0; k < n; ++k) {
    f(span<const std::int64_t>(point.data(), point.size()));
    for (std::size_t d = point.size(); d-- > 0;) {
      if (++point[d] < space.factors[d].extent) break;
      point[d] = 0;
    }
  }
}

}  // namespace cella
