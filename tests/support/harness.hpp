// Begin here to test something that Cella runs. Each check below runs it in every way that the
// library has, and holds the ways against each other:
//
//   check_gradients<cases>()      compiled_cases.hpp  a list of operations or functions: values,
//                                                     first and second derivatives against
//                                                     differences, vmap, forward mode, jacobians
//   check_cell<Cell, f64<2>>(x)   cell_check.hpp      a cell with parameters, states, random draws,
//                                                     control flow: one call or several
//   check_steps<P>(x, ...)        step_check.hpp      a program of any types, such as a training
//                                                     step: in addition kernel by kernel
//
// The ways are this header: eager mode, a graph that is traced at run time and interpreted, or
// planned and run on the kernels, the program on the CPU's kernels, and the program on the tiny
// back end, whose plans have other vectors and whose memory the host cannot read. The tiny back end
// has no control flow: programs with loops, branches or calls go without it.
#pragma once

#include <doctest/doctest.h>

#include <array>
#include <cella/runtime/executable.hpp>
#include <cella/train/runtime_path.hpp>
#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "support/compare.hpp"
#include "support/tiny_backend.hpp"

namespace cella::test {

using reals = std::vector<double>;

/// What the calls of a program leave: the results of the last one, and all parameters and states.
struct outcome {
  std::vector<reals> results;
  reals parameters;
  std::int64_t step{};  ///< of the random state
};

inline void check_outcome(std::string_view way, const outcome& found, const outcome& wanted,
                          double tolerance) {
  INFO(way);
  CHECK(found.step == wanted.step);
  check_close(found.parameters, wanted.parameters, tolerance);
  REQUIRE(found.results.size() == wanted.results.size());
  for (std::size_t k = 0; k < found.results.size(); ++k) {
    INFO("result ", k);
    check_close(found.results[k], wanted.results[k], tolerance);
  }
}

/// A node at a time on the CPU's kernels, as eager mode computes; compiled once, in harness.cpp.
void compute_on_cpu(const op_info& op, const attributes& options, span<const tensor_ref> in,
                    span<const tensor_ref> out);

/// A graph that goes through the passes and is planned at run time; none if it has what that way
/// leaves to others.
struct planned_graph {
  graph optimized;
  std::optional<loaded_program> program;
};
planned_graph plan_at_run_time(const graph& g, dtype element);

/// Runs a program in each of the ways, each on parameters, states, optimizer slots and random state
/// of its own that begin alike.
template <class Program>
class ways;

template <class Cell, bool Training, dtype Element, class... Arguments>
class ways<program<Cell, Training, Element, Arguments...>> {
 public:
  using program = cella::program<Cell, Training, Element, Arguments...>;
  static constexpr std::array<tensor_type, sizeof...(Arguments)> types{Arguments::type...};
  static constexpr bool has_control = [] {
    bool any = false;
    for (const plan_step& s : program::plan.steps) any |= s.kind == step_kind::control;
    return any;
  }();

  /// `scalars`: the run-time numbers of the step, in the program's order. `by_node`: what computes
  /// a node in eager mode and in the interpreter, the operations' own computation or
  /// `compute_on_cpu`.
  explicit ways(std::uint64_t seed = 7, const reals& scalars = {},
                compute_function by_node = &compute)
      : seed_(seed), scalars_(scalars), by_node_(by_node) {}

  /// Runs `calls` times in a row. Eager mode and the traced graph must agree bit for bit (or up to
  /// `eager_tolerance`, where gradients are summed up in another order), and the program with them
  /// up to `tolerance` (see `relative_error`). In plans of run time and on the tiny back end sums
  /// have an order of their own: there rounding is allowed for. Returns what the CPU leaves.
  outcome check(const std::vector<reals>& arguments, int calls = 1, double tolerance = 0,
                double eager_tolerance = 0) const {
    const outcome wanted = traced(arguments, calls);
    check_outcome("eager mode", eager(arguments, calls), wanted, eager_tolerance);
    const outcome found = compiled(arguments, calls);
    check_outcome("CPU", found, wanted, tolerance);
    const double rounding = std::max(tolerance, Element == dtype::f64 ? 1e-12 : 1e-6);
    if (const auto planned = planned_at_run_time(arguments, calls))
      check_outcome("planned at run time", *planned, wanted, rounding);
    if constexpr (!has_control)
      check_outcome("tiny back end", compiled<tiny::backend>(arguments, calls), wanted, rounding);
    return found;
  }

  /// Parameters, states and random state as every way finds them.
  parameter_store make_store() const {
    Cell cell;
    return {owner(cell), seed_, Element};
  }

  outcome traced(const std::vector<reals>& arguments, int calls = 1) const {
    return at_run_time(arguments, calls,
                       [](runtime_path& path, Cell&, const graph& g) { path.run(g); });
  }
  outcome eager(const std::vector<reals>& arguments, int calls = 1) const {
    return at_run_time(arguments, calls, [](runtime_path& path, Cell& cell, const graph&) {
      path.run_eagerly([&](builder& b) { trace_into(b, cell, types); }, {Training, Element});
    });
  }
  /// None if the graph has what that way leaves to others.
  std::optional<outcome> planned_at_run_time(const std::vector<reals>& arguments,
                                             int calls = 1) const {
    Cell cell;
    planned_graph planned =
        plan_at_run_time(trace(cell, types, trace_options{Training, Element}), Element);
    if (!planned.program) return {};
    return at_run_time(arguments, calls, [&](runtime_path& path, Cell&, const graph&) {
      path.run(planned.optimized, *planned.program);
    });
  }
  template <class Backend = default_backend>
  outcome compiled(const std::vector<reals>& arguments, int calls = 1,
                   thread_pool* threads = nullptr) const {
    static_assert(program::accepted);
    parameter_store store = make_store();
    executable<program, Backend> run(store, threads);
    for (std::size_t i = 0; i < scalars_.size(); ++i) run.scalar(int(i), scalars_[i]);
    const tensors in = memory_of(arguments);
    outcome o;
    for (int i = 0; i < calls; ++i) {
      [&]<std::size_t... I>(std::index_sequence<I...>) { run.call_unchecked(in[I].data()...); }
      (std::index_sequence_for<Arguments...>{});
    }
    constexpr std::size_t count = [] {
      std::size_t n = 0;
      for (const auto& out : program::graph.outputs) n += out.updates < 0;
      return n;
    }();
    auto keep = [&](const auto& values) {
      o.results.emplace_back();
      for (const auto& v : values) o.results.back().push_back(static_cast<double>(v));
    };
    [&]<std::size_t... K>(std::index_sequence<K...>) { (keep(run.template result<int(K)>()), ...); }
    (std::make_index_sequence<count>{});
    return left_behind(o, store);
  }

 private:
  using tensors = std::vector<aligned_buffer>;

  /// The cell whose parameters they are: a training step wraps its net.
  template <class C>
  static auto& owner(C& cell) {
    if constexpr (requires { cell.wrapped(); })
      return owner(cell.wrapped());
    else
      return cell;
  }
  static tensors memory_of(const std::vector<reals>& arguments) {
    tensors all;
    REQUIRE(arguments.size() == types.size());
    for (std::size_t i = 0; i < types.size(); ++i) {
      all.emplace_back(std::size_t(types[i].bytes()) + 64);
      REQUIRE(std::int64_t(arguments[i].size()) == types[i].size());
      for (std::size_t k = 0; k < arguments[i].size(); ++k)
        write_element({all.back().data(), types[i]}, std::int64_t(k), arguments[i][k]);
    }
    return all;
  }
  static reals read(const tensor_ref& r) {
    reals values;
    for (std::int64_t i = 0; i < r.type.size(); ++i) values.push_back(read_element(r, i));
    return values;
  }

  /// run(path, cell, graph) makes one call.
  template <class Run>
  outcome at_run_time(const std::vector<reals>& arguments, int calls, Run run) const {
    parameter_store store = make_store();
    const tensors in = memory_of(arguments);
    std::vector<tensor_ref> refs;
    for (std::size_t i = 0; i < types.size(); ++i) refs.push_back({in[i].data(), types[i]});
    Cell cell;
    const graph g = trace(cell, types, trace_options{Training, Element});
    const slot_store slots(g);
    std::vector<named_scalar> scalars;
    for (const input_info& i : g.inputs) {
      if (i.role == input_role::scalar)
        scalars.push_back({g.view(i.name), scalars_[std::size_t(i.index)]});
    }
    outcome o;
    for (int i = 0; i < calls; ++i) {
      runtime_path path({&store, &slots, refs, scalars}, by_node_);
      run(path, cell, g);
      o.results.clear();
      int k = 0;
      for (const auto& out : g.outputs) {
        if (out.updates < 0) o.results.push_back(read(path.result(k++)));
      }
    }
    return left_behind(o, store);
  }
  static outcome left_behind(outcome o, const parameter_store& store) {
    for (const named_parameter& p : store.entries()) {
      const reals values = read(store.value(p));
      o.parameters.insert(o.parameters.end(), values.begin(), values.end());
    }
    o.step = store.random_state()[1];
    return o;
  }

  std::uint64_t seed_;
  reals scalars_;
  compute_function by_node_;
};

}  // namespace cella::test
