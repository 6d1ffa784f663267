// The executable grammar of the intermediate representation: says what is wrong with a graph.
#pragma once

#include <cella/graph/graph.hpp>

namespace cella {

/// One line of a graph: `%7: f32[32,120] = matmul(%5, %6)`. It bears any damage to the graph.
constexpr text node_line(const graph& g, node_id id) {
  text t;
  t << "%" << id << ": ";
  if (id < 0 || std::size_t(id) >= g.nodes.size()) return t << "no such node";
  const node& n = g.nodes[std::size_t(id)];
  t << n.type << " = " << (n.op ? n.op->name : "no operation");
  t << "(";
  const auto first = std::size_t(n.first_operand);
  for (std::size_t k = 0; k < std::size_t(n.operand_count); ++k) {
    if (k) t << ", ";
    if (first + k >= g.operand_pool.size()) return t << "operands beyond the pool)";
    t << "%" << g.operand_pool[first + k];
  }
  return t << ")";
}

namespace detail {

/// Checks region by region in order; the first fault stays.
class graph_checker {
 public:
  constexpr explicit graph_checker(const graph& g) : g_(g), region_seen_(g.nodes.size(), -1) {}

  constexpr text run() {
    if (g_.regions.empty()) return text() << "check: the graph has no main region";
    const region& main = g_.regions[0];
    if (main.inputs.size() != g_.inputs.size())
      return text() << "check: the main region has " << main.inputs.size() << " inputs, but "
                    << g_.inputs.size() << " are described";
    if (main.outputs.size() != g_.outputs.size())
      return text() << "check: the main region has " << main.outputs.size() << " outputs, but "
                    << g_.outputs.size() << " are described";
    for (int r = 0; r < int(g_.regions.size()) && fault_.empty(); ++r) check_region(r);
    for (std::size_t k = 0; k < g_.outputs.size() && fault_.empty(); ++k) check_update(k);
    return fault_;
  }

 private:
  constexpr void check_region(int index) {
    const region& r = g_.regions[std::size_t(index)];
    if (index > 0 && r.inputs.size() != std::size_t(r.declared) + r.captured.size()) {
      fault_ << "check: region " << index << " has " << r.inputs.size() << " inputs, but "
             << r.declared << " are declared and " << r.captured.size() << " captured";
      return;
    }
    std::size_t inputs = 0;
    for (std::size_t i = 0; i < r.nodes.size() && fault_.empty(); ++i) {
      const node_id id = r.nodes[i];
      if (!exists(id)) return blame(id, "a region lists a node that does not exist");
      const node& n = g_.nodes[std::size_t(id)];
      if (n.region != index)
        return blame(id, text() << "it is listed in region " << index << " but says " << n.region);
      if (n.position != std::int32_t(i))
        return blame(id, text() << "it stands at " << i << " but says " << n.position);
      if (region_seen_[std::size_t(id)] >= 0) return blame(id, "it is listed twice");
      if (n.op == &input_info_of) ++inputs;
      check_node(id, index);
      region_seen_[std::size_t(id)] = index;
    }
    if (!fault_.empty()) return;
    if (inputs != r.inputs.size()) {
      fault_ << "check: region " << index << " lists " << r.inputs.size() << " inputs but holds "
             << inputs;
      return;
    }
    for (node_id n : r.inputs) {
      if (!placed(n, index)) return blame(n, "an input is not in its region");
      if (g_.nodes[std::size_t(n)].op != &input_info_of)
        return blame(n, "it is listed as an input but is an operation");
    }
    for (node_id n : r.outputs) {
      if (!placed(n, index))
        return blame(n, text() << "an output of region " << index << " is not in it");
    }
  }

  constexpr void check_node(node_id id, int index) {
    const node& n = g_.nodes[std::size_t(id)];
    if (!n.op) return blame(id, "it has no operation");
    if (n.first_operand < 0 || n.operand_count < 0 ||
        std::size_t(n.first_operand) + std::size_t(n.operand_count) > g_.operand_pool.size())
      return blame(id, "its operands lie beyond the pool");
    types_.clear();
    for (node_id o : g_.operands(id)) {
      if (!exists(o)) return blame(id, text() << "operand %" << o << " does not exist");
      if (!placed(o, index))
        return blame(id, text() << "operand %" << o << " does not precede it in region " << index);
      types_.push_back(g_.type(o));
    }
    for (std::int32_t r : n.regions) {
      if (r < -1 || r >= std::int32_t(g_.regions.size()))
        return blame(id, text() << "region " << r << " does not exist");
    }
    if (n.result_count < 0 || n.first_result < 0 ||
        std::size_t(n.first_result) + std::size_t(n.result_count) > g_.results.size())
      return blame(id, "its result types lie beyond the list");
    if ((n.result_count > 0) != (n.type.element == dtype::tuple))
      return blame(id, "a node has the type tuple if and only if it has a list of results");
    if (n.op == &get_info_of) return check_get(id);
    if (n.op->validate) {
      const text wrong = n.op->validate(g_, id);
      if (!wrong.empty()) return blame(id, wrong);
    }
    if (n.op->scalar) check_elementwise(id);
    if (fault_.empty() && (n.op->infer || n.op->results)) check_types(id);
  }

  constexpr void check_get(node_id id) {
    const node& n = g_.nodes[std::size_t(id)];
    const int k = n.attributes.as<get_attributes>().result;
    if (n.operand_count != 1) return blame(id, "get has one operand");
    const node_id from = g_.operand(id, 0);
    if (k < 0 || k >= g_.nodes[std::size_t(from)].result_count)
      return blame(id, text() << "result " << k << " does not exist");
    if (g_.result_type(from, k) != n.type)
      return blame(id, text() << "result " << k << " is " << g_.result_type(from, k));
  }
  constexpr void check_elementwise(node_id id) {
    const node& n = g_.nodes[std::size_t(id)];
    if (n.operand_count < 1 || n.operand_count > 3)
      return blame(id, "an elementwise operation has one to three operands");
    for (const tensor_type& t : types_) {
      if (t.shape != n.type.shape)
        return blame(id, "operands and result of an elementwise operation have one shape");
    }
  }
  constexpr void check_types(node_id id) {
    const node& n = g_.nodes[std::size_t(id)];
    const std::size_t count = types_.size();
    // Rules may look at operands that a damaged node lacks: those read as scalars.
    while (types_.size() < 4) types_.push_back({});
    const span<const tensor_type> in(types_.data(), count);
    if (!n.op->results) {
      const tensor_type t = n.op->infer(in, n.attributes);
      if (t != n.type) blame(id, text() << "its operands yield " << t);
      return;
    }
    std::array<tensor_type, 8> out{};
    const int results = n.op->results(in, n.attributes, out);
    if (results != n.result_count)
      return blame(id, text() << "it has " << n.result_count << " results instead of " << results);
    for (int k = 0; k < results; ++k) {
      if (out[std::size_t(k)] != g_.result_type(id, k))
        return blame(id, text() << "result " << k << " is " << g_.result_type(id, k)
                                << ", but its operands yield " << out[std::size_t(k)]);
    }
  }

  constexpr void check_update(std::size_t k) {
    const output_info& o = g_.outputs[k];
    const node_id n = g_.regions[0].outputs[k];
    if (o.updates < -1 || o.updates >= std::int32_t(g_.inputs.size()))
      return blame(n, text() << "output " << k << " updates input " << o.updates
                             << ", which does not exist");
    if (o.updates >= 0 && g_.type(n) != g_.type(g_.input(o.updates)))
      blame(n, text() << "output " << k << " updates "
                      << g_.view(g_.inputs[std::size_t(o.updates)].name) << ", which is "
                      << g_.type(g_.input(o.updates)));
  }

  constexpr bool exists(node_id n) const { return n >= 0 && std::size_t(n) < g_.nodes.size(); }
  constexpr bool placed(node_id n, int r) const {
    return exists(n) && region_seen_[std::size_t(n)] == r;
  }
  /// The fault with its neighbourhood: the node's line and its operands' lines.
  constexpr void blame(node_id id, const char* why) { blame(id, text(std::string_view(why))); }
  constexpr void blame(node_id id, const text& why) {
    fault_ << "check: " << node_line(g_, id) << ": " << why;
    if (!exists(id)) return;
    const node& n = g_.nodes[std::size_t(id)];
    const auto first = std::size_t(n.first_operand);
    std::string_view before = "; where ";
    for (std::size_t k = 0; k < std::size_t(n.operand_count); ++k) {
      if (first + k >= g_.operand_pool.size()) return;
      fault_ << before << node_line(g_, g_.operand_pool[first + k]);
      before = ", ";
    }
  }

  const graph& g_;
  list<std::int32_t> region_seen_;  ///< region in which a node was met; -1: not yet
  list<tensor_type> types_;
  text fault_;
};

}  // namespace detail

/// What is wrong with a graph, as one sentence that shows the node at fault and its operands; empty
/// if it is well formed: operands precede their users in a region, types are those that the
/// operations infer, `get` reads a result that exists, regions and roles have what they declare,
/// and an output that updates an input has its type.
constexpr text check(const graph& g) { return detail::graph_checker(g).run(); }

}  // namespace cella
