// Functions that call themselves until a tensor value ends it. In graph mode a function is traced
// once and each call is a node; in eager mode plain C++ runs. Each call draws its own random
// numbers.
#pragma once

#include <cella/transform/control.hpp>

namespace cella {

namespace detail {

/// A type with the place where it was written.
struct located_type {
  tensor_type type;
  std::source_location at;
  constexpr located_type(const tensor_type& t,
                         std::source_location where = std::source_location::current())
      : type(t), at(where) {}
  constexpr located_type(dtype element, const shape& extents,
                         std::source_location where = std::source_location::current())
      : type{element, extents}, at(where) {}
};

/// What a recursive function calls itself by, in eager mode.
template <class F>
struct eager_self {
  builder& b;
  F& f;
  template <class... X>
  constexpr var operator()(X... x) const {
    return in_body(b, {.repeats = true, .stream = b.bodies.next_random_stream()},
                   [&]() -> var { return f(*this, x...); });
  }
};
/// The same while it is traced: a call of the region that is being filled, with a key of its own,
/// the states that the function assigns and the values that it captures as further arguments.
struct traced_self {
  builder& b;
  int region;
  const ids& captured;
  const further_carries& further;
  tensor_type result;
  std::source_location at;
  template <class... X>
  constexpr var operator()(X... x) const {
    const int stream = b.bodies.next_random_stream();
    const ids in = join_ids({ids{x.id...}, first_values(b, further, stream), captured});
    type_list results{result};
    for (std::int32_t i : further.assigned) results.push_back(b.g.type(b.g.input(i)));
    const node_id n = b.emit_control(bound<call_op>(), in, results, {region, -1}, {}, at);
    assign_all(b, further.assigned, get_all(b, n, 1, int(further.assigned.size())));
    return {&b, b.get(n, 0)};
  }
};

/// The scope of a recursive function whose region is open: its inputs behind the first `count` are
/// what it carries from call to call.
constexpr body_scope recursion_scope(builder& b, const further_carries& further, int count) {
  body_scope s{.region = b.here(), .repeats = true, .knows_states = true};
  const ids own = tail(own_inputs(b), count);
  if (further.draws) s.key = own[0];
  for (std::size_t k = 0; k < further.assigned.size(); ++k)
    s.states.push_back({b.g.input(further.assigned[k]), own[k + further.draws]});
  return s;
}

}  // namespace detail

/// f(self, arguments...), where f may call self(arguments...). The recursion ends where a tensor
/// value says so: `cond` or a native `if` round the call. `result` is the type of what f returns.
template <class F, class... X>
constexpr var recursive(F f, detail::located_type result, X... arguments) {
  const std::array<var, sizeof...(X)> x{arguments...};
  builder& b = *x[0].b;
  if (b.evaluates()) return detail::eager_self<F>{b, f}(arguments...);
  const ids in = flatten_value(x);
  // The calls inside hand over what the function captures, draws from and assigns, which is known
  // when it has been traced: so it is traced until that no longer grows.
  ids captured;
  detail::further_carries further;
  for (;;) {
    auto types = detail::types_of(b, in);
    if (further.draws) types.push_back({dtype::i64, {2}});
    for (std::int32_t i : further.assigned) types.push_back(b.g.type(b.g.input(i)));
    const int r = b.begin(types);
    for (node_id n : captured) b.local(n);
    const detail::traced_self self{b, r, captured, further, result.type, result.at};
    const auto own = rebuild_value(x, b, detail::own_inputs(b));
    const std::size_t first = b.bodies.updates.size();
    b.bodies.enter(detail::recursion_scope(b, further, int(in.size())));
    const var y = detail::run_paths(
        b, [&] { return std::apply([&](auto... v) -> var { return f(self, v...); }, own); });
    ids out{y.id};
    for (std::int32_t i : further.assigned) out.push_back(b.bodies.state_value(b.g.input(i)));
    const auto updates = b.bodies.take_updates(first);
    const bool draws = b.bodies.leave().key >= 0;
    b.end(out);
    const ids found = b.g.regions[std::size_t(r)].captured;
    if (!detail::same_types(b, {y.type()}, {result.type}, "what the function returns",
                            "its declared result", "they must be equal", "recursive", result.at))
      return x[0];
    const bool same = draws == further.draws && updates.size() == further.assigned.size();
    if (same && found.size() == captured.size()) return self(arguments...);
    b.discard_since(r);
    // States were captured as long as they were not carried. (No conditional expression: g++ 12
    // destroys its temporary list twice in constant evaluation.)
    captured.clear();
    if (same) captured = found;
    further = {draws, {}};
    for (const input_update& u : updates) further.assigned.push_back(u.input);
  }
}

namespace detail {

/// Traces a function that is called by name, unless that is done or under way: run(inputs) yields
/// its result, of the type of its first argument. False after a fault.
template <class Run>
constexpr bool trace_function(builder& b, std::size_t index, Run run, std::source_location at) {
  // Whether it draws is known when it has been traced. If it had called itself by then, those calls
  // lack the key, so it is traced again.
  while (b.functions[index].region < 0) {
    const int r = b.reserve_region();
    b.functions[index].region = r;
    b.functions[index].called_too_soon = false;
    const type_list types = b.functions[index].types;
    const int q = b.begin(types);
    b.bodies.enter({.region = q,
                    .repeats = true,
                    .refuses = "a function that is called by name",
                    .knows_states = true});
    const var y =
        run_paths(b, [&]() -> var { return run(cut(own_inputs(b), 0, int(types.size()))); });
    const bool draws = b.bodies.leave().key >= 0;
    b.end(std::array{y.id});
    if (!b.failed() && !b.g.regions[std::size_t(q)].captured.empty())
      b.fail(text() << at << ": call: the function uses a value that is no argument of it (a "
                    << "parameter, say); use recursive()");
    if (!same_types(b, {y.type()}, {types[0]}, "what the function returns", "its first argument",
                    "use recursive(), which is told the type", "call", at))
      return false;
    b.fill(r, q);
    named_function& f = b.functions[index];
    f.draws = draws;
    if (draws && f.called_too_soon) b.discard_since(r);
  }
  return true;
}

}  // namespace detail

/// f(arguments...) by name: f is traced once for arguments of these types and shared by all calls,
/// its own among them: a native `if` or `cond` round the call ends the recursion. The result has
/// the type of the first argument; `recursive` takes functions for which that does not hold, or
/// that close over vars. Each call draws its own random numbers.
template <auto Function, class... X>
constexpr var call(detail::located first, X... rest) {
  builder& b = *first.value.b;
  const int stream = b.bodies.next_random_stream();
  if (b.evaluates()) {
    return detail::in_body(b, {.repeats = true, .stream = stream},
                           [&]() -> var { return Function(first.value, rest...); });
  }
  const std::array<var, 1 + sizeof...(X)> x{first.value, rest...};
  ids in = flatten_value(x);
  const std::size_t f = b.functions.find(
      &type_tag<std::integral_constant<decltype(Function), Function>>, detail::types_of(b, in));
  auto run = [&](const ids& own) -> var {
    return std::apply([](auto... v) -> var { return Function(v...); }, rebuild_value(x, b, own));
  };
  if (!detail::trace_function(b, f, run, first.at)) return first.value;
  if (b.functions[f].draws)
    in.push_back(detail::derived_key(b, detail::random_key(b), stream));
  else
    b.functions[f].called_too_soon = true;
  const std::array results{first.value.type()};
  const int r = b.functions[f].region;
  return {&b, b.get(b.emit_control(bound<call_op>(), in, results, {r, -1}, {}, first.at), 0)};
}

}  // namespace cella
