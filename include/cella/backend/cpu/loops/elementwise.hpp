// Loop nests over elementwise groups, plain or with the batch in the lanes.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/loops/epilogue.hpp>
#include <cella/backend/cpu/loops/loop_nest.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstdint>

namespace cella::cpu {

namespace detail {

/// Elements (or lane vectors) of the innermost loop that one unit of work takes.
inline constexpr std::int64_t loop_piece = 4096;

template <int Reads>
constexpr int pieces(const loop_nest<Reads>& n) {
  return int((n.inner() + loop_piece - 1) / loop_piece);
}

}  // namespace detail

template <int Reads>
constexpr int elementwise_units(const loop_nest<Reads>& n) {
  return int(n.turns(0, n.loops - 1) * detail::pieces(n));
}

/// Evaluates the line at every point of the nest. An output is dense in its order,
/// or a part of a larger plain tensor: then `strides` says how far it moves per turn of each loop,
/// one element in the innermost.
template <class T, int Reads, bool Lanes, bool Ragged, class Line>
[[gnu::noinline]] void elementwise(work_range units, const loop_nest<Reads>& n,
                                   const addresses<T, Reads, Line::results>& operands,
                                   dead_lanes dead,
                                   const output_strides<Line::results>& strides = {}) {
  // A copy that nothing else can see, so that a store does not make the compiler read it again.
  const addresses<T, Reads, Line::results> a = operands;
  constexpr int width = Lanes ? 1 : lanes<T>;
  const auto step = detail::inner_steps(n);
  const int pieces = detail::pieces(n);
  std::array<bool, std::size_t(Line::results)> part{};
  for (std::size_t k = 0; k < part.size(); ++k) part[k] = strides[k][std::size_t(n.loops - 1)] != 0;
  // Where the operands' and the outputs' rows begin: computed once, then moved from row to row.
  std::int64_t outer{units.first / pieces};
  auto at = detail::positions(n, outer, n.loops - 1);
  std::array<std::int64_t, std::size_t(Line::results)> row{};
  for (std::size_t k = 0; k < row.size(); ++k)
    row[k] = part[k] ? detail::position(n, strides[k], outer) : outer * n.inner();
  std::array<std::int64_t, max_loops> index{};
  for (int d = n.loops - 1; d-- > 0 && outer != 0;) {
    index[std::size_t(d)] = outer % n.size[std::size_t(d)];
    outer /= n.size[std::size_t(d)];
  }
  const auto wrap = [&] {
    for (int d = n.loops - 2; d >= 0; --d) {
      const auto loop = std::size_t(d);
      const bool wraps = d == n.loops - 2 || ++index[loop] == n.size[loop];
      const std::int64_t by = wraps ? 1 - n.size[loop] : 1;
      for (std::size_t k = 0; k < at.size(); ++k) at[k] += by * n.stride[k][loop];
      for (std::size_t k = 0; k < row.size(); ++k) {
        if (part[k]) row[k] += by * strides[k][loop];
      }
      if (!wraps) break;
      index[loop] = 0;
    }
    for (std::size_t k = 0; k < row.size(); ++k) {
      if (!part[k]) row[k] += n.inner();
    }
  };
  // Rows may be short, so that the step to the next one is as short as can be.
  const int rows = n.loops - 2;
  std::array<std::int64_t, std::size_t(Reads)> next_at{};
  std::array<std::int64_t, std::size_t(Line::results)> next{};
  if (rows >= 0) {
    for (std::size_t k = 0; k < at.size(); ++k) next_at[k] = n.stride[k][std::size_t(rows)];
    for (std::size_t k = 0; k < row.size(); ++k)
      next[k] = part[k] ? strides[k][std::size_t(rows)] : n.inner();
  }
  std::int64_t left = rows >= 0 ? n.size[std::size_t(rows)] - index[std::size_t(rows)] : 1;
  int piece = units.first % pieces;
  for (int u = units.first; u < units.last; ++u) {
    const std::int64_t first = std::int64_t{piece} * detail::loop_piece;
    const std::int64_t last = std::min(n.inner(), first + detail::loop_piece);
    auto value = [&]<bool Whole>(std::int64_t i, int count) __attribute__((always_inline)) {
      return Line::evaluate(
          loop_cursor<T, Reads, Line::results, Lanes, Whole>{a, at, step, i, count});
    };
    auto put = [&](std::int64_t i, const auto& y, int count) __attribute__((always_inline)) {
      if constexpr (Lanes) {
        auto kept = y;
        if constexpr (Ragged) {
          for (std::size_t k = 0; k < y.size(); ++k)
            kept[k] = row[k] + i >= dead.from ? keep(dead.live, y[k]) : y[k];
        }
        Line::store_vectors(a.out, kept, [&](std::size_t k) { return (row[k] + i) * lanes<T>; });
      } else {
        Line::store(a.out, y, count, [&](std::size_t k) { return row[k] + i; });
      }
    };
    const std::int64_t whole = first + (last - first) / width * width;
    std::int64_t i = first;
    // Vectors of a product share the numbers of its other factor.
    if constexpr (Line::sums_up) {
      constexpr int together = 4;
      for (; i + together * width <= whole; i += together * width) {
        std::array<decltype(value.template operator()<true>(i, width)), std::size_t(together)> y;
#pragma GCC unroll 4
        for (int v = 0; v < together; ++v)
          y[std::size_t(v)] = value.template operator()<true>(i + v * width, width);
#pragma GCC unroll 4
        for (int v = 0; v < together; ++v) put(i + v * width, y[std::size_t(v)], width);
      }
    }
    for (; i < whole; i += width) put(i, value.template operator()<true>(i, width), width);
    if (whole < last) {
      const int rest = int(last - whole);
      put(whole, value.template operator()<false>(whole, rest), rest);
    }
    if (++piece < pieces) continue;
    piece = 0;
    if (--left > 0) {
#pragma GCC unroll 16
      for (std::size_t k = 0; k < at.size(); ++k) at[k] += next_at[k];
      for (std::size_t k = 0; k < row.size(); ++k) row[k] += next[k];
    } else if (rows >= 0) {
      left = n.size[std::size_t(rows)];
      wrap();
    }
  }
}

}  // namespace cella::cpu
