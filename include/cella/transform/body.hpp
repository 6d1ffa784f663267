// The bodies of loops, branches and functions while they are traced or run: their random numbers,
// and the states that they assign.
//
// A body draws from a key of its own: a hash of the key round it and of the body's place among its
// draws, and beside it the number of the step. States that a loop's body assigns, and that key if
// the body draws, are further carries of the loop.
#pragma once

#include <cella/ops/random.hpp>
#include <cella/transform/branching.hpp>
#include <utility>

namespace cella::detail {

/// Runs a body that is not traced into a region of its own, or into one that captures its key and
/// states.
template <class Run>
constexpr auto in_body(builder& b, const body_scope& scope, Run run) {
  b.bodies.enter(scope);
  auto value = run();
  b.bodies.leave();
  return value;
}
/// Step `step` of a loop in eager mode.
template <class Run>
constexpr auto in_step(builder& b, int stream, int step, Run run) {
  return in_body(b, {.repeats = true, .stream = stream, .step = step}, run);
}
/// The draws of a loop's condition are none of its body.
inline constexpr std::int32_t condition_stream = -1;

/// What a loop carries besides its state: the key of random numbers, states.
struct further_carries {
  bool draws{};
  list<std::int32_t> assigned;  ///< inputs of the main region

  constexpr int count() const { return int(assigned.size()) + draws; }
};

/// A region that runs many times, as it was traced: its inputs are those declared, then a key and
/// states as they were used, then captured values. Its outputs are the results, the next key if it
/// draws, the new values of the states in `assigned`.
struct loop_body {
  int region{};
  int declared{};
  body_scope scope;
  list<std::int32_t> assigned;

  constexpr further_carries carries() const { return {scope.key >= 0, assigned}; }
};

template <class Run>
constexpr auto trace_loop_body(builder& b, const type_list& inputs, loop_body& body, Run run) {
  body.region = b.begin(inputs);
  body.declared = int(inputs.size());
  b.bodies.enter({.region = body.region, .repeats = true});
  const std::size_t first = b.bodies.updates.size();
  auto value = run_paths(b, run);
  body.scope = b.bodies.leave();
  ids out = flatten_value(value);
  if (body.scope.key >= 0) out.push_back(next_key(b, body.scope.key));
  for (const input_update& u : b.bodies.take_updates(first)) {
    body.assigned.push_back(u.input);
    out.push_back(u.value);
  }
  b.end(out);
  return value;
}

/// The values that further carries have before the loop, whose key has this stream.
constexpr ids first_values(builder& b, const further_carries& c, int stream) {
  ids first;
  if (c.draws) first.push_back(derived_key(b, random_key(b), stream));
  for (std::int32_t i : c.assigned) first.push_back(b.bodies.state_value(b.g.input(i)));
  return first;
}

/// Makes further carries inputs of a body behind its first `place` ones; states that it only reads
/// become captured values.
constexpr void add_carries(builder& b, const loop_body& body, const further_carries& c, int place) {
  const region x = b.g.regions[std::size_t(body.region)];
  auto input_of = [&](node_id state) {
    for (const auto& s : body.scope.states) {
      if (s.of == state) return s.input;
    }
    return b.g.append_input(b.g.type(state), body.region);
  };
  ids further;
  if (c.draws) {
    further.push_back(body.scope.key >= 0 ? body.scope.key
                                          : b.g.append_input({dtype::i64, {2}}, body.region));
  }
  for (std::int32_t i : c.assigned) further.push_back(input_of(b.g.input(i)));
  ids captured = x.captured;
  ids inputs = join_ids({cut(x.inputs, 0, place), further,
                         cut(x.inputs, place, body.declared - place), tail(x.inputs, x.declared)});
  for (const auto& s : body.scope.states) {
    bool is_carry = false;
    for (std::int32_t i : c.assigned) is_carry |= b.g.input(i) == s.of;
    if (is_carry) continue;
    // No value is captured twice.
    node_id outer = b.local(b.bodies.state_value(s.of));
    for (node_id n : x.captured) {
      if (n == outer) outer = b.emit(bound<identity_op>(), {outer});
    }
    captured.push_back(outer);
    inputs.push_back(s.input);
  }
  region& to = b.g.regions[std::size_t(body.region)];
  to.inputs = inputs;
  to.captured = captured;
  to.declared = std::int32_t(body.declared + c.count());
}

}  // namespace cella::detail
