// Sums over loops of a nest, of the values of a fused group, and their like: the largest, the
// smallest. Plain, or with the batch in the lanes.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/loops/folds.hpp>
#include <cella/backend/cpu/loops/loop_nest.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstdint>
#include <type_traits>

namespace cella::cpu {

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

/// How many vectors a sum has.
enum class sum_length {
  few,  ///< so few that they can be added one after the other
  some,
  many,  ///< in rows so long that memory or a far cache sets the pace
};
template <class T, bool Lanes, int Reads>
constexpr sum_length length_of_sums(const loop_nest<Reads>& n) {
  std::int64_t vectors = 1, row = 1;
  for (int d = 0; d < n.loops; ++d) {
    const int width = Lanes || d < n.loops - 1 ? 1 : lanes<T>;
    row = n.folds(d) ? (n.size[std::size_t(d)] + width - 1) / width : 1;
    vectors *= row;
  }
  return vectors <= few_vectors ? sum_length::few
         : row < 4096           ? sum_length::some
                                : sum_length::many;
}

/// How a sum treats the samples in the lanes.
struct lanes_of_sum {
  bool across{};    ///< sum them, too
  int blocks = 1;   ///< more than one: then they are loop 0
  unsigned live{};  ///< lanes of the last block that hold samples
};

namespace detail {

/// Adds each of some blocks to what those before came to, if there were any.
template <class T>
[[gnu::noinline]] void add_blocks(int vectors, bool several, const vec<T>* block,
                                  wide_sum<T>* blocks) {
  for (int v = 0; v < vectors; ++v)
    blocks[v] = several ? blocks[v] + block[v] : wide_sum<T>(block[v]);
}

}  // namespace detail

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
  constexpr std::int64_t rows_at_once = Line::draws ? 1 : sum_run;
  // As long_sum does it, for many vectors: a block of runs, and what earlier blocks came to.
  constexpr bool rounds = std::is_same_v<Fold, adding>;
  alignas(64) std::array<vec<T>, std::size_t(together * sum_vectors)> block;
  alignas(64) std::array<wide_sum<T>, std::size_t(rounds ? together * sum_vectors : 1)> blocks;
  const int groups = int((n.inner() + width - 1) / width);
  int outer = units.first / groups, group = units.first % groups;
  kept.go_to(outer);
  for (int u = units.first; u < units.last;) {
    const std::int64_t first = std::int64_t{group} * width;
    const int taken = std::min({units.last - u, groups - group, together});
    const std::int64_t columns = std::min(taken * std::int64_t{width}, n.inner() - first);
    const int whole = int(columns / L), rest = int(columns % L);
    const int vectors = whole + (rest > 0);
    int runs = 0;  // of this block
    bool several = false;
    // Adds a run of `count` rows from `at` on to vector v, of which `valid` columns exist.
    const auto add = [&]<bool Whole>(const auto& at, std::int64_t count, int v, int valid) {
      vec<T> sum(Fold::template start<T>);
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
      block[std::size_t(v)] = runs == 0 ? sum : Fold::template fold<T>(block[std::size_t(v)], sum);
    };
    for (std::int64_t f = 0; f < folds; ++f) {
      auto at = kept.at();
      for (std::size_t k = 0; k < at.size(); ++k) at[k] += fold.at()[k];
      for (std::int64_t r = 0; r < rows; r += rows_at_once) {
        const std::int64_t count = std::min(rows_at_once, rows - r);
        if (rounds && runs == sum_block) {
          detail::add_blocks(vectors, several, block.data(), blocks.data());
          runs = 0;
          several = true;
        }
        for (int v = 0; v < whole; ++v) add.template operator()<true>(at, count, v, L);
        if (rest) add.template operator()<false>(at, count, whole, rest);
        ++runs;
        if (last < 0) continue;
        for (std::size_t k = 0; k < std::size_t(Reads); ++k)
          at[k] += count * n.stride[k][std::size_t(last)];
      }
      fold.next();
    }
    if (several) {
      for (std::size_t v = 0; v < std::size_t(vectors); ++v)
        block[v] = (blocks[v] + block[v]).by_lanes();
    }
    for (int v = 0; v < vectors; ++v)
      sink(block[std::size_t(v)], outer * n.inner() + first + v * L, v < whole ? L : rest);
    u += taken;
    group += taken;
    if (group < groups) continue;
    group = 0;
    ++outer;
    kept.next();
  }
}

/// Folds the value of a line over the folded loops; finished values go to the sink in the order of
/// the kept ones, always in the same order. In the lanes only sums. `Length`: length_of_sums().
template <class T, int Reads, bool Lanes, class Line, class Fold = adding,
          sum_length Length = sum_length::some, class Sink>
[[gnu::noinline]] void sum_loops(work_range units, const loop_nest<Reads>& n,
                                 const addresses<T, Reads, 1>& a, lanes_of_sum samples,
                                 const Sink& sink) {
  constexpr bool few_only = Length == sum_length::few;
  const bool inner_folded = n.folds(n.loops - 1);
  if constexpr (!Lanes) {
    if (!inner_folded) return sum_columns_of_loops<T, Reads, Line, Fold>(units, n, a, sink);
  }
  const auto step = detail::inner_steps(n);
  // Kept and folded outer loops as two nests over the same operands.
  detail::loop_walk<Reads> kept(n), fold(n);
  for (int d = 0; d < n.loops - 1; ++d) (n.folds(d) ? fold : kept).add(d);
  const std::int64_t folds = fold.turns();
  constexpr int width = Lanes ? 1 : lanes<T>;
  const std::int64_t whole = n.inner() / width * width;
  // Nothing of a row is left behind its last whole run.
  const bool only_runs = n.inner() % (std::int64_t{sum_run} * width) == 0;
  // Where loop 0 counts blocks of samples, its last turn has lanes without any.
  const bool by_blocks = samples.blocks > 1;
  // In the lanes an innermost kept loop counts units, too.
  const bool kept_inner = Lanes && !inner_folded;
  std::int64_t inner_turn = kept_inner ? units.first % n.inner() : 0;
  kept.go_to(kept_inner ? units.first / n.inner() : units.first);

  for (int u = units.first; u < units.last; ++u) {
    vec<T> few(Fold::template start<T>);
    typename Fold::template total<T> many;
    for (std::int64_t f = 0; f < folds; ++f) {
      auto at = kept.at();
      for (std::size_t k = 0; k < at.size(); ++k) at[k] += fold.at()[k];
      const bool last_block = !by_blocks || (n.folds(0) && fold.outermost_ends());
      fold.next();
      const auto take = [&](vec<T> run) __attribute__((always_inline)) {
        if (Lanes && samples.across && last_block) run = keep(samples.live, run);
        if constexpr (few_only)
          few = Fold::template fold<T>(few, run);
        else
          many.add(run);
      };
      const auto value = [&]<bool Whole>(std::int64_t i, int count) __attribute__((always_inline)) {
        return Line::evaluate(loop_cursor<T, Reads, 1, Lanes, Whole>{a, at, step, i, count})[0];
      };
      if (inner_folded) {
        const auto term = [&](std::int64_t i) __attribute__((always_inline)) {
          return value.template operator()<true>(i, lanes<T>);
        };
        vec<T> run(Fold::template start<T>);
        if constexpr (few_only) {
          for (std::int64_t i = 0; i < whole; i += width)
            run = Fold::template fold<T>(run, term(i));
        } else {
          run = fold_terms<Fold, T, Length == sum_length::many>(whole, width, term, take);
        }
        if (whole < n.inner()) {
          const int rest = int(n.inner() - whole);
          const vec<T> last = value.template operator()<false>(whole, rest);
          run = Fold::template fold<T>(run, fold_first<Fold, T>(rest, last));
        }
        if (few_only || !only_runs) take(run);
      } else {
        take(value.template operator()<false>(inner_turn, lanes<T>));
      }
    }
    if (Lanes && !samples.across)
      sink(few_only ? few : many.by_lanes(), std::int64_t{u}, lanes<T>);
    else
      sink(vec<T>(few_only ? Fold::template over_lanes<T>(few) : many.over_lanes()),
           std::int64_t{u}, 1);
    if (kept_inner && ++inner_turn < n.inner()) continue;
    inner_turn = 0;
    kept.next();
  }
}

}  // namespace cella::cpu
