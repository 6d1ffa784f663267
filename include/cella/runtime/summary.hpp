// Shows what a net consists of, as tables for a terminal.
#pragma once

#include <algorithm>
#include <cella/ops/cost.hpp>
#include <cella/runtime/columns.hpp>
#include <cella/transform/trace.hpp>
#include <ostream>
#include <vector>

namespace cella {

/// Prints the parameters and states of a cell: path, shape, number of elements.
template <class Cell>
void summarize(std::ostream& out, const Cell& cell);

/// Prints the cells of which a cell consists, in the order in which they run on arguments of these
/// types (each a `tensor<...>`): result, parameters, arithmetic of one inference, and the bytes of
/// parameters and result.
///
///   summarize<tensor<dtype::f32, 32, 1, 28, 28>>(std::cout, models::lenet5{});
///
/// A multiplication and an addition are two operations; other elementwise functions and each
/// element of a reduction count as one, moving data as none. A loop counts as often as it runs, if
/// that is known, else once; of two branches both count.
template <class Argument, class... Arguments, class Cell>
void summarize(std::ostream& out, const Cell& cell);

/// The same of a `model`, on as many samples as a training step has.
template <class Model>
requires requires { typename Model::engine_type::net_cell; }
void summarize(std::ostream& out, const Model&);

namespace detail {

/// One row of the table of cells.
struct cell_summary {
  std::string path;
  tensor_type result{};
  std::int64_t parameters{}, operations{}, bytes{};
};

inline std::vector<cell_summary> cells_of(const graph& g) {
  std::vector<cell_summary> rows;
  auto row = [&](std::string_view path) -> cell_summary& {
    for (cell_summary& r : rows) {
      if (r.path == path) return r;
    }
    rows.push_back({std::string(path)});
    return rows.back();
  };
  auto visit = [&](auto& self, int index, std::int64_t times) -> void {
    for (node_id id : g.regions[std::size_t(index)].nodes) {
      const node& n = g.nodes[std::size_t(id)];
      if (n.op == &input_info_of) continue;
      cell_summary& r = row(g.view(n.cell));
      if (n.result_count == 0) r.result = n.type;
      r.operations += times * operations_of_node(g, id);
      for (int k : n.regions) {
        if (k >= 0 && !is<call_op>(n)) self(self, k, times * runs_of_regions(n));
      }
    }
  };
  visit(visit, 0, 1);
  for (const input_info& in : g.inputs) {
    if (!owned_by_cell(in.role)) continue;
    const std::string_view name = g.view(in.name);
    if (name == "random") continue;
    const std::size_t dot = name.rfind('.');
    const tensor_type t = g.type(g.input(int(&in - g.inputs.data())));
    cell_summary& r = row(dot == name.npos ? std::string_view() : name.substr(0, dot));
    if (in.role == input_role::parameter) r.parameters += t.size();
    r.bytes += t.bytes();
  }
  for (cell_summary& r : rows) r.bytes += r.result.bytes();
  // What belongs to no cell within the net comes last.
  const auto root = std::ranges::find(rows, std::string(), &cell_summary::path);
  if (root != rows.end()) std::rotate(root, root + 1, rows.end());
  return rows;
}

inline void print_cells(std::ostream& out, const graph& g) {
  std::vector<cell_summary> rows = cells_of(g);
  for (cell_summary& r : rows) {
    if (r.path.empty()) r.path = "(the net itself)";
  }
  std::size_t widest = 6;
  std::size_t widest_type = 6;
  auto type_of = [](const cell_summary& r) { return std::string((text() << r.result).view()); };
  for (const cell_summary& r : rows) {
    widest = std::max(widest, r.path.size());
    widest_type = std::max(widest_type, type_of(r).size());
  }
  auto line = [&](const std::string& path, const std::string& type, const std::string& parameters,
                  const std::string& operations, const std::string& bytes) {
    out << left(path, widest + 2) << left(type, widest_type + 2) << right(parameters, 12)
        << right(operations, 18) << right(bytes, 15) << "\n";
  };
  const std::string rule(widest + widest_type + 49, '-');
  line("cell", "result", "parameters", "operations", "bytes");
  out << rule << "\n";
  cell_summary total;
  for (const cell_summary& r : rows) {
    line(r.path, type_of(r), grouped(r.parameters), grouped(r.operations), grouped(r.bytes));
    total.parameters += r.parameters;
    total.operations += r.operations;
    total.bytes += r.bytes;
  }
  out << rule << "\n";
  line("total", "", grouped(total.parameters), grouped(total.operations), grouped(total.bytes));
}

}  // namespace detail

template <class Cell>
void summarize(std::ostream& out, const Cell& cell) {
  struct row {
    std::string path, extents;
    std::int64_t size;
    bool trainable;
  };
  std::vector<row> rows;
  std::size_t widest = 9;
  for_each_parameter(cell, [&](std::string_view path, const parameter_base& p) {
    rows.push_back({std::string(path), std::string((text() << p.extents).view()), p.extents.size(),
                    p.trainable});
    widest = std::max(widest, path.size());
  });
  const std::size_t width = widest + 2 + 20 + 14;
  auto line = [&](const std::string& path, const std::string& extents, const std::string& size,
                  std::string_view remark) {
    out << detail::left(path, widest + 2) << detail::left(extents, 20) << detail::right(size, 14)
        << remark << "\n";
  };
  line("parameter", "shape", "elements", "");
  out << std::string(width, '-') << "\n";
  std::int64_t trainable = 0;
  std::int64_t others = 0;
  for (const row& r : rows) {
    (r.trainable ? trainable : others) += r.size;
    line(r.path, r.extents, detail::grouped(r.size), r.trainable ? "" : "  not trained");
  }
  out << std::string(width, '-') << "\n";
  line("total", "", detail::grouped(trainable + others), "");
  if (others) line("trainable", "", detail::grouped(trainable), "");
}

template <class Argument, class... Arguments, class Cell>
void summarize(std::ostream& out, const Cell& cell) {
  Cell copy = cell;
  const std::array types{Argument::type, Arguments::type...};
  detail::print_cells(out, trace(copy, types, {.training = false}));
}

template <class Model>
requires requires { typename Model::engine_type::net_cell; }
void summarize(std::ostream& out, const Model&) {
  using engine = typename Model::engine_type;
  typename engine::net_cell cell{};
  detail::print_cells(out, trace(cell, engine::input_types, {false, engine::precision}));
}

}  // namespace cella
