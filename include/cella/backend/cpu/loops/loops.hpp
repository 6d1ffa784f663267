// Loop nests over fused expressions: elementwise groups and sums, plain or with the batch in the
// lanes.
#pragma once

#include <algorithm>
#include <cella/backend/cpu/loops/expression.hpp>
#include <cella/backend/host/work_range.hpp>

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

template <int Writes>
using output_strides = std::array<std::array<std::int64_t, max_loops>, std::size_t(Writes)>;

/// What terms see inside a loop nest.
template <class T, int Reads, int Writes, bool Lanes, bool Whole = false>
struct loop_cursor {
  const addresses<T, Reads, Writes>& a;
  const std::array<std::int64_t, std::size_t(Reads)>& at;    // where each operand's row begins
  const std::array<std::int64_t, std::size_t(Reads)>& step;  // per turn of the innermost loop
  std::int64_t i;                                            // turn of the innermost loop
  int count;                                                 // plain: valid elements
  vec<T> value{};

  [[gnu::always_inline]] vec<T> number(double x) const { return vec<T>(static_cast<T>(x)); }
  /// Operand K, `further` elements on.
  template <int K, access How, class S>
  [[gnu::always_inline]] vec<T> read(std::int64_t further = 0) const {
    const std::int64_t move = step[std::size_t(K)];
    const auto* p = elements_at<S>(a.in[std::size_t(K)]) + further;
    if constexpr (Lanes) {
      static_assert(std::is_void_v<S>);
      const std::int64_t where = at[std::size_t(K)] + i * move;
      if constexpr (How == access::moving)
        return load(p + where * lanes<T>);
      else
        return vec<T>(p[where]);
    } else if constexpr (How == access::drawn) {
      return drawn_at<K, T>(p, at[std::size_t(K)] + i);
    } else if constexpr (How == access::fixed) {
      return vec<T>(static_cast<T>(p[at[std::size_t(K)]]));
    } else if constexpr (How == access::strided) {
      return spread(p + at[std::size_t(K)] + i * move, move);
    } else {
      p += at[std::size_t(K)] + i;
      if constexpr (Whole)
        return load_stored<T>(p);
      else
        return load_stored<T>(p, count);
    }
  }
  template <class S>
  [[gnu::noinline]] vec<T> spread(const S* p, std::int64_t move) const {
    alignas(64) std::array<T, std::size_t(lanes<T>)> row{};
    for (int j = 0; j < count; ++j) row[std::size_t(j)] = static_cast<T>(p[j * move]);
    return load(row.data());
  }
};

namespace detail {

/// Elements (or lane vectors) of the innermost loop that one unit of work takes.
inline constexpr std::int64_t loop_piece = 4096;

template <int Reads>
constexpr int pieces(const loop_nest<Reads>& n) {
  return int((n.inner() + loop_piece - 1) / loop_piece);
}

/// Where the operands stand at turn `outer` of the loops [0, last), counted as one. Most often that
/// is the first turn, and nothing is divided.
template <int Reads>
constexpr std::array<std::int64_t, std::size_t(Reads)> positions(const loop_nest<Reads>& n,
                                                                 std::int64_t outer, int last) {
  std::array<std::int64_t, std::size_t(Reads)> at{};
  for (int d = last; d-- > 0 && outer != 0;) {
    const std::int64_t turn = outer % n.size[std::size_t(d)];
    outer /= n.size[std::size_t(d)];
    for (std::size_t k = 0; k < at.size(); ++k) at[k] += turn * n.stride[k][std::size_t(d)];
  }
  return at;
}
/// The same for one output.
template <int Reads>
constexpr std::int64_t position(const loop_nest<Reads>& n,
                                const std::array<std::int64_t, max_loops>& stride,
                                std::int64_t outer) {
  std::int64_t at = 0;
  for (int d = n.loops - 1; d-- > 0 && outer != 0;) {
    at += outer % n.size[std::size_t(d)] * stride[std::size_t(d)];
    outer /= n.size[std::size_t(d)];
  }
  return at;
}
/// The turns of some loops of a nest, counted as one. From turn to turn nothing is divided: that
/// takes longer than a short row. Behind the last turn stands the first.
template <int Reads>
class loop_walk {
 public:
  using positions = std::array<std::int64_t, std::size_t(Reads)>;

  constexpr explicit loop_walk(const loop_nest<Reads>& n) : n_(n) {}
  /// Loop d runs inside those that were added before.
  constexpr void add(int d) {
    loop& l = loops_[std::size_t(count_++)];
    l.size = n_.size[std::size_t(d)];
    for (std::size_t k = 0; k < at_.size(); ++k) {
      l.step[k] = n_.stride[k][std::size_t(d)];
      l.back[k] = (1 - l.size) * l.step[k];
    }
  }
  constexpr std::int64_t turns() const {
    std::int64_t product = 1;
    for (int d = 0; d < count_; ++d) product *= loops_[std::size_t(d)].size;
    return product;
  }
  constexpr void go_to(std::int64_t turn) {
    at_ = {};
    for (int d = count_; d-- > 0;) {
      loop& l = loops_[std::size_t(d)];
      l.turn = turn == 0 ? 0 : turn % l.size;
      turn = turn == 0 ? 0 : turn / l.size;
      for (std::size_t k = 0; k < at_.size(); ++k) at_[k] += l.turn * l.step[k];
    }
  }
  constexpr void next() {
    for (int d = count_; d-- > 0;) {
      loop& l = loops_[std::size_t(d)];
      if (++l.turn < l.size) return move(l.step);
      l.turn = 0;
      move(l.back);
    }
  }
  /// Where the operands stand.
  constexpr const positions& at() const { return at_; }
  /// Whether the outermost loop that was added is in its last turn.
  constexpr bool outermost_ends() const { return loops_[0].turn == loops_[0].size - 1; }

 private:
  struct loop {
    std::int64_t size{};
    std::int64_t turn{};
    positions step{}, back{};  ///< to the next turn, and from the last one to the first
  };
  constexpr void move(const positions& by) {
    for (std::size_t k = 0; k < at_.size(); ++k) at_[k] += by[k];
  }

  const loop_nest<Reads>& n_;
  int count_ = 0;
  std::array<loop, std::size_t(max_loops)> loops_{};
  positions at_{};
};
/// The loops but the innermost one as kept and folded ones. The last one that is folded is left to
/// the caller, who runs it innermost; returns it, or -1.
template <int Reads>
constexpr int split_loops(const loop_nest<Reads>& n, loop_walk<Reads>& kept,
                          loop_walk<Reads>& fold) {
  int last = -1;
  for (int d = 0; d < n.loops - 1; ++d) {
    if (!n.folds(d)) {
      kept.add(d);
    } else {
      if (last >= 0) fold.add(last);
      last = d;
    }
  }
  return last;
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
        Line::store_vectors(kept,
                            [&](std::size_t k) { return a.out[k] + (row[k] + i) * lanes<T>; });
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

// ---- sums

/// Vectors of neighbouring sums that one unit of work yields, so that it reads whole stretches of
/// each row.
inline constexpr int sum_vectors = 4;

/// A unit is one kept element (a lane vector of it, where the lanes are kept), or a few vectors of
/// neighbouring kept elements of a plain tensor whose innermost loop is kept.
template <class T, bool Lanes, int Reads>
constexpr int sum_units(const loop_nest<Reads>& n) {
  std::int64_t kept = 1;
  for (int d = 0; d < n.loops; ++d) {
    if (!n.folds(d)) kept *= n.size[std::size_t(d)];
  }
  if (Lanes || n.folds(n.loops - 1)) return int(kept);
  constexpr int width = sum_vectors * lanes<T>;
  return int(kept / n.inner() * ((n.inner() + width - 1) / width));
}

/// How values are folded into one: from `start` on, in any order.
struct adding {
  template <class T>
  static constexpr T start = T(0);
  template <class T>
  [[gnu::always_inline]] static vec<T> fold(vec<T> a, vec<T> v) {
    return a + v;
  }
  template <class T>
  static T over_lanes(vec<T> a) {
    return sum(a);
  }
};
/// The largest (or smallest), NaN if one is.
template <bool Largest>
struct extreme {
  template <class T>
  static constexpr T start = (Largest ? T(-1) : T(1)) * std::numeric_limits<T>::infinity();
  template <class T>
  [[gnu::always_inline]] static vec<T> fold(vec<T> a, vec<T> v) {
    // Not v != v: in AVX-512 xsimd's is false for NaN.
    return xsimd::select((Largest ? v > a : v < a) || !(v == v), v, a);
  }
  template <class T>
  static T over_lanes(vec<T> a) {
    alignas(vec<T>) T x[lanes<T>];
    store(x, a);
    T y = x[0];
    for (T v : x) y = (Largest ? v > y : v < y) || v != v ? v : y;
    return y;
  }
};
/// The first `count` lanes of v, and what changes nothing in the others.
template <class Fold, class T>
[[gnu::always_inline]] inline vec<T> fold_first(int count, vec<T> v) {
  if constexpr (std::is_same_v<Fold, adding>)
    return keep(first_bits(count), v);
  else
    return select(first_bits(count), v, vec<T>(Fold::template start<T>));
}

/// How a sum treats the samples in the lanes.
struct lanes_of_sum {
  bool across{};    ///< sum them, too
  int blocks = 1;   ///< more than one: then they are loop 0
  unsigned live{};  ///< lanes of the last block that hold samples
};

/// Folds the value of a line over the folded loops of a plain nest whose innermost loop is kept.
template <class T, int Reads, class Line, class Fold, class Sink>
[[gnu::noinline]] void sum_columns_of_loops(work_range units, const loop_nest<Reads>& n,
                                            const addresses<T, Reads, 1>& a, const Sink& sink) {
  constexpr unsigned moved = Line::reads;
  constexpr int L = lanes<T>, width = sum_vectors * L;
  const auto step = detail::inner_steps(n);
  detail::loop_walk<Reads> kept(n), fold(n);
  const int last = detail::split_loops(n, kept, fold);
  const std::int64_t rows = last >= 0 ? n.size[std::size_t(last)] : 1;
  const std::int64_t folds = fold.turns();
  // Units that lie side by side are summed together, a few rows at a time: memory is read in long
  // stretches, and each sum is loaded and stored once for those rows. Random numbers are drawn
  // along a row.
  constexpr int together = 32;
  constexpr std::int64_t rows_at_once = Line::draws ? 1 : 8;
  alignas(64) std::array<vec<T>, std::size_t(together * sum_vectors)> total;
  const int groups = int((n.inner() + width - 1) / width);
  int outer = units.first / groups, group = units.first % groups;
  kept.go_to(outer);
  for (int u = units.first; u < units.last;) {
    const std::int64_t first = std::int64_t{group} * width;
    const int taken = std::min({units.last - u, groups - group, together});
    const std::int64_t columns = std::min(taken * std::int64_t{width}, n.inner() - first);
    const int whole = int(columns / L), rest = int(columns % L);
    const int vectors = whole + (rest > 0);
    std::fill_n(total.begin(), vectors, vec<T>(Fold::template start<T>));
    // Adds `count` rows from `at` on to vector v, of which `valid` columns exist.
    const auto add = [&]<bool Whole>(const auto& at, std::int64_t count, int v, int valid) {
      vec<T> sum = total[std::size_t(v)];
      auto row = at;
      for (std::int64_t r = 0; r < count; ++r) {
        sum = Fold::template fold<T>(sum, Line::evaluate(loop_cursor<T, Reads, 1, false, Whole>{
                                              a, row, step, first + v * L, valid})[0]);
        if (last < 0) continue;
          // What only the epilogue reads stays where it is.
#pragma GCC unroll 16
        for (std::size_t k = 0; k < std::size_t(Reads); ++k) {
          if (moved >> k & 1u) row[k] += n.stride[k][std::size_t(last)];
        }
      }
      total[std::size_t(v)] = sum;
    };
    for (std::int64_t f = 0; f < folds; ++f) {
      auto at = kept.at();
      for (std::size_t k = 0; k < at.size(); ++k) at[k] += fold.at()[k];
      for (std::int64_t r = 0; r < rows; r += rows_at_once) {
        const std::int64_t count = std::min(rows_at_once, rows - r);
        for (int v = 0; v < whole; ++v) add.template operator()<true>(at, count, v, L);
        if (rest) add.template operator()<false>(at, count, whole, rest);
        if (last < 0) continue;
        for (std::size_t k = 0; k < std::size_t(Reads); ++k)
          at[k] += count * n.stride[k][std::size_t(last)];
      }
      fold.next();
    }
    for (int v = 0; v < vectors; ++v)
      sink(total[std::size_t(v)], outer * n.inner() + first + v * L, v < whole ? L : rest);
    u += taken;
    group += taken;
    if (group < groups) continue;
    group = 0;
    ++outer;
    kept.next();
  }
}

/// Folds the value of a line over the folded loops; finished values go to the sink in the order of
/// the kept ones. Each row is summed by itself first, which keeps the rounding error small, and
/// always in the same order. In the lanes only sums.
template <class T, int Reads, bool Lanes, class Line, class Fold = adding, class Sink>
[[gnu::noinline]] void sum_loops(work_range units, const loop_nest<Reads>& n,
                                 const addresses<T, Reads, 1>& a, lanes_of_sum samples,
                                 const Sink& sink) {
  const bool inner_folded = n.folds(n.loops - 1);
  if constexpr (!Lanes) {
    if (!inner_folded) return sum_columns_of_loops<T, Reads, Line, Fold>(units, n, a, sink);
  }
  const auto step = detail::inner_steps(n);
  // Kept and folded outer loops as two nests over the same operands.
  detail::loop_walk<Reads> kept(n), fold(n);
  for (int d = 0; d < n.loops - 1; ++d) (n.folds(d) ? fold : kept).add(d);
  const std::int64_t folds = fold.turns();
  // Where loop 0 counts blocks of samples, its last turn has lanes without any.
  const bool by_blocks = samples.blocks > 1;
  // In the lanes an innermost kept loop counts units, too.
  const bool kept_inner = Lanes && !inner_folded;
  std::int64_t inner_turn = kept_inner ? units.first % n.inner() : 0;
  kept.go_to(kept_inner ? units.first / n.inner() : units.first);

  for (int u = units.first; u < units.last; ++u) {
    vec<T> total(Fold::template start<T>);
    for (std::int64_t f = 0; f < folds; ++f) {
      auto at = kept.at();
      for (std::size_t k = 0; k < at.size(); ++k) at[k] += fold.at()[k];
      const bool last_block = !by_blocks || (n.folds(0) && fold.outermost_ends());
      fold.next();
      vec<T> row(Fold::template start<T>);
      if (inner_folded) {
        constexpr int width = Lanes ? 1 : lanes<T>;
        const std::int64_t whole = Lanes ? n.inner() : n.inner() / lanes<T> * lanes<T>;
        for (std::int64_t i = 0; i < whole; i += width) {
          row = Fold::template fold<T>(row, Line::evaluate(loop_cursor<T, Reads, 1, Lanes, true>{
                                                a, at, step, i, lanes<T>})[0]);
        }
        if (whole < n.inner()) {
          const int rest = int(n.inner() - whole);
          row = Fold::template fold<T>(
              row, fold_first<Fold, T>(rest, Line::evaluate(loop_cursor<T, Reads, 1, Lanes>{
                                                 a, at, step, whole, rest})[0]));
        }
      } else {
        row = Line::evaluate(loop_cursor<T, Reads, 1, Lanes>{a, at, step, inner_turn, lanes<T>})[0];
      }
      total = Fold::template fold<T>(
          total, Lanes && samples.across && last_block ? keep(samples.live, row) : row);
    }
    if (Lanes && !samples.across) {
      sink(total, std::int64_t{u}, lanes<T>);
    } else {
      sink(vec<T>(Fold::template over_lanes<T>(total)), std::int64_t{u}, 1);
    }
    if (kept_inner && ++inner_turn < n.inner()) continue;
    inner_turn = 0;
    kept.next();
  }
}

}  // namespace cella::cpu
