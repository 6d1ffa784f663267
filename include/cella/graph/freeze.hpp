// From what makes a graph to its literal form, which a program holds as a compile-time constant.
#pragma once

#include <cella/graph/frozen_graph.hpp>
#include <cella/graph/live_nodes.hpp>
#include <cella/graph/slots.hpp>
#include <concepts>

namespace cella {

/// What a traced function yields when it may have been refused: the sentence and no use of the
/// graph, or an empty sentence.
struct traced_graph {
  cella::graph graph;
  text fault{};
};

/// A captureless function object without arguments that makes a graph.
template <class Make>
concept graph_maker = requires {
  { Make{}() } -> std::same_as<graph>;
}
|| requires {
  { Make{}() } -> std::same_as<traced_graph>;
};

namespace detail {

/// A frozen graph with room to spare: made before the exact sizes are known.
template <std::size_t Nodes>
struct roomy_graph {
  slots<cella::node, Nodes> nodes;
  slots<node_id, Nodes * 3> operands;
  slots<tensor_type, Nodes / 4> results;
  slots<frozen_region, Nodes / 8> regions;
  slots<char, Nodes * 8> characters;
  slots<input_info, Nodes / 4> inputs;
  slots<output_info, Nodes / 4> outputs;
  slots<pooled_tensor, Nodes / 8> pooled;
  slots<std::uint64_t, Nodes> words;
  text fault{};

  constexpr void node(const cella::node& x) { nodes.push_back(x); }
  constexpr void operand(node_id x) { operands.push_back(x); }
  constexpr void result(const tensor_type& x) { results.push_back(x); }
  constexpr void region(const frozen_region& x) { regions.push_back(x); }
  constexpr void names(span<const char> x) {
    for (char c : x) characters.push_back(c);
  }
  constexpr void input(const input_info& x) { inputs.push_back(x); }
  constexpr void output(const output_info& x) { outputs.push_back(x); }
  constexpr void constants(const constant_pool& x) {
    for (const pooled_tensor& t : x.tensors) pooled.push_back(t);
    words.append(x.words);
  }

  constexpr graph_sizes sizes() const {
    return {nodes.size,  operands.size, results.size, regions.size, characters.size,
            inputs.size, outputs.size,  pooled.size,  words.size};
  }
  constexpr bool fits() const {
    return nodes.fits() && operands.fits() && results.fits() && regions.fits() &&
           characters.fits() && inputs.fits() && outputs.fits() && pooled.fits() && words.fits();
  }
  template <graph_sizes Sizes>
  constexpr frozen_graph<Sizes> shrink() const {
    frozen_graph<Sizes> f;
    nodes.copy_to(f.nodes);
    operands.copy_to(f.operand_pool);
    results.copy_to(f.results);
    regions.copy_to(f.regions);
    characters.copy_to(f.characters);
    inputs.copy_to(f.inputs);
    outputs.copy_to(f.outputs);
    pooled.copy_to(f.constants);
    words.copy_to(f.constant_words);
    return f;
  }
};

/// Writes into a frozen graph of known sizes.
template <graph_sizes Sizes>
struct exact_graph {
  frozen_graph<Sizes> frozen{};
  graph_sizes at{};
  text fault{};

  constexpr void node(const cella::node& x) { frozen.nodes[std::size_t(at.nodes++)] = x; }
  constexpr void operand(node_id x) { frozen.operand_pool[std::size_t(at.operands++)] = x; }
  constexpr void result(const tensor_type& x) { frozen.results[std::size_t(at.results++)] = x; }
  constexpr void region(const frozen_region& x) { frozen.regions[std::size_t(at.regions++)] = x; }
  constexpr void names(span<const char> x) {
    for (char c : x) frozen.characters[std::size_t(at.characters++)] = c;
  }
  constexpr void input(const input_info& x) { frozen.inputs[std::size_t(at.inputs++)] = x; }
  constexpr void output(const output_info& x) { frozen.outputs[std::size_t(at.outputs++)] = x; }
  constexpr void constants(const constant_pool& x) {
    std::copy(x.tensors.begin(), x.tensors.end(), frozen.constants.begin());
    std::copy(x.words.begin(), x.words.end(), frozen.constant_words.begin());
  }
};

template <class Make, class Out>
constexpr void make_into(Out& out) {
  const auto made = Make{}();
  if constexpr (requires { made.fault; }) {
    out.fault = made.fault;
    if (made.fault.empty()) write_live(made.graph, out);
  } else {
    write_live(made, out);
  }
}

/// Live nodes for which a draft has room. With g++ unused places are free; clang makes each.
#if defined(__clang__)
inline constexpr std::size_t drafted_nodes = 8192;
#else
inline constexpr std::size_t drafted_nodes = 32768;
#endif

template <class Make>
constexpr auto make_draft() {
  roomy_graph<drafted_nodes> r;
  make_into<Make>(r);
  return r;
}
/// Whether the compiler could run Make: to ask this is no error. A draft that is no constant must
/// not be one either; but it is made once, which compilers reach in different ways.
#if defined(__clang__)
template <class Make>
inline const auto& draft = make_draft<Make>();
template <class Make>
concept runs = requires {
  typename std::bool_constant<draft<Make>.fault.empty()>;
};
#else
template <class Make>
concept runs = requires {
  typename std::bool_constant<make_draft<Make>().fault.empty()>;
};
template <class Make>
inline constexpr auto draft = make_draft<Make>();  // g++ remembers what a call yielded
#endif
/// For those who call this where the user's line is: runs Make to the point where it stops, which
/// the compiler reports as the error of that line.
template <class Make>
consteval int say_where_it_stops() {
  Make{}();
  return 0;
}

template <class Make>
constexpr auto freeze() {
  constexpr graph_sizes sizes = draft<Make>.sizes();
  if constexpr (draft<Make>.fits()) {
    return draft<Make>.template shrink<sizes>();
  } else {
    exact_graph<sizes> e;
    make_into<Make>(e);
    return e.frozen;
  }
}

}  // namespace detail

/// The graph that `Make` makes, as a constant. Up to `drafted_nodes` live nodes Make runs once,
/// beyond that twice. After a fault it is empty.
template <graph_maker Make>
inline constexpr auto frozen = detail::freeze<Make>();

/// Why `Make` was refused; empty if it was not, or if the compiler could not run it.
template <graph_maker Make>
inline constexpr text freeze_fault = [] {
  if constexpr (detail::runs<Make>) return detail::draft<Make>.fault;
  return text{};
}();
/// Whether `Make` made a graph.
template <graph_maker Make>
inline constexpr bool is_made = detail::runs<Make>&& freeze_fault<Make>.empty();

/// The live part of a graph: every region contiguous and in order, its inputs in front, order = id.
/// Inputs stay even when nothing uses them.
constexpr graph live_part(const graph& g) {
  struct {
    graph to;
    constexpr void node(const cella::node& x) { to.nodes.push_back(x); }
    constexpr void operand(node_id x) { to.operand_pool.push_back(x); }
    constexpr void result(const tensor_type& x) { to.results.push_back(x); }
    constexpr void region(const frozen_region& f) {
      cella::region& r = to.regions.emplace_back();
      for (node_id n = f.first_node; n < f.first_node + f.node_count; ++n) r.nodes.push_back(n);
      r.inputs.assign(r.nodes.begin(), r.nodes.begin() + f.input_count);
      const auto pool = to.operand_pool.begin();
      r.outputs.assign(pool + f.first_output, pool + f.first_output + f.output_count);
      r.captured.assign(pool + f.first_captured, pool + f.first_captured + f.captured_count);
      r.declared = f.declared;
    }
    constexpr void names(span<const char> x) { to.characters.assign(x.begin(), x.end()); }
    constexpr void input(const input_info& x) { to.inputs.push_back(x); }
    constexpr void output(const output_info& x) { to.outputs.push_back(x); }
    constexpr void constants(const constant_pool& x) { to.constants = x; }
  } out;
  out.to.nodes.reserve(g.nodes.size());
  out.to.operand_pool.reserve(g.operand_pool.size());
  detail::write_live(g, out);
  return std::move(out.to);
}

/// The frozen graph as an ordinary one, for printing, the interpreter and further passes.
template <graph_sizes Sizes>
constexpr graph thaw(const frozen_graph<Sizes>& f) {
  graph g;
  g.nodes.assign(f.nodes.begin(), f.nodes.end());
  g.operand_pool.assign(f.operand_pool.begin(), f.operand_pool.end());
  g.results.assign(f.results.begin(), f.results.end());
  g.characters.assign(f.characters.begin(), f.characters.end());
  g.inputs.assign(f.inputs.begin(), f.inputs.end());
  g.outputs.assign(f.outputs.begin(), f.outputs.end());
  g.constants.tensors.assign(f.constants.begin(), f.constants.end());
  g.constants.words.assign(f.constant_words.begin(), f.constant_words.end());
  for (int r = 0; r < Sizes.regions; ++r) {
    const frozen_region& from = f.regions[std::size_t(r)];
    region& to = g.regions.emplace_back();
    for (node_id n = 0; n < from.node_count; ++n) to.nodes.push_back(from.first_node + n);
    to.inputs.assign(to.nodes.begin(), to.nodes.begin() + from.input_count);
    const auto outputs = f.region_outputs(r);
    to.outputs.assign(outputs.begin(), outputs.end());
    const auto captured = f.region_captured(r);
    to.captured.assign(captured.begin(), captured.end());
    to.declared = from.declared;
  }
  return g;
}

}  // namespace cella
