// Reverse mode of the operations that own regions; that of loops stands in reverse_loops.hpp.
#pragma once

#include <cella/transform/pullback.hpp>
#include <cella/transform/reverse_loops.hpp>
#include <cella/transform/split.hpp>

namespace cella::detail {

// Declared, since loops may be what is included first, and lead here.
constexpr void scan_vjp(builder& b, node_id n, const ids& dy, const flags& needed, ids& dx);
constexpr void while_vjp(builder& b, node_id n, const ids& dy, const flags& needed, ids& dx);

// ---- cond

/// Where the values lie that either branch stores: one list of slots for both, in which numbers of
/// equal type share a slot, since only one branch runs. Records and what counts or is an index have
/// slots of their own: where a batch has a predicate per sample both branches run, that which is
/// not for a sample as well, and then it has to read zeros.
struct branch_slots {
  type_list types;
  std::array<list<int>, 2> of;  ///< the slot of each stored value, per branch

  constexpr branch_slots(const type_list& first, const type_list& second) : types(first) {
    of[0] = numbers(0, int(first.size()));
    flags taken(first.size(), 0);
    for (const tensor_type& t : second) {
      std::size_t slot = is_floating(t.element) || is_complex(t.element) ? 0 : taken.size();
      while (slot < taken.size() && (taken[slot] || types[slot] != t)) ++slot;
      if (slot == taken.size()) {
        types.push_back(t);
        taken.push_back(1);
      }
      taken[slot] = 1;
      of[1].push_back(int(slot));
    }
  }
};

constexpr void cond_vjp(builder& b, node_id n, const ids& dy, const flags& needed, ids& dx) {
  node s = b.g.nodes[std::size_t(n)];
  const ids operands = operands_of(b, n);
  const ids arguments = tail(operands, 1);
  const flags wanted = tail(needed, 1);
  const type_list results = result_types(b, n);
  const int count = int(results.size());
  const halves first = split(b, s.regions[0], wanted, which_exist(dy));
  const halves second = split(b, s.regions[1], wanted, which_exist(dy));
  if (b.failed()) return;
  const std::array<const halves*, 2> half{&first, &second};
  const branch_slots slots(first.stored, second.stored);
  flags read(arguments.size(), 0);
  for (std::size_t side = 0; side < 2; ++side) {
    b.begin(types_of(b, arguments));
    const ids out = inline_region(b, half[side]->forward, own_inputs(b));
    ids kept(slots.types.size(), no_node);
    for (std::size_t j = 0; j < slots.of[side].size(); ++j)
      kept[std::size_t(slots.of[side][j])] = out[std::size_t(count) + j];
    for (std::size_t j = 0; j < kept.size(); ++j) kept[j] = or_zeros(b, kept[j], slots.types[j]);
    s.regions[side] = b.here();
    b.end(join_ids({cut(out, 0, count), kept}));
    for (int k : half[side]->from_inputs) read[std::size_t(k)] = 1;
  }
  b.overwrite(n, s, operands, join_types({results, slots.types}));

  const list<int> kept = places(read, 0, int(read.size()));
  const ids in = join_ids(
      {pick(arguments, kept), get_all(b, n, count, int(slots.types.size())), existing(dy)});
  std::array<std::int32_t, 2> backward{};
  type_list out;
  for (std::size_t side = 0; side < 2; ++side) {
    backward[side] = b.begin(types_of(b, in));
    list_reader own(own_inputs(b));
    const ids own_arguments = spread(own.take(kept.size()), read);
    const ids own_slots = own.take(slots.types.size());
    const ids values = inline_region(b, half[side]->backward,
                                     join_ids({pick(own_arguments, half[side]->from_inputs),
                                               pick(own_slots, slots.of[side]), own.rest()}));
    b.end(values);
    out = types_of(b, outputs_of(b, backward[side]));
  }
  const node_id r = emit_like(b, s, bound<cond_op>(), join_ids({{operands[0]}, in}), out, backward);
  int next = 0;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    if (wanted[k]) dx[k + 1] = b.get(r, next++);
  }
}

// ---- call

/// A function that does not call itself returns what its backward half reads as further results.
constexpr void plain_call_vjp(builder& b, node_id n, const ids& dy, const flags& needed, ids& dx) {
  node s = b.g.nodes[std::size_t(n)];
  const auto o = s.attributes.as<call_options>();
  const ids operands = operands_of(b, n);
  const type_list results = result_types(b, n);
  const int count = int(results.size());
  const halves half = split(b, s.regions[0], needed, which_exist(dy), o.recompute);
  if (b.failed()) return;
  s.regions[0] = half.forward;
  b.overwrite(n, s, operands, join_types({results, half.stored}));
  const ids in = join_ids({pick(operands, half.from_inputs),
                           get_all(b, n, count, int(half.stored.size())), existing(dy)});
  const type_list out = types_of(b, outputs_of(b, half.backward));
  const node_id r = emit_like(b, s, bound<call_op>(), in, out, {half.backward, -1}, o);
  int next = 0;
  for (std::size_t k = 0; k < needed.size(); ++k) {
    if (needed[k]) dx[k] = b.get(r, next++);
  }
}

/// The two halves of a function that calls itself: forward(arguments) -> results, record;
/// backward(record, cotangents) -> cotangents. Records nest as the calls did. The second is the
/// region behind the first; both are named before they are filled, so that recursion closes.
constexpr int recursive_halves(builder& b, int callee, const flags& needed, const flags& given,
                               const flags& key, bool recompute) {
  int forward = b.functions.find_derived(function_table::derivation::halves, callee, key);
  if (forward >= 0) return forward;
  forward = b.reserve_region();
  const int backward = b.reserve_region();
  b.functions.remember_derived(function_table::derivation::halves, callee, key, forward);
  const halves half = split(b, callee, needed, given, recompute);
  if (b.failed()) return forward;
  const tensor_type record_type{dtype::record, {}};
  const type_list arguments = types_of(b, inputs_of(b, callee));
  const int count = int(given.size());

  int r = b.begin(arguments);
  const ids in = own_inputs(b);
  const ids out = inline_region(b, half.forward, in);
  const ids kept = join_ids({pick(in, half.from_inputs), tail(out, count)});
  const type_list kept_types = types_of(b, kept);
  b.end(join_ids({cut(out, 0, count), {pack(b, kept, record_type)}}));
  b.fill(forward, r);

  type_list types{record_type};
  for (std::size_t k = 0; k < given.size(); ++k) {
    if (given[k]) types.push_back(b.g.type(outputs_of(b, callee)[k]));
  }
  r = b.begin(types);
  list_reader own(own_inputs(b));
  const ids fields = unpack(b, own.take(1)[0], kept_types);
  b.end(inline_region(b, half.backward, join_ids({fields, own.rest()})));
  b.fill(backward, r);
  return forward;
}

constexpr void call_vjp(builder& b, node_id n, const ids& dy, const flags& needed, ids& dx) {
  node s = b.g.nodes[std::size_t(n)];
  if (!is_recursive(b, s.regions[0])) return plain_call_vjp(b, n, dy, needed, dx);
  const auto o = s.attributes.as<call_options>();
  const ids operands = operands_of(b, n);
  const type_list results = result_types(b, n);
  flags given;
  for (const tensor_type& t : results) given.push_back(is_differentiable(t.element));
  flags key = needed;
  key.push_back(o.recompute != 0);
  const int forward = recursive_halves(b, s.regions[0], needed, given, key, o.recompute);
  if (b.failed()) return;
  s.regions[0] = forward;
  const int count = int(results.size());
  b.overwrite(n, s, operands, join_types({results, type_list{{dtype::record, {}}}}));
  ids in{b.get(n, count)};
  type_list out;
  for (std::size_t k = 0; k < given.size(); ++k) {
    if (given[k]) in.push_back(or_zeros(b, dy[k], results[k]));
  }
  for (std::size_t k = 0; k < needed.size(); ++k) {
    if (needed[k]) out.push_back(b.g.type(operands[k]));
  }
  const node_id r = emit_like(b, s, bound<call_op>(), in, out, {forward + 1, -1});
  int next = 0;
  for (std::size_t k = 0; k < needed.size(); ++k) {
    if (needed[k]) dx[k] = b.get(r, next++);
  }
}

// ---- custom, records

/// The cotangents of the arguments of a function with its own rule.
constexpr ids custom_cotangents(builder& b, node_id n, ids dy) {
  const node s = b.g.nodes[std::size_t(n)];
  const int arguments = s.attributes.as<custom_options>().arguments;
  const ids operands = operands_of(b, n);
  const type_list results = result_types(b, n);
  for (std::size_t k = 0; k < dy.size(); ++k) dy[k] = or_zeros(b, dy[k], results[k]);
  return inline_region(b, s.regions[1],
                       join_ids({cut(operands, 0, arguments), get_all(b, n, 0, int(results.size())),
                                 dy, tail(operands, arguments)}));
}
constexpr void custom_vjp_rule(builder& b, node_id n, const ids& dy, const flags& needed, ids& dx) {
  const ids out = custom_cotangents(b, n, dy);
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (needed[k]) dx[k] = out[k];
  }
}

constexpr void pack_vjp(builder& b, node_id n, const ids& dy, const flags& needed, ids& dx) {
  const ids parts = unpack(b, dy[0], types_of(b, operands_of(b, n)));
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (needed[k]) dx[k] = parts[k];
  }
}
constexpr void unpack_vjp(builder& b, node_id n, const ids& dy, ids& dx) {
  ids fields;
  for (std::size_t k = 0; k < dy.size(); ++k)
    fields.push_back(or_zeros(b, dy[k], b.g.result_type(n, int(k))));
  dx[0] = pack(b, fields, b.g.type(b.g.operand(n, 0)));
}

constexpr void control_vjp(builder& b, node_id n, const ids& dy, const flags& needed, ids& dx) {
  switch (b.g.nodes[std::size_t(n)].op->form) {
    case control_form::branch:
      return cond_vjp(b, n, dy, needed, dx);
    case control_form::scan:
      return scan_vjp(b, n, dy, needed, dx);
    case control_form::loop:
      return while_vjp(b, n, dy, needed, dx);
    case control_form::call:
      return call_vjp(b, n, dy, needed, dx);
    case control_form::custom:
      return custom_vjp_rule(b, n, dy, needed, dx);
    case control_form::pack:
      return pack_vjp(b, n, dy, needed, dx);
    case control_form::unpack:
      return unpack_vjp(b, n, dy, dx);
    case control_form::none:
      return;
  }
}

}  // namespace cella::detail
