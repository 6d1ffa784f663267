// Computes in single precision what has no kernel for numbers of 16 bits.
#pragma once

#include <cella/ops/cast.hpp>
#include <cella/passes/rewriting/rewrite.hpp>

namespace cella {

namespace widen_rules {

constexpr node_id converted(rewriter& r, node_id n, dtype element) {
  if (r.type(n).element == element) return n;
  return r.emit<cast_op>({n}, cast_op::options{{std::int32_t(element)}});
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
  if (!r.op(n).traits.computed_in_single || r.type(n).element == dtype::tuple) return no_node;
  const dtype element = r.type(n).element;
  const node_id y = on_wide_operands(r, n);
  return y < 0 || !is_storage_only(element) ? y : converted(r, y, element);
}
/// The same for a result of an operation that has several.
constexpr node_id of_several(rewriter& r, node_id n) {
  const node_id from = r.operand(n, 0);
  if (!r.op(from).traits.computed_in_single) return no_node;
  const dtype element = r.type(n).element;
  const node_id y = on_wide_operands(r, from);
  if (y < 0) return no_node;
  const node_id k = r.get(y, r.as<get_attributes>(n).result);
  return is_storage_only(element) ? converted(r, k, element) : k;
}

inline constexpr std::array rules{rule{"widen", nullptr, one_result},
                                  rule{"widen", &get_info_of, of_several}};
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
