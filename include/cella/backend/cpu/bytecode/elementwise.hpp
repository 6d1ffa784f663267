// Loops over elements whose line is known at run time: loops/elementwise.hpp for lines as data.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/bytecode/row_segments.hpp>
#include <cella/backend/cpu/bytecode/sink.hpp>
#include <cella/backend/cpu/loops/elementwise.hpp>

namespace cella::cpu {

namespace detail {

/// Whether a plain step may write where it reads: of what overlaps, some is read later.
template <class T>
bool overwrites_reads(const plan_step& s, const line_code<T>& line, const step_addresses<T>& a) {
  struct stretch {
    const T *first, *last;
  };
  const auto reached = [&](const T* at, const std::array<std::int64_t, max_loops>& strides) {
    stretch r{at, at};
    for (std::size_t d = 0; d < std::size_t(s.loops); ++d) {
      const std::int64_t by = (s.loop[d] - 1) * strides[d];
      (by < 0 ? r.first : r.last) += by;
    }
    return r;
  };
  std::int64_t elements = 1;
  for (int d = 0; d < s.loops; ++d) elements *= s.loop[std::size_t(d)];
  for (std::size_t k = 0; k < std::size_t(s.output_count); ++k) {
    const step_output& o = s.outputs[k];
    const stretch to =
        o.part ? reached(a.out[k], o.strides) : stretch{a.out[k], a.out[k] + elements - 1};
    for (const auto& v : line.values()) {
      if (v.from != line_code<T>::source::read) continue;
      const auto i = std::size_t(v.index);
      const stretch from = reached(a.in[i] + v.further, s.reads[i].strides);
      if (from.first <= to.last && to.first <= from.last) return true;
    }
  }
  return false;
}

}  // namespace detail

/// Computes all outputs of an elementwise step; units are those of `elementwise_units`.
template <class T>
void run_elementwise(work_range units, const plan_step& s, const line_code<T>& line,
                     const step_addresses<T>& a, std::byte* scratch,
                     dead_lanes dead = no_dead_lanes) {
  constexpr int L = lanes<T>;
  using rows_in_memory = typename block_runner<T>::rows_in_memory;
  block_runner<T> runner(line, s, a, scratch, s.arrangement, dead);
  const int inner = s.loops - 1;
  const std::int64_t extent = s.loop[std::size_t(inner)];
  const int pieces = int((extent + detail::loop_piece - 1) / detail::loop_piece);
  // Long rows are read and written where they lie, but for what is left behind their whole vectors;
  // short ones are brought together.
  const bool is_long = extent >= 8 * L, in_place = is_long && runner.keeps_nothing();
  // What is left of a row is then its last vector, of which some is computed twice.
  const bool twice = in_place && extent % L != 0 && !detail::overwrites_reads(s, line, a);
  constexpr std::int64_t longest = std::int64_t{1} << 30;
  const std::int64_t most = in_place ? longest : runner.block();
  // Rows of a rectangle: all that a slot holds of them, and as many as the caches hold: near ones
  // what is computed in several goes, others lines of which the rest of a row is a part.
  const std::int64_t held = (in_place ? 16 : 4) * detail::loop_piece;
  const int most_rows =
      std::min(runner.rows_of(in_place ? L : std::min(extent, most)),
               int(std::max<std::int64_t>(1, held / std::max<std::int64_t>(1, extent))));
  detail::nest_walk outer(s, L);
  for (int d = 0; d < inner; ++d) outer.add(d);
  std::int64_t row = units.first / pieces;
  outer.go_to(row);
  int piece = units.first % pieces;

  const auto apart = [&](const std::array<std::int64_t, max_loops>& strides) {
    return inner > 0 ? strides[std::size_t(inner - 1)] : 0;
  };
  const auto step = [&](int read) {
    return s.reads[std::size_t(read)].strides[std::size_t(inner)];
  };
  for (int u = units.first; u < units.last;) {
    // A rectangle of whole rows, or pieces of one row.
    const int rows =
        pieces > 1 ? 1 : int(std::min<std::int64_t>({units.last - u, outer.left(), most_rows}));
    const int taken = pieces > 1 ? std::min(units.last - u, pieces - piece) : 1;
    const std::int64_t end = std::min(extent, (piece + taken) * detail::loop_piece);
    for (std::int64_t i = piece * detail::loop_piece; i < end;) {
      int n = int(std::min<std::int64_t>(end - i, most));
      if (is_long && n > L) n = n / L * L;
      if (twice && n < L && end - L >= piece * detail::loop_piece) {
        i = end - L;
        n = L;
      }
      runner.compute_rows(
          {rows, n},
          [&](int read) -> rows_in_memory {
            const auto& strides = s.reads[std::size_t(read)].strides;
            return {outer.place(strides) + outer.along(strides, i), apart(strides)};
          },
          step,
          [&](int k) -> rows_in_memory {
            const step_output& o = s.outputs[std::size_t(k)];
            if (o.part) return {outer.place(o.strides) + i, apart(o.strides)};
            return {row * extent + i, extent};
          });
      i += n;
    }
    u += pieces > 1 ? taken : rows;
    piece += taken;
    if (piece < pieces) continue;
    piece = 0;
    row += rows;
    outer.next(rows);
  }
}

}  // namespace cella::cpu
