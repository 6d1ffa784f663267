// Loop nests over fused expressions: elementwise groups and sums, plain or with the batch in the
// lanes.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/expression.hpp>
#include <cella/backend/work_range.hpp>

namespace cella::cpu {

/// The loops of a group, outermost first, and how far each operand moves per turn: in elements, or
/// in lane vectors for operands with the batch in the lanes.
template <int Reads>
struct loop_nest {
  int loops{};
  std::array<std::int64_t, max_loops> size{};
  std::array<std::array<std::int64_t, max_loops>, std::size_t(Reads)> stride{};
  unsigned folded{};  ///< loops that a sum runs over

  constexpr std::int64_t turns(int first, int last) const {
    std::int64_t n = 1;
    for (int d = first; d < last; ++d) n *= size[std::size_t(d)];
    return n;
  }
  constexpr std::int64_t inner() const { return size[std::size_t(loops - 1)]; }
  constexpr bool folds(int d) const { return folded >> d & 1; }
};

/// What terms see inside a loop nest.
template <class T, int Reads, int Writes, bool Lanes>
struct loop_cursor {
  const addresses<T, Reads, Writes>& a;
  const std::array<std::int64_t, std::size_t(Reads)>& at;    // where each operand's row begins
  const std::array<std::int64_t, std::size_t(Reads)>& step;  // per turn of the innermost loop
  std::int64_t i;                                            // turn of the innermost loop
  int count;                                                 // plain: valid elements
  vec<T> value{};

  vec<T> number(double x) const { return vec<T>(static_cast<T>(x)); }
  template <int K, access How>
  vec<T> read() const {
    const std::int64_t move = step[std::size_t(K)];
    const T* p = a.in[std::size_t(K)];
    const std::int64_t where = at[std::size_t(K)] + i * move;
    if constexpr (Lanes) {
      if constexpr (How == access::moving)
        return load(p + where * lanes<T>);
      else
        return vec<T>(p[where]);
    } else if constexpr (How == access::fixed) {
      return vec<T>(p[at[std::size_t(K)]]);
    } else {
      if (move == 1)
        return count == lanes<T> ? load_unaligned(p + where) : load_first(p + where, count);
      alignas(64) std::array<T, std::size_t(lanes<T>)> row{};
      for (int j = 0; j < count; ++j) row[std::size_t(j)] = p[where + j * move];
      return load(row.data());
    }
  }
};

namespace detail {

/// Elements (or lane vectors) of the innermost loop that one unit of work takes.
inline constexpr std::int64_t loop_piece = 4096;

template <int Reads>
constexpr std::int64_t pieces(const loop_nest<Reads>& n) {
  return (n.inner() + loop_piece - 1) / loop_piece;
}

/// Where the operands stand at turn `outer` of the loops [0, last), counted as one.
template <int Reads>
constexpr std::array<std::int64_t, std::size_t(Reads)> positions(const loop_nest<Reads>& n,
                                                                 std::int64_t outer, int last) {
  std::array<std::int64_t, std::size_t(Reads)> at{};
  for (int d = last; d-- > 0;) {
    const std::int64_t turn = outer % n.size[std::size_t(d)];
    outer /= n.size[std::size_t(d)];
    for (std::size_t k = 0; k < at.size(); ++k) at[k] += turn * n.stride[k][std::size_t(d)];
  }
  return at;
}
template <int Reads>
constexpr std::array<std::int64_t, std::size_t(Reads)> inner_steps(const loop_nest<Reads>& n) {
  std::array<std::int64_t, std::size_t(Reads)> s{};
  for (std::size_t k = 0; k < s.size(); ++k) s[k] = n.stride[k][std::size_t(n.loops - 1)];
  return s;
}

}  // namespace detail

// ---- elementwise

template <int Reads>
constexpr int elementwise_units(const loop_nest<Reads>& n) {
  return int(n.turns(0, n.loops - 1) * detail::pieces(n));
}

/// Evaluates each output's expression at every point of the nest; outputs are dense in its order.
template <class T, int Reads, bool Lanes, bool Ragged, class... Outputs>
[[gnu::noinline]] void elementwise(work_range units, const loop_nest<Reads>& n,
                                   const addresses<T, Reads, int(sizeof...(Outputs))>& a,
                                   dead_lanes dead) {
  constexpr int width = Lanes ? 1 : lanes<T>;
  const auto step = detail::inner_steps(n);
  const std::int64_t pieces = detail::pieces(n);
  for (int u = units.first; u < units.last; ++u) {
    const std::int64_t outer = u / pieces;
    const std::int64_t first = u % pieces * detail::loop_piece;
    const std::int64_t last = std::min(n.inner(), first + detail::loop_piece);
    const auto at = detail::positions(n, outer, n.loops - 1);
    for (std::int64_t i = first; i < last; i += width) {
      const int count = Lanes ? lanes<T> : int(std::min<std::int64_t>(width, last - i));
      const loop_cursor<T, Reads, int(sizeof...(Outputs)), Lanes> c{a, at, step, i, count};
      const std::array<vec<T>, sizeof...(Outputs)> y{Outputs::evaluate(c)...};
      const std::int64_t element = outer * n.inner() + i;
      for (std::size_t k = 0; k < y.size(); ++k) {
        if constexpr (Lanes) {
          store(a.out[k] + element * lanes<T>,
                Ragged && element >= dead.from ? keep(dead.live, y[k]) : y[k]);
        } else if (count == lanes<T>) {
          store_unaligned(a.out[k] + element, y[k]);
        } else {
          store_first(a.out[k] + element, count, y[k]);
        }
      }
    }
  }
}

// ---- sums

/// A unit is one kept element (a lane vector of it, where the lanes are kept), or one vector of
/// neighbouring kept elements of a plain tensor whose innermost loop is kept.
template <class T, bool Lanes, int Reads>
constexpr int sum_units(const loop_nest<Reads>& n) {
  std::int64_t kept = 1;
  for (int d = 0; d < n.loops; ++d) {
    if (!n.folds(d)) kept *= n.size[std::size_t(d)];
  }
  if (Lanes || n.folds(n.loops - 1)) return int(kept);
  return int(kept / n.inner() * ((n.inner() + lanes<T> - 1) / lanes<T>));
}

/// How a sum treats the samples in the lanes.
struct lanes_of_sum {
  bool across{};    ///< sum them, too
  int blocks = 1;   ///< more than one: then they are loop 0
  unsigned live{};  ///< lanes of the last block that hold samples
};

/// Sums `Term` over the folded loops; finished values go to the sink in the order of the kept ones.
/// Each row is summed by itself first, which keeps the rounding error small, and always in the same
/// order.
template <class T, int Reads, bool Lanes, class Term, class Sink>
[[gnu::noinline]] void sum_loops(work_range units, const loop_nest<Reads>& n,
                                 const addresses<T, Reads, 1>& a, lanes_of_sum samples,
                                 const Sink& sink) {
  const auto step = detail::inner_steps(n);
  const bool inner_folded = n.folds(n.loops - 1);
  const bool vectors_of_kept = !Lanes && !inner_folded;
  // Kept and folded outer loops as two nests over the same operands.
  std::array<int, max_loops> kept{};
  std::array<int, max_loops> fold{};
  int kept_count = 0;
  int fold_count = 0;
  for (int d = 0; d < n.loops - 1; ++d)
    (n.folds(d) ? fold[std::size_t(fold_count++)] : kept[std::size_t(kept_count++)]) = d;
  auto place = [&](std::int64_t turn, const std::array<int, max_loops>& list, int size, auto& at) {
    bool last_block = samples.blocks == 1;
    for (int d = size; d-- > 0;) {
      const auto loop = std::size_t(list[std::size_t(d)]);
      const std::int64_t t = turn % n.size[loop];
      turn /= n.size[loop];
      if (loop == 0 && samples.blocks > 1) last_block = t == n.size[0] - 1;
      for (std::size_t k = 0; k < at.size(); ++k) at[k] += t * n.stride[k][loop];
    }
    return last_block;
  };
  std::int64_t folds = 1;
  for (int d = 0; d < fold_count; ++d) folds *= n.size[std::size_t(fold[std::size_t(d)])];
  const std::int64_t groups = vectors_of_kept ? (n.inner() + lanes<T> - 1) / lanes<T> : 1;

  for (int u = units.first; u < units.last; ++u) {
    // In the lanes an innermost kept loop counts units, too.
    const bool kept_inner_lanes = Lanes && !inner_folded;
    const std::int64_t inner_turn = vectors_of_kept    ? u % groups * lanes<T>
                                    : kept_inner_lanes ? u % n.inner()
                                                       : 0;
    const std::int64_t outer = vectors_of_kept ? u / groups : kept_inner_lanes ? u / n.inner() : u;
    std::array<std::int64_t, std::size_t(Reads)> base{};
    place(outer, kept, kept_count, base);
    const int count =
        vectors_of_kept ? int(std::min<std::int64_t>(lanes<T>, n.inner() - inner_turn)) : lanes<T>;
    vec<T> total(T{0});
    for (std::int64_t f = 0; f < folds; ++f) {
      auto at = base;
      const bool last_block = place(f, fold, fold_count, at);
      vec<T> row(T{0});
      if (inner_folded) {
        constexpr int width = Lanes ? 1 : lanes<T>;
        const std::int64_t whole = Lanes ? n.inner() : n.inner() / lanes<T> * lanes<T>;
        for (std::int64_t i = 0; i < whole; i += width) {
          row = row + Term::evaluate(loop_cursor<T, Reads, 1, Lanes>{a, at, step, i, lanes<T>});
        }
        if (whole < n.inner()) {
          const int rest = int(n.inner() - whole);
          row =
              row + keep(first_bits(rest),
                         Term::evaluate(loop_cursor<T, Reads, 1, Lanes>{a, at, step, whole, rest}));
        }
      } else {
        row = Term::evaluate(loop_cursor<T, Reads, 1, Lanes>{a, at, step, inner_turn, count});
      }
      total = total + (Lanes && samples.across && last_block ? keep(samples.live, row) : row);
    }
    if (vectors_of_kept) {
      sink(total, outer * n.inner() + inner_turn, count);
    } else if (Lanes && !samples.across) {
      sink(total, std::int64_t{u}, lanes<T>);
    } else {
      sink(vec<T>(sum(total)), std::int64_t{u}, 1);
    }
  }
}

}  // namespace cella::cpu
