// A plan as a drawing: the rows of the printed table, with bars for their times.
#pragma once

#include <cella/parallel/plan_text.hpp>
#include <cella/parallel/svg.hpp>

namespace cella::parallel {

/// Draws the plan of `g`: for each cell how its parameters and its result lie, the bytes that a
/// rank sends, and bars for the time of computing and of moves. The numbers are those of
/// `print_plan`.
inline void write_plan_svg(std::ostream& out, const graph& g, const parallel_plan& p);

/// Draws a pipeline: for each stage its cells, the bytes that it receives and keeps, and bars for
/// the forward and the backward pass of a microbatch, which may be two.
inline void write_plan_svg(std::ostream& out, const pipeline_plan& p);

// ------------------------------------------------------------------------------------------------

namespace detail {

/// A row of such a drawing: words, and a time for each kind of bar.
struct drawn_row {
  std::string name, layout, bytes;
  std::vector<double> seconds;
  double sum() const {
    double all = 0;
    for (double s : seconds) all += s;
    return all;
  }
};

inline void draw_rows(std::ostream& out, const std::string& title,
                      const std::array<const char*, 3>& columns,
                      const std::vector<const char*>& bars, const std::vector<drawn_row>& rows) {
  constexpr double row = 22, top = 66, wide = 320, gap = 18;
  constexpr const char* colours[] = {"#4c78a8", "#e45756", "#54a24b"};
  double name = svg::width_of(columns[0]), layout = svg::width_of(columns[1]),
         bytes = svg::width_of(columns[2]), most = 0;
  for (const drawn_row& r : rows) {
    name = std::max(name, svg::width_of(r.name));
    layout = std::max(layout, svg::width_of(r.layout));
    bytes = std::max(bytes, svg::width_of(r.bytes));
    most = std::max(most, r.sum());
  }
  const double x_layout = 10 + name + gap, x_bytes = x_layout + layout + gap + bytes,
               x_bars = x_bytes + gap;
  svg picture(out, x_bars + wide + 90, top + row * double(rows.size()) + 12);
  picture.words(10, 20, title);
  picture.words(10, top - 12, columns[0]);
  picture.words(x_layout, top - 12, columns[1]);
  picture.words(x_bytes, top - 12, columns[2], svg::from::right);
  for (std::size_t k = 0; k < bars.size(); ++k) {
    const double x = x_bars + 110 * double(k);
    picture.box(x, top - 23, 12, 12, colours[k]);
    picture.words(x + 18, top - 12, bars[k]);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const drawn_row& r = rows[i];
    const double y = top + row * double(i);
    if (i % 2 == 0) picture.box(4, y, x_bars + wide + 82, row, "#f5f5f5");
    picture.words(10, y + 15, r.name);
    picture.words(x_layout, y + 15, r.layout);
    picture.words(x_bytes, y + 15, r.bytes, svg::from::right);
    const double scale = most > 0 ? wide / most : 0;
    double x = x_bars;
    for (std::size_t k = 0; k < bars.size(); ++k) {
      const double width = scale * r.seconds[k];
      picture.box(x, y + 4, width, row - 8, colours[k],
                  std::string(bars[k]) + ": " + milliseconds_text(r.seconds[k]));
      x += width;
    }
    picture.words(x + 6, y + 15, milliseconds_text(r.sum()));
  }
  picture.end();
}

}  // namespace detail

inline void write_plan_svg(std::ostream& out, const graph& g, const parallel_plan& p) {
  std::vector<detail::drawn_row> rows;
  for (const cell_cost& c : p.costs())
    rows.push_back({detail::cell_name(c.cell),
                    detail::cell_layout(g, p, c.cell),
                    cella::detail::grouped(std::int64_t(c.moved_bytes)),
                    {c.compute_seconds, c.move_seconds}});
  detail::draw_rows(out, detail::plan_title(p), {"cell", "layout", "bytes moved"},
                    {"computing", "moving"}, rows);
}

inline void write_plan_svg(std::ostream& out, const pipeline_plan& p) {
  std::vector<const char*> bars{"forward", "backward"};
  if (splits_backward(p.schedule)) bars.push_back("weights");
  std::vector<detail::drawn_row> rows;
  for (int s = 0; s < int(p.stages.size()); ++s) {
    const pipeline_stage& one = p.stages[std::size_t(s)];
    rows.push_back({"stage " + std::to_string(s),
                    detail::stage_cells(p, s),
                    cella::detail::grouped(std::int64_t(one.forward_bytes + one.backward_bytes)),
                    {one.forward_seconds, one.backward_seconds, one.weights_seconds}});
  }
  detail::draw_rows(out, detail::plan_title(p), {"stage", "cells", "bytes received"}, bars, rows);
}

}  // namespace cella::parallel
