// A program: the type that holds a cell's traced, optimized and planned graph as constants.
#pragma once

#include <cella/backend/default.hpp>
#include <cella/graph/compiled_cell_check.hpp>
#include <cella/graph/report.hpp>
#include <cella/passes/pass.hpp>
#include <cella/plan/make_plan.hpp>
#include <cella/runtime/parameters.hpp>
#include <cella/runtime/program_names.hpp>
#include <cella/transform/trace.hpp>

namespace cella {

/// Traces `Cell` for arguments of the types `Arguments` (each a `tensor<...>`) in constant
/// evaluation. `Training` tells the cell so; `Element` is the type of its parameters.
template <class Cell, bool Training, dtype Element, class... Arguments>
struct make_graph {
  constexpr traced_graph operator()() const {
    constexpr const text& fault = compiled_cell_fault<Cell, sizeof...(Arguments)>;
    if constexpr (!fault.empty()) {
      return {{}, fault};
    } else {
      builder b;
      b.training = Training;
      b.precision = Element;
      Cell cell{};
      trace_into(b, cell, std::array<tensor_type, sizeof...(Arguments)>{Arguments::type...});
      if (b.failed()) return {{}, b.fault()};
      return {default_backend::planning::prepared(optimize(std::move(b.g)), Element), {}};
    }
  }
};

/// Stands in for the graph of a refused program, so that the fault remains the only error: the same
/// inputs, and zeros of the types that the results had.
template <class Cell, bool Training, dtype Element, class... Arguments>
struct make_stand_in {
  constexpr graph operator()() const {
    builder b;
    b.training = Training;
    b.precision = Element;
    Cell cell{};
    trace_into(b, cell, std::array<tensor_type, sizeof...(Arguments)>{Arguments::type...});
    builder out;
    for (std::size_t i = 0; i < b.g.inputs.size(); ++i) {
      const input_info& in = b.g.inputs[i];
      out.input(b.g.type(b.g.input(int(i))), in.role, b.g.view(in.name));
    }
    ids zeros;
    for (node_id n : b.g.regions[0].outputs) {
      zeros.push_back(constant(out, 0, b.g.type(n)).id);
      out.g.outputs.push_back({});
    }
    out.end(zeros);
    return std::move(out.g);
  }
};

namespace detail {

/// Stands for the graph and the plan of a program whose cell the compiler could not run. It has no
/// members: to ask for one is the error. Where the compiler stops, and why, it says where an
/// executable of the program is made.
template <class Cell>
struct the_compiler_could_not_run {};

/// What stands for the graph and the plan of a refused program, and says why.
template <class P>
using refusal_of = std::conditional_t<has_words<typename P::fault>, typename P::fault,
                                      the_compiler_could_not_run<typename P::cell>>;
/// Its members are asked for in vain, which is the error.
template <class Refusal>
inline constexpr Refusal refused{};
/// The graph of program P; of a refused one, what is wrong.
template <class P>
constexpr const auto& graph_of() {
  if constexpr (P::accepted)
    return P::interface_graph;
  else
    return refused<refusal_of<P>>;
}
/// What `P::plan` refers to; of a refused program, what is wrong.
template <class P>
consteval auto make_plan_of() {
  if constexpr (P::accepted)
    return make_plan<typename P::backend::planning, P::planned, P::options>();
  else
    return refusal_of<P>{};
}
template <class P>
inline constexpr auto plan_of = make_plan_of<P>();
template <class P>
using plan_type = std::conditional_t<P::accepted, plan_view, refusal_of<P>>;

}  // namespace detail

/// A compiled cell. `graph` is what is computed, `plan` how; both are compile-time constants, so
/// the size of the arena can be asserted.
template <class Cell, bool Training, dtype Element, class... Arguments>
struct program {
  using make = make_graph<Cell, Training, Element, Arguments...>;
  using root = program;  ///< of which regions are programs
  using cell = Cell;
  /// False after a fault: then the compiler reports it where the program is run or its plan is
  /// read, and nothing below means anything.
  static constexpr bool accepted = is_made<make>;
  static constexpr bool runs = detail::runs<make>;  ///< false: the compiler could not even trace it
  using fault = graph_fault_of<make>;
  static constexpr dtype element_type = Element;
  static constexpr bool training = Training;
  static constexpr std::array<tensor_type, sizeof...(Arguments)> argument_types{Arguments::type...};
  static constexpr std::string_view argument_name(std::size_t i) {
    return detail::name_of_argument<Cell>(i);
  }
  using backend = default_backend;          ///< see with_backend
  static constexpr bool fast_math = false;  ///< see with_fast_math
  static constexpr plan_options options{.element = Element};
  /// What can be traced: after a fault of the cell's type, or where the compiler could not run it,
  /// another cell.
  using traced_cell =
      std::conditional_t<runs && compiled_cell_fault<Cell, sizeof...(Arguments)>.empty(), Cell,
                         refused_cell>;
  /// The graph; after a fault another one with the same inputs and results.
  static constexpr auto& interface_graph =
      frozen<std::conditional_t<accepted, make,
                                make_stand_in<traced_cell, Training, Element, Arguments...>>>;
  static constexpr auto& graph = detail::graph_of<program>();

  /// The graph as it was before all passes, made again at run time.
  static cella::graph traced() {
    traced_cell cell{};
    return trace(cell, std::array<tensor_type, sizeof...(Arguments)>{Arguments::type...},
                 {Training, Element});
  }

  /// Number of inputs of a role.
  static constexpr int count(input_role role) {
    int n = 0;
    for (const input_info& in : interface_graph.inputs) n += in.role == role;
    return n;
  }
  /// Index of a run-time number of the step by name, -1 if the program does not ask for it.
  static consteval int scalar(std::string_view name) {
    for (const input_info& in : interface_graph.inputs) {
      if (in.role == input_role::scalar && interface_graph.view(in.name) == name) return in.index;
    }
    return -1;
  }
  /// What the parameters must be: see parameter_signature.
  static constexpr std::uint64_t signature = [] {
    parameter_signature s;
    for (std::size_t i = 0; i < interface_graph.inputs.size(); ++i) {
      const input_info& in = interface_graph.inputs[i];
      if (owned_by_cell(in.role) && interface_graph.view(in.name) != "random")
        s.add(interface_graph.view(in.name), interface_graph.type(interface_graph.input(int(i))));
    }
    return s.value;
  }();

  static constexpr auto planned = [] { return thaw(interface_graph); };
  static constexpr detail::plan_type<program> plan = detail::plan_of<program>;
};

/// Program P with its functions (exp, log, tanh, sigmoid, gelu) in a lower precision, about 1e-5
/// instead of 2 units in the last place: backend/cpu/simd/fast_math.hpp states each error.
template <class P>
struct with_fast_math : P {
  using root = with_fast_math;
  static constexpr bool fast_math = true;
};

/// Program P with its results written where the caller wants them, instead of into the arena of the
/// executable, whose `bind` says where.
template <class P>
struct with_bound_results : P {
  using root = with_bound_results;
  static constexpr plan_options options = [] {
    plan_options o = P::options;
    o.results_bound = true;
    return o;
  }();
  static constexpr detail::plan_type<with_bound_results> plan = detail::plan_of<with_bound_results>;
};

/// Program P with one algorithm of its back end wherever that has a kernel for it, instead of the
/// one that the cost model chooses: for tests and measurements. `with_algorithm<P,
/// convolution_algorithm::direct>`.
template <class P, auto Algorithm>
struct with_algorithm : P {
  using root = with_algorithm;
  static constexpr plan_options options = [] {
    plan_options o = P::options;
    o.algorithm = int(Algorithm);
    return o;
  }();
  static constexpr detail::plan_type<with_algorithm> plan = detail::plan_of<with_algorithm>;
};

/// Program P for another back end.
template <class P, class Backend>
struct with_backend : P {
  using root = with_backend;
  using backend = Backend;
  static constexpr detail::plan_type<with_backend> plan = detail::plan_of<with_backend>;
};

/// Programs by purpose.
template <class Cell, class... Arguments>
using inference_program = program<Cell, false, dtype::f32, Arguments...>;

}  // namespace cella
