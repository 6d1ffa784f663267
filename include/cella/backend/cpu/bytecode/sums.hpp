// Sums whose terms are known at run time, and their like: loops/sums.hpp for lines as data.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/bytecode/row_segments.hpp>
#include <cella/backend/cpu/bytecode/simple_lines.hpp>
#include <cella/backend/cpu/bytecode/sink.hpp>
#include <cella/backend/cpu/loops/sums.hpp>
#include <type_traits>

namespace cella::cpu {

/// Folds the value of `term` over the folded loops of a step, and over the samples in the lanes, if
/// `samples` says so; what it comes to goes to the sink. Units are those of `sum_units`.
template <class T, class Fold, class Sink>
void run_reduction(work_range units, const plan_step& s, const line_code<T>& term,
                   const step_addresses<T>& a, const lanes_of_sum& samples, const Sink& sink,
                   std::byte* scratch) {
  constexpr int L = lanes<T>;
  block_runner<T> runner(term, s, a, scratch, s.arrangement);
  const auto inner = std::size_t(s.loops - 1);
  const std::int64_t extent = s.loop[inner];
  detail::nest_walk kept(s, L), folded(s, L);
  for (int d = 0; d < s.loops - 1; ++d) (s.folded >> d & 1u ? folded : kept).add(d);
  const std::int64_t folds = folded.turns();
  detail::row_segments<T> g;
  // Of each segment: the lanes that count.
  std::array<unsigned, detail::row_segments<T>::most> live;
  const auto compute = [&] {
    runner.compute(
        g.list(), [&](int read, int k) { return g.at[std::size_t(k)][std::size_t(read)]; },
        [&](int read) { return s.reads[std::size_t(read)].strides[inner]; },
        [](int) -> T* { return nullptr; });
  };
  const auto add_segment = [&](std::int64_t first, int n) {
    const auto k = std::size_t(g.count++);
    g.all[k] = {g.vectors, n};
    const bool some = samples.across && (samples.blocks == 1 || folded.outermost_ends());
    live[k] = some ? samples.live : first_bits(L);
    g.vectors += g.all[k].vectors();
    for (std::size_t r = 0; r < std::size_t(s.read_count); ++r) {
      const auto& strides = s.reads[r].strides;
      g.at[k][r] = kept.place(strides) + folded.place(strides) + kept.along(strides, first);
    }
  };

  // What is folded, if it lies in memory as it is.
  auto simple = s.arrangement == layout::plain && !samples.across
                    ? detail::simple_line_of(term, s, a)
                    : detail::simple_line<T>{};
  if (simple.at) {
    const auto beside = [&](const operand_read& r) {
      return walk_of(r.how, layout::plain, 1) == element_walk::contiguous && r.strides[inner] == 1;
    };
    // Terms may be centered at numbers of their rows, or of their columns.
    const auto centers = [&](const operand_read& r) {
      for (int d = 0; d < s.loops; ++d) {
        if ((s.folded >> d & 1u) && r.strides[std::size_t(d)] != 0) return false;
      }
      return s.folded >> inner & 1u ? walk_of(r.how, layout::plain, 1) == element_walk::one
                                    : beside(r);
    };
    const bool adds = std::is_same_v<Fold, adding>;
    using enum detail::simple_term;
    const bool squares = simple.term == square || simple.term == squared_difference;
    if (!beside(*simple.read) || (!adds && squares) ||
        (simple.center_read && !centers(*simple.center_read)))
      simple = {};
  }
  const T* const plain = simple.at;
  const auto* const strides = plain ? &simple.read->strides : nullptr;
  if (s.folded >> inner & 1u) {
    // Results lie beside each other, and go to the sink as vectors.
    alignas(64) std::array<T, std::size_t(L)> results{};
    int count = 0;
    const auto hand_over = [&](int end) {
      sink(load(results.data()), std::int64_t{end} - count, count);
      count = 0;
    };
    const auto put = [&](int u, T result) {
      results[std::size_t(count++)] = result;
      if (count == L || u + 1 == units.last) hand_over(u + 1);
    };
    kept.go_to(units.first);
    if (plain && folds == 1) {
      for (int u = units.first; u < units.last;) {
        T* const target = sink.target();
        const int room = target ? units.last : L - count,
                  rows = int(std::min<std::int64_t>({units.last - u, kept.left(), room}));
        detail::simple_rows<T> r{plain + kept.place(*strides), kept.apart(*strides), extent, {}, 0};
        if (const auto* const c = simple.center_read) {
          r.center = simple.center_at + kept.place(c->strides);
          r.centers_apart = kept.apart(c->strides);
        }
        T* const to = target ? target + u : results.data() + count;
        detail::fold_simple_rows<Fold>(simple.term, r, rows, to);
        u += rows;
        kept.next(rows);
        if (target) continue;
        count += rows;
        if (count == L || u == units.last) hand_over(u);
      }
      return;
    }
    for (int u = units.first; u < units.last; ++u, kept.next()) {
      typename Fold::template total<T> total;
      if (plain) {
        vec<T> center(T(0));
        if (simple.center_read)
          center = vec<T>(simple.center_at[kept.place(simple.center_read->strides)]);
        folded.go_to(0);
        for (std::int64_t f = 0; f < folds; ++f, folded.next()) {
          const T* const row = plain + kept.place(*strides) + folded.place(*strides);
          detail::fold_simple_row<Fold, T>(simple.term, row, extent, center, total);
        }
        put(u, total.over_lanes());
        continue;
      }
      const auto flush = [&] {
        if (!g.count) return;
        compute();
        for (std::size_t k = 0; k < std::size_t(g.count); ++k) {
          const auto take = [&](vec<T> run) {
            total.add(samples.across ? keep(live[k], run) : run);
          };
          runner.template fold<Fold>(g.all[k], take);
        }
        g.clear();
      };
      folded.go_to(0);
      for (std::int64_t f = 0; f < folds; ++f, folded.next()) {
        for (std::int64_t i = 0; i < extent;) {
          const int n = int(std::min<std::int64_t>(extent - i, runner.block()));
          if (!g.has_room(n, runner.block())) flush();
          add_segment(i, n);
          i += n;
        }
      }
      flush();
      if (s.arrangement != layout::plain && !samples.across)  // each lane is a channel or a sample
        sink(total.by_lanes(), std::int64_t{u} * L, L);
      else
        put(u, total.over_lanes());
    }
    return;
  }

  // Columns: as many as a block holds, all folded rows; then the next.
  constexpr int width = sum_vectors * L;
  constexpr bool rounds = std::is_same_v<Fold, adding>;
  const int groups = int((extent + width - 1) / width);
  const int together = std::max(1, std::min(runner.block() / width, 32));
  constexpr auto room = std::size_t(32 * sum_vectors);
  alignas(64) std::array<vec<T>, room> run, block;
  alignas(64) std::array<wide_sum<T>, rounds ? room : 1> blocks;
  for (int u = units.first; u < units.last;) {
    const std::int64_t outer = u / groups;
    const int group = u % groups;
    const std::int64_t first = std::int64_t{group} * width;
    // Columns that are no whole vectors are taken by themselves: the others are read in their
    // place.
    constexpr int many = 8;
    const int alone = !plain && extent % L != 0 && groups > many && group + 1 < groups;
    const int taken = std::min({units.last - u, groups - group - alone, together});
    const int columns = int(std::min<std::int64_t>(taken * std::int64_t{width}, extent - first));
    const auto vectors = std::size_t((columns + L - 1) / L);
    kept.go_to(outer);
    std::fill_n(run.begin(), vectors, vec<T>(Fold::template start<T>));
    int rows = 0, runs = 0;
    bool several = false;
    const auto end_block = [&] {
      if (!rounds || runs < sum_block) return;
      detail::add_blocks(int(vectors), several, block.data(), blocks.data());
      several = true;
      runs = 0;
    };
    const auto end_run = [&] {
      if (rows == 0) return;
      end_block();
      for (std::size_t v = 0; v < vectors; ++v) {
        block[v] = runs == 0 ? run[v] : Fold::template fold<T>(block[v], run[v]);
        run[v] = vec<T>(Fold::template start<T>);
      }
      ++runs;
      rows = 0;
    };
    const auto flush = [&] {
      if (!g.count) return;
      compute();
      const block_operand<T>& y = runner.result(0);
      for (std::size_t k = 0; k < std::size_t(g.count); ++k) {
        const T* at = y.at + g.all[k].first_vector * y.step;
        for (std::size_t v = 0; v < vectors; ++v, at += y.step) {
          const vec<T> x = load_unaligned(at);
          run[v] = Fold::template fold<T>(run[v], samples.across ? keep(live[k], x) : x);
        }
        if (++rows == sum_run) end_run();
      }
      g.clear();
    };
    folded.go_to(0);
    if (plain) {
      // Rows that lie in memory as they are: a run of them at a time, in registers.
      const T* const center =
          simple.center_read ? simple.center_at + kept.place(simple.center_read->strides) + first
                             : nullptr;
      std::array<const T*, std::size_t(sum_run * sum_block)> row;
      for (std::int64_t left = folds; left > 0;) {
        end_block();
        const auto count = std::size_t(std::min<std::int64_t>(std::ssize(row), left));
        for (std::size_t k = 0; k < count;) {
          const T* at = plain + kept.place(*strides) + folded.place(*strides) + first;
          const auto turns = std::min<std::int64_t>(folded.left(), std::int64_t(count - k));
          for (std::int64_t j = 0; j < turns; ++j, at += folded.apart(*strides)) row[k++] = at;
          folded.next(turns);
        }
        detail::fold_simple_columns<Fold, T>(simple.term, {row.data(), count}, center, columns,
                                             runs == 0, block.data());
        runs = sum_block;
        left -= std::int64_t(count);
      }
    } else {
      for (std::int64_t f = 0; f < folds; ++f, folded.next()) {
        if (!g.has_room(columns, runner.block())) flush();
        add_segment(first, columns);
      }
      flush();
    }
    end_run();
    const auto total = [&](std::size_t v) {
      return several ? (blocks[v] + block[v]).by_lanes() : block[v];
    };
    if (samples.across) {
      // A vector of columns is the samples of one sum.
      const std::int64_t to = (outer * extent + first) / L;
      for (std::size_t v = 0; v < vectors; v += std::size_t(L)) {
        vec<T> of_sums[L];
        for (std::size_t j = 0; j < std::size_t(L); ++j)
          of_sums[j] = total(std::min(v + j, vectors - 1));
        sink(sums<T>(of_sums), to + std::int64_t(v), std::min(L, int(vectors - v)));
      }
    } else {
      for (std::size_t v = 0; v < vectors; ++v)
        sink(total(v), outer * extent + first + std::int64_t(v) * L,
             std::min(L, columns - int(v) * L));
    }
    u += taken;
  }
}

}  // namespace cella::cpu
