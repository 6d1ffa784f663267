// Loops over elements whose line is known at run time: loops/elementwise.hpp for lines as data.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/bytecode/row_segments.hpp>
#include <cella/backend/cpu/bytecode/sink.hpp>
#include <cella/backend/cpu/loops/elementwise.hpp>

namespace cella::cpu {

/// Computes all outputs of an elementwise step; units are those of `elementwise_units`.
template <class T>
void run_elementwise(work_range units, const plan_step& s, const line_code<T>& line,
                     const step_addresses<T>& a, std::byte* scratch,
                     dead_lanes dead = no_dead_lanes) {
  block_runner<T> runner(line, s, a, scratch, s.arrangement, dead);
  const auto inner = std::size_t(s.loops - 1);
  const std::int64_t extent = s.loop[inner];
  const int pieces = int((extent + detail::loop_piece - 1) / detail::loop_piece);
  detail::nest_walk rows(s, lanes<T>);
  for (int d = 0; d < s.loops - 1; ++d) rows.add(d);
  std::int64_t row = units.first / pieces;
  rows.go_to(row);
  int piece = units.first % pieces;

  detail::row_segments<T> g;
  std::array<std::array<std::int64_t, 10>, detail::row_segments<T>::most> to;
  const auto flush = [&] {
    if (!g.count) return;
    runner.compute(
        g.list(), [&](int read, int k) { return g.at[std::size_t(k)][std::size_t(read)]; },
        [&](int read) { return s.reads[std::size_t(read)].strides[inner]; },
        [&](int k) -> T* {
          const std::int64_t first = to[0][std::size_t(k)];
          return runner.reaches_dead(first, g.all[0].elements) ? nullptr
                                                               : a.out[std::size_t(k)] + first;
        });
    for (int k = 0; k < s.output_count; ++k) {
      for (int i = 0; i < g.count; ++i)
        runner.store_segment(k, g.all[std::size_t(i)], to[std::size_t(i)][std::size_t(k)]);
    }
    g.clear();
  };
  for (int u = units.first; u < units.last; ++u) {
    std::array<std::int64_t, 16> start{};
    for (std::size_t k = 0; k < std::size_t(s.read_count); ++k)
      start[k] = rows.place(s.reads[k].strides);
    std::array<std::int64_t, 10> out{};
    for (std::size_t k = 0; k < std::size_t(s.output_count); ++k) {
      const step_output& o = s.outputs[k];
      out[k] = o.part ? rows.place(o.strides) : row * extent;
    }
    const std::int64_t end = std::min(extent, (piece + 1) * detail::loop_piece);
    for (std::int64_t i = piece * detail::loop_piece; i < end;) {
      const int n = int(std::min<std::int64_t>(end - i, runner.block()));
      // Long rows are read and written where they lie; short ones are brought together.
      const bool alone = n % lanes<T> == 0 && n >= 8 * lanes<T>;
      if (alone || !g.has_room(n, runner.block())) flush();
      const auto k = std::size_t(g.count++);
      g.all[k] = {g.vectors, n};
      g.vectors += g.all[k].vectors();
      for (std::size_t r = 0; r < std::size_t(s.read_count); ++r)
        g.at[k][r] = start[r] + rows.along(s.reads[r].strides, i);
      for (std::size_t o = 0; o < std::size_t(s.output_count); ++o) to[k][o] = out[o] + i;
      i += n;
    }
    if (++piece < pieces) continue;
    piece = 0;
    ++row;
    rows.next();
  }
  flush();
}

}  // namespace cella::cpu
