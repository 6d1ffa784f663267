// What must hold between the operands, the options and the result of an application that no public
// function has checked, because it comes from a file: only then may its rules look at it.
#pragma once

#include <algorithm>
#include <cella/ops/operand_rules.hpp>

namespace cella {

/// Whether the operation of node `n` can be applied to operands of these numbers, types and extents
/// with these options, so that its rules (`infer`, `space`, `compute`) stay within their tensors.
/// What the rules say themselves, `check` compares. Operations that are not in the list of all are
/// held to what their description tells. Preconditions: ids and regions that the node names exist,
/// and no type overflows.
inline bool is_applicable(const graph& g, node_id n);

namespace detail {

struct application_rule {
  const op_info* op{};
  int operands{};  ///< -1: any number
  bool (*fits)(const application&){};
};
/// A line for each operation that is not pointwise.
inline constexpr application_rule application_rules[] = {
    {&info_of<constant_op>, 0, fits_always},
    {&info_of<values_op>, 0, fits_always},
    {&info_of<iota_op>, 0, fits_iota},
    {&info_of<reshape_op>, 1, fits_reshape},
    {&info_of<transpose_op>, 1, fits_transpose},
    {&info_of<cast_op>, 1, fits_always},
    {&info_of<complex_op>, 2, fits_complex},
    {&info_of<real_op>, 1, fits_part},
    {&info_of<imag_op>, 1, fits_part},
    {&info_of<conj_op>, 1, fits_part},
    {&info_of<magnitude_op>, 1, fits_part},
    {&info_of<angle_op>, 1, fits_part},
    {&info_of<broadcast_op>, 1, fits_broadcast},
    {&info_of<sum_op>, 1, fits_fold},
    {&info_of<max_op>, 1, fits_fold},
    {&info_of<min_op>, 1, fits_fold},
    {&info_of<prod_op>, 1, fits_fold},
    {&info_of<argmax_op>, 1, fits_axis},
    {&info_of<argmin_op>, 1, fits_axis},
    {&info_of<matmul_op>, 2, fits_matmul},
    {&info_of<convolution_op>, 2, fits_convolution<0, 1, 2>},
    {&info_of<convolution_input_gradient_op>, 2, fits_convolution<2, 1, 0>},
    {&info_of<convolution_weight_gradient_op>, 2, fits_convolution<0, 2, 1>},
    {&info_of<max_pool_op>, 1, fits_max_pool},
    {&info_of<unpool_op>, 2, fits_unpool},
    {&info_of<pool_gather_op>, 2, fits_pool_gather},
    {&info_of<average_pool_op>, 1, fits_average},
    {&info_of<average_spread_op>, 1, fits_spread},
    {&info_of<batch_norm_op>, 3, fits_batch_norm},
    {&info_of<batch_norm_gradient_op>, 5, fits_batch_norm},
    {&info_of<softmax_op>, 1, fits_axis},
    {&info_of<log_softmax_op>, 1, fits_axis},
    {&info_of<cross_entropy_op>, 2, fits_cross_entropy},
    {&info_of<cumsum_op>, 1, fits_axis},
    {&info_of<linear_recurrence_op>, 2, fits_recurrence},
    {&info_of<one_hot_op>, 1, fits_one_hot},
    {&info_of<gather_op>, 2, fits_gather},
    {&info_of<scatter_op>, 2, fits_scatter},
    {&info_of<gather_elements_op>, 2, fits_gather_elements},
    {&info_of<scatter_elements_op>, 2, fits_scatter_elements},
    {&info_of<slice_op>, 1, fits_slice},
    {&info_of<scatter_slice_op>, 1, fits_scatter_slice},
    {&info_of<concat_op>, -1, fits_concat},
    {&info_of<random_key_op>, 1, fits_random_key},
    {&info_of<random_uniform_op>, 1, fits_random_uniform},
    {&info_of<print_op>, 1, fits_always},
    {&info_of<cond_op>, -1, fits_always},
    {&info_of<scan_op>, -1, fits_scan},
    {&info_of<while_op>, -1, fits_always},
    {&info_of<call_op>, -1, fits_always},
    {&info_of<custom_op>, -1, fits_custom},
    {&info_of<pack_op>, -1, fits_pack},
    {&info_of<unpack_op>, 1, fits_unpack}};

/// How many operands the function of a pointwise operation has.
template <class Op, class... V>
concept applies_to = requires(V... v) {
  Op::apply(v...);
}
|| requires(typename Op::options o, V... v) { Op::apply(o, v...); };
template <class Op>
inline constexpr int pointwise_operands = applies_to<Op, double>           ? 1
                                          : applies_to<Op, double, double> ? 2
                                                                           : 3;
/// -1 if the operation is not known.
inline int operands_of(const op_info* op) {
  int count = -1;
  all_operations::for_each([&]<class Op>() {
    if constexpr (info_of<Op>.pointwise)
      if (op == &info_of<Op>) count = pointwise_operands<Op>;
  });
  return count;
}
/// Pointwise operations take operands of one type, but for the condition of a selection.
inline bool fits_pointwise(const application& a) {
  const int wanted = operands_of(a.n.op), found = int(a.in.size());
  if (wanted >= 0 ? found != wanted : found < 1 || found > 3) return false;
  const bool selects = a.n.op == &info_of<select_op>;
  if (selects && a.in[0] != tensor_type{dtype::boolean, a.of(1)}) return false;
  for (int k = selects ? 1 : 0; k < found; ++k)
    if (!a.same(k, found - 1)) return false;
  return true;
}

/// How many regions a node of this form has.
constexpr int regions_of(control_form form) {
  switch (form) {
    case control_form::branch:
    case control_form::loop:
    case control_form::custom:
      return 2;
    case control_form::scan:
    case control_form::call:
      return 1;
    default:
      return 0;
  }
}
/// Records are moved, added and selected; nothing else is defined on them.
inline bool takes_records(const op_info& op) {
  if (op.computes == compute_class::movement || op.computes == compute_class::indexed ||
      op.computes == compute_class::control || op.kind == op_kind::control)
    return true;
  const op_info* const others[] = {&info_of<add_op>, &info_of<sum_op>, &info_of<select_op>,
                                   &info_of<identity_op>, &info_of<stop_gradient_op>};
  return std::ranges::find(others, &op) != std::end(others);
}

}  // namespace detail

inline bool is_applicable(const graph& g, node_id id) {
  const node& n = g.nodes[std::size_t(id)];
  const bool gets = n.op == &get_info_of;
  detail::application a{g, id, n, {}};
  for (node_id o : g.operands(id)) {
    const tensor_type t = g.type(o);
    if ((t.element == dtype::tuple) != gets) return false;
    if (t.element == dtype::record && !detail::takes_records(*n.op)) return false;
    if (is_complex(t.element) && !n.op->traits.takes_complex && n.op->kind != op_kind::control)
      return false;
    a.in.push_back(t);
  }
  if (gets) return n.operand_count == 1;
  if (n.op == &input_info_of) return n.operand_count == 0 && n.result_count == 0;
  for (int k = 0; k < 2; ++k)
    if ((n.regions[std::size_t(k)] >= 0) != (k < detail::regions_of(n.op->form))) return false;
  const bool many = n.op->form != control_form::none ? n.op->form != control_form::pack
                                                     : n.op->results != nullptr;
  if (many != (n.result_count > 0)) return false;
  if (n.op->pointwise) return detail::fits_pointwise(a);
  for (const detail::application_rule& r : detail::application_rules)
    if (r.op == n.op) return (r.operands < 0 || r.operands == n.operand_count) && r.fits(a);
  return true;
}

}  // namespace cella
