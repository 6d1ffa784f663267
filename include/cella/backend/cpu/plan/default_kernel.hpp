// Which kernels the CPU has for operations that no group has taken.
#pragma once

#include <bit>
#include <cella/backend/cpu/loops/typed_values.hpp>
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
/// What `random_draw_record` runs.
using drawn_operations = operation_list<random_gamma_op, random_poisson_op>;
/// What `running_record` runs.
using running_operations = operation_list<cumsum_op, linear_recurrence_op, running_argmax_op>;
/// What `sparse_record` runs.
using sparse_operations = operation_list<csr_product_op, csr_entries_op>;
/// What `bitwise_record` runs.
using bitwise_operations = operation_list<bitwise_and_op, bitwise_or_op, bitwise_xor_op,
                                          bitwise_not_op, left_shift_op, right_shift_op>;
/// What `decomposition_record` runs.
using decomposition_operations = operation_list<cholesky_op, triangular_solve_op, solve_op,
                                                slogdet_op, lu_op, qr_op, eigh_op, svd_op>;

/// For digits, products, convolutions and permutations of integers, in programs of any element
/// type; `generic` for all else.
constexpr step_kind integer_kernel(const node& x) {
  if (bitwise_operations::contains(*x.op)) return step_kind::bitwise;
  if (is<random_permutation_op>(x)) return step_kind::random_permutation;
  if (is<matmul_integer_op>(x)) return step_kind::integer_product;
  if (is<convolution_integer_op>(x)) return step_kind::integer_convolution;
  return step_kind::generic;
}

/// For running results, the order of elements, and elements that are moved by index: of numbers of
/// the program's type, and of integers of 32 or 64 bits; `generic` for all else.
constexpr step_kind line_kernel(const graph& g, node_id n, dtype element) {
  const node& x = g.nodes[std::size_t(n)];
  if (x.operand_count == 0) return step_kind::generic;
  const tensor_type of = g.type(g.operand(n, 0));
  if (of.element != element && !is_word(of.element)) return step_kind::generic;
  if (x.op->computes == compute_class::sequential) {
    if (running_operations::contains(*x.op)) return step_kind::running;
    if (is<argsort_op>(x)) return step_kind::order;
  }
  if (is<one_hot_op>(x) && is_word(of.element) && x.type.element == element)
    return step_kind::one_hot;
  if (is<scatter_reduce_op>(x))
    return is_word(g.type(g.operand(n, 1)).element) ? step_kind::scatter_reduce
                                                    : step_kind::generic;
  const bool gathers = is<gather_elements_op>(x);
  if ((!gathers && !is<scatter_elements_op>(x)) || !is_word(g.type(g.operand(n, 1)).element))
    return step_kind::generic;
  shape table = gathers ? of.shape : x.type.shape, indices = g.type(g.operand(n, 1)).shape;
  const int axis = gathers ? x.attributes.as<gather_elements_op::options>().axis
                           : x.attributes.as<scatter_elements_op::options>().axis;
  indices[axis] = table[axis];
  return indices == table ? step_kind::elements : step_kind::generic;
}

/// For products, and for sums and extrema of integers and truth values, along axes that lie beside
/// each other; `generic` for all else.
constexpr step_kind fold_kernel(const graph& g, node_id n, dtype element) {
  const node& x = g.nodes[std::size_t(n)];
  if (x.op->computes != compute_class::reduction) return step_kind::generic;
  const dtype of = g.type(g.operand(n, 0)).element;
  const bool fits = is<prod_op>(x) ? is_word(of) || of == element
                    : is<sum_op>(x)
                        ? is_word(of)
                        : (is<max_op>(x) || is<min_op>(x)) && (is_word(of) || of == dtype::boolean);
  if (!fits || x.type.element != of) return step_kind::generic;
  const unsigned axes = x.attributes.as<axes_options>().axes;
  if (axes == 0) return step_kind::generic;
  const unsigned side_by_side = axes >> std::countr_zero(axes);
  return side_by_side & (side_by_side + 1) ? step_kind::generic : step_kind::fold;
}
/// For elementwise operations that loops have not taken; `generic` for all else.
constexpr step_kind typed_kernel(const graph& g, node_id n) {
  const node& x = g.nodes[std::size_t(n)];
  if ((!x.op->pointwise && !is<cast_op>(x)) || x.operand_count < 1) return step_kind::generic;
  const dtype from = g.type(g.operand(n, int(x.operand_count) - 1)).element;
  return has_typed_values({x.op, from, x.type.element}) ? step_kind::typed : step_kind::generic;
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
  const step_kind of_lines = line_kernel(g, n, element);
  if (of_lines != step_kind::generic) return of_lines;
  const step_kind of_folds = fold_kernel(g, n, element);
  if (of_folds != step_kind::generic) return of_folds;
  const step_kind of_types = typed_kernel(g, n);
  if (of_types != step_kind::generic) return of_types;
  const bool own_type = x.type.element == element;
  if (special_operations::contains(*x.op) && own_type) return step_kind::special;
  const bool own_parts = real_of(x.type.element) == element;
  if (is<fft_op>(x) && own_parts) return step_kind::fourier;
  if (is<rfft_op>(x) && own_parts) return step_kind::fourier_of_real;
  if (is<irfft_op>(x) && own_type) return step_kind::fourier_to_real;
  if (decomposition_operations::contains(*x.op) && g.type(g.operand(n, 0)).element == element)
    return step_kind::decomposition;
  if ((is<softmax_op>(x) || is<log_softmax_op>(x)) && own_type) return step_kind::softmax;
  if (drawn_operations::contains(*x.op) && own_type) return step_kind::random_draw;
  // With one key, not one for each index of leading axes.
  if (is<random_uniform_op>(x) && own_type && g.type(g.operand(n, 0)).size() == 2)
    return step_kind::random_uniform;
  if (sparse_operations::contains(*x.op) && own_type && is_word(g.type(g.operand(n, 1)).element))
    return step_kind::sparse;
  // Rows that are only moved may be of 16 bits.
  const bool moves = is<gather_op>(x) && (own_type || is_storage_only(x.type.element));
  // And whole numbers counted, one by one in one table.
  const bool counts = is_word(x.type.element) && x.type.rank() == 1;
  if ((moves || (is<scatter_op>(x) && (own_type || counts))) &&
      is_integer(g.type(g.operand(n, 1)).element))
    return moves ? step_kind::gather : step_kind::scatter;
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
