// Operations that move or add up elements as plain tables, made from their loops: which element of
// which operand each element of the result is, or is a sum of. For kernels whose shapes are so
// small that every element has a place of its own.
#pragma once

#include <array>
#include <cella/graph/graph.hpp>

namespace cella {

/// An element of an operand; operand -1: zero.
struct element_source {
  std::int16_t operand = -1;
  std::int16_t element{};
  friend constexpr bool operator==(const element_source&, const element_source&) = default;
};

/// Whether each element of the result is one of an operand's, or zero.
constexpr bool moves_elements(const node& n) {
  return n.op->traits.alias || (n.op->space && n.op->computes == compute_class::movement);
}

/// Where each element of the result of node `n` comes from. Precondition: `moves_elements(n)`, and
/// `map` has as many entries as the result has elements.
constexpr void element_map(const node& n, span<const tensor_type> in, span<element_source> map) {
  if (n.op->traits.alias) {
    for (std::size_t k = 0; k < map.size(); ++k) map[k] = {0, std::int16_t(k)};
    return;
  }
  for (element_source& s : map) s = {};
  const iteration_space loops = n.op->space(in, n.attributes);
  for_each_point(loops, [&](span<const std::int64_t> point) {
    const std::int64_t to = element_at(loops, loops.result(), n.type.shape, point);
    for (std::size_t k = 0; k < in.size(); ++k) {
      const std::int64_t from = element_at(loops, int(k), in[k].shape, point);
      if (from >= 0) map[std::size_t(to)] = {std::int16_t(k), std::int16_t(from)};
    }
  });
}

/// A sum of products (`matmul`) or of elements (`sum`), or an extremum: how many terms each element
/// of the result has, and which elements they are made of.
class contraction {
 public:
  constexpr contraction(const node& n, span<const tensor_type> in) {
    const iteration_space loops = n.op->space(in, n.attributes);
    for (const iteration_space::walk& w : loops.walks) {
      if (w.tensor >= loops.operands) continue;
      const auto own = row_major_strides(in[std::size_t(w.tensor)].shape);
      step_[std::size_t(w.tensor)][std::size_t(w.factor)] += w.step * own[std::size_t(w.axis)];
    }
    for (int d = 0; d < n.type.rank(); ++d)
      outer_[std::size_t(outer_count_++)] = std::int8_t(loops.factor_along(loops.result(), d));
    for (std::size_t f = 0; f < loops.factors.size(); ++f) {
      extents_[f] = loops.factors[f].extent;
      if (loops.walks_along(loops.result(), int(f))) continue;
      inner_[std::size_t(inner_count_++)] = std::int8_t(f);
      terms_ *= extents_[f];
    }
  }

  constexpr std::int64_t terms() const { return terms_; }
  /// The element of operand `k` in term `t` of element `e` of the result.
  constexpr int element(std::size_t k, std::int64_t e, std::int64_t t) const {
    return int(offset(k, outer_, outer_count_, e) + offset(k, inner_, inner_count_, t));
  }

 private:
  static constexpr std::size_t most_factors = 2 * max_rank;
  using factors = std::array<std::int8_t, most_factors>;
  constexpr std::int64_t offset(std::size_t k, const factors& all, int count,
                                std::int64_t index) const {
    std::int64_t p = 0;
    for (int i = count; i-- > 0;) {
      const auto f = std::size_t(all[std::size_t(i)]);
      p += index % extents_[f] * step_[k][f];
      index /= extents_[f];
    }
    return p;
  }

  std::array<std::array<std::int64_t, most_factors>, 2> step_{};
  std::array<std::int64_t, most_factors> extents_{};
  factors outer_{}, inner_{};
  int outer_count_{}, inner_count_{};
  std::int64_t terms_ = 1;
};

}  // namespace cella
