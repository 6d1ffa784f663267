// The intermediate representation: nodes in one array, closed regions, inputs and outputs by role.
#pragma once

#include <array>
#include <cella/graph/constants.hpp>
#include <cella/graph/list.hpp>
#include <cella/graph/once.hpp>
#include <cella/graph/op_info.hpp>
#include <cella/graph/span.hpp>
#include <cstdint>
#include <string_view>

namespace cella {

using ids = list<node_id>;
using flags = list<char>;  ///< one for each node, or for each of something else

/// A run of characters in `graph::characters`.
struct name_ref {
  std::int32_t first{};
  std::int32_t size{};
};

/// The application of an operation. Ids are global to the graph, but ORDER is the region's list:
/// transforms may put a node in front of others that have smaller ids.
struct node {
  const op_info* op{};
  const char* file = "";  ///< where the user wrote it
  std::int32_t line{};
  name_ref cell{};  ///< path of the cell that made it, empty at top level
  std::int32_t region{};
  std::int32_t position{};  ///< index in the region's list
  std::int32_t first_operand{};
  std::int32_t operand_count{};
  /// Several results: where their types begin in `graph::results`; `get` reads one.
  std::int32_t first_result{};
  std::int32_t result_count{};
  std::array<std::int32_t, 2> regions{-1, -1};  ///< regions that a control node owns or calls
  tensor_type type{};
  cella::attributes attributes{};
};

/// A closed sub-graph: its nodes see each other and its inputs, nothing else. Values of enclosing
/// regions that a body uses become inputs behind the `declared` ones when they are used. Being
/// closed, a region can be shared by several nodes and is never copied with them.
struct region {
  list<node_id> nodes;
  list<node_id> inputs;
  list<node_id> outputs;
  list<node_id> captured;  ///< outer values, parallel to inputs[declared...]
  std::int32_t declared{};
};

/// What an input of the main region is, and so who owns its memory.
enum class input_role : std::uint8_t {
  argument,   ///< handed over at each call
  parameter,  ///< trainable, owned by a cell
  state,      ///< owned by a cell, not trained: running statistics, random state
  slot,       ///< optimizer state that belongs to a parameter
  scalar      ///< a run-time number of the step: learning rate, step count
};

constexpr bool owned_by_cell(input_role r) {
  return r == input_role::parameter || r == input_role::state;
}

struct input_info {
  input_role role{};
  name_ref name{};
  std::int32_t index{};  ///< position among the inputs of its role
};

/// An output of the main region: a result of the call, or the new value of an input.
struct output_info {
  std::int32_t updates = -1;  ///< which input it replaces; -1: a result
  name_ref name{};
};

/// `input` and `get` are the leaves that the graph itself knows: a region's input, and one result
/// of a node that has several.
struct get_attributes {
  std::int32_t result{};
};
inline constexpr op_info input_info_of{.name = "input", .kind = op_kind::leaf};
inline constexpr op_info get_info_of{
    .name = "get", .kind = op_kind::leaf, .cheap = true, .options = &schema_of<get_attributes>};

/// Everything that was traced. Region 0 is the main region. In constant evaluation it is transient;
/// `freeze` turns it into a literal type.
struct graph {
  list<node> nodes;
  list<node_id> operand_pool;
  list<tensor_type> results;
  list<region> regions;
  list<char> characters;
  list<input_info> inputs;
  list<output_info> outputs;
  constant_pool constants;

  constexpr span<const node_id> operands(node_id n) const {
    const node& x = nodes[std::size_t(n)];
    return {operand_pool.data() + x.first_operand, std::size_t(x.operand_count)};
  }
  constexpr node_id operand(node_id n, int i) const { return operands(n)[std::size_t(i)]; }
  // By value: a reference would dangle when a caller appends nodes while it holds one.
  constexpr tensor_type type(node_id n) const { return nodes[std::size_t(n)].type; }
  constexpr tensor_type result_type(node_id n, int k) const {
    return results[std::size_t(nodes[std::size_t(n)].first_result + k)];
  }
  /// The words of the constant tensor that node `n` is.
  constexpr span<const std::uint64_t> values_of(node_id n) const {
    return constants.words_of(nodes[std::size_t(n)].attributes.as<values_options>().index);
  }
  /// Takes over the constant tensor that `n`, a node of another graph, is; others stay as they are.
  constexpr void adopt_values(node& n, const constant_pool& from) {
    if (!n.op->traits.stored) return;
    auto o = n.attributes.as<values_options>();
    o.index = constants.add(from, o.index);
    n.attributes = o;
  }
  constexpr std::string_view view(name_ref n) const {
    return {characters.data() + n.first, std::size_t(n.size)};
  }
  constexpr name_ref intern(std::string_view s) {
    const name_ref r{std::int32_t(characters.size()), std::int32_t(s.size())};
    characters.insert(characters.end(), s.begin(), s.end());
    return r;
  }
  /// Appends a node to the array, not to its region's list, and returns its id.
  constexpr node_id append(const node& n) {
    nodes.push_back(n);
    return node_id(nodes.size()) - 1;
  }
  /// Appends a node to the array and to the end of region `r`, and returns its id.
  constexpr node_id append(node n, int r) {
    region& owner = regions[std::size_t(r)];
    n.region = r;
    n.position = std::int32_t(owner.nodes.size());
    const node_id id = append(n);
    owner.nodes.push_back(id);
    return id;
  }
  /// Appends an input of region `r`, behind those that it has.
  CELLA_ONCE constexpr node_id append_input(const tensor_type& t, int r) {
    node n{};
    n.op = &input_info_of;
    n.type = t;
    const node_id id = append(n, r);
    regions[std::size_t(r)].inputs.push_back(id);
    return id;
  }
  /// The same for the main region, whose inputs have a role and a name.
  CELLA_ONCE constexpr node_id append_input(const tensor_type& t, input_role role,
                                            std::string_view label) {
    // Inputs of a role mostly follow each other.
    int index = 0;
    for (std::size_t i = inputs.size(); i-- > 0 && index == 0;) {
      if (inputs[i].role == role) index = inputs[i].index + 1;
    }
    inputs.push_back({role, intern(label), index});
    return append_input(t, 0);
  }
  /// One more declared input of a region that is being filled: in front of what it has captured.
  constexpr node_id append_declared_input(const tensor_type& t, int r) {
    const node_id n = append_input(t, r);
    region& owner = regions[std::size_t(r)];
    for (std::size_t k = owner.inputs.size() - 1; k > std::size_t(owner.declared); --k)
      owner.inputs[k] = owner.inputs[k - 1];
    owner.inputs[std::size_t(owner.declared++)] = n;
    return n;
  }
  /// Appends, to the array alone, an application of `op` that belongs where node `like` is: in its
  /// region, and at its place in the user's source.
  CELLA_ONCE constexpr node_id append_like(node_id like, const op_info& op, span<const node_id> in,
                                           const attributes& options, const tensor_type& type) {
    node n = nodes[std::size_t(like)];
    n.op = &op;
    n.attributes = options;
    n.regions = {-1, -1};
    n.result_count = n.first_result = 0;
    n.type = type;
    set_operands(n, in);
    return append(n);
  }
  /// Gives a node, appended or not yet, these operands, which must not lie in the pool themselves.
  constexpr void set_operands(node& n, span<const node_id> in) {
    n.first_operand = std::int32_t(operand_pool.size());
    n.operand_count = std::int32_t(in.size());
    for (node_id i : in) operand_pool.push_back(i);
  }
  constexpr void set_operands(node_id n, span<const node_id> in) {
    set_operands(nodes[std::size_t(n)], in);
  }
  /// Gives a node, appended or not yet, several results of these types.
  constexpr void set_results(node& n, span<const tensor_type> types) {
    n.type = {dtype::tuple, {}};
    n.first_result = std::int32_t(results.size());
    n.result_count = std::int32_t(types.size());
    for (const tensor_type& t : types) results.push_back(t);
  }
  constexpr void set_results(node_id n, span<const tensor_type> types) {
    set_results(nodes[std::size_t(n)], types);
  }
  /// The main region's input `i` as a node.
  constexpr node_id input(int i) const { return regions[0].inputs[std::size_t(i)]; }
  /// Whether a call gives new values to some of its inputs.
  constexpr bool changes_inputs() const {
    bool changes = false;
    for (const output_info& o : outputs) changes |= o.updates >= 0;
    return changes;
  }
  /// Gives region `r` its nodes in another order.
  constexpr void reorder(int r, const ids& order) {
    regions[std::size_t(r)].nodes = order;
    number_nodes(regions[std::size_t(r)]);
  }
  /// Tells the nodes of a region their positions, after its list has changed.
  constexpr void number_nodes(const region& r) {
    for (std::size_t i = 0; i < r.nodes.size(); ++i)
      nodes[std::size_t(r.nodes[i])].position = std::int32_t(i);
  }
};

/// The loops of node `n`. Precondition: its operation has some.
constexpr iteration_space loops_of(const graph& g, node_id n) {
  list<tensor_type> in;
  for (node_id o : g.operands(n)) in.push_back(g.type(o));
  const node& x = g.nodes[std::size_t(n)];
  return x.op->space(in, x.attributes);
}

}  // namespace cella
