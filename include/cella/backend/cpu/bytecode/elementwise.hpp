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
  const auto reads = std::size_t(s.read_count), outputs = std::size_t(s.output_count);
  const std::int64_t extent = s.loop[inner];
  const int pieces = int((extent + detail::loop_piece - 1) / detail::loop_piece);
  constexpr std::int64_t longest = std::int64_t{1} << 30;
  const std::int64_t most = runner.keeps_nothing() ? longest : runner.block();
  detail::nest_walk rows(s, lanes<T>);
  for (int d = 0; d < s.loops - 1; ++d) rows.add(d);
  std::int64_t row = units.first / pieces;
  rows.go_to(row);
  int piece = units.first % pieces;

  using segment = typename block_runner<T>::segment;
  const auto step = [&](int read) { return s.reads[std::size_t(read)].strides[inner]; };
  // Computes segments, which read from(read, segment) and belong at to(output, segment).
  const auto compute = [&](span<const segment> segments, auto from, auto to) {
    runner.compute(segments, from, step, [&](int k) -> T* {
      const std::int64_t first = to(k, 0);
      return runner.reaches_dead(first, segments[0].elements) ? nullptr
                                                              : a.out[std::size_t(k)] + first;
    });
    for (int k = 0; k < s.output_count; ++k)
      runner.store_segments(k, segments, [&](int i) { return to(k, i); });
  };
  detail::row_segments<T> g;
  std::array<std::array<std::int64_t, 10>, detail::row_segments<T>::most> belongs;
  const auto flush = [&] {
    if (!g.count) return;
    compute(
        g.list(), [&](int read, int k) { return g.at[std::size_t(k)][std::size_t(read)]; },
        [&](int k, int i) { return belongs[std::size_t(i)][std::size_t(k)]; });
    g.clear();
  };
  std::array<std::int64_t, 16> start;
  std::array<std::int64_t, 10> out;
  for (int u = units.first; u < units.last;) {
    for (std::size_t k = 0; k < reads; ++k) start[k] = rows.place(s.reads[k].strides);
    for (std::size_t k = 0; k < outputs; ++k) {
      const step_output& o = s.outputs[k];
      out[k] = o.part ? rows.place(o.strides) : row * extent;
    }
    const int taken = std::min(units.last - u, pieces - piece);
    const std::int64_t end = std::min(extent, (piece + taken) * detail::loop_piece);
    for (std::int64_t i = piece * detail::loop_piece; i < end;) {
      int n = int(std::min<std::int64_t>(end - i, most));
      // Long rows are read and written where they lie; short ones, and what is left of a long one
      // behind its whole vectors, are brought together.
      if (n >= 8 * lanes<T>) {
        n = n / lanes<T> * lanes<T>;
        const segment alone{0, n};
        compute(
            {&alone, 1},
            [&](int read, int) {
              const auto r = std::size_t(read);
              return start[r] + rows.along(s.reads[r].strides, i);
            },
            [&](int k, int) { return out[std::size_t(k)] + i; });
        i += n;
        continue;
      }
      if (!g.has_room(n, runner.block())) flush();
      const auto k = std::size_t(g.count++);
      g.all[k] = {g.vectors, n};
      g.vectors += g.all[k].vectors();
      for (std::size_t r = 0; r < reads; ++r)
        g.at[k][r] = start[r] + rows.along(s.reads[r].strides, i);
      for (std::size_t o = 0; o < outputs; ++o) belongs[k][o] = out[o] + i;
      i += n;
    }
    u += taken;
    piece += taken;
    if (piece < pieces) continue;
    piece = 0;
    ++row;
    rows.next();
  }
  flush();
}

}  // namespace cella::cpu
