// Reverse mode of loops: scans, and while loops as scans or over a list of records.
#pragma once

#include <cella/transform/split.hpp>

namespace cella::detail {

// ---- scan

constexpr void scan_vjp(builder& b, node_id n, const ids& dy, const flags& needed, ids& dx) {
  node s = b.g.nodes[std::size_t(n)];
  const auto o = s.attributes.as<scan_options>();
  const ids operands = operands_of(b, n);
  const type_list results = result_types(b, n);
  const int count = int(operands.size());
  const int last_x = o.carries + o.xs;
  const int results_before = int(results.size());
  flags active_outputs;
  const flags active = loop_dependence(b, s.regions[0], needed, o.carries, true, active_outputs);
  flags given = which_exist(dy);
  for (int k = 0; k < o.carries; ++k) given[std::size_t(k)] = active[std::size_t(k)];
  const halves half = split(b, s.regions[0], active, given, o.recompute);
  if (b.failed()) return;
  list<int> read_carries, read_xs, read_constants;
  for (int k : half.from_inputs)
    (k < o.carries ? read_carries : k < last_x ? read_xs : read_constants).push_back(k);
  const type_list body_types = types_of(b, inputs_of(b, s.regions[0]));

  // Forward: also returns, stacked, what is stored and the carries that the backward half reads.
  // The xs and the constants are handed over as they are.
  const int body = b.begin(body_types);
  b.end(
      join_ids({inline_region(b, half.forward, own_inputs(b)), pick(own_inputs(b), read_carries)}));
  type_list stacked = results;
  for (node_id y : tail(outputs_of(b, body), results_before))
    stacked.push_back(with_leading(o.length, b.g.type(y)));
  s.regions[0] = body;
  b.overwrite(n, s, operands, stacked);
  const ids kept = get_all(b, n, results_before, int(stacked.size()) - results_before);

  // Backward. Carries: cotangents of the carries, then sums for the constants. Xs: what was stored,
  // the xs that are read, cotangents of the ys. Constants: those that are read.
  const list<int> to_carries = places(active, 0, o.carries);
  const list<int> to_xs = places(active, o.carries, last_x);
  const list<int> to_constants = places(active, last_x, count);
  ids carries, ys;
  for (int k : to_carries)
    carries.push_back(or_zeros(b, dy[std::size_t(k)], body_types[std::size_t(k)]));
  for (int k : to_constants) carries.push_back(zeros(b, body_types[std::size_t(k)]));
  for (int k = o.carries; k < results_before; ++k) {
    if (dy[std::size_t(k)] >= 0) ys.push_back(dy[std::size_t(k)]);
  }
  const ids xs = join_ids({kept, pick(operands, read_xs), ys});
  const ids constants = pick(operands, read_constants);
  type_list in = types_of(b, carries);
  for (node_id x : xs) in.push_back(without_leading(b.g.type(x)));
  const int backward = b.begin(join_types({in, types_of(b, constants)}));
  list_reader own(own_inputs(b));
  const ids own_carries = own.take(to_carries.size());
  const ids sums = own.take(to_constants.size());
  const ids own_stored = own.take(half.stored.size());
  const ids carries_read = own.take(read_carries.size());
  const ids xs_read = own.take(read_xs.size());
  const ids own_ys = own.take(ys.size());
  list_reader out(inline_region(
      b, half.backward,
      join_ids({carries_read, xs_read, own.rest(), own_stored, own_carries, own_ys})));
  const ids new_carries = out.take(to_carries.size());
  const ids x_parts = out.take(to_xs.size());
  ids new_sums = out.take(to_constants.size());
  for (std::size_t k = 0; k < sums.size(); ++k) new_sums[k] = add(b, sums[k], new_sums[k]);
  b.end(join_ids({new_carries, new_sums, x_parts}));

  type_list types = types_of(b, carries);
  for (int k : to_xs) types.push_back(b.g.type(operands[std::size_t(k)]));
  const scan_options options{std::int32_t(carries.size()), std::int32_t(xs.size()), o.length,
                             !o.reverse, o.recompute};
  const node_id r = emit_like(b, s, bound<scan_op>(), join_ids({carries, xs, constants}), types,
                              {backward, -1}, options);
  int next = 0;
  for (int k : to_carries) {
    const node_id d = b.get(r, next++);
    if (needed[std::size_t(k)]) dx[std::size_t(k)] = d;
  }
  for (int k : to_constants) dx[std::size_t(k)] = b.get(r, next++);
  for (int k : to_xs) dx[std::size_t(k)] = b.get(r, next++);
}

// ---- while_loop

/// A region that only hands the operands of `r` on to it, from among more inputs.
constexpr int with_inputs(builder& b, int r, const type_list& inputs, const list<int>& own) {
  const int q = b.begin(inputs);
  b.end(inline_region(b, r, pick(own_inputs(b), own)));
  return q;
}

/// A bounded loop is the scan whose body does nothing once the condition fails: what it stores has
/// a size that is known.
constexpr void bounded_while_vjp(builder& b, node_id n, const ids& dy, const flags& needed,
                                 ids& dx) {
  node s = b.g.nodes[std::size_t(n)];
  const auto o = s.attributes.as<while_options>();
  const ids operands = operands_of(b, n);
  const type_list in = types_of(b, operands);
  const type_list carries = cut(in, 0, o.carries);
  const int stay = b.begin(in);
  b.end(cut(own_inputs(b), 0, o.carries));
  const int body = b.begin(in);
  const ids own = own_inputs(b);
  const ids goes_on = inline_region(b, s.regions[0], own);
  const node_id next =
      b.emit_control(bound<cond_op>(), join_ids({goes_on, own}), carries, {s.regions[1], stay});
  b.end(get_all(b, next, 0, o.carries));
  s.op = &bound<scan_op>();
  s.regions = {body, -1};
  s.attributes = scan_options{o.carries, 0, o.max_steps, 0, 0};
  b.overwrite(n, s, operands, carries);
  scan_vjp(b, n, dy, needed, dx);
}

constexpr void while_vjp(builder& b, node_id n, const ids& dy, const flags& needed, ids& dx) {
  node s = b.g.nodes[std::size_t(n)];
  const auto o = s.attributes.as<while_options>();
  if (o.max_steps > 0) return bounded_while_vjp(b, n, dy, needed, dx);
  const ids operands = operands_of(b, n);
  const type_list types = types_of(b, operands);
  const int nc = o.carries;
  const int constants = int(operands.size()) - nc;
  flags active_outputs;
  const flags active = loop_dependence(b, s.regions[1], needed, nc, true, active_outputs);
  const halves half = split(b, s.regions[1], active, cut(active, 0, nc));
  if (b.failed()) return;
  list<int> read_carries, read_constants;
  for (int k : half.from_inputs) (k < nc ? read_carries : read_constants).push_back(k);

  // Forward: carries, steps, list | constants. Each step puts what the backward half reads in front
  // of the list: a record whose first field is the list so far.
  const tensor_type count_type{dtype::i64, {}};
  const tensor_type list_type{dtype::record, {}};
  auto early = [&](const tensor_type& t) {
    node zero{};
    zero.op = &bound<constant_op>();
    zero.attributes = constant_op::options{0, t.shape, {std::int32_t(t.element)}};
    zero.type = t;
    const node_id m = b.append(zero, {}, s.region);
    b.early.add(m);
    return m;
  };
  const node_id no_steps = early(count_type);
  const node_id empty_list = early(list_type);
  const type_list forward_types =
      join_types({cut(types, 0, nc), {count_type, list_type}, tail(types, nc)});
  s.regions[0] = with_inputs(b, s.regions[0], forward_types,
                             join<int>({numbers(0, nc), numbers(nc + 2, constants)}));
  s.regions[1] = b.begin(forward_types);
  const ids in = own_inputs(b);
  const ids out = inline_region(b, half.forward, join_ids({cut(in, 0, nc), tail(in, nc + 2)}));
  const ids kept = join_ids({pick(in, read_carries), tail(out, nc)});
  const type_list kept_types = types_of(b, kept);
  const node_id records = pack(b, join_ids({{in[std::size_t(nc) + 1]}, kept}), list_type);
  const node_id steps = add(b, in[std::size_t(nc)], constant(b, 1, count_type).id);
  b.end(join_ids({cut(out, 0, nc), {steps, records}}));
  s.attributes = while_options{nc + 2, 0};
  b.overwrite(n, s, join_ids({cut(operands, 0, nc), {no_steps, empty_list}, tail(operands, nc)}),
              cut(forward_types, 0, nc + 2));

  // Backward: steps left, list, cotangents of the carries, sums for the constants | constants that
  // are read.
  const list<int> to_carries = places(active, 0, nc);
  const list<int> to_constants = places(active, nc, nc + constants);
  ids carries = get_all(b, n, nc, 2);
  for (int k : to_carries)
    carries.push_back(or_zeros(b, dy[std::size_t(k)], types[std::size_t(k)]));
  for (int k : to_constants) carries.push_back(zeros(b, types[std::size_t(k)]));
  const ids all = join_ids({carries, pick(operands, read_constants)});
  const type_list all_types = types_of(b, all);
  const int condition = b.begin(all_types);
  const node_id more =
      b.emit(bound<greater_op>(), {own_inputs(b)[0], constant(b, 0, count_type).id});
  b.end(ids{more});
  const int body = b.begin(all_types);
  list_reader own(own_inputs(b));
  const ids head = own.take(2);
  const ids own_carries = own.take(to_carries.size());
  const ids sums = own.take(to_constants.size());
  list_reader record(unpack(b, head[1], join_types({{list_type}, kept_types})));
  const ids rest = record.take(1);
  const ids carries_read = record.take(read_carries.size());
  list_reader cotangents(inline_region(
      b, half.backward, join_ids({carries_read, own.rest(), record.rest(), own_carries})));
  const ids new_carries = cotangents.take(to_carries.size());
  ids new_sums = cotangents.take(to_constants.size());
  for (std::size_t k = 0; k < sums.size(); ++k) new_sums[k] = add(b, sums[k], new_sums[k]);
  const node_id left = b.emit(bound<sub_op>(), {head[0], constant(b, 1, count_type).id});
  b.end(join_ids({{left}, rest, new_carries, new_sums}));
  const node_id r = emit_like(b, s, bound<while_op>(), all, types_of(b, carries), {condition, body},
                              while_options{std::int32_t(carries.size()), 0});
  int next = 2;
  for (int k : to_carries) {
    const node_id d = b.get(r, next++);
    if (needed[std::size_t(k)]) dx[std::size_t(k)] = d;
  }
  for (int k : to_constants) dx[std::size_t(k)] = b.get(r, next++);
}

}  // namespace cella::detail
