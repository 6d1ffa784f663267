// A plan as a table for people: a row for each cell.
#pragma once

#include <cella/parallel/pipeline.hpp>
#include <cella/runtime/columns.hpp>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

namespace cella::parallel {

namespace detail {

/// `1.25 ms`
inline std::string milliseconds_text(double seconds) {
  char s[32];
  std::snprintf(s, sizeof s, "%.3f ms", seconds * 1e3);
  return s;
}
/// How the parameters of a cell lie, and its result: that of the last node of its forward pass; and
/// along which axis its attention is a ring.
inline std::string cell_layout(const graph& g, const parallel_plan& p, std::string_view cell) {
  std::string s;
  for (std::size_t i = 0; i < g.inputs.size(); ++i) {
    const input_info& in = g.inputs[i];
    const std::string_view label = g.view(in.name);
    const std::size_t dot = label.rfind('.');
    if (in.role != input_role::parameter ||
        (dot == label.npos ? std::string_view() : label.substr(0, dot)) != cell)
      continue;
    const node_id n = g.input(int(i));
    s += std::string(label.substr(dot + 1)) + " " +
         std::string(layout_text(g.type(n).shape, p.rank.inputs[i], p.mesh).view()) + "  ";
  }
  node_id last = no_node;
  for (node_id n : g.regions[0].nodes) {
    const node& x = g.nodes[std::size_t(n)];
    if (x.op == &input_info_of || x.op == &get_info_of || is<constant_op>(x)) continue;
    if (g.view(x.cell) == cell)
      last = n;
    else if (last >= 0)
      break;
  }
  if (last >= 0)
    s += "-> " + std::string(layout_text(result_type(g, last, 0).shape,
                                         p.choices[std::size_t(last)].results[0], p.mesh)
                                 .view());
  for (node_id n : g.regions[0].nodes) {
    if (g.view(g.nodes[std::size_t(n)].cell) != cell || ring_axis(p, g, n) < 0) continue;
    s += "  ring/" + std::string(p.mesh[ring_axis(p, g, n)].name.view());
    break;
  }
  return s;
}

inline std::string cell_name(std::string_view cell) {
  return cell.empty() ? "(step)" : std::string(cell);
}
inline std::string plan_title(const parallel_plan& p) {
  return "mesh " + std::string(mesh_text(p.mesh).view()) + ", mode " +
         std::string(mode_name(p.mode)) + ": " + milliseconds_text(p.seconds()) + " a step, " +
         cella::detail::grouped(std::int64_t(p.bytes_on_device)) + " bytes on a device";
}
inline std::string plan_title(const pipeline_plan& p) {
  char bubble[16];
  std::snprintf(bubble, sizeof bubble, "%.1f %%", 100 * p.bubble);
  return "mesh " + std::string(mesh_text(p.mesh).view()) + ", mode pipeline along " +
         std::string(p.mesh[p.axis].name.view()) + ", " + std::string(schedule_name(p.schedule)) +
         (p.chunks > 1 ? ", stages of a rank: " + std::to_string(p.chunks) : "") +
         ", microbatches: " + std::to_string(p.microbatches()) +
         (p.needs_whole_batch ? " (the net needs all samples at once)" : "") + "; " +
         milliseconds_text(p.seconds) + " a step, a " + (p.chunks > 1 ? "rank" : "stage") +
         " waits " + bubble + "; " + cella::detail::grouped(std::int64_t(p.bytes_on_device())) +
         " bytes on a device";
}
/// The first and the last cell of a stage.
inline std::string stage_cells(const pipeline_plan& p, int stage) {
  const graph& g = p.piece.graph;
  std::string first, last;
  for (node_id n : g.regions[0].nodes) {
    const std::string_view cell = g.view(g.nodes[std::size_t(n)].cell);
    if (p.phase[std::size_t(n)] != step_phase::forward || p.stage[std::size_t(n)] != stage ||
        cell.empty())
      continue;
    if (first.empty()) first = cell;
    last = cell;
  }
  return first == last ? first : first + " - " + last;
}

/// Prints rows in columns, of which the first `words` begin at the left.
inline void print_rows(std::ostream& out, const std::vector<std::vector<std::string>>& rows,
                       std::size_t words) {
  std::vector<std::size_t> width(rows[0].size());
  for (const auto& r : rows)
    for (std::size_t c = 0; c < width.size(); ++c) width[c] = std::max(width[c], r[c].size());
  for (const auto& r : rows) {
    std::string line;
    for (std::size_t c = 0; c < width.size(); ++c)
      line += (c ? "  " : "") + (c < words ? cella::detail::left(r[c], width[c])
                                           : cella::detail::right(r[c], width[c]));
    out << line << "\n";
  }
}

}  // namespace detail

/// Prints the plan of `g`: for each cell how its parameters and its result lie, the bytes that a
/// rank sends, and the time by the model, of which the last line has the sums.
inline void print_plan(std::ostream& out, const graph& g, const parallel_plan& p) {
  using cella::detail::grouped;
  std::vector<std::vector<std::string>> rows{
      {"cell", "layout", "bytes moved", "moving", "computing"}};
  cell_cost sum;
  for (const cell_cost& c : p.costs()) {
    rows.push_back({detail::cell_name(c.cell), detail::cell_layout(g, p, c.cell),
                    grouped(std::int64_t(c.moved_bytes)), detail::milliseconds_text(c.move_seconds),
                    detail::milliseconds_text(c.compute_seconds)});
    sum.moved_bytes += c.moved_bytes;
    sum.move_seconds += c.move_seconds;
    sum.compute_seconds += c.compute_seconds;
  }
  rows.push_back({"sum", "", grouped(std::int64_t(sum.moved_bytes)),
                  detail::milliseconds_text(sum.move_seconds),
                  detail::milliseconds_text(sum.compute_seconds)});
  out << detail::plan_title(p) << "\n";
  detail::print_rows(out, rows, 2);
}

/// Prints a pipeline: for each stage the first and the last of its cells, the time of a microbatch,
/// what it receives for one, and what it keeps in memory at most. Gradients of parameters are a
/// column where the schedule has them apart.
inline void print_plan(std::ostream& out, const pipeline_plan& p) {
  using cella::detail::grouped;
  std::vector<std::vector<std::string>> rows{{"stage", "cells", "forward", "backward",
                                              "bytes received", "microbatches kept", "bytes kept",
                                              "bytes of parameters"}};
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    const pipeline_stage& one = p.stages[s];
    rows.push_back({std::to_string(s), detail::stage_cells(p, int(s)),
                    detail::milliseconds_text(one.forward_seconds),
                    detail::milliseconds_text(one.backward_seconds),
                    grouped(std::int64_t(one.forward_bytes + one.backward_bytes)),
                    std::to_string(one.kept), grouped(std::int64_t(one.most_kept_bytes)),
                    grouped(std::int64_t(one.parameter_bytes))});
  }
  for (std::size_t r = 0; r < rows.size() && splits_backward(p.schedule); ++r)
    rows[r].insert(rows[r].begin() + 4,
                   r ? detail::milliseconds_text(p.stages[r - 1].weights_seconds) : "weights");
  out << detail::plan_title(p) << "\n";
  detail::print_rows(out, rows, 2);
}

}  // namespace cella::parallel
