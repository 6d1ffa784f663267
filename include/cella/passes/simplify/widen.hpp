// Computes in single precision what has no kernel for numbers of 16 bits.
#pragma once

#include <cella/ops/batch_norm.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/cumulative.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/passes/rewrite.hpp>

namespace cella {

namespace widen_rules {

constexpr node_id converted(rewriter& r, node_id n, dtype element) {
  if (r.type(n).element == element) return n;
  return r.emit<cast_op>({n}, cast_op::options{std::int32_t(element)});
}
/// Node `n` on operands in single precision; no_node if it has none of 16 bits.
constexpr node_id on_wide_operands(rewriter& r, node_id n) {
  std::array<node_id, 8> in{};
  const int count = r.operand_count(n);
  bool narrow = false;
  for (int i = 0; i < count; ++i) {
    const node_id o = r.operand(n, i);
    const bool widens = is_storage_only(r.type(o).element);
    in[std::size_t(i)] = widens ? converted(r, o, dtype::f32) : o;
    narrow |= widens;
  }
  if (!narrow) return no_node;
  return r.emit(r.op(n), span<const node_id>(in.data(), std::size_t(count)),
                r.g().nodes[std::size_t(n)].attributes);
}

/// f(x) = round(f(widened x)) for an operation with one result
constexpr node_id one_result(rewriter& r, node_id n) {
  const dtype element = r.type(n).element;
  const node_id y = on_wide_operands(r, n);
  return y < 0 || !is_storage_only(element) ? y : converted(r, y, element);
}
/// The same for a result of an operation that has several.
constexpr node_id of_several(rewriter& r, node_id n) {
  const node_id from = r.operand(n, 0);
  if (!r.is<max_pool_op>(from) && !r.is<batch_norm_op>(from) && !r.is<batch_norm_gradient_op>(from))
    return no_node;
  const dtype element = r.type(n).element;
  const node_id y = on_wide_operands(r, from);
  if (y < 0) return no_node;
  const node_id k = r.get(y, r.as<get_attributes>(n).result);
  return is_storage_only(element) ? converted(r, k, element) : k;
}

template <class... Ops>
inline constexpr std::array rules_of{rule{"widen", &info_of<Ops>, one_result}...,
                                     rule{"widen", &get_info_of, of_several}};
inline constexpr auto rules =
    rules_of<convolution_op, convolution_input_gradient_op, convolution_weight_gradient_op,
             average_pool_op, average_spread_op, unpool_op, pool_gather_op, softmax_op,
             log_softmax_op, cross_entropy_op, cumsum_op, linear_recurrence_op, scatter_op,
             scatter_elements_op, prod_op, argmax_op, argmin_op>;
inline constexpr rule_table table(rules);

}  // namespace widen_rules

/// Convolutions, pooling, norms, softmax and their kin on numbers of 16 bits become the same on
/// single precision, between casts that round as the operation would. Products, sums and
/// elementwise operations stay: their kernels convert what they load and store.
constexpr graph widen(graph g) {
  bool narrow = false;
  for (const node& n : g.nodes) narrow |= is_storage_only(n.type.element);
  if (!narrow) return g;
  return rewrite(std::move(g), widen_rules::table);
}

}  // namespace cella
