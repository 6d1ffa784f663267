// Batching: replays a region with one more leading axis on the values that are marked. `vmap` of
// transform/vmap.hpp is made of this.
#pragma once

#include <cella/ops/reduction.hpp>
#include <cella/transform/reverse_control.hpp>

namespace cella::detail {

/// Values, and which of them have samples along a leading axis.
struct batched_list {
  ids values;
  flags batched;
};

constexpr batched_list control_batch(builder& b, node_id n, const batched_list& in, int size);
constexpr batched_list batch_region(builder& b, int r, const batched_list& in, int size);

constexpr node_id repeat_leading(builder& b, node_id n, int size) {
  return repeat_leading(var{&b, n}, size).id;
}
constexpr node_id swap_leading(builder& b, node_id n) { return swap_leading(var{&b, n}).id; }

/// What the first sample has: of values that are the same for all.
constexpr node_id first_sample(builder& b, node_id n) { return leading_slice({&b, n}, 0).id; }

/// Values with samples at least where `wanted` says.
constexpr ids repeat_where(builder& b, batched_list in, int size, const flags& wanted) {
  for (std::size_t k = 0; k < in.values.size(); ++k) {
    if (wanted[k] && !in.batched[k]) in.values[k] = repeat_leading(b, in.values[k], size);
  }
  return in.values;
}
/// The outputs of a region, with samples exactly where `wanted` says, which includes all that
/// depend on samples.
constexpr ids batch_body(builder& b, int r, const batched_list& in, int size, const flags& wanted) {
  return repeat_where(b, batch_region(b, r, in, size), size, wanted);
}

/// Always correct, for an operation without a rule: one sample after the other.
constexpr batched_list batch_by_scan(builder& b, node_id n, const batched_list& in, int size) {
  const node s = b.g.nodes[std::size_t(n)];
  ids xs, constants;
  type_list types;
  for (std::size_t k = 0; k < in.values.size(); ++k)
    (in.batched[k] ? xs : constants).push_back(in.values[k]);
  for (node_id x : xs) types.push_back(without_leading(b.g.type(x)));
  const int body = b.begin(join_types({types, types_of(b, constants)}));
  list_reader own(own_inputs(b));
  const ids own_xs = own.take(xs.size());
  const ids rest = own.rest();
  ids operands;
  std::size_t x = 0;
  std::size_t c = 0;
  for (char m : in.batched) operands.push_back(m ? own_xs[x++] : rest[c++]);
  const node_id one = copy_node(b, n, operands);
  ids out{one};
  if (s.result_count) out = get_all(b, one, 0, s.result_count);
  b.end(out);
  type_list results;
  for (node_id y : outputs_of(b, body)) results.push_back(with_leading(size, b.g.type(y)));
  const scan_options options{0, std::int32_t(xs.size()), size, 0, 0};
  const node_id r =
      emit_like(b, s, bound<scan_op>(), join_ids({xs, constants}), results, {body, -1}, options);
  return {get_all(b, r, 0, int(results.size())), all_marked(results.size())};
}

/// One operation on operands of which some have samples. Results of an operation with one result
/// are its only value.
constexpr batched_list batch_operation(builder& b, node_id n, const batched_list& in, int size) {
  const node s = b.g.nodes[std::size_t(n)];
  const op_info& op = *s.op;
  if (s.type.rank() == max_rank) {
    b.fail(b.place_of(n) << "vmap: " << op.name << " yields " << s.type
                         << ", which has no room for one more axis");
    return {in.values, in.batched};
  }
  unsigned mask = 0;
  for (std::size_t k = 0; k < in.values.size() && k < 32; ++k)
    mask |= unsigned(in.batched[k] != 0) << k;
  if (op.batch) {
    list<var> operands;
    for (node_id x : in.values) operands.push_back({&b, x});
    list<var> out(std::size_t(s.result_count ? s.result_count : 1), var{});
    op.batch({&b, n}, operands, mask, out);
    if (!out[0].b) return batch_by_scan(b, n, in, size);
    ids values;
    for (var v : out) values.push_back(v.id);
    return {values, all_marked(values.size())};
  }
  if (!op.pointwise && !op.batch_options) return batch_by_scan(b, n, in, size);
  ids operands = in.values;
  if (op.kind != op_kind::bilinear) {
    for (std::size_t k = 0; k < operands.size(); ++k) {
      if (!in.batched[k]) operands[k] = repeat_leading(b, operands[k], size);
    }
  }
  const attributes options = op.pointwise ? s.attributes : op.batch_options({&b, n}, size, mask);
  return {{copy_node(b, n, operands, options)}, {1}};
}

constexpr batched_list batch_region(builder& b, int r, const batched_list& in, int size) {
  const ids nodes = b.g.regions[std::size_t(r)].nodes;
  const ids inputs = inputs_of(b, r);
  ids value(nodes.size(), no_node);
  flags batched(nodes.size(), 0);
  list<batched_list> several(nodes.size(), batched_list{});
  auto place = [&](node_id n) { return std::size_t(b.g.nodes[std::size_t(n)].position); };
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    value[place(inputs[k])] = b.local(in.values[k]);
    batched[place(inputs[k])] = in.batched[k];
  }
  batched_list operands;
  for (std::size_t i = 0; i < nodes.size() && !b.failed(); ++i) {
    const node n = b.g.nodes[std::size_t(nodes[i])];
    if (n.op == &input_info_of) continue;
    operands.values.clear();
    operands.batched.clear();
    bool any = false;
    for (node_id o : b.g.operands(nodes[i])) {
      operands.values.push_back(value[place(o)]);
      operands.batched.push_back(batched[place(o)]);
      any |= batched[place(o)] != 0;
    }
    if (n.op == &get_info_of) {
      const batched_list& all = several[place(b.g.operand(nodes[i], 0))];
      const auto k = std::size_t(n.attributes.as<get_attributes>().result);
      if (!all.values.empty()) {
        value[i] = all.values[k];
        batched[i] = all.batched[k];
        continue;
      }
    }
    if (!any) {
      value[i] = copy_node(b, nodes[i], operands.values);
      continue;
    }
    const name_ref outer = b.current_cell();
    b.current_cell(n.cell);
    if (n.op->kind == op_kind::control)
      several[i] = control_batch(b, nodes[i], operands, size);
    else
      several[i] = batch_operation(b, nodes[i], operands, size);
    b.current_cell(outer);
    value[i] = several[i].values[0];
    batched[i] = several[i].batched[0];
  }
  batched_list out;
  for (node_id n : outputs_of(b, r)) {
    out.values.push_back(b.failed() ? in.values[0] : value[place(n)]);
    out.batched.push_back(b.failed() ? 0 : batched[place(n)]);
  }
  return out;
}

// ---- operations that own regions

/// x[i] where p[i] holds, else y[i]; p has one element per sample.
constexpr node_id select_samples(builder& b, node_id p, node_id x, node_id y) {
  const tensor_type t = b.g.type(x);
  if (t.rank() > 1) {
    broadcast_op::options o{t.shape, iteration_space::no_axes};
    o.axes[0] = 0;
    p = b.emit(bound<broadcast_op>(), {p}, o);
  }
  return b.emit(bound<select_op>(), {p, x, y});
}

/// With a predicate per sample both branches run and the results are selected; but a recursion need
/// not end for a sample that the branch is not for, so then one sample comes after the other.
constexpr batched_list cond_batch(builder& b, node_id n, const batched_list& in, int size) {
  const node s = b.g.nodes[std::size_t(n)];
  const batched_list arguments{tail(in.values, 1), tail(in.batched, 1)};
  const auto count = std::size_t(s.result_count);
  if (in.batched[0]) {
    if (holds_recursion(b, s.regions[0]) || holds_recursion(b, s.regions[1]))
      return batch_by_scan(b, n, in, size);
    const ids yes = batch_body(b, s.regions[0], arguments, size, all_marked(count));
    const ids no = batch_body(b, s.regions[1], arguments, size, all_marked(count));
    ids out;
    for (std::size_t k = 0; k < count; ++k)
      out.push_back(select_samples(b, in.values[0], yes[k], no[k]));
    return {out, all_marked(count)};
  }
  flags wanted = dependent_outputs(b, s.regions[0], arguments.batched, false);
  const flags second = dependent_outputs(b, s.regions[1], arguments.batched, false);
  for (std::size_t k = 0; k < count; ++k) wanted[k] |= second[k];
  std::array<std::int32_t, 2> regions{};
  type_list results;
  for (std::size_t side = 0; side < 2; ++side) {
    regions[side] = b.begin(types_of(b, arguments.values));
    b.end(batch_body(b, s.regions[side], {own_inputs(b), arguments.batched}, size, wanted));
    results = types_of(b, outputs_of(b, regions[side]));
  }
  const node_id r = emit_like(b, s, bound<cond_op>(), in.values, results, regions);
  return {get_all(b, r, 0, s.result_count), wanted};
}

/// Steps lead, samples follow.
constexpr batched_list scan_batch(builder& b, node_id n, const batched_list& in, int size) {
  const node s = b.g.nodes[std::size_t(n)];
  const auto o = s.attributes.as<scan_options>();
  flags wanted;
  const flags batched = loop_dependence(b, s.regions[0], in.batched, o.carries, false, wanted);
  ids operands = in.values;
  type_list types;
  for (int k = 0; k < int(operands.size()); ++k) {
    const auto i = std::size_t(k);
    const bool is_x = k >= o.carries && k < o.carries + o.xs;
    if (batched[i] && !in.batched[i])
      operands[i] = repeat_leading(b, operands[i], size);
    else if (batched[i] && is_x)
      operands[i] = swap_leading(b, operands[i]);
    const tensor_type t = b.g.type(operands[i]);
    types.push_back(is_x ? without_leading(t) : t);
  }
  const int body = b.begin(types);
  b.end(batch_body(b, s.regions[0], {own_inputs(b), batched}, size, wanted));
  type_list results = types_of(b, outputs_of(b, body));
  for (std::size_t k = std::size_t(o.carries); k < results.size(); ++k)
    results[k] = with_leading(o.length, results[k]);
  const node_id r = emit_like(b, s, bound<scan_op>(), operands, results, {body, -1}, s.attributes);
  ids out = get_all(b, r, 0, s.result_count);
  for (std::size_t k = std::size_t(o.carries); k < out.size(); ++k) {
    if (wanted[k]) out[k] = swap_leading(b, out[k]);
  }
  return {out, wanted};
}

/// The loop goes on while any sample does; samples that are done stand still.
constexpr batched_list while_batch(builder& b, node_id n, const batched_list& in, int size) {
  const node s = b.g.nodes[std::size_t(n)];
  const auto o = s.attributes.as<while_options>();
  const auto carries = std::size_t(o.carries);
  flags batched = in.batched;
  bool per_sample = false;
  for (bool again = true; again;) {
    flags out;
    batched = loop_dependence(b, s.regions[1], batched, o.carries, false, out);
    again = !per_sample && dependent_outputs(b, s.regions[0], batched, false)[0];
    if (!again) continue;
    per_sample = true;
    for (std::size_t k = 0; k < carries; ++k) batched[k] = 1;
  }
  ids operands = in.values;
  for (std::size_t k = 0; k < carries; ++k) {
    if (batched[k] && !in.batched[k]) operands[k] = repeat_leading(b, operands[k], size);
  }
  const type_list types = types_of(b, operands);
  auto test = [&](const ids& values) {
    return batch_region(b, s.regions[0], {values, batched}, size).values[0];
  };
  const int condition = b.begin(types);
  node_id goes_on = test(own_inputs(b));
  if (per_sample) goes_on = b.emit(bound<max_op>(), {goes_on}, axes_options{1});
  b.end(std::array{goes_on});
  const int body = b.begin(types);
  const ids own = own_inputs(b);
  ids out = batch_body(b, s.regions[1], {own, batched}, size, cut(batched, 0, o.carries));
  if (per_sample) {
    const node_id active = test(own);
    for (std::size_t k = 0; k < carries; ++k) out[k] = select_samples(b, active, out[k], own[k]);
  }
  b.end(out);
  const node_id r = emit_like(b, s, bound<while_op>(), operands, cut(types, 0, o.carries),
                              {condition, body}, s.attributes);
  return {get_all(b, r, 0, o.carries), cut(batched, 0, o.carries)};
}

/// Recursion ends at a depth of its own for each sample: so one after the other.
constexpr batched_list call_batch(builder& b, node_id n, const batched_list& in, int size) {
  const node s = b.g.nodes[std::size_t(n)];
  if (is_recursive(b, s.regions[0])) return batch_by_scan(b, n, in, size);
  const int callee = b.begin(types_of(b, in.values));
  const batched_list out = batch_region(b, s.regions[0], {own_inputs(b), in.batched}, size);
  b.end(out.values);
  const type_list results = types_of(b, outputs_of(b, callee));
  const node_id r =
      emit_like(b, s, bound<call_op>(), in.values, results, {callee, -1}, s.attributes);
  return {get_all(b, r, 0, s.result_count), out.batched};
}

/// A function with its own rule: both get samples everywhere. Results that do not depend on the
/// sample (states that the function assigns, say) are those of the first.
constexpr batched_list custom_batch(builder& b, node_id n, const batched_list& in, int size) {
  const node s = b.g.nodes[std::size_t(n)];
  ids operands = in.values;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    if (!in.batched[k]) operands[k] = repeat_leading(b, operands[k], size);
  }
  std::array<std::int32_t, 2> regions{};
  for (std::size_t side = 0; side < 2; ++side) {
    type_list types;
    for (node_id x : inputs_of(b, s.regions[side]))
      types.push_back(with_leading(size, b.g.type(x)));
    regions[side] = b.begin(types);
    const std::size_t count = outputs_of(b, s.regions[side]).size();
    b.end(batch_body(b, s.regions[side], {own_inputs(b), all_marked(types.size())}, size,
                     all_marked(count)));
  }
  const type_list results = types_of(b, outputs_of(b, regions[0]));
  const node_id r = emit_like(b, s, bound<custom_op>(), operands, results, regions, s.attributes);
  batched_list out{get_all(b, r, 0, s.result_count),
                   dependent_outputs(b, s.regions[0], in.batched, false)};
  for (std::size_t k = 0; k < out.values.size(); ++k) {
    if (!out.batched[k]) out.values[k] = first_sample(b, out.values[k]);
  }
  return out;
}

/// One record per sample.
constexpr batched_list record_batch(builder& b, node_id n, const batched_list& in, int size) {
  const node s = b.g.nodes[std::size_t(n)];
  auto o = s.attributes.as<record_options>();
  o.shape.insert(0, size);
  if (is<unpack_op>(s)) {
    type_list types = result_types(b, n);
    for (tensor_type& t : types) t = with_leading(size, t);
    return {unpack(b, in.values[0], types), all_marked(types.size())};
  }
  ids fields = in.values;
  for (std::size_t k = 0; k < fields.size(); ++k) {
    if (!in.batched[k]) fields[k] = repeat_leading(b, fields[k], size);
  }
  return {{pack(b, fields, {dtype::record, o.shape})}, {1}};
}

constexpr batched_list control_batch(builder& b, node_id n, const batched_list& in, int size) {
  switch (b.g.nodes[std::size_t(n)].op->form) {
    case control_form::branch:
      return cond_batch(b, n, in, size);
    case control_form::scan:
      return scan_batch(b, n, in, size);
    case control_form::loop:
      return while_batch(b, n, in, size);
    case control_form::call:
      return call_batch(b, n, in, size);
    case control_form::custom:
      return custom_batch(b, n, in, size);
    case control_form::pack:
    case control_form::unpack:
      return record_batch(b, n, in, size);
    case control_form::none:
      break;
  }
  return {};
}

}  // namespace cella::detail
