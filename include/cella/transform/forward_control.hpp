// Forward mode of the operations that own regions: each becomes one that carries tangents as well.
#pragma once

#include <cella/transform/forward.hpp>
#include <cella/transform/reverse_control.hpp>

namespace cella::detail {

/// A region with inputs (arguments, tangents of those that are `active`) and outputs (results,
/// tangents of those in `wanted`).
constexpr dual_values push_body(builder& b, int r, const ids& arguments, const ids& tangents,
                                const flags& wanted) {
  dual_values v = push_forward(b, r, arguments, tangents);
  for (std::size_t k = 0; k < v.primals.size(); ++k) {
    v.tangents[k] = wanted[k] ? or_zeros(b, v.tangents[k], b.g.type(v.primals[k])) : no_node;
  }
  return v;
}

/// The first `count` results of a node, with the further ones as tangents of those in `wanted`.
constexpr dual_values read_duals(builder& b, node_id n, int count, const flags& wanted) {
  const ids tangents = get_all(b, n, count, int(places(wanted, 0, int(wanted.size())).size()));
  return {get_all(b, n, 0, count), spread(tangents, wanted)};
}

constexpr dual_values cond_jvp(builder& b, node_id n, const ids& in, const ids& tangents) {
  const node s = b.g.nodes[std::size_t(n)];
  const ids arguments = tail(in, 1);
  const ids d = tail(tangents, 1);
  const flags active = which_exist(d);
  flags wanted = dependent_outputs(b, s.regions[0], active, true);
  const flags second = dependent_outputs(b, s.regions[1], active, true);
  for (std::size_t k = 0; k < wanted.size(); ++k) wanted[k] |= second[k];
  const ids all = join_ids({arguments, existing(d)});
  std::array<std::int32_t, 2> regions{};
  type_list results;
  for (std::size_t side = 0; side < 2; ++side) {
    regions[side] = b.begin(types_of(b, all));
    list_reader own(own_inputs(b));
    const ids own_arguments = own.take(arguments.size());
    const dual_values v =
        push_body(b, s.regions[side], own_arguments, spread(own.rest(), active), wanted);
    b.end(join_ids({v.primals, existing(v.tangents)}));
    results = types_of(b, outputs_of(b, regions[side]));
  }
  const node_id r = emit_like(b, s, bound<cond_op>(), join_ids({{in[0]}, all}), results, regions);
  return read_duals(b, r, s.result_count, wanted);
}

/// Tangents of the operands of a loop: those of its active carries exist from the start.
constexpr ids loop_tangents(builder& b, const ids& in, ids tangents, const flags& active) {
  for (std::size_t k = 0; k < in.size(); ++k)
    tangents[k] = active[k] ? or_zeros(b, tangents[k], b.g.type(in[k])) : no_node;
  return tangents;
}

constexpr dual_values scan_jvp(builder& b, node_id n, const ids& in, const ids& tangents) {
  const node s = b.g.nodes[std::size_t(n)];
  const auto o = s.attributes.as<scan_options>();
  const int constants = int(in.size()) - o.carries - o.xs;
  flags wanted;
  const flags active =
      loop_dependence(b, s.regions[0], which_exist(tangents), o.carries, true, wanted);
  const ids d = loop_tangents(b, in, tangents, active);
  const ids carries = join_ids({cut(in, 0, o.carries), existing(cut(d, 0, o.carries))});
  const ids xs = join_ids({cut(in, o.carries, o.xs), existing(cut(d, o.carries, o.xs))});
  const ids rest = join_ids({tail(in, o.carries + o.xs), existing(tail(d, o.carries + o.xs))});
  type_list types = types_of(b, carries);
  for (node_id x : xs) types.push_back(without_leading(b.g.type(x)));
  const int body = b.begin(join_types({types, types_of(b, rest)}));
  list_reader own(own_inputs(b));
  const ids own_carries = own.take(std::size_t(o.carries));
  const ids d_carries = own.take(carries.size() - std::size_t(o.carries));
  const ids own_xs = own.take(std::size_t(o.xs));
  const ids d_xs = own.take(xs.size() - std::size_t(o.xs));
  const ids own_constants = own.take(std::size_t(constants));
  const dual_values v = push_body(b, s.regions[0], join_ids({own_carries, own_xs, own_constants}),
                                  spread(join_ids({d_carries, d_xs, own.rest()}), active), wanted);
  const ids d_out = existing(cut(v.tangents, 0, o.carries));
  b.end(join_ids({cut(v.primals, 0, o.carries), d_out, tail(v.primals, o.carries),
                  existing(tail(v.tangents, o.carries))}));
  type_list results = types_of(b, outputs_of(b, body));
  for (std::size_t k = carries.size(); k < results.size(); ++k)
    results[k] = with_leading(o.length, results[k]);
  const scan_options options{std::int32_t(carries.size()), std::int32_t(xs.size()), o.length,
                             o.reverse, o.recompute};
  const node_id r = emit_like(b, s, bound<scan_op>(), join_ids({carries, xs, rest}), results,
                              {body, -1}, options);
  const int ys = s.result_count - o.carries;
  const int d_carry_count = int(d_out.size());
  const int first_y = o.carries + d_carry_count;
  return {join_ids({get_all(b, r, 0, o.carries), get_all(b, r, first_y, ys)}),
          spread(join_ids({get_all(b, r, o.carries, d_carry_count),
                           get_all(b, r, first_y + ys, int(results.size()) - first_y - ys)}),
                 wanted)};
}

constexpr dual_values while_jvp(builder& b, node_id n, const ids& in, const ids& tangents) {
  const node s = b.g.nodes[std::size_t(n)];
  const auto o = s.attributes.as<while_options>();
  const int nc = o.carries;
  const int constants = int(in.size()) - nc;
  flags wanted;
  const flags active = loop_dependence(b, s.regions[1], which_exist(tangents), nc, true, wanted);
  const ids d = loop_tangents(b, in, tangents, active);
  const ids d_carries = existing(cut(d, 0, nc));
  const int extra = int(d_carries.size());
  const ids all = join_ids({cut(in, 0, nc), d_carries, tail(in, nc), existing(tail(d, nc))});
  const type_list types = types_of(b, all);
  const int condition = with_inputs(b, s.regions[0], types,
                                    join<int>({numbers(0, nc), numbers(nc + extra, constants)}));
  const int body = b.begin(types);
  list_reader own(own_inputs(b));
  const ids own_carries = own.take(std::size_t(nc));
  const ids own_d = own.take(std::size_t(extra));
  const ids own_constants = own.take(std::size_t(constants));
  const dual_values v = push_body(b, s.regions[1], join_ids({own_carries, own_constants}),
                                  spread(join_ids({own_d, own.rest()}), active), wanted);
  b.end(join_ids({v.primals, existing(v.tangents)}));
  const node_id r = emit_like(b, s, bound<while_op>(), all, cut(types, 0, nc + extra),
                              {condition, body}, while_options{nc + extra, o.max_steps});
  return read_duals(b, r, nc, wanted);
}

constexpr dual_values call_jvp(builder& b, node_id n, const ids& in, const ids& tangents) {
  const node s = b.g.nodes[std::size_t(n)];
  const flags active = which_exist(tangents);
  type_list results = result_types(b, n);
  flags wanted;
  for (const tensor_type& t : results) wanted.push_back(is_differentiable(t.element));
  const ids all = join_ids({in, existing(tangents)});
  const auto kind = function_table::derivation::forward_mode;
  int callee = b.functions.find_derived(kind, s.regions[0], active);
  if (callee < 0) {
    callee = b.reserve_region();
    b.functions.remember_derived(kind, s.regions[0], active, callee);
    const int r = b.begin(types_of(b, all));
    list_reader own(own_inputs(b));
    const ids arguments = own.take(in.size());
    const dual_values v = push_body(b, s.regions[0], arguments, spread(own.rest(), active), wanted);
    b.end(join_ids({v.primals, existing(v.tangents)}));
    b.fill(callee, r);
  }
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const tensor_type t = results[k];
    if (wanted[k]) results.push_back(t);
  }
  const node_id r = emit_like(b, s, bound<call_op>(), all, results, {callee, -1}, s.attributes);
  return read_duals(b, r, s.result_count, wanted);
}

/// A rule that was given for reverse mode serves forward mode transposed.
constexpr dual_values custom_jvp(builder& b, node_id n, const ids& in, const ids& tangents) {
  const node_id m = copy_node(b, n, in);
  const ids out = get_all(b, m, 0, b.g.nodes[std::size_t(m)].result_count);
  return {out, transposed_rule(b, result_types(b, m), tangents,
                               [&](const ids& dy) { return custom_cotangents(b, m, dy); })};
}

constexpr dual_values pack_jvp(builder& b, node_id n, const ids& in, const ids& tangents) {
  ids d;
  for (std::size_t k = 0; k < in.size(); ++k)
    d.push_back(or_zeros(b, tangents[k], b.g.type(in[k])));
  const node_id r = copy_node(b, n, in);
  return {{r}, {pack(b, d, b.g.type(r))}};
}
constexpr dual_values unpack_jvp(builder& b, node_id n, const ids& in, const ids& tangents) {
  const type_list types = result_types(b, n);
  ids d = unpack(b, tangents[0], types);
  for (std::size_t k = 0; k < d.size(); ++k) {
    if (!is_differentiable(types[k].element)) d[k] = no_node;
  }
  return {unpack(b, in[0], types), d};
}

constexpr dual_values control_jvp(builder& b, node_id n, const ids& in, const ids& tangents) {
  switch (b.g.nodes[std::size_t(n)].op->form) {
    case control_form::branch:
      return cond_jvp(b, n, in, tangents);
    case control_form::scan:
      return scan_jvp(b, n, in, tangents);
    case control_form::loop:
      return while_jvp(b, n, in, tangents);
    case control_form::call:
      return call_jvp(b, n, in, tangents);
    case control_form::custom:
      return custom_jvp(b, n, in, tangents);
    case control_form::pack:
      return pack_jvp(b, n, in, tangents);
    case control_form::unpack:
      return unpack_jvp(b, n, in, tangents);
    case control_form::none:
      break;
  }
  return {};
}

}  // namespace cella::detail
