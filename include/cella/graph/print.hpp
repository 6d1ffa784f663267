// Graphs for people and tools: text, Graphviz and JSON. At run time only.
#pragma once

#include <array>
#include <cella/graph/graph.hpp>
#include <cella/graph/list.hpp>
#include <cella/graph/option_text.hpp>
#include <cstdio>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>

namespace cella {

struct print_options {
  bool source = true;  ///< file and line behind each node
  bool cells = true;   ///< path of the cell behind each node
};

/// Name of a role, as printed.
constexpr std::string_view name(input_role r) {
  constexpr std::array<std::string_view, 5> names{"argument", "parameter", "state", "slot",
                                                  "scalar"};
  return names[std::size_t(r)];
}

namespace detail {

inline std::string type_text(const graph& g, node_id id) {
  const node& n = g.nodes[std::size_t(id)];
  text t;
  if (n.result_count == 0) return std::string((t << n.type).view());
  t << "(";
  for (int k = 0; k < n.result_count; ++k) t << (k ? ", " : "") << g.result_type(id, k);
  return std::string((t << ")").view());
}

inline std::string base_name(const char* file) {
  const std::string_view f = file;
  return std::string(f.substr(f.find_last_of("/\\") + 1));
}

/// `%5`, or `%fc1.weight` for a named input of the main region.
class node_names {
 public:
  explicit node_names(const graph& g) : names_(g.nodes.size()) {
    for (std::size_t n = 0; n < names_.size(); ++n) names_[n] = "%" + std::to_string(n);
    for (std::size_t i = 0; i < g.inputs.size(); ++i) {
      const std::string_view label = g.view(g.inputs[i].name);
      if (!label.empty()) names_[std::size_t(g.input(int(i)))] = "%" + std::string(label);
    }
  }
  const std::string& operator[](node_id n) const { return names_[std::size_t(n)]; }

 private:
  list<std::string> names_;
};

class graph_printer {
 public:
  graph_printer(std::ostream& out, const graph& g, const print_options& o)
      : out_(out), g_(g), options_(o), names_(g), printed_(g.regions.size(), 0) {}

  void print() {
    for (std::size_t i = 0; i < g_.inputs.size(); ++i) {
      const node_id n = g_.input(int(i));
      out_ << "input " << names_[n] << ": " << type_text(g_, n) << " (" << name(g_.inputs[i].role)
           << ")\n";
    }
    region_nodes(0, 0);
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      const output_info& o = g_.outputs[k];
      out_ << "output ";
      if (o.name.size) out_ << g_.view(o.name) << " = ";
      out_ << names_[g_.regions[0].outputs[k]];
      if (o.updates >= 0) out_ << " updates " << names_[g_.input(o.updates)];
      out_ << "\n";
    }
  }

 private:
  void region_nodes(int r, int depth) {
    for (node_id id : g_.regions[std::size_t(r)].nodes) {
      if (g_.nodes[std::size_t(id)].op != &input_info_of) node_line(id, depth);
    }
  }
  void node_line(node_id id, int depth) {
    const node& n = g_.nodes[std::size_t(id)];
    std::string line(std::size_t(depth) * 2, ' ');
    line += names_[id] + ": " + type_text(g_, id) + " = " + std::string(n.op->name) + "(";
    const auto in = g_.operands(id);
    for (std::size_t k = 0; k < in.size(); ++k) line += (k ? ", " : "") + names_[in[k]];
    line += ")" + options_text(n) + values_text(g_, id);
    std::string where;
    if (options_.cells && n.cell.size) where = g_.view(n.cell);
    if (options_.source && n.line > 0)
      where += (where.empty() ? "" : " ") + base_name(n.file) + ":" + std::to_string(n.line);
    if (!where.empty())
      line += std::string(line.size() < 60 ? 60 - line.size() : 1, ' ') + "# " + where;
    out_ << line << "\n";
    for (std::int32_t r : n.regions) {
      if (r >= 0) nested(r, depth + 1);
    }
  }
  void nested(int r, int depth) {
    const std::string indent(std::size_t(depth) * 2, ' ');
    out_ << indent << "region " << r;
    // A region that several nodes share, or that calls itself, is written once.
    if (printed_[std::size_t(r)]++) {
      out_ << " (above)\n";
      return;
    }
    const region& x = g_.regions[std::size_t(r)];
    out_ << "(";
    for (std::size_t k = 0; k < x.inputs.size(); ++k) {
      out_ << (k ? ", " : "") << names_[x.inputs[k]] << ": " << type_text(g_, x.inputs[k]);
    }
    out_ << ")\n";
    region_nodes(r, depth + 1);
    out_ << indent << "  yield ";
    for (std::size_t k = 0; k < x.outputs.size(); ++k)
      out_ << (k ? ", " : "") << names_[x.outputs[k]];
    out_ << "\n";
  }

  std::ostream& out_;
  const graph& g_;
  print_options options_;
  node_names names_;
  flags printed_;
};

/// A JSON string, or a Graphviz one: the escapes that both know.
inline std::string in_quotes(std::string_view s) {
  std::string q = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') {
      q += '\\';
      q += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::array<char, 8> hex{};
      std::snprintf(hex.data(), hex.size(), "\\u%04x", unsigned(static_cast<unsigned char>(c)));
      q += hex.data();
    } else {
      q += c;
    }
  }
  return q + "\"";
}

template <class List, class F>
std::string joined(const List& list, F f) {
  std::string s;
  for (const auto& x : list) s += (s.empty() ? "" : ",") + f(x);
  return s;
}
inline std::string json_list(span<const node_id> list) {
  return "[" + joined(list, [](node_id n) { return std::to_string(n); }) + "]";
}
inline std::string json_type(const tensor_type& t) {
  return "{\"element\":" + in_quotes(name(t.element)) + ",\"shape\":[" +
         joined(t.shape, [](std::int32_t e) { return std::to_string(e); }) + "]}";
}

}  // namespace detail

/// Writes a graph as text, one node a line: inputs with their roles, nodes with types, operands,
/// options, cell and place in the source, regions indented under their owners, outputs with what
/// they update.
inline void print(std::ostream& out, const graph& g, const print_options& options = {}) {
  detail::graph_printer(out, g, options).print();
}
inline std::ostream& operator<<(std::ostream& out, const graph& g) {
  print(out, g);
  return out;
}
inline std::string to_string(const graph& g, const print_options& options = {}) {
  std::ostringstream s;
  print(s, g, options);
  return s.str();
}

/// Writes a graph for Graphviz: a cluster per cell path, edges labelled with types, a region's
/// nodes tied to its owner by a dashed edge.
inline void print_dot(std::ostream& out, const graph& g) {
  const detail::node_names names(g);
  out << "digraph cella {\n  node [shape=box, fontname=monospace];\n";
  // Clusters by path, in order of appearance.
  list<std::string_view> paths;
  list<list<node_id>> members;
  for (const region& r : g.regions) {
    for (node_id n : r.nodes) {
      const std::string_view path = g.view(g.nodes[std::size_t(n)].cell);
      std::size_t p = 0;
      while (p < paths.size() && paths[p] != path) ++p;
      if (p == paths.size()) {
        paths.push_back(path);
        members.emplace_back();
      }
      members[p].push_back(n);
    }
  }
  for (std::size_t p = 0; p < paths.size(); ++p) {
    const bool cluster = !paths[p].empty();
    if (cluster)
      out << "  subgraph cluster_" << p << " {\n    label=" << detail::in_quotes(paths[p]) << ";\n";
    for (node_id n : members[p]) {
      const node& x = g.nodes[std::size_t(n)];
      const bool input = x.op == &input_info_of;
      const std::string label =
          input ? names[n]
                : std::string(x.op->name) + detail::options_text(x) + detail::values_text(g, n);
      out << (cluster ? "    n" : "  n") << n << " [label=" << detail::in_quotes(label)
          << (input ? ", shape=ellipse" : "") << "];\n";
    }
    if (cluster) out << "  }\n";
  }
  for (const region& r : g.regions) {
    for (node_id n : r.nodes) {
      for (node_id o : g.operands(n)) {
        out << "  n" << o << " -> n" << n
            << " [label=" << detail::in_quotes(detail::type_text(g, o)) << "];\n";
      }
      for (std::int32_t owned : g.nodes[std::size_t(n)].regions) {
        if (owned < 0) continue;
        for (node_id y : g.regions[std::size_t(owned)].outputs)
          out << "  n" << y << " -> n" << n << " [style=dashed];\n";
      }
    }
  }
  for (std::size_t k = 0; k < g.outputs.size(); ++k) {
    out << "  out" << k << " [shape=ellipse, label="
        << detail::in_quotes(g.outputs[k].updates >= 0
                                 ? "updates " + names[g.input(g.outputs[k].updates)]
                                 : "output " + std::to_string(k))
        << "];\n  n" << g.regions[0].outputs[k] << " -> out" << k << ";\n";
  }
  out << "}\n";
}

/// Writes a graph as one JSON object: `nodes` (of all regions, each with id, op, operands, type or
/// results, options, regions, cell, file and line), `regions`, `inputs`, `outputs`.
inline void print_json(std::ostream& out, const graph& g) {
  using detail::in_quotes;
  using detail::json_list;
  using detail::json_type;
  out << "{\"nodes\":[";
  std::string_view separator = "\n";
  for (std::size_t r = 0; r < g.regions.size(); ++r) {
    for (node_id id : g.regions[r].nodes) {
      const node& n = g.nodes[std::size_t(id)];
      out << separator << "{\"id\":" << id << ",\"op\":" << in_quotes(n.op->name)
          << ",\"region\":" << r << ",\"operands\":" << json_list(g.operands(id));
      separator = ",\n";
      if (n.result_count) {
        out << ",\"results\":[";
        for (int k = 0; k < n.result_count; ++k)
          out << (k ? "," : "") << json_type(g.result_type(id, k));
        out << "]";
      } else {
        out << ",\"type\":" << json_type(n.type);
      }
      if (const auto options = detail::told_options(n); !options.empty()) {
        out << ",\"options\":{" << detail::joined(options, [](const auto& o) {
          return in_quotes(o.name) + ":" + (o.quoted ? in_quotes(o.value) : o.value);
        }) << "}";
      }
      if (n.op->traits.stored) {
        out << ",\"count\":" << n.type.size() << ",\"first_values\":["
            << detail::joined(detail::first_values(g, id),
                              [](const std::string& v) {
                                return v.find('n') == std::string::npos ? v : in_quotes(v);
                              })
            << "]";
      }
      if (n.regions[0] >= 0) {
        out << ",\"regions\":[" << n.regions[0];
        if (n.regions[1] >= 0) out << "," << n.regions[1];
        out << "]";
      }
      if (n.cell.size) out << ",\"cell\":" << in_quotes(g.view(n.cell));
      if (n.line > 0) out << ",\"file\":" << in_quotes(n.file) << ",\"line\":" << n.line;
      out << "}";
    }
  }
  out << "],\n\"regions\":[";
  for (std::size_t r = 0; r < g.regions.size(); ++r) {
    const region& x = g.regions[r];
    out << (r ? "," : "") << "\n{\"inputs\":" << json_list(x.inputs)
        << ",\"outputs\":" << json_list(x.outputs) << ",\"declared\":" << x.declared << "}";
  }
  out << "],\n\"inputs\":[";
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    out << (i ? "," : "") << "\n{\"node\":" << g.input(int(i))
        << ",\"role\":" << in_quotes(name(g.inputs[i].role))
        << ",\"name\":" << in_quotes(g.view(g.inputs[i].name)) << "}";
  }
  out << "],\n\"outputs\":[";
  for (std::size_t k = 0; k < g.outputs.size(); ++k) {
    out << (k ? "," : "") << "\n{\"node\":" << g.regions[0].outputs[k]
        << ",\"updates\":" << g.outputs[k].updates
        << ",\"name\":" << in_quotes(g.view(g.outputs[k].name)) << "}";
  }
  out << "]}\n";
}

}  // namespace cella
