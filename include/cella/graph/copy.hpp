// The application that a node is, on other operands: in the same graph, or in another.
#pragma once

#include <cella/graph/builder.hpp>

namespace cella {

namespace detail {

/// Appends what `x` applies, with these regions and in this cell, at the place in the source where
/// `x` was written. `from` is the graph of `x`.
constexpr node_id emit_copy(builder& b, const graph& from, const node& x, span<const node_id> in,
                            name_ref cell, std::array<std::int32_t, 2> regions) {
  if (x.op == &get_info_of) return b.get(in[0], x.attributes.as<get_attributes>().result);
  const name_ref outer = b.current_cell();
  b.current_cell(cell);
  node_id n = no_node;
  if (x.op->results || x.result_count == 0) {
    n = b.emit(*x.op, in, x.attributes);
  } else {  // no rule infers its types
    const auto first = from.results.begin() + x.first_result;
    const list<tensor_type> types(first, first + x.result_count);
    n = b.emit_control(*x.op, in, types, regions, x.attributes);
  }
  b.current_cell(outer);
  if (b.failed()) return n;
  b.g.nodes[std::size_t(n)].file = x.file;
  b.g.nodes[std::size_t(n)].line = x.line;
  return n;
}

}  // namespace detail

/// The same application on other operands and with other options, in the open region; types are
/// inferred again, regions are shared.
constexpr node_id copy_node(builder& b, node_id n, span<const node_id> in,
                            const attributes& options) {
  node x = b.g.nodes[std::size_t(n)];
  x.attributes = options;
  return detail::emit_copy(b, b.g, x, in, x.cell, x.regions);
}
constexpr node_id copy_node(builder& b, node_id n, span<const node_id> in) {
  return copy_node(b, n, in, b.g.nodes[std::size_t(n)].attributes);
}

/// Copies nodes of another graph into the open region of `b`. Regions that they own or call are
/// copied once, whichever nodes share them.
class graph_importer {
 public:
  constexpr graph_importer(builder& b, const graph& from)
      : b_(b), from_(from), regions_(from.regions.size(), -1) {}

  constexpr node_id copy(node_id n, span<const node_id> in) {
    node x = from_.nodes[std::size_t(n)];
    b_.g.adopt_values(x, from_.constants);
    std::array<std::int32_t, 2> own = x.regions;
    for (std::int32_t& r : own) {
      if (r >= 0) r = import(r);
    }
    if (x.cell.first != cell_.first || x.cell.size != cell_.size) {
      cell_ = x.cell;
      cell_here_ = b_.g.intern(from_.view(x.cell));
    }
    return detail::emit_copy(b_, from_, x, in, cell_here_, own);
  }
  /// Declares the inputs of the graph; calls f(node there, node here) for each.
  template <class F>
  constexpr void copy_inputs(F f) {
    for (std::size_t i = 0; i < from_.inputs.size(); ++i) {
      const input_info& in = from_.inputs[i];
      const node_id n = from_.input(int(i));
      f(n, b_.input(from_.type(n), in.role, from_.view(in.name)));
    }
  }
  /// Ends the new graph with the outputs of the old one, of which value(node there) is here.
  template <class F>
  constexpr void copy_outputs(F value) {
    ids outputs;
    for (std::size_t k = 0; k < from_.outputs.size(); ++k) {
      const output_info& o = from_.outputs[k];
      outputs.push_back(value(from_.regions[0].outputs[k]));
      b_.g.outputs.push_back({o.updates, b_.g.intern(from_.view(o.name))});
    }
    b_.end(outputs);
  }
  /// The whole graph, with `add(node)` in place of copying each operation of its main region: it
  /// enters into `here` what the node has become.
  template <class Add>
  constexpr void rewrite(ids& here, Add add) {
    copy_inputs([&](node_id n, node_id made) { here[std::size_t(n)] = made; });
    for (node_id n : from_.regions[0].nodes)
      if (from_.nodes[std::size_t(n)].op != &input_info_of) add(n);
    copy_outputs([&](node_id n) { return here[std::size_t(n)]; });
  }

 private:
  /// Copies a region. Its index is known before it is filled: it may call itself.
  constexpr int import(int r) {
    int& made = regions_[std::size_t(r)];
    if (made >= 0) return made;
    graph& g = b_.g;
    const int q = made = b_.reserve_region();
    const region& x = from_.regions[std::size_t(r)];
    ids map(x.nodes.size(), no_node);
    auto mapped = [&](node_id n) { return map[std::size_t(from_.nodes[std::size_t(n)].position)]; };
    for (std::size_t i = 0; i < x.nodes.size(); ++i) {
      node n = from_.nodes[std::size_t(x.nodes[i])];
      n.first_operand = std::int32_t(g.operand_pool.size());
      for (node_id o : from_.operands(x.nodes[i])) g.operand_pool.push_back(mapped(o));
      if (n.result_count) {
        const auto first = from_.results.begin() + n.first_result;
        g.set_results(n, list<tensor_type>(first, first + n.result_count));
      }
      n.cell = g.intern(from_.view(n.cell));
      g.adopt_values(n, from_.constants);
      for (std::int32_t& s : n.regions) {
        if (s >= 0) s = import(s);
      }
      map[i] = g.append(n, q);
    }
    region to = g.regions[std::size_t(q)];
    for (node_id n : x.inputs) to.inputs.push_back(mapped(n));
    for (node_id n : x.outputs) to.outputs.push_back(mapped(n));
    // What the inputs stood for is another graph's business: they are all declared now.
    to.declared = std::int32_t(to.inputs.size());
    g.regions[std::size_t(q)] = to;
    return q;
  }

  builder& b_;
  const graph& from_;
  list<int> regions_;     ///< where regions are now; -1: not copied
  name_ref cell_{-1, 0};  ///< of the last copied node, there and here
  name_ref cell_here_{};
};

}  // namespace cella
