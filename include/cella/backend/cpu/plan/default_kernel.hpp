// Which kernels the CPU has for operations that no group has taken.
#pragma once

#include <cella/graph/graph.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/names.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/random.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/softmax.hpp>
#include <cella/plan/target.hpp>

namespace cella::cpu {

/// For pooling of plain images; `generic` for all else.
constexpr step_kind pooling_kernel(const node& x) {
  if (is<max_pool_op>(x)) return step_kind::max_pool_plain;
  if (is<unpool_op>(x)) return step_kind::unpool;
  if (is<pool_gather_op>(x)) return step_kind::pool_gather;
  if (is<average_pool_op>(x)) return step_kind::average_pool;
  if (is<average_spread_op>(x)) return step_kind::average_spread;
  return step_kind::generic;
}

/// What `special_record` runs.
using special_operations =
    operation_list<lgamma_op, polygamma_op, bessel_ie_op, erfinv_op, gamma_slope_op>;
/// What `bitwise_record` runs.
using bitwise_operations = operation_list<bitwise_and_op, bitwise_or_op, bitwise_xor_op,
                                          bitwise_not_op, left_shift_op, right_shift_op>;

/// For digits, products and convolutions of integers, in programs of any element type; `generic`
/// for all else.
constexpr step_kind integer_kernel(const node& x) {
  if (bitwise_operations::contains(x)) return step_kind::bitwise;
  if (is<matmul_integer_op>(x)) return step_kind::integer_product;
  if (!is<convolution_integer_op>(x)) return step_kind::generic;
  const window w = x.attributes.as<convolution_options>().window;
  const bool plain = w.groups == 1 && w.dilation == std::array{1, 1} && w.before == w.after &&
                     w.before[0] == w.before[1] && w.stride[0] == w.stride[1];
  return plain ? step_kind::integer_convolution : step_kind::generic;
}

/// A `plan_target::kernel_alone`.
constexpr step_kind default_kernel(const graph& g, node_id n, dtype element) {
  const node& x = g.nodes[std::size_t(n)];
  const std::size_t bytes = size_of(x.type.element);
  if (is<transpose_op>(x) && bytes > 0 && bytes <= 8) return step_kind::permute;
  const step_kind of_integers = integer_kernel(x);
  if (of_integers != step_kind::generic) return of_integers;
  if (element != dtype::f32 && element != dtype::f64)
    return plan_target::only_generic(g, n, element);
  const bool own_type = x.type.element == element;
  if (special_operations::contains(x) && own_type) return step_kind::special;
  if ((is<softmax_op>(x) || is<log_softmax_op>(x)) && own_type) return step_kind::softmax;
  // With one key, not one for each index of leading axes.
  if (is<random_uniform_op>(x) && own_type && g.type(g.operand(n, 0)).size() == 2)
    return step_kind::random_uniform;
  // Rows that are only moved may be of 16 bits.
  const bool moves = is<gather_op>(x) && (own_type || is_storage_only(x.type.element));
  if (moves || (is<scatter_op>(x) && own_type)) {
    const dtype index = g.type(g.operand(n, 1)).element;
    if (is_integer(index) && x.attributes.as<cella::detail::indexing_options>().axis == 0)
      return moves ? step_kind::gather : step_kind::scatter;
  }
  if (is<put_rows_op>(x) && own_type && is_integer(g.type(g.operand(n, 1)).element))
    return step_kind::put_rows;
  // Positions are counted in numbers of the program's type, which hold them up to here.
  const std::int64_t most = std::int64_t{1} << (element == dtype::f32 ? 24 : 53);
  if (is<argmax_op>(x) || is<argmin_op>(x)) {
    const tensor_type in = g.type(g.operand(n, 0));
    if (in.element == element && in[x.attributes.as<cella::detail::axis_options>().axis] <= most)
      return step_kind::best_position;
  }
  const step_kind pooling = pooling_kernel(x);
  if (pooling != step_kind::generic && g.type(g.operand(n, 0)).element == element) return pooling;
  return plan_target::only_generic(g, n, element);
}

}  // namespace cella::cpu
