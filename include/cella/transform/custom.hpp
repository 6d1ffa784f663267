// Functions that bring their own derivative.
#pragma once

#include <cella/transform/control.hpp>

namespace cella {

namespace detail {
/// Whether a rule can be called with arguments X, the value and its cotangent.
template <class Rule, class Value, class... X>
concept takes_results = std::is_invocable_v<const Rule&, X&..., Value, Value>;
}  // namespace detail

/// f with a derivative of its own: rule(x..., y, dy) returns the cotangents of x... (a var for one
/// argument, else an array or tuple) from the arguments, the value y = f(x...) and its cotangent
/// dy. It must be linear in dy, and is differentiated in turn for higher orders and forward mode.
/// What either closes over counts as constant, and so does what f assigns to states: hand over as
/// arguments what is to be differentiated. The rule assigns none.
template <class F, class Rule>
constexpr auto custom_vjp(F f, Rule rule,
                          std::source_location at = std::source_location::current()) {
  return [f, rule, at](auto... x) {
    if constexpr (!std::is_invocable_v<const F&, decltype(x)&...>) {
      const auto first = std::get<0>(std::make_tuple(x...));
      builder_of(first)->fail(text() << at << ": custom_vjp: the function does not take "
                                     << int(sizeof...(x)) << " arguments, with which it is called");
      return first;
    } else if constexpr (!detail::takes_results<Rule, decltype(f(x...)), decltype(x)...>) {
      builder_of(std::make_tuple(x...))
          ->fail(text()
                 << at
                 << ": custom_vjp: the rule takes the arguments of the function, its value and the "
                    "cotangent of that: [](var x, var y, var dy) { return ...; }");
      return f(x...);
    } else {
      using result = std::decay_t<decltype(f(x...))>;
      using cotangents = std::decay_t<decltype(rule(x..., f(x...), f(x...)))>;
      const auto arguments = std::make_tuple(x...);
      builder& b = *builder_of(arguments);
      const ids in = flatten_value(arguments);
      const int count = int(in.size());
      const auto types = detail::types_of(b, in);
      // Each draws numbers of its own.
      auto in_body = [&](const char* refuses, auto run) {
        return detail::in_body(b, {.refuses = refuses, .stream = b.bodies.next_random_stream()},
                               run);
      };
      int function = 0;
      list<std::int32_t> assigned;
      const result value = in_body(nullptr, [&] {
        return detail::trace_region(b, types, function, assigned, [&]() -> result {
          return std::apply(f, rebuild_value(arguments, b, detail::own_inputs(b)));
        });
      });
      if (b.failed()) return value;
      // Results, and behind them the states that f assigns, of which the rule knows nothing.
      const auto results = detail::types_of(b, detail::outputs_of(b, function));
      const int all_outs = int(results.size());
      const int outs = all_outs - int(assigned.size());
      int backward = 0;
      const auto rule_types = detail::join_types({types, results, results});
      in_body("the rule of custom_vjp", [&] {
        return detail::trace_region(b, rule_types, backward, [&]() -> cotangents {
          const ids own = detail::own_inputs(b);
          const auto all = std::tuple_cat(
              rebuild_value(arguments, b, own),
              std::make_tuple(rebuild_value(value, b, detail::cut(own, count, outs)),
                              rebuild_value(value, b, detail::cut(own, count + all_outs, outs))));
          return std::apply(rule, all);
        });
      });
      if (!detail::same_types(b, types, detail::types_of(b, detail::outputs_of(b, backward)),
                              "the argument", "the cotangent that the rule returns",
                              "they must be equal", "custom_vjp", at))
        return value;
      const ids captured = b.unify(function, backward);
      const node_id n = b.emit_control(bound<custom_op>(), detail::join_ids({in, captured}),
                                       results, {function, backward}, custom_options{count}, at);
      const ids all = detail::get_all(b, n, 0, all_outs);
      detail::assign_all(b, assigned, detail::tail(all, outs));
      return rebuild_value(value, b, all);
    }
  };
}

/// x, whose gradient goes through `hook` on its way back: to print it, to clip it, to look whether
/// it is finite. It gets the cotangent and returns that which x gets. Higher orders and forward
/// mode need one that is linear.  PyTorch: Tensor.register_hook
template <class Hook>
constexpr var gradient_hook(var x, Hook hook) {
  return custom_vjp([](var v) { return v; }, [hook](var, var, var dy) { return hook(dy); })(x);
}

/// A cell's forward(x...) with the derivative that its member bprop(x..., y, dy) tells:
///
///     constexpr var operator()(var x) const { return with_bprop(*this, x); }
///
/// Parameters of such a cell get no derivative unless they are arguments.
template <class Cell, class... X>
constexpr auto with_bprop(const Cell& cell, X... x) {
  return custom_vjp([&cell](auto... v) { return cell.forward(v...); },
                    [&cell](auto... v) { return cell.bprop(v...); })(x...);
}

}  // namespace cella
