// Which nodes of a graph are live, and the graph without the others, written piece by piece.
#pragma once

#include <algorithm>
#include <cella/graph/frozen_graph.hpp>

namespace cella::detail {

/// Which nodes and regions of a graph are live, and where they go.
struct live_order {
  ids nodes;             ///< new id -> old id
  ids renamed;           ///< old id -> new id; no_node: dead
  list<int> regions;     ///< new index -> old index
  list<int> renumbered;  ///< old index -> new index; -1: dead
  ids ends;              ///< new region -> one behind its last new id
};

constexpr live_order live_nodes(const graph& g) {
  live_order l;
  l.nodes.reserve(g.nodes.size());
  l.renamed.assign(g.nodes.size(), no_node);
  l.renumbered.assign(g.regions.size(), -1);
  l.regions.push_back(0);
  l.renumbered[0] = 0;
  flags live(g.nodes.size(), 0);
  for (std::size_t q = 0; q < l.regions.size(); ++q) {
    const region& r = g.regions[std::size_t(l.regions[q])];
    auto keep = [&](node_id n) {
      l.renamed[std::size_t(n)] = node_id(l.nodes.size());
      l.nodes.push_back(n);
    };
    for (node_id n : r.inputs) keep(n);
    for (node_id n : r.outputs) live[std::size_t(n)] = 1;
    // Pointers: compilers evaluate each call by itself.
    const node* const nodes = g.nodes.data();
    const node_id* const pool = g.operand_pool.data();
    const node_id* const order = r.nodes.data();
    char* const lives = live.data();
    for (std::size_t i = r.nodes.size(); i-- > 0;) {
      if (!lives[order[i]]) continue;
      const node& x = nodes[order[i]];
      for (int k = 0; k < x.operand_count; ++k) lives[pool[x.first_operand + k]] = 1;
    }
    for (node_id n : r.nodes) {
      if (!live[std::size_t(n)] || l.renamed[std::size_t(n)] >= 0) continue;
      keep(n);
      for (std::int32_t s : g.nodes[std::size_t(n)].regions) {
        if (s < 0 || l.renumbered[std::size_t(s)] >= 0) continue;
        l.renumbered[std::size_t(s)] = int(l.regions.size());
        l.regions.push_back(s);
      }
    }
    l.ends.push_back(node_id(l.nodes.size()));
  }
  return l;
}

/// Hands the live part of `g` to `out`, piece by piece in its final order.
template <class Out>
constexpr void write_live(const graph& g, Out& out) {
  const live_order l = live_nodes(g);
  std::int32_t pool = 0;
  std::int32_t results = 0;
  constant_pool constants;  // those of live nodes
  list<std::int32_t> place_of_constant(g.constants.tensors.size(), -1);
  auto put_all = [&](const ids& all) {
    for (node_id n : all) out.operand(l.renamed[std::size_t(n)]);
    pool += std::int32_t(all.size());
  };
  node_id first = 0;
  for (std::size_t q = 0; q < l.regions.size(); ++q) {
    const region& r = g.regions[std::size_t(l.regions[q])];
    for (node_id id = first; id < l.ends[q]; ++id) {
      node n = g.nodes[std::size_t(l.nodes[std::size_t(id)])];
      const std::int32_t from = n.first_operand;
      n.first_operand = pool;
      for (std::int32_t k = 0; k < n.operand_count; ++k)
        out.operand(l.renamed[std::size_t(g.operand_pool[std::size_t(from + k)])]);
      pool += n.operand_count;
      const std::int32_t from_result = n.first_result;
      n.first_result = n.result_count ? results : 0;
      for (std::int32_t k = 0; k < n.result_count; ++k)
        out.result(g.results[std::size_t(from_result + k)]);
      results += n.result_count;
      for (std::int32_t& s : n.regions) {
        if (s >= 0) s = l.renumbered[std::size_t(s)];
      }
      if (n.op->traits.stored) {
        auto o = n.attributes.as<values_options>();
        std::int32_t& place = place_of_constant[std::size_t(o.index)];
        if (place < 0) place = constants.add(g.constants, o.index);
        o.index = place;
        n.attributes = o;
      }
      n.region = std::int32_t(q);
      n.position = id - first;
      out.node(n);
    }
    frozen_region f{first, l.ends[q] - first, std::int32_t(r.inputs.size()), r.declared, 0, 0, 0,
                    0};
    f.first_output = pool;
    f.output_count = std::int32_t(r.outputs.size());
    put_all(r.outputs);
    f.first_captured = pool;
    f.captured_count = std::int32_t(r.captured.size());
    put_all(r.captured);
    out.region(f);
    first = l.ends[q];
  }
  out.names(g.characters);
  for (const input_info& i : g.inputs) out.input(i);
  for (const output_info& o : g.outputs) out.output(o);
  out.constants(constants);
}

}  // namespace cella::detail

namespace cella {

/// Whether anything reads the main region's input `i`, in a graph whose nodes are all live.
template <class Graph>
constexpr bool reads_input(const Graph& g, int i) {
  for (node_id read : g.operand_pool) {
    if (read == g.input(i)) return true;
  }
  return false;
}

}  // namespace cella
