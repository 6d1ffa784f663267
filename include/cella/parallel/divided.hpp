// Programs that the compiler divides among ranks: the same functions as at run time, in constant
// evaluation.
#pragma once

#include <cella/parallel/plan.hpp>
#include <cella/runtime/program.hpp>
#include <cella/runtime/program_arguments.hpp>

namespace cella::parallel {

/// Makes the graph of one rank of program P.
template <class P, class Mesh, mode Mode>
struct make_divided {
  constexpr traced_graph operator()() const {
    const cella::graph g = thaw(P::interface_graph);
    if (Mode != mode::serial && Mode != mode::data && Mode != mode::zero1)
      return {g,
              text() << "mode " << mode_name(Mode)
                     << ": the compiler divides samples and the optimizer's state (modes serial, "
                        "data and zero1); modes that cut parameters run on rank_program"};
    parallel_plan p = make_parallel_plan(g, Mesh::value, {.mode = Mode});
    for (std::size_t i = 0; p.fault.empty() && i < g.inputs.size(); ++i) {
      const tensor_type t = g.type(g.input(int(i)));
      if (!is_even(t.shape, p.rank.inputs[i], p.mesh))
        p.fault = text() << "the compiler makes one program for all ranks, but the input "
                         << g.view(g.inputs[i].name) << " " << t
                         << " does not divide evenly on the mesh " << mesh_text(p.mesh)
                         << "; let the batch be a multiple, or use rank_program";
    }
    return {std::move(p.rank.graph), p.fault};
  }
};

/// Program P as one of the ranks of a mesh runs it: `divided<P, mesh<axis<"data", 4>>,
/// mode::data>`. Its executable is called with this rank's part of the arguments, while a
/// `communicator_scope` says how to reach the others. The modes are those that leave parameters
/// with every rank: serial, data, zero1.
template <class P, class Mesh, mode Mode>
struct divided : P {
  using make = make_divided<P, Mesh, Mode>;
  using root = divided;
  static constexpr bool accepted = P::accepted && is_made<make>;
  using fault = std::conditional_t<P::accepted, graph_fault_of<make>, typename P::fault>;
  static constexpr auto& interface_graph =
      frozen<std::conditional_t<accepted, make, typename P::make>>;
  static constexpr auto& graph = cella::detail::graph_of<divided>();
  /// Of this rank's part.
  static constexpr auto argument_types = [] {
    auto types = P::argument_types;
    for (std::size_t i = 0; i < interface_graph.inputs.size(); ++i) {
      const input_info& in = interface_graph.inputs[i];
      if (in.role == input_role::argument)
        types[std::size_t(in.index)] = interface_graph.type(interface_graph.input(int(i)));
    }
    return types;
  }();
  static constexpr auto planned = [] { return thaw(interface_graph); };
  static constexpr cella::detail::plan_type<divided> plan = cella::detail::plan_of<divided>;

  /// The time of a step and the memory of a rank by the model: `static_assert(P::cost.seconds <
  /// 0.01)`.
  struct predicted {
    double seconds{}, bytes_on_device{};
  };
  static constexpr predicted cost = [] {
    const parallel_plan p =
        make_parallel_plan(thaw(P::interface_graph), Mesh::value, {.mode = Mode});
    return predicted{p.seconds(), p.bytes_on_device};
  }();
};

/// Of what is no program: neither is this, and executables say so.
template <class P, class Mesh, mode Mode>
requires(!compiled_program<P>) struct divided<P, Mesh, Mode> {
};

}  // namespace cella::parallel
