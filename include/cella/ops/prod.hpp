// Products over axes.
#pragma once

#include <cella/ops/cumulative.hpp>
#include <cella/ops/reduction.hpp>

namespace cella {

/// Product over axes. The derivative multiplies the other elements, so zeros do no harm.
struct prod_op : detail::folding<prod_op>, computed_in_single {
  static constexpr std::string_view name = "prod";
  static constexpr std::string_view numpy = "np.prod";
  static constexpr std::string_view torch = "torch.prod";
  static constexpr std::string_view formula = "y = product of x along axes";
  static constexpr compute_class computes = compute_class::reduction;
  static constexpr onnx_operator onnx{"ReduceProd", 1};
  static constexpr combination over = combination::product;
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    detail::reduce_to(in[0], o.as<options>().axes, 1, out[0],
                      [](auto a, auto v) { return detail::wrapping_product(a, v); });
  }
};

constexpr var prod(operand x, const axis_list& axes = {}, bool keep_dims = false) {
  return detail::reduce<prod_op>(x, axes, keep_dims);
}

namespace detail {

/// For each element the product of the others along `axis`.
constexpr var product_of_others(var x, int axis) {
  return cumprod(x, axis, false, true) * cumprod(x, axis, true, true);
}

/// The same over several axes, which are brought to the end and merged for it.
constexpr var product_of_others(var x, const shape& s, unsigned axes) {
  if ((axes & (axes - 1)) == 0) {
    for (int i = 0; i < s.rank; ++i) {
      if (axes >> i & 1) return product_of_others(x, i);
    }
  }
  std::array<int, max_rank> order{};
  std::array<int, max_rank> inverse{};
  int next = 0;
  for (unsigned folded = 0; folded < 2; ++folded) {
    for (int i = 0; i < s.rank; ++i) {
      if ((axes >> i & 1) != folded) continue;
      inverse[std::size_t(i)] = next;
      order[std::size_t(next++)] = i;
    }
  }
  const auto rank = std::size_t(s.rank);
  const var last = transpose(x, span<const int>(order.data(), rank));
  const std::int64_t kept = without_axes(x.type(), axes).size();
  const var lines = reshape(last, {kept, s.size() / kept});
  return transpose(reshape(product_of_others(lines, 1), last.shape()),
                   span<const int>(inverse.data(), rank));
}

}  // namespace detail

constexpr void prod_op::vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
  const unsigned axes = n.as<options>().axes;
  const var x = n.operand(0);
  dx[0] =
      detail::repeat_along(dy[0], x.shape(), axes) * detail::product_of_others(x, x.shape(), axes);
}

}  // namespace cella
