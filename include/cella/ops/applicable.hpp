// What must hold between the operands, the options and the result of an application that no public
// function has checked, because it comes from a file: only then may its rules look at it.
#pragma once

#include <cella/ops/op.hpp>

namespace cella {

/// Whether the operation of node `n` can be applied to operands of these numbers, types and extents
/// with these options, so that its rules (`infer`, `space`, `compute`) stay within their tensors.
/// What the rules say themselves, `check` compares. Preconditions: ids and regions that the node
/// names exist, and no type overflows.
inline bool is_applicable(const graph& g, node_id n);

namespace detail {

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
/// Whether the operation takes elements of this type at all.
constexpr bool takes_elements(const op_info& op, dtype t) {
  if ((t == dtype::tuple) != (&op == &get_info_of)) return false;
  if (t == dtype::record) return op.traits.takes_records;
  return !is_complex(t) || op.traits.takes_complex || op.kind == op_kind::control;
}

}  // namespace detail

inline bool is_applicable(const graph& g, node_id id) {
  const node& n = g.nodes[std::size_t(id)];
  const op_info& op = *n.op;
  op_application a{g, id, n, {}};
  for (node_id o : g.operands(id)) {
    a.in.push_back(g.type(o));
    if (!detail::takes_elements(op, a.in[a.in.size() - 1].element)) return false;
  }
  if (&op == &get_info_of) return n.operand_count == 1;
  if (&op == &input_info_of) return n.operand_count == 0 && n.result_count == 0;
  for (int k = 0; k < 2; ++k)
    if ((n.regions[std::size_t(k)] >= 0) != (k < detail::regions_of(op.form))) return false;
  const bool many =
      op.form != control_form::none ? op.form != control_form::pack : op.results != nullptr;
  if (many != (n.result_count > 0)) return false;
  if (op.operands >= 0 && n.operand_count != op.operands) return false;
  if (op.fits) return op.fits(a);
  // Pointwise operations take operands of one type.
  for (int k = 1; op.pointwise && k < n.operand_count; ++k)
    if (!a.same(k, 0)) return false;
  return true;
}

}  // namespace cella
