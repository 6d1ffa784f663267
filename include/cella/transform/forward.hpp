// Forward mode: replays a region with a tangent beside each value that depends on the marked
// inputs.
#pragma once

#include <cella/transform/pullback.hpp>

namespace cella::detail {

/// Values and their tangents; no_node where a tangent is zero.
struct dual_values {
  ids primals;
  ids tangents;
};

/// The results of a control node on these operands (transform/forward_control.hpp).
constexpr dual_values control_jvp(builder& b, node_id n, const ids& in, const ids& tangents);

/// The cotangents of the results of node `m`, pulled back by `rule(dy) -> dx`, are linear in dy:
/// the transpose of that map takes tangents of the operands to tangents of the results.
template <class Rule>
constexpr ids transposed_rule(builder& b, const type_list& results, const ids& tangents,
                              Rule rule) {
  ids dy;
  for (const tensor_type& t : results)
    dy.push_back(is_differentiable(t.element) ? zeros(b, t) : no_node);
  const ids dx = rule(dy);
  ids ys, dys;
  for (std::size_t i = 0; i < dx.size(); ++i) {
    if (tangents[i] < 0 || dx[i] < 0) continue;
    ys.push_back(dx[i]);
    dys.push_back(tangents[i]);
  }
  return spread(pullback(b, ys, dys, existing(dy)), which_exist(dy));
}

/// Tangents of the results of node `m`, whose operands have these tangents.
constexpr ids tangents_of(builder& b, node_id m, const ids& tangents) {
  const node n = b.g.nodes[std::size_t(m)];
  const op_info& op = *n.op;
  ids in = operands_of(b, m);
  if (op.jvp) {
    list<var> dx, dy(std::size_t(std::max(1, n.result_count)), var{});
    for (node_id t : tangents) dx.push_back(t < 0 ? var{} : var{&b, t});
    op.jvp({&b, m}, dx, dy);
    ids t;
    for (var v : dy) t.push_back(v.id);
    return t;
  }
  if (op.vjp) {
    type_list results = result_types(b, m);
    if (results.empty()) results.push_back(n.type);
    return transposed_rule(b, results, tangents, [&](const ids& dy) {
      list<var> d;
      for (node_id y : dy) d.push_back(y < 0 ? var{} : var{&b, y});
      list<var> dx(in.size(), var{});
      const flags needed = which_exist(tangents);
      op.vjp({&b, m}, d, needed, dx);
      ids r;
      for (var v : dx) r.push_back(v.id);
      return r;
    });
  }
  const ids none(std::size_t(std::max(1, n.result_count)), no_node);
  if (!carries_derivative(n)) return none;
  bool active = false;
  for (std::size_t i = 0; i < in.size(); ++i) active |= tangents[i] >= 0 && has_derivative(b, m, i);
  if (!active || b.failed()) return none;
  node_id t = no_node;
  if (op.partial) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (tangents[i] >= 0)
        t = accumulate(b, t, times_partial({&b, m}, int(i), {&b, tangents[i]}, false).id);
    }
    return {t};
  }
  if (op.kind == op_kind::bilinear) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (tangents[i] < 0) continue;
      ids with = in;
      with[i] = tangents[i];
      t = accumulate(b, t, copy_node(b, m, with));
    }
    return {t};
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (is_linear_in(op, i)) in[i] = or_zeros(b, tangents[i], b.g.type(in[i]));
  }
  return {copy_node(b, m, in)};
}

/// A fault if a user's rule makes tangents of another type than the results.
constexpr void check_tangents(builder& b, node_id n, const ids& tangents) {
  type_list types = result_types(b, n);
  if (types.empty()) types.push_back(b.g.type(n));
  for (std::size_t k = 0; k < types.size() && !b.failed(); ++k) {
    if (tangents[k] < 0 || b.g.type(tangents[k]) == types[k]) continue;
    b.fail(b.place_of(n) << b.g.nodes[std::size_t(n)].op->name << ": the tangent of result "
                         << int(k) << ", " << types[k] << ", becomes " << b.g.type(tangents[k])
                         << "; it has the result's type");
  }
}

/// The outputs of a region and their tangents, for these arguments and tangents.
constexpr dual_values push_forward(builder& b, int r, const ids& arguments, const ids& tangents) {
  const ids nodes = b.g.regions[std::size_t(r)].nodes;
  const ids inputs = inputs_of(b, r);
  ids primal(nodes.size(), no_node);
  ids tangent(nodes.size(), no_node);
  list<dual_values> several(nodes.size(), dual_values{});
  auto place = [&](node_id n) { return std::size_t(b.g.nodes[std::size_t(n)].position); };
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    primal[place(inputs[k])] = b.local(arguments[k]);
    if (tangents[k] >= 0) tangent[place(inputs[k])] = b.local(tangents[k]);
  }
  ids in, d;
  for (std::size_t i = 0; i < nodes.size() && !b.failed(); ++i) {
    const node n = b.g.nodes[std::size_t(nodes[i])];
    if (n.op == &input_info_of) continue;
    in.clear();
    d.clear();
    bool active = false;
    for (node_id o : b.g.operands(nodes[i])) {
      in.push_back(primal[place(o)]);
      d.push_back(tangent[place(o)]);
      active |= d.back() >= 0;
    }
    if (n.op == &get_info_of) {
      const dual_values& all = several[place(b.g.operand(nodes[i], 0))];
      const auto k = std::size_t(n.attributes.as<get_attributes>().result);
      if (!all.primals.empty()) {
        primal[i] = all.primals[k];
        tangent[i] = all.tangents[k];
        continue;
      }
    }
    if (!active) {
      primal[i] = copy_node(b, nodes[i], in);
      continue;
    }
    const name_ref outer = b.current_cell();
    b.current_cell(n.cell);
    if (n.op->kind == op_kind::control) {
      several[i] = control_jvp(b, nodes[i], in, d);
    } else {
      primal[i] = copy_node(b, nodes[i], in);
      const ids t = tangents_of(b, primal[i], d);
      if (n.op->is_own) check_tangents(b, primal[i], t);
      tangent[i] = t[0];
      if (n.result_count) several[i] = {get_all(b, primal[i], 0, n.result_count), t};
    }
    // `pack` has one result.
    if (n.result_count == 0 && !several[i].primals.empty()) {
      primal[i] = several[i].primals[0];
      tangent[i] = several[i].tangents[0];
    }
    b.current_cell(outer);
  }
  dual_values out;
  for (node_id n : outputs_of(b, r)) {
    out.primals.push_back(b.failed() ? arguments[0] : primal[place(n)]);
    out.tangents.push_back(b.failed() ? no_node : tangent[place(n)]);
  }
  return out;
}

}  // namespace cella::detail

#include <cella/transform/forward_control.hpp>
