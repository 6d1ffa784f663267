// Loop nests over rows so short that the way from one to the next costs more than a row itself: the
// nest is a constant here, so that extents and strides are numbers in the instructions.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/loops/folds.hpp>
#include <cella/backend/cpu/loops/loop_nest.hpp>
#include <cella/backend/host/work_range.hpp>
#include <cstdint>
#include <utility>

namespace cella::cpu {

namespace detail {

template <std::size_t Count>
using stride_table = std::array<std::array<std::int64_t, max_loops>, Count>;

/// The outermost loop that is not folded and has loops inside, or -1: units are its turns.
template <int Reads>
constexpr int loop_of_units(const loop_nest<Reads>& n) {
  for (int d = 0; d < n.loops - 1; ++d) {
    if (!n.folds(d)) return d;
  }
  return -1;
}
/// Rows that are folded into one.
template <int Reads>
constexpr std::int64_t folded_turns(const loop_nest<Reads>& n) {
  std::int64_t turns = 1;
  for (int d = 0; d < n.loops; ++d) {
    if (n.folds(d)) turns *= n.size[std::size_t(d)];
  }
  return turns;
}

}  // namespace detail

template <int Reads>
constexpr int short_row_units(const loop_nest<Reads>& n) {
  const int d = detail::loop_of_units(n);
  return d < 0 ? 1 : int(n.size[std::size_t(d)]);
}
/// Whether the rows of a plain nest are that short, there are several of them, and threads can
/// share the units if there are many.
template <class T, int Reads>
constexpr bool has_short_rows(const loop_nest<Reads>& n) {
  if (n.loops < 2 || n.folds(n.loops - 1) || n.inner() > 2 * lanes<T>) return false;
  return short_row_units(n) >= 16 || n.turns(0, n.loops) <= 1 << 14;
}

namespace detail {

template <const auto& Nest>
inline constexpr auto steps_of = inner_steps(Nest);

/// `at`, `turns` turns of loop D further.
template <const auto& Strides, int D, std::size_t Count>
[[gnu::always_inline]] inline std::array<std::int64_t, Count> further(
    const std::array<std::int64_t, Count>& at, std::int64_t turns) {
  return [&]<std::size_t... K>(std::index_sequence<K...>) __attribute__((always_inline)) {
    return std::array<std::int64_t, Count>{at[K] + turns * Strides[K][std::size_t(D)]...};
  }
  (std::make_index_sequence<Count>{});
}

/// Calls f(where everything stands) at each turn of the loops from D on but the innermost: of those
/// that are folded, or of the others. Everything moves by `Strides`.
template <const auto& Nest, const auto& Strides, bool Folded, int D, std::size_t Count, class F>
[[gnu::always_inline]] inline void for_each_row(const std::array<std::int64_t, Count>& at,
                                                const F& f) {
  if constexpr (D == Nest.loops - 1) {
    f(at);
  } else if constexpr (Nest.folds(D) != Folded) {
    for_each_row<Nest, Strides, Folded, D + 1>(at, f);
  } else if constexpr (constexpr auto turns = Nest.size[std::size_t(D)]; Folded && turns <= 8) {
    [&]<std::size_t... Turn>(std::index_sequence<Turn...>) __attribute__((always_inline)) {
      (for_each_row<Nest, Strides, Folded, D + 1>(further<Strides, D>(at, std::int64_t(Turn)), f),
       ...);
    }
    (std::make_index_sequence<std::size_t(turns)>{});
  } else {
    auto here = at;
    for (std::int64_t turn = 0; turn < turns; ++turn) {
      for_each_row<Nest, Strides, Folded, D + 1>(here, f);
      here = further<Strides, D>(here, 1);
    }
  }
}
/// The same for the loops that are not folded, of some units.
template <const auto& Nest, const auto& Strides, std::size_t Count, class F>
[[gnu::always_inline]] inline void for_each_kept_row(work_range units, const F& f) {
  constexpr int outer = loop_of_units(Nest);
  std::array<std::int64_t, Count> at{};
  if constexpr (outer < 0) {
    f(at);
  } else {
    at = further<Strides, outer>(at, units.first);
    for (int u = units.first; u < units.last; ++u) {
      for_each_row<Nest, Strides, false, outer + 1>(at, f);
      at = further<Strides, outer>(at, 1);
    }
  }
}

/// Calls f.template operator()<first element, count>() for each vector of a row.
template <class T, int Inner, class F>
[[gnu::always_inline]] inline void for_each_vector(const F& f) {
  constexpr int L = lanes<T>;
  [&]<int... V>(std::integer_sequence<int, V...>) __attribute__((always_inline)) {
    (f.template operator()<V * L, std::min(L, Inner - V * L)>(), ...);
  }
  (std::make_integer_sequence<int, (Inner + L - 1) / L>{});
}

/// How far operands and outputs move per turn of each loop: an output is dense in the order of the
/// loops that are not folded, unless it is a part of a larger tensor.
template <int Reads, std::size_t Writes>
constexpr stride_table<std::size_t(Reads) + Writes> joined_strides(
    const loop_nest<Reads>& n, const stride_table<Writes>& outputs) {
  stride_table<std::size_t(Reads) + Writes> all{};
  std::copy(n.stride.begin(), n.stride.end(), all.begin());
  for (std::size_t k = 0; k < Writes; ++k) {
    const bool part = outputs[k][std::size_t(n.loops - 1)] != 0;
    std::int64_t dense = 1;
    for (int d = n.loops; d-- > 0;) {
      if (n.folds(d)) continue;
      all[std::size_t(Reads) + k][std::size_t(d)] = part ? outputs[k][std::size_t(d)] : dense;
      dense *= n.size[std::size_t(d)];
    }
  }
  return all;
}

}  // namespace detail

/// elementwise() for a nest `Nest` of short rows.
template <class T, const auto& Nest, const auto& OutputStrides, class Line>
[[gnu::noinline]] void elementwise_short_rows(
    work_range units, const addresses<T, int(Nest.stride.size()), Line::results>& operands) {
  constexpr auto reads = int(Nest.stride.size());
  static constexpr auto strides = detail::joined_strides(Nest, OutputStrides);
  const addresses<T, reads, Line::results> a = operands;
  const auto row = [&](const auto& at) __attribute__((always_inline)) {
    std::array<std::int64_t, std::size_t(reads)> from;
    std::copy_n(at.begin(), reads, from.begin());
    const auto compute = [&]<int First, int Valid>() __attribute__((always_inline)) {
      const loop_cursor<T, reads, Line::results, false, Valid == lanes<T>> cursor{
          a, from, detail::steps_of<Nest>, First, Valid};
      Line::store(a.out, Line::evaluate(cursor), Valid,
                  [&](std::size_t k) { return at[std::size_t(reads) + k] + First; });
    };
    detail::for_each_vector<T, int(Nest.inner())>(compute);
  };
  detail::for_each_kept_row<Nest, strides, strides.size()>(units, row);
}

/// sum_loops() for a nest `Nest` of short rows.
template <class T, const auto& Nest, class Line, class Fold, class Sink>
[[gnu::noinline]] void sum_short_rows(work_range units,
                                      const addresses<T, int(Nest.stride.size()), 1>& operands,
                                      const Sink& sink) {
  constexpr auto reads = int(Nest.stride.size());
  static constexpr auto strides = detail::joined_strides(Nest, detail::stride_table<1>{});
  const addresses<T, reads, 1> a = operands;
  constexpr auto vectors = std::size_t((Nest.inner() + lanes<T> - 1) / lanes<T>);
  using vectors_of_row = std::array<vec<T>, vectors>;
  using totals_of_row = std::array<typename Fold::template total<T>, vectors>;
  // Runs are counted only where there is more than one.
  constexpr bool one_run = detail::folded_turns(Nest) <= 2 * sum_run;
  const auto row = [&](const auto& kept) __attribute__((always_inline)) {
    vectors_of_row run;
    [[maybe_unused]] totals_of_row total;
    [[maybe_unused]] int rows = 0;
    run.fill(vec<T>(Fold::template start<T>));
    const auto end_run = [&]() __attribute__((always_inline)) {
      for (std::size_t v = 0; v < vectors; ++v) total[v].add(run[v]);
      run.fill(vec<T>(Fold::template start<T>));
      rows = 0;
    };
    std::array<std::int64_t, std::size_t(reads)> from;
    std::copy_n(kept.begin(), reads, from.begin());
    const auto add = [&](const auto& at) __attribute__((always_inline)) {
      const auto one = [&]<int First, int Valid>() __attribute__((always_inline)) {
        const loop_cursor<T, reads, 1, false, Valid == lanes<T>> cursor{
            a, at, detail::steps_of<Nest>, First, Valid};
        auto& sum = run[std::size_t(First / lanes<T>)];
        sum = Fold::template fold<T>(sum, Line::evaluate(cursor)[0]);
      };
      detail::for_each_vector<T, int(Nest.inner())>(one);
      if constexpr (!one_run) {
        if (++rows == sum_run) end_run();
      }
    };
    detail::for_each_row<Nest, Nest.stride, true, 0>(from, add);
    if constexpr (!one_run) {
      end_run();
      for (std::size_t v = 0; v < vectors; ++v) run[v] = total[v].by_lanes();
    }
    const auto finish = [&]<int First, int Valid>() __attribute__((always_inline)) {
      sink(run[std::size_t(First / lanes<T>)], kept.back() + First, Valid);
    };
    detail::for_each_vector<T, int(Nest.inner())>(finish);
  };
  detail::for_each_kept_row<Nest, strides, strides.size()>(units, row);
}

}  // namespace cella::cpu
