// Control flow on tensor values: cond, while_loop, scan, for_i, map, checkpoint. In graph mode each
// becomes one node, whose bodies are traced once; in eager mode plain C++ runs. Bodies may use any
// var in reach. What a body hands out are its results and the states that it assigns. Each step of
// a loop draws its own random numbers.
#pragma once

#include <cella/ops/slicing.hpp>
#include <cella/transform/body.hpp>
#include <cella/transform/control_forms.hpp>
#include <utility>

namespace cella {

namespace detail {

/// A fault unless a condition is one bool.
constexpr bool is_one_truth(std::string_view op, var p, std::source_location at) {
  if (p.element() == dtype::boolean && p.shape().size() == 1) return true;
  p.b->fail(text() << at << ": " << op << ": the condition " << p.b->describe(p.id) << " is "
                   << p.type() << "; it must be one bool (compare with >, ==, ...; any() or all() "
                   << "make one of many)");
  return false;
}

/// A fault unless two lists of types, which are called `first` and `second`, are equal.
constexpr bool same_types(builder& b, const type_list& x, const type_list& y,
                          std::string_view first, std::string_view second, std::string_view remedy,
                          std::string_view op, std::source_location at) {
  if (b.failed()) return false;
  if (x.size() != y.size()) {
    b.fail(text() << at << ": " << op << ": " << first << " has " << x.size() << " values, "
                  << second << " has " << y.size() << "; " << remedy);
    return false;
  }
  for (std::size_t k = 0; k < x.size(); ++k) {
    if (x[k] == y[k]) continue;
    text sentence;
    sentence << at << ": " << op << ": ";
    if (x.size() == 1)
      sentence << first << " is " << x[k] << ", " << second << " is " << y[k];
    else
      sentence << "value " << k << " of " << first << " is " << x[k] << ", of " << second << " "
               << y[k];
    b.fail(sentence << "; " << remedy);
    return false;
  }
  return true;
}

template <class T>
constexpr T slice_value(const T& xs, int i) {
  T r = xs;
  for_each_var(r, [&](var& v) { v = leading_slice(v, i); });
  return r;
}

}  // namespace detail

/// f(operands...) if the predicate (one bool) holds, else g(operands...). Both return values of the
/// same types.
template <class F, class G, class... X>
requires detail::branches<F, G, X...>
constexpr auto cond(detail::located predicate, F then, G otherwise, X... operands) {
  using result = std::decay_t<decltype(then(operands...))>;
  const std::source_location at = predicate.at;
  builder& b = *predicate.value.b;
  if (!detail::is_one_truth("cond", predicate.value, at)) return result(then(operands...));
  const body_scope scope{.stream = b.bodies.next_random_stream()};
  auto yes_body = [&]() -> result { return then(operands...); };
  auto no_body = [&]() -> result { return otherwise(operands...); };
  if (b.evaluates()) {
    return predicate.value.read(0) != 0 ? detail::in_body(b, scope, yes_body)
                                        : detail::in_body(b, scope, no_body);
  }
  const var p = reshape({predicate.value, at}, {});
  int yes = 0;
  int no = 0;
  list<std::int32_t> assigned, others;
  const result value = detail::in_body(
      b, scope, [&] { return detail::trace_region(b, {}, yes, assigned, yes_body); });
  detail::in_body(b, scope, [&] { return detail::trace_region(b, {}, no, others, no_body); });
  if (b.failed()) return value;
  assigned = detail::join_updates(b, yes, assigned, no, others);
  const auto results = detail::types_of(b, detail::outputs_of(b, yes));
  if (!detail::same_types(b, results, detail::types_of(b, detail::outputs_of(b, no)),
                          "the result if the condition holds", "the other one",
                          "both branches must return the same types", "cond", at))
    return value;
  const ids captured = b.unify(yes, no);
  const node_id n = b.emit_control(bound<cond_op>(), detail::join_ids({{p.id}, captured}), results,
                                   {yes, no}, {}, at);
  const ids all = detail::get_all(b, n, 0, int(results.size()));
  detail::assign_all(b, assigned, detail::tail(all, int(results.size() - assigned.size())));
  return rebuild_value(value, b, all);
}

/// What `while_loop` may be told.
struct while_settings {
  int max_steps = 0;  ///< the loop ends after so many; 0: it need not end
};

/// state = body(state) while condition(state), one bool, holds. The trip count may depend on the
/// data, in reverse mode, too: then each step keeps what its backward pass reads, in a list that
/// grows, or, given `max_steps`, in memory of a known size.
template <class P, class F, class State>
requires detail::loop_functions<P, F, State>
constexpr State while_loop(P condition, F body, State state, while_settings settings = {},
                           std::source_location at = std::source_location::current()) {
  builder& b = *builder_of(state);
  const int stream = b.bodies.next_random_stream();
  // Its draws are none of the body.
  auto test = [&](const State& s) {
    const body_scope scope{
        .repeats = true, .refuses = "the condition of a loop", .stream = detail::condition_stream};
    return detail::in_body(b, scope, [&]() -> var { return detail::call_with(condition, s); });
  };
  if (b.evaluates()) {
    for (int step = 0; settings.max_steps == 0 || step < settings.max_steps; ++step) {
      const var goes_on = detail::in_step(b, stream, step, [&] { return test(state); });
      if (!detail::is_one_truth("while_loop", goes_on, at) || goes_on.read(0) == 0) break;
      const State next = detail::in_step(b, stream, step,
                                         [&]() -> State { return detail::call_with(body, state); });
      if (!detail::same_types(b, detail::types_of(b, flatten_value(state)),
                              detail::types_of(b, flatten_value(next)), "the state",
                              "what the body makes of it", "a loop keeps the types of its state",
                              "while_loop", at))
        break;
      state = next;
    }
    return state;
  }
  const ids first = flatten_value(state);
  const int count = int(first.size());
  auto types = detail::types_of(b, first);
  auto own_state = [&] { return rebuild_value(state, b, detail::own_inputs(b)); };
  detail::loop_body check, step;
  detail::trace_loop_body(b, types, check, [&]() -> var {
    const var p = test(own_state());
    return detail::is_one_truth("while_loop", p, at) ? reshape({p, at}, {}) : p;
  });
  detail::trace_loop_body(b, types, step, [&]() -> State {
    if (check.scope.key >= 0) detail::random_key(b);  // what the condition draws changes, too
    return detail::call_with(body, own_state());
  });
  if (b.failed()) return state;
  types = detail::types_of(b, detail::outputs_of(b, step.region));
  if (!detail::same_types(b, detail::types_of(b, first), detail::cut(types, 0, count), "the state",
                          "what the body makes of it", "a loop keeps the types of its state",
                          "while_loop", at))
    return state;
  b.g.regions[std::size_t(check.region)].outputs.resize(1);  // the body has the next key
  const detail::further_carries further = step.carries();
  for (const auto& l : {check, step}) detail::add_carries(b, l, further, count);
  const ids captured = b.unify(check.region, step.region);
  const ids carries = detail::join_ids({first, detail::first_values(b, further, stream)});
  const node_id n = b.emit_control(
      bound<while_op>(), detail::join_ids({carries, captured}), types, {check.region, step.region},
      while_options{std::int32_t(carries.size()), std::int32_t(settings.max_steps)}, at);
  const ids all = detail::get_all(b, n, 0, int(types.size()));
  detail::assign_all(b, further.assigned, detail::tail(all, count + further.draws));
  return rebuild_value(state, b, all);
}

/// What `scan` and `for_i` may be told.
struct scan_settings {
  bool reverse = false;    ///< the last slice first; results keep their places
  bool recompute = false;  ///< the backward pass computes bodies again rather than store them
};

namespace detail {

/// The common leading extent of the vars of `xs`; -1 after a fault.
template <class X>
constexpr int leading_extent(std::string_view op, const X& xs, std::source_location at) {
  int extent = -1;
  bool fits = true;
  node_id first = no_node;
  for_each_var(xs, [&](const var& v) {
    if (!fits) return;
    const bool has_one = v.rank() > 0;
    if (has_one && extent < 0) {
      extent = v.extent(0);
      first = v.id;
    }
    if (has_one && v.extent(0) == extent) return;
    fits = false;
    text sentence;
    sentence << at << ": " << op << ": " << v.b->describe(v.id) << " is " << v.type();
    if (has_one)
      v.b->fail(sentence << ", " << v.b->describe(first) << " is " << v.b->g.type(first)
                         << "; their leading extents must be equal");
    else
      v.b->fail(sentence << ", which has no leading axis to go along");
  });
  return fits ? extent : -1;
}

/// `scan` run as a C++ loop.
template <class F, class State, class X>
constexpr auto eager_scan(F& body, State state, const X& xs, int length, bool reverse,
                          std::source_location at) {
  using result = std::decay_t<decltype(body(state, xs))>;
  builder& b = *builder_of(xs);
  const int stream = b.bodies.next_random_stream();
  list<list<var>> ys;  // per y, in order of the slices
  result last{};
  for (int step = 0; step < length; ++step) {
    const int t = reverse ? length - 1 - step : step;
    last = in_step(b, stream, step, [&]() -> result {
      X x = slice_value(xs, t);
      return body(state, x);
    });
    const ids flat = flatten_value(last);
    const std::size_t carries = flatten_value(state).size();
    if (!same_types(b, types_of(b, flatten_value(state)), types_of(b, cut(flat, 0, int(carries))),
                    "the state", "what the body makes of it", "a loop keeps the types of its state",
                    "scan", at))
      return last;
    state = rebuild_value(state, b, flat);
    ys.resize(flat.size() - carries);
    for (std::size_t k = 0; k < ys.size(); ++k) {
      const var y{&b, flat[carries + k]};
      ys[k].insert(reverse ? ys[k].begin() : ys[k].end(), y);
    }
  }
  ids out = flatten_value(state);
  for (const auto& y : ys) out.push_back(stack(y, 0, at).id);
  return rebuild_value(last, b, out);
}

}  // namespace detail

/// Goes along the leading axis of `xs`: body(state, x) -> {state, y} for each slice x. Returns {the
/// last state, the ys along a new leading axis}. The graph does not grow with the length, and the
/// body is compiled once.
template <class F, class State, class X>
requires detail::scan_function<F, State, X>
constexpr auto scan(F body, State init, X xs, scan_settings settings = {},
                    std::source_location at = std::source_location::current()) {
  using result = std::decay_t<decltype(body(init, xs))>;
  builder& b = *builder_of(xs);
  const int length = detail::leading_extent("scan", xs, at);
  if (length < 0) return body(init, xs);
  if (b.evaluates() && length > 0)
    return detail::eager_scan(body, init, xs, length, settings.reverse, at);
  const int stream = b.bodies.next_random_stream();
  ids carries = flatten_value(init);
  const ids slices = flatten_value(xs);
  auto types = detail::types_of(b, carries);
  for (node_id x : slices) types.push_back(without_leading(b.g.type(x)));
  const int nc = int(carries.size());
  detail::loop_body traced;
  const result value = detail::trace_loop_body(b, types, traced, [&]() -> result {
    const ids in = detail::own_inputs(b);
    State state = rebuild_value(init, b, detail::cut(in, 0, nc));
    X x = rebuild_value(xs, b, detail::cut(in, nc, int(slices.size())));
    return body(state, x);
  });
  if (b.failed()) return value;
  // The body's outputs: carries, ys, what else is carried.
  const detail::further_carries further = traced.carries();
  detail::add_carries(b, traced, further, nc);
  region& r = b.g.regions[std::size_t(traced.region)];
  const int ny = int(r.outputs.size()) - nc - further.count();
  r.outputs = detail::join_ids({detail::cut(r.outputs, 0, nc), detail::tail(r.outputs, nc + ny),
                                detail::cut(r.outputs, nc, ny)});
  auto results = detail::types_of(b, r.outputs);
  if (!detail::same_types(b, detail::cut(types, 0, nc), detail::cut(results, 0, nc), "the state",
                          "what the body makes of it", "a loop keeps the types of its state",
                          "scan", at))
    return value;
  const ids captured = r.captured;
  carries = detail::join_ids({carries, detail::first_values(b, further, stream)});
  for (std::size_t k = carries.size(); k < results.size(); ++k)
    results[k] = with_leading(length, results[k]);
  const scan_options options{std::int32_t(carries.size()), std::int32_t(slices.size()), length,
                             settings.reverse, settings.recompute};
  const node_id n = b.emit_control(bound<scan_op>(), detail::join_ids({carries, slices, captured}),
                                   results, {traced.region, -1}, options, at);
  const int behind = int(carries.size());
  const ids all = detail::get_all(b, n, 0, int(results.size()));
  detail::assign_all(b, further.assigned,
                     detail::tail(detail::cut(all, 0, behind), nc + further.draws));
  return rebuild_value(value, b,
                       detail::join_ids({detail::cut(all, 0, nc), detail::tail(all, behind)}));
}

/// state = body(i, state) for i = 0 ... n - 1, where i is an i64 scalar.
template <class F, class State>
requires std::is_invocable_r_v<State, F&, var&, State&>
constexpr State for_i(int n, F body, State state, scan_settings settings = {},
                      std::source_location at = std::source_location::current()) {
  builder& b = *builder_of(state);
  if (n < 0) {
    b.fail(text() << at << ": for_i: " << n << " repetitions are asked for");
    return state;
  }
  if (n == 0) return state;
  const var places = iota(b, {dtype::i64, {n}}, 0);
  auto step = [&](State s, var i) { return std::tuple<State>{body(i, s)}; };
  return std::get<0>(scan(step, state, places, settings, at));
}

/// f of each slice of `xs` along its leading axis, the results along a new leading axis. One after
/// the other: `vmap` is what does them together.
template <class F, class X>
requires detail::map_function<F, X>
constexpr auto map(F f, X xs, std::source_location at = std::source_location::current()) {
  auto step = [&](std::tuple<>, X x) {
    return std::pair<std::tuple<>, std::decay_t<decltype(f(x))>>(std::tuple<>(), f(x));
  };
  return std::get<1>(scan(step, std::tuple<>{}, xs, {}, at));
}

/// f -> a function with the same values whose intermediate results are computed again in the
/// backward pass rather than stored.
template <detail::function_like F>
constexpr auto checkpoint(F f, std::source_location at = std::source_location::current()) {
  return [f, at](auto... x) {
    if constexpr (!detail::transforms<F, decltype(x)...>) {
      return detail::refuse_call<F>("checkpoint", at, x...);
    } else {
      using result = std::decay_t<decltype(f(x...))>;
      const auto arguments = std::make_tuple(x...);
      builder& b = *builder_of(arguments);
      const body_scope scope{.stream = b.bodies.next_random_stream()};
      if (b.evaluates()) return detail::in_body(b, scope, [&]() -> result { return f(x...); });
      const ids in = flatten_value(arguments);
      int region = 0;
      list<std::int32_t> assigned;
      const result value = detail::in_body(b, scope, [&] {
        auto run = [&]() -> result {
          return std::apply(f, rebuild_value(arguments, b, detail::own_inputs(b)));
        };
        return detail::trace_region(b, detail::types_of(b, in), region, assigned, run);
      });
      const auto results = detail::types_of(b, detail::outputs_of(b, region));
      const ids captured = b.g.regions[std::size_t(region)].captured;
      const node_id n = b.emit_control(bound<call_op>(), detail::join_ids({in, captured}), results,
                                       {region, -1}, call_options{1}, at);
      const ids all = detail::get_all(b, n, 0, int(results.size()));
      detail::assign_all(b, assigned, detail::tail(all, int(results.size() - assigned.size())));
      return rebuild_value(value, b, all);
    }
  };
}

}  // namespace cella

#include <cella/transform/no_control.hpp>
