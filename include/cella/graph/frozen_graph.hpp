// The literal form of a graph: live nodes only, regions contiguous, everything in arrays of exact
// size.
#pragma once

#include <array>
#include <cella/graph/graph.hpp>

namespace cella {

struct graph_sizes {
  std::int32_t nodes{};
  std::int32_t operands{};  ///< of the operand pool, which also holds outputs and captured values
  std::int32_t results{};
  std::int32_t regions{};
  std::int32_t characters{};
  std::int32_t inputs{};
  std::int32_t outputs{};
  std::int32_t constants{};
  std::int32_t constant_words{};

  friend constexpr bool operator==(const graph_sizes&, const graph_sizes&) = default;
};

/// A region of a frozen graph: nodes [first_node, first_node + node_count), in order, the inputs in
/// front. Outputs and captured values are ranges of the operand pool.
struct frozen_region {
  std::int32_t first_node{};
  std::int32_t node_count{};
  std::int32_t input_count{};
  std::int32_t declared{};
  std::int32_t first_output{};
  std::int32_t output_count{};
  std::int32_t first_captured{};
  std::int32_t captured_count{};
};

/// A graph in arrays. In every region order is the id, and input i is node `first_node + i`.
template <graph_sizes Sizes>
struct frozen_graph {
  static constexpr graph_sizes sizes = Sizes;

  std::array<node, std::size_t(Sizes.nodes)> nodes{};
  std::array<node_id, std::size_t(Sizes.operands)> operand_pool{};
  std::array<tensor_type, std::size_t(Sizes.results)> results{};
  std::array<frozen_region, std::size_t(Sizes.regions)> regions{};
  std::array<char, std::size_t(Sizes.characters)> characters{};
  std::array<input_info, std::size_t(Sizes.inputs)> inputs{};
  std::array<output_info, std::size_t(Sizes.outputs)> outputs{};
  std::array<pooled_tensor, std::size_t(Sizes.constants)> constants{};
  std::array<std::uint64_t, std::size_t(Sizes.constant_words)> constant_words{};

  constexpr span<const node_id> operands(node_id n) const {
    const node& x = nodes[std::size_t(n)];
    return {operand_pool.data() + x.first_operand, std::size_t(x.operand_count)};
  }
  constexpr node_id operand(node_id n, int i) const { return operands(n)[std::size_t(i)]; }
  constexpr tensor_type type(node_id n) const { return nodes[std::size_t(n)].type; }
  constexpr tensor_type result_type(node_id n, int k) const {
    return results[std::size_t(nodes[std::size_t(n)].first_result + k)];
  }
  constexpr std::string_view view(name_ref n) const {
    return {characters.data() + n.first, std::size_t(n.size)};
  }
  /// The words of the constant tensor that node `n` is.
  constexpr span<const std::uint64_t> values_of(node_id n) const {
    const auto o = nodes[std::size_t(n)].attributes.template as<values_options>();
    return constants[std::size_t(o.index)].in(constant_words.data());
  }
  /// The main region's input `i` as a node.
  constexpr node_id input(int i) const { return regions[0].first_node + i; }
  /// The output nodes of region `r`.
  constexpr span<const node_id> region_outputs(int r) const {
    const frozen_region& x = regions[std::size_t(r)];
    return {operand_pool.data() + x.first_output, std::size_t(x.output_count)};
  }
  constexpr span<const node_id> region_captured(int r) const {
    const frozen_region& x = regions[std::size_t(r)];
    return {operand_pool.data() + x.first_captured, std::size_t(x.captured_count)};
  }
};

/// The characters of all names in the graph of program P, apart from it: what read the graph itself
/// at run time would take all its operations with their rules into the program.
template <class P>
inline constexpr auto characters_of = P::graph.characters;

}  // namespace cella
