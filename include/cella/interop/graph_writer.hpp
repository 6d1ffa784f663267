// A graph as a tree of values, which JSON and CBOR hold: docs/graphs_on_disk.md describes it.
#pragma once

#include <array>
#include <cella/graph/graph.hpp>
#include <cella/interop/option_json.hpp>
#include <cella/interop/tree.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cella::interop {

/// The version of the form that is written. Readers take it and all before.
inline constexpr int graph_version = 1;
inline constexpr std::string_view graph_format = "cella graph";

/// What files call the roles of inputs, in the order of `input_role`.
inline constexpr std::array<std::string_view, 5> role_names{"argument", "parameter", "state",
                                                            "slot", "scalar"};

namespace detail {

/// Nodes are numbered as they are written: region by region, each in its order. What no region
/// lists, and regions that the main one does not reach, stay away.
class graph_writer {
 public:
  /// `raw`: bytes as they are, rather than as hexadecimal digits.
  graph_writer(const graph& g, bool raw)
      : g_(g), raw_(raw), number_(g.nodes.size(), -1), place_(g.regions.size(), -1) {
    reach(0);
    for (std::size_t r = 0; r < g.regions.size(); ++r) {
      if (place_[r] < 0) continue;
      place_[r] = std::int64_t(regions_.size());
      regions_.push_back(int(r));
      for (node_id n : g.regions[r].nodes) number_[std::size_t(n)] = count_++;
    }
  }

  tree write() const {
    tree all = tree::object();
    all["format"] = graph_format;
    all["version"] = graph_version;
    all["constants"] = tree::array();
    for (std::size_t i = 0; i < g_.constants.tensors.size(); ++i)
      all["constants"].push_back(constant(std::int32_t(i)));
    all["inputs"] = tree::array();
    for (const input_info& i : g_.inputs) {
      all["inputs"].push_back(
          {{"role", role_names[std::size_t(i.role)]}, {"name", g_.view(i.name)}});
    }
    all["outputs"] = tree::array();
    for (const output_info& o : g_.outputs) {
      tree output = tree::object();
      if (o.updates >= 0) output["updates"] = o.updates;
      if (o.name.size) output["name"] = g_.view(o.name);
      all["outputs"].push_back(std::move(output));
    }
    all["regions"] = tree::array();
    for (int r : regions_) {
      const region& x = g_.regions[std::size_t(r)];
      tree nodes = tree::array();
      for (node_id n : x.nodes) nodes.push_back(node_of(n));
      all["regions"].push_back({{"nodes", std::move(nodes)},
                                {"inputs", numbers(x.inputs)},
                                {"outputs", numbers(x.outputs)}});
    }
    return all;
  }

 private:
  void reach(int first) {
    std::vector<int> open{first};
    place_[std::size_t(first)] = 0;
    while (!open.empty()) {
      const int r = open.back();
      open.pop_back();
      for (node_id n : g_.regions[std::size_t(r)].nodes) {
        for (int q : g_.nodes[std::size_t(n)].regions) {
          if (q < 0 || place_[std::size_t(q)] >= 0) continue;
          place_[std::size_t(q)] = 0;
          open.push_back(q);
        }
      }
    }
  }

  static tree type(const tensor_type& t) {
    tree all = tree::array({name(t.element)});
    for (int e : t.shape) all.push_back(e);
    return all;
  }
  tree numbers(span<const node_id> nodes) const {
    tree all = tree::array();
    for (node_id n : nodes) all.push_back(number_[std::size_t(n)]);
    return all;
  }
  tree constant(std::int32_t index) const {
    const tensor_type& t = g_.constants.tensors[std::size_t(index)].type;
    const auto* const first =
        reinterpret_cast<const std::uint8_t*>(g_.constants.words_of(index).data());
    const std::uint8_t* const end = first + t.bytes();
    if (raw_) return {{"type", type(t)}, {"bytes", tree::binary({first, end})}};
    constexpr std::string_view digits = "0123456789abcdef";
    std::string text;
    for (const std::uint8_t* b = first; b != end; ++b)
      text.append({digits[*b >> 4], digits[*b & 15u]});
    return {{"type", type(t)}, {"bytes", std::move(text)}};
  }
  tree node_of(node_id id) const {
    const node& n = g_.nodes[std::size_t(id)];
    tree all{{"op", n.op->name}};
    if (n.operand_count) all["of"] = numbers(g_.operands(id));
    if (n.op->options) {
      all["options"] = options_to_json(*n.op, n.attributes);
      if (options_from_json(*n.op, all["options"]) != n.attributes)
        throw file_error("cannot write a graph: the options of node " + std::to_string(id) + ", " +
                         std::string(n.op->name) +
                         ", are not told by their fields; make them with its public function");
    }
    if (n.regions[0] >= 0) {
      all["regions"] = tree::array();
      for (int r : n.regions)
        if (r >= 0) all["regions"].push_back(place_[std::size_t(r)]);
    }
    if (n.result_count) {
      all["results"] = tree::array();
      for (int k = 0; k < n.result_count; ++k)
        all["results"].push_back(type(g_.result_type(id, k)));
    } else {
      all["type"] = type(n.type);
    }
    if (n.cell.size) all["cell"] = g_.view(n.cell);
    if (n.line > 0) {
      // Without the folder: the same model yields the same file wherever it is compiled.
      const std::string_view file = n.file;
      all["file"] = file.substr(file.rfind('/') + 1);
      all["line"] = n.line;
    }
    return all;
  }

  const graph& g_;
  bool raw_;
  std::vector<std::int64_t> number_;  ///< of each node in the file; -1: it is not written
  std::vector<std::int64_t> place_;   ///< of each region
  std::vector<int> regions_;
  std::int64_t count_{};
};

}  // namespace detail

}  // namespace cella::interop
