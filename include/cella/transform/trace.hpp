// Runs a cell once, symbolically: what comes out is its graph. In constant evaluation this is graph
// mode; at run time it serves eager mode and batch sizes that no program was compiled for.
#pragma once

#include <array>
#include <cella/graph/cell_check.hpp>
#include <cella/graph/copy.hpp>
#include <cella/graph/list.hpp>
#include <cella/graph/once.hpp>
#include <cella/graph/reflection.hpp>
#include <cella/graph/span.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/ops/random.hpp>
#include <cella/transform/branching.hpp>
#include <tuple>
#include <utility>

namespace cella {

/// The element type and extents of an argument, as a type: `tensor<dtype::f32, 32, 1, 28, 28>`. As
/// a member of a struct of arguments it is the var that stands for it while a function is traced.
template <dtype Element, int... Extents>
requires(sizeof...(Extents) <= max_rank)  //
    struct tensor : var {
  static constexpr tensor_type type{Element, cella::shape{Extents...}};
};

struct trace_options {
  bool training = false;
  dtype precision = dtype::f32;  ///< element type of parameters
};

namespace detail {

template <class R>
constexpr void flatten_results(const R& r, list<var>& out) {
  if constexpr (std::is_same_v<R, var>) {
    out.push_back(r);
  } else if constexpr (is_sequence<R>) {
    for (const auto& x : r) flatten_results(x, out);
  } else if constexpr (requires { std::tuple_size<R>::value; }) {
    std::apply([&](const auto&... x) { (flatten_results(x, out), ...); }, r);
  } else if constexpr (std::is_aggregate_v<R>) {
    std::apply([&](const auto&... x) { (flatten_results(x, out), ...); },
               tie_members<member_count<R>()>(r));
  }
}

constexpr std::string_view argument_name(std::size_t i) {
  constexpr std::array<std::string_view, 8> names{"x", "y", "z", "u", "v", "w", "s", "t"};
  return i < names.size() ? names[i] : "argument";
}
/// What messages call argument `i` of a cell.
template <class Cell>
constexpr std::string_view name_of_argument(std::size_t i) {
  if constexpr (requires { Cell::argument_name(i); })
    return Cell::argument_name(i);
  else
    return argument_name(i);
}

/// The largest parameter of a cell: 2^34 elements are 64 GiB of f32. A cell that is meant to have
/// larger ones says so by `static constexpr std::int64_t most_elements`.
template <class Cell>
constexpr std::int64_t most_elements() {
  if constexpr (requires { Cell::most_elements; })
    return Cell::most_elements;
  else
    return std::int64_t{1} << 34;
}
/// As a floating-point number, which many extents do not overflow.
constexpr double count_elements(const shape& s) {
  double n = 1;
  for (int i = 0; i < s.rank; ++i) n *= s[i];
  return n;
}

}  // namespace detail

namespace detail {

/// Makes an input for each parameter and state, trainable or not, and binds them to it.
struct parameter_inputs {
  builder& b;
  double most;  ///< elements
  bool others;  ///< have been bound before

  constexpr parameter_inputs(builder& to, std::int64_t most_elements)
      : b(to), most(double(most_elements)), others(to.cells.binds()) {}
  CELLA_ONCE constexpr void bind(std::string_view path, const parameter_base& p) {
    if (others && b.cells.find(&p) >= 0) return;
    const double elements = count_elements(p.extents);
    if (elements > most)
      b.fail(text() << path << " has " << elements << " elements, more than " << most
                    << "; if that is meant, let the model say static constexpr std::int64_t "
                       "most_elements");
    else if (elements < 1)
      b.fail(text() << path << " is " << tensor_type{b.precision, p.extents}
                    << "; the extents of parameters and states must be positive");
    const auto role = p.trainable ? input_role::parameter : input_role::state;
    b.cells.bind(&p, b.input({b.precision, p.extents}, role, path));
  }
};
template <class Parameter>
struct parameter_binder final : cell_visitor<Parameter> {
  parameter_inputs inputs;

  constexpr explicit parameter_binder(const parameter_inputs& to) : inputs(to) {}
  constexpr void on_parameter(std::string_view path, Parameter& p) override {
    inputs.bind(path, p);
  }
  constexpr void on_cell(std::string_view path, const void* address, const void* tag) override {
    inputs.b.cells.declare(address, tag, inputs.b.g.intern(path));
  }
};
/// Tells parameters which trace they stand in, so that expressions of parameters alone know it,
/// too.
struct trace_setter final : cell_visitor<parameter_base> {
  builder* trace;
  builder* before = nullptr;  ///< the one they stood in

  constexpr explicit trace_setter(builder* b) : trace(b) {}
  constexpr void on_parameter(std::string_view, parameter_base& p) override {
    before = std::exchange(p.traced_by, trace);
  }
};

}  // namespace detail

/// Makes an input for each parameter and state of `cell` (trainable ones first, in the order of
/// reflection) and one for each argument, and binds the cell's members to them.
///
/// A cell that wraps another (a training step round a network) names the one whose parameters these
/// are by a member function `wrapped()`, so that paths do not begin with the wrapper.
template <class Cell>
constexpr void bind_cell(builder& b, Cell& cell) {
  if constexpr (requires { cell.wrapped(); }) {
    bind_cell(b, cell.wrapped());
  } else {
    using parameter =
        std::conditional_t<std::is_const_v<Cell>, const parameter_base, parameter_base>;
    detail::parameter_binder<parameter> binder({b, detail::most_elements<Cell>()});
    walk_cell(cell, binder);
  }
}

namespace detail {

/// Sets the trace of a cell's parameters; returns the one that they stood in before.
template <class Cell>
constexpr builder* set_trace(Cell& cell, builder* b) {
  if constexpr (requires { cell.wrapped(); }) {
    return set_trace(cell.wrapped(), b);
  } else if constexpr (!std::is_const_v<Cell>) {
    trace_setter setter(b);
    walk_cell(cell, setter);
    return setter.before;
  } else {
    return nullptr;
  }
}
/// An input for each argument.
CELLA_ONCE constexpr void begin_arguments(builder& b, span<const tensor_type> arguments,
                                          std::string_view (*name)(std::size_t), span<var> x) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    for (int k = 0; k < arguments[i].rank(); ++k) {
      if (arguments[i][k] >= 0) continue;
      b.fail(text() << "argument " << name(i) << " is " << arguments[i]
                    << "; extents must not be negative");
    }
    x[i] = {&b, b.input(arguments[i], input_role::argument, name(i))};
  }
}
/// Closes the main region: results come first among the outputs, then the new values of parameters
/// and states.
CELLA_ONCE constexpr void end_trace(builder& b, const list<var>& results) {
  if (b.bodies.draws_random_numbers()) {
    const node_id key = b.bodies.random_key();
    const node_id next = next_key(b, key);
    for (std::size_t i = 0; i < b.g.inputs.size(); ++i) {
      if (b.g.input(int(i)) == key) b.bodies.updates.push_back({std::int32_t(i), next});
    }
  }
  ids out;
  for (const var& r : results) {
    out.push_back(r.id);
    b.g.outputs.push_back({});
  }
  for (const auto& u : b.bodies.take_updates(0)) {
    out.push_back(u.value);
    b.g.outputs.push_back({u.input, b.g.inputs[std::size_t(u.input)].name});
  }
  b.end(out);
}

}  // namespace detail

/// Traces cell(arguments...) into `b`, whose main region is then closed.
template <std::size_t Count, class Cell>
constexpr void trace_into(builder& b, Cell& cell, const std::array<tensor_type, Count>& arguments) {
  bind_cell(b, cell);
  builder* const outer = detail::set_trace(cell, &b);
  std::array<var, Count> x{};
  detail::begin_arguments(b, arguments, &detail::name_of_argument<Cell>, x);
  const auto results = detail::run_paths(b, [&] {
    list<var> r;
    // A choice, because of a call alone g++ would say first that the library's is not constexpr.
    std::apply([&](auto... v) { b.open.depth() ? detail::flatten_results(cell(v...), r) : void(); },
               x);
    for (var& v : r) {
      if (v.b) continue;
      b.fail(text(detail::type_name<Cell>())
             << ": returns a var that was declared and never assigned");
      v = {&b, 0};
    }
    return r;
  });
  detail::set_trace(cell, outer);
  detail::end_trace(b, results);
}

/// The graph of cell(arguments...), traced at run time. A fault is thrown as `model_error`.
template <std::size_t Count, class Cell>
graph trace(Cell& cell, const std::array<tensor_type, Count>& arguments,
            trace_options options = {}) {
  builder b;
  b.training = options.training;
  b.precision = options.precision;
  trace_into(b, cell, arguments);
  return std::move(b.g);
}

/// Appends the nodes of a traced graph to the open region of `b`, for these arguments, and returns
/// its results. Parameters and states are found in `b` by name; updates become updates of `b`.
CELLA_ONCE constexpr list<var> splice(builder& b, const graph& g, span<const var> arguments) {
  ids map(g.nodes.size(), no_node);
  graph_importer imported(b, g);
  list<std::int32_t> outer_input(g.inputs.size(), -1);
  std::size_t next = 0;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const input_info& in = g.inputs[i];
    node_id& here = map[std::size_t(g.input(int(i)))];
    if (in.role == input_role::argument) {
      here = arguments[std::size_t(in.index)].id;
      continue;
    }
    if (g.view(in.name) == "random") b.bodies.random_key();
    // Both list them in the same order, more or less.
    for (std::size_t k = 0; k < b.g.inputs.size(); ++k, ++next) {
      if (next >= b.g.inputs.size()) next = 0;
      if (b.g.inputs[next].role != in.role || b.g.view(b.g.inputs[next].name) != g.view(in.name))
        continue;
      outer_input[i] = std::int32_t(next);
      here = b.g.input(int(next++));
      break;
    }
  }
  ids in;
  for (node_id n : g.regions[0].nodes) {
    if (map[std::size_t(n)] >= 0) continue;
    in.clear();
    for (node_id o : g.operands(n)) in.push_back(map[std::size_t(o)]);
    map[std::size_t(n)] = imported.copy(n, in);
  }
  list<var> results;
  for (std::size_t i = 0; i < g.outputs.size(); ++i) {
    const node_id value = map[std::size_t(g.regions[0].outputs[i])];
    const std::int32_t replaced = g.outputs[i].updates;
    if (replaced < 0)
      results.push_back({&b, value});
    else if (g.view(g.inputs[std::size_t(replaced)].name) != "random")
      b.bodies.updates.push_back({outer_input[std::size_t(replaced)], value});
  }
  return results;
}

/// Gives a parameter or state of the traced model a new value, which is kept when the call ends. A
/// state has it at once for what follows; a parameter that is trained keeps its value until then,
/// and cannot be assigned in the body of a loop or of a recursion.
CELLA_ONCE constexpr void assign(var like, const parameter_base& target, var value,
                                 std::source_location at = std::source_location::current()) {
  builder& b = *like.b;
  const var t = operand(target, at).in(b);
  if (b.failed()) return;
  const node_id leaf = b.cells.find(&target);
  if (t.type() != value.type()) {
    b.fail(text() << at << ": assign: " << b.describe(leaf) << " is " << t.type()
                  << " but the new value is " << value.type());
    return;
  }
  if (const char* where = b.bodies.refuses_states()) {
    b.fail(text() << at << ": assign: " << b.describe(leaf) << " is assigned in " << where
                  << ", which cannot hand its new value on; return the value instead");
    return;
  }
  if (target.trainable && b.bodies.repeats()) {
    b.fail(text() << at << ": assign: " << b.describe(leaf)
                  << " is a trained parameter, which the body of a loop or of a recursion cannot "
                     "assign; make it a state, or carry it in the state of the loop");
    return;
  }
  for (std::size_t i = 0; i < b.g.inputs.size(); ++i) {
    if (b.g.input(int(i)) != leaf) continue;
    b.bodies.updates.push_back({std::int32_t(i), value.id});
    break;
  }
}

}  // namespace cella
