// What attention as one operation is told, and how its loops go through its operands.
#pragma once

#include <cella/ops/op.hpp>

namespace cella {

/// Numbers for pairs of queries and keys, [lead..., queries, keys] with 1 for axes along which all
/// are the same.
struct pairs_operand {
  std::uint32_t axes{};  ///< a bit for each axis along which they differ, and `is_given`

  static constexpr std::uint32_t is_given = 1u << 31;
  constexpr bool given() const { return axes & is_given; }
  constexpr bool along(int axis) const { return axes >> axis & 1; }
};

/// Queries and results are [lead..., width] with the places of the sequence inserted at axis
/// `place`; what is one number for each place is [lead..., places]. Keys and values lie alike, but
/// without the last leading axis, if it counts the queries that see the same head of them
/// (`grouped`), and may be of another sequence. Results are as wide as values.
struct attention_op_options {
  double scale = 1;        ///< of the products
  std::int32_t queries{};  ///< how many there are of them
  std::int32_t places{};   ///< and of keys
  std::int32_t place{};    ///< the axis of the places of queries
  std::int32_t grouped{};
  /// A query sees keys whose place less its own is no less and no more than that.
  std::int32_t lowest = -any_distance, highest = any_distance;
  pairs_operand mask{};  ///< bool, true where a key is seen
  pairs_operand bias{};  ///< added to the scores

  static constexpr std::int32_t any_distance = 1 << 30;

  constexpr bool sees(int query, int key) const {
    return key - query >= lowest && key - query <= highest;
  }
  constexpr bool is_causal() const { return lowest == -any_distance && highest == 0; }
  constexpr bool in_band() const { return lowest != -any_distance || highest != any_distance; }
  /// Whether keys have other places than queries, those of a longer or shorter sequence.
  constexpr bool is_across() const { return queries != places; }
  constexpr bool hides() const { return in_band() || mask.given(); }
  /// Whether mask or bias have numbers of their own for each query.
  constexpr bool reads_by_query(int leads) const { return mask.along(leads) || bias.along(leads); }
};

namespace detail {

/// What sums and logarithms are of.
constexpr dtype summed_in(dtype t) { return is_storage_only(t) ? dtype::f32 : t; }

/// The axis of queries and their like for leading axis `d`, of which the places make room.
constexpr int axis_beside_place(const attention_op_options& o, int d) { return d + (d >= o.place); }

/// Like what a tensor lies.
enum class attention_role : std::uint8_t { query, key, row, mask, bias };
struct attention_roles {
  list<attention_role> role;  ///< of operands, and results behind them
};
constexpr attention_roles roles_of(const attention_op_options& o, bool gradient) {
  using enum attention_role;
  attention_roles r;
  for (attention_role a : {query, key, key}) r.role.push_back(a);
  if (gradient)
    for (attention_role a : {query, row, query}) r.role.push_back(a);
  if (o.mask.given()) r.role.push_back(mask);
  if (o.bias.given()) r.role.push_back(bias);
  r.role.push_back(query);
  r.role.push_back(gradient ? key : row);
  if (gradient) r.role.push_back(key);
  if (gradient && o.bias.given()) r.role.push_back(bias);
  return r;
}

/// The axes of a tensor for leading axis `d`, for places (of queries, or its own), and for the keys
/// that each of them sees; -1: it has none, or is the same along it.
constexpr int lead_axis(const attention_op_options& o, attention_role r, int d, int leads) {
  switch (r) {
    case attention_role::query:
      return axis_beside_place(o, d);
    case attention_role::key:
      if (o.grouped && d == leads - 1) return -1;
      return d + (d >= o.place - (o.grouped ? 1 : 0));
    case attention_role::mask:
      return o.mask.along(d) ? d : -1;
    case attention_role::bias:
      return o.bias.along(d) ? d : -1;
    default:
      return d;
  }
}
constexpr int place_axis(const attention_op_options& o, attention_role r, int leads) {
  switch (r) {
    case attention_role::query:
      return o.place;
    case attention_role::key:
      return o.place - (o.grouped ? 1 : 0);
    case attention_role::mask:
      return o.mask.along(leads) ? leads : -1;
    case attention_role::bias:
      return o.bias.along(leads) ? leads : -1;
    default:
      return leads;
  }
}
constexpr int key_axis(const attention_op_options& o, attention_role r, int leads) {
  const bool differs = (r == attention_role::mask && o.mask.along(leads + 1)) ||
                       (r == attention_role::bias && o.bias.along(leads + 1));
  return differs ? leads + 1 : -1;
}

/// Loops: the leading axes, the places of queries, the width, and the keys that each place sees.
/// Keys that are as many as queries lie along the places, too.
constexpr iteration_space attention_space(span<const tensor_type> in, const attention_op_options& o,
                                          bool gradient) {
  const int leads = in[0].rank() - 2;
  iteration_space s(in.size());
  for (int d = 0; d < leads; ++d) s.add(in[0][axis_beside_place(o, d)]);
  const int place = s.add(in[0][o.place]);
  // Half of the products are as long as keys are wide, half as values are.
  s.add((in[0][leads + 1] + in[2][in[2].rank() - 1] + 1) / 2, true);
  const int keys = s.add(o.places, true);
  const attention_roles roles = roles_of(o, gradient);
  for (int t = 0; t < int(roles.role.size()); ++t) {
    const attention_role r = roles.role[std::size_t(t)];
    const auto along = [&](int axis, int loop) {
      if (axis >= 0) s.along(t, axis, loop);
    };
    for (int d = 0; d < leads; ++d) along(lead_axis(o, r, d, leads), d);
    if (r != attention_role::key || !o.is_across()) along(place_axis(o, r, leads), place);
    along(key_axis(o, r, leads), keys);
  }
  // Ranks that divide queries add up what these make of keys and of a bias that they share.
  s.over = combination::sum;
  return s;
}

}  // namespace detail
}  // namespace cella
