// Operations that move or add up elements as plain tables: which element of which operand each
// element of the result is, or is a sum of. For kernels whose shapes are so small that every
// element has a place of its own.
#pragma once

#include <array>
#include <cella/graph/span.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/slicing.hpp>

namespace cella {

/// An element of an operand; operand -1: zero.
struct element_source {
  std::int16_t operand = -1;
  std::int16_t element{};
  friend constexpr bool operator==(const element_source&, const element_source&) = default;
};

/// Whether `element_map` knows the operation: each element of the result is one of an operand's, or
/// zero.
constexpr bool moves_elements(const node& n) {
  return n.op->traits.rearranges || is<scatter_slice_op>(n);
}

namespace detail {

/// The operand's element at origin + sum_d step[d] i[d] for each index i of `from`.
template <class F>
constexpr void walk(const shape& from, std::int64_t origin, const stride_list& step, F f) {
  for_each_index(from, [&](std::int64_t k, const multi_index& i) {
    std::int64_t p = origin;
    for (int d = 0; d < from.rank; ++d) p += step[std::size_t(d)] * i[std::size_t(d)];
    f(k, p);
  });
}

}  // namespace detail

/// Where each element of the result of node `n` comes from. Precondition: `moves_elements(n)`, and
/// `map` has as many entries as the result has elements.
constexpr void element_map(const node& n, span<const tensor_type> in, span<element_source> map) {
  auto take = [&](std::int64_t to, std::int64_t from, int operand = 0) {
    map[std::size_t(to)] = {std::int16_t(operand), std::int16_t(from)};
  };
  const shape x = in[0].shape;
  const auto own = row_major_strides(x);
  stride_list step{};
  std::int64_t origin = 0;
  if (is<broadcast_op>(n)) {
    const auto o = n.attributes.as<broadcast_op::options>();
    for (std::size_t i = 0; i < std::size_t(x.rank); ++i) step[std::size_t(o.axes[i])] = own[i];
    detail::walk(n.type.shape, 0, step, take);
  } else if (is<transpose_op>(n)) {
    const auto o = n.attributes.as<transpose_op::options>();
    for (std::size_t i = 0; i < std::size_t(x.rank); ++i)
      step[i] = own[std::size_t(o.permutation[i])];
    detail::walk(n.type.shape, 0, step, take);
  } else if (is<slice_op>(n) || is<scatter_slice_op>(n)) {
    const auto o = n.attributes.as<slice_op::options>();
    const auto whole = is<slice_op>(n) ? own : row_major_strides(n.type.shape);
    for (std::size_t i = 0; i < std::size_t(x.rank); ++i) {
      step[i] = whole[i] * o.step[i];
      origin += whole[i] * o.start[i];
    }
    if (is<slice_op>(n)) {
      detail::walk(n.type.shape, origin, step, take);
    } else {
      for (element_source& s : map) s = {};
      detail::walk(x, origin, step, [&](std::int64_t k, std::int64_t p) { take(p, k); });
    }
  } else if (is<concat_op>(n)) {
    const auto axis = n.attributes.as<concat_op::options>().axis;
    const auto whole = row_major_strides(n.type.shape);
    for (std::size_t q = 0; q < in.size(); ++q) {
      detail::walk(in[q].shape, origin, whole,
                   [&](std::int64_t k, std::int64_t p) { take(p, k, int(q)); });
      origin += whole[std::size_t(axis)] * in[q][axis];
    }
  } else {
    for (std::size_t k = 0; k < map.size(); ++k) take(std::int64_t(k), std::int64_t(k));
  }
}

/// A sum of products (`matmul`) or of elements (`sum`): how many terms each element of the result
/// has, and which elements they are made of.
class contraction {
 public:
  constexpr contraction(const node& n, span<const tensor_type> in)
      : space_(is<matmul_op>(n)
                   ? matmul_op::space(in, n.attributes)
                   : detail::reduction_space(in[0], n.attributes.as<axes_options>().axes)) {
    for (std::size_t k = 0; k < in.size(); ++k) {
      const auto own = row_major_strides(in[k].shape);
      for (int d = 0; d < in[k].rank(); ++d)
        step_[k][std::size_t(space_.operands[k][std::size_t(d)])] += own[std::size_t(d)];
    }
    std::array<bool, 12> kept{};
    for (std::int8_t f : space_.result) {
      if (f < 0) continue;
      kept[std::size_t(f)] = true;
      outer_[std::size_t(outer_count_++)] = f;
    }
    for (int f = 0; f < space_.factors; ++f) {
      if (kept[std::size_t(f)]) continue;
      inner_[std::size_t(inner_count_++)] = std::int8_t(f);
      terms_ *= space_.extents[std::size_t(f)];
    }
  }

  constexpr std::int64_t terms() const { return terms_; }
  /// The element of operand `k` in term `t` of element `e` of the result.
  constexpr int element(std::size_t k, std::int64_t e, std::int64_t t) const {
    return int(offset(k, outer_, outer_count_, e) + offset(k, inner_, inner_count_, t));
  }

 private:
  using factors = std::array<std::int8_t, 12>;
  constexpr std::int64_t offset(std::size_t k, const factors& all, int count,
                                std::int64_t index) const {
    std::int64_t p = 0;
    for (int i = count; i-- > 0;) {
      const auto f = std::size_t(all[std::size_t(i)]);
      p += index % space_.extents[f] * step_[k][f];
      index /= space_.extents[f];
    }
    return p;
  }

  iteration_space space_;
  std::array<std::array<std::int64_t, 12>, 2> step_{};
  factors outer_{}, inner_{};
  int outer_count_{}, inner_count_{};
  std::int64_t terms_ = 1;
};

}  // namespace cella
