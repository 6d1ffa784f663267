// Loops over elements whose lines are known at run time: fused groups, sums, sweeps over rows. What
// loops/elementwise.hpp, loops/sums.hpp and rows/row_loops.hpp do for lines that are types.
#pragma once

#include <cella/backend/cpu/bytecode/sink.hpp>
#include <cella/backend/cpu/loops/elementwise.hpp>
#include <cella/backend/cpu/loops/folds.hpp>
#include <cella/backend/cpu/loops/sums.hpp>
#include <cella/backend/cpu/rows/row_loops.hpp>
#include <cella/plan/step.hpp>

namespace cella::cpu {

/// The nest of a step whose reads are counted at run time.
inline loop_nest<16> nest_of(const plan_step& s) {
  loop_nest<16> n{s.loops, s.loop, {}, s.folded};
  for (std::size_t k = 0; k < std::size_t(s.read_count); ++k) n.stride[k] = s.reads[k].strides;
  return n;
}

namespace detail {

/// Turns of the loops but the innermost one, and where each read begins there.
class nest_walk {
 public:
  explicit nest_walk(const plan_step& s) : s_(s) {}

  /// Loop d runs inside those that were added before.
  void add(int d) { loops_[std::size_t(count_++)] = d; }
  std::int64_t turns() const {
    std::int64_t n = 1;
    for (int i = 0; i < count_; ++i) n *= s_.loop[std::size_t(loops_[std::size_t(i)])];
    return n;
  }
  void go_to(std::int64_t turn) {
    index_ = {};
    for (int i = count_; i-- > 0 && turn != 0;) {
      const auto d = std::size_t(loops_[std::size_t(i)]);
      index_[d] = turn % s_.loop[d];
      turn /= s_.loop[d];
    }
  }
  void next() {
    for (int i = count_; i-- > 0;) {
      const auto d = std::size_t(loops_[std::size_t(i)]);
      if (++index_[d] < s_.loop[d]) return;
      index_[d] = 0;
    }
  }
  /// Adds where something begins that moves by these strides.
  std::int64_t place(const std::array<std::int64_t, max_loops>& strides) const {
    std::int64_t at = 0;
    for (int d = 0; d < s_.loops - 1; ++d) at += index_[std::size_t(d)] * strides[std::size_t(d)];
    return at;
  }

 private:
  const plan_step& s_;
  int count_ = 0;
  std::array<int, max_loops> loops_{};
  std::array<std::int64_t, max_loops> index_{};
};

/// Segments of a block that are pieces of rows of a nest, and where their reads begin.
template <class T>
struct row_segments {
  using segment = typename block_runner<T>::segment;
  static constexpr int most = 64;
  std::array<segment, most> all;
  std::array<std::array<std::int64_t, 16>, most> at;
  int count = 0, vectors = 0;

  bool has_room(int elements, int block) const {
    constexpr int L = lanes<T>;
    return count == 0 || (count < most && vectors * L + (elements + L - 1) / L * L <= block);
  }
  void clear() { count = vectors = 0; }
  span<const segment> list() const { return {all.data(), std::size_t(count)}; }
};

}  // namespace detail

/// Computes all outputs of an elementwise step; units are those of `elementwise_units`.
template <class T>
void run_elementwise(work_range units, const plan_step& s, const line_code<T>& line,
                     const step_addresses<T>& a, std::byte* scratch) {
  block_runner<T> runner(line, s, a.in, a.out, scratch);
  const auto inner = std::size_t(s.loops - 1);
  const std::int64_t extent = s.loop[inner];
  const int pieces = int((extent + detail::loop_piece - 1) / detail::loop_piece);
  detail::nest_walk rows(s);
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
        [&](int k) { return a.out[std::size_t(k)] + to[0][std::size_t(k)]; });
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
      if (!g.has_room(n, runner.block())) flush();
      const auto k = std::size_t(g.count++);
      g.all[k] = {g.vectors, n};
      g.vectors += g.all[k].vectors();
      for (std::size_t r = 0; r < std::size_t(s.read_count); ++r)
        g.at[k][r] = start[r] + i * s.reads[r].strides[inner];
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

/// Folds the value of `term` over the folded loops of a step; what it comes to goes to the sink.
/// Units are those of `sum_units`.
template <class T, class Fold, class Sink>
void run_reduction(work_range units, const plan_step& s, const line_code<T>& term,
                   const step_addresses<T>& a, const Sink& sink, std::byte* scratch) {
  constexpr int L = lanes<T>;
  block_runner<T> runner(term, s, a.in, a.out, scratch);
  const auto inner = std::size_t(s.loops - 1);
  const std::int64_t extent = s.loop[inner];
  detail::nest_walk kept(s), folded(s);
  for (int d = 0; d < s.loops - 1; ++d) (s.folded >> d & 1u ? folded : kept).add(d);
  const std::int64_t folds = folded.turns();
  detail::row_segments<T> g;
  const auto compute = [&] {
    runner.compute(
        g.list(), [&](int read, int k) { return g.at[std::size_t(k)][std::size_t(read)]; },
        [&](int read) { return s.reads[std::size_t(read)].strides[inner]; },
        [](int) -> T* { return nullptr; });
  };
  const auto add_segment = [&](std::int64_t first, int n) {
    const auto k = std::size_t(g.count++);
    g.all[k] = {g.vectors, n};
    g.vectors += g.all[k].vectors();
    for (std::size_t r = 0; r < std::size_t(s.read_count); ++r) {
      const auto& strides = s.reads[r].strides;
      g.at[k][r] = kept.place(strides) + folded.place(strides) + first * strides[inner];
    }
  };

  if (s.folded >> inner & 1u) {
    kept.go_to(units.first);
    for (int u = units.first; u < units.last; ++u, kept.next()) {
      typename Fold::template total<T> total;
      const auto take = [&](vec<T> run) { total.add(run); };
      const auto flush = [&] {
        if (!g.count) return;
        compute();
        const block_operand<T>& y = runner.result(0);
        for (const auto& one : g.list()) {
          const T* const at = y.at + one.first_vector * y.step;
          const int whole = one.elements / L * L, rest = one.elements - whole;
          const auto value = [&](std::int64_t i) {
            return load_unaligned(at + (y.step ? i : std::int64_t{0}));
          };
          vec<T> run = fold_terms<Fold, T>(whole, L, value, take);
          if (rest) run = Fold::template fold<T>(run, fold_first<Fold, T>(rest, value(whole)));
          total.add(run);
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
      sink(vec<T>(total.over_lanes()), std::int64_t{u}, 1);
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
    const int taken = std::min({units.last - u, groups - group, together});
    const int columns = int(std::min<std::int64_t>(taken * std::int64_t{width}, extent - first));
    const auto vectors = std::size_t((columns + L - 1) / L);
    kept.go_to(outer);
    std::fill_n(run.begin(), vectors, vec<T>(Fold::template start<T>));
    int rows = 0, runs = 0;
    bool several = false;
    const auto end_run = [&] {
      if (rows == 0) return;
      if (rounds && runs == sum_block) {
        detail::add_blocks(int(vectors), several, block.data(), blocks.data());
        several = true;
        runs = 0;
      }
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
      for (const auto& one : g.list()) {
        const T* at = y.at + one.first_vector * y.step;
        for (std::size_t v = 0; v < vectors; ++v, at += y.step)
          run[v] = Fold::template fold<T>(run[v], load_unaligned(at));
        if (++rows == sum_run) end_run();
      }
      g.clear();
    };
    folded.go_to(0);
    for (std::int64_t f = 0; f < folds; ++f, folded.next()) {
      if (!g.has_room(columns, runner.block())) flush();
      add_segment(first, columns);
    }
    flush();
    end_run();
    for (std::size_t v = 0; v < vectors; ++v) {
      const vec<T> total = several ? (blocks[v] + block[v]).by_lanes() : block[v];
      const int n = std::min(L, columns - int(v) * L);
      sink(total, outer * extent + first + std::int64_t(v) * L, n);
    }
    u += taken;
  }
}

/// A number of a row: the sum of a line over it, or a line's own value.
template <class T>
struct row_number_code {
  line_code<T> line;
  bool sums{};
};

/// Bytes of scratch of a sweep over rows.
template <class T>
std::int64_t row_scratch(const line_code<T>& outputs, span<const row_number_code<T>> numbers) {
  std::int64_t bytes = block_runner<T>::scratch_bytes(outputs);
  for (const auto& n : numbers) bytes += align_up(block_runner<T>::scratch_bytes(n.line));
  return bytes;
}

/// Row by row: numbers of the row, then all outputs. Units are those of `row_units`.
template <class T>
void run_rows(work_range units, const plan_step& s, const line_code<T>& line,
              span<const row_number_code<T>> numbers, const step_addresses<T>& a,
              std::byte* scratch) {
  constexpr int L = lanes<T>;
  using segment = typename block_runner<T>::segment;
  const auto e = s.as<rows_step>();
  list<block_runner<T>> of_number;
  of_number.reserve(numbers.size());
  for (const auto& n : numbers) {
    of_number.emplace_back(n.line, s, a.in, a.out, scratch);
    scratch += align_up(block_runner<T>::scratch_bytes(n.line));
  }
  block_runner<T> runner(line, s, a.in, a.out, scratch);
  std::array<T, most_row_numbers> known{};
  std::array<bool, 10> once{};
  for (std::size_t k = 0; k < std::size_t(s.output_count); ++k)
    once[k] = !s.outputs[k].summed && s.find_stat(s.outputs[k].value) >= 0;
  const bool any_once = std::find(once.begin(), once.end(), true) != once.end();

  const std::int64_t last = std::min(e.rows, units.last * e.unit_rows);
  for (std::int64_t row = units.first * e.unit_rows; row < last; ++row) {
    const std::int64_t start = row * e.width, unit = row / e.unit_rows;
    const auto compute = [&](block_runner<T>& of, std::int64_t i, int n, auto single) {
      const segment g{0, n};
      of.compute(
          span<const segment>(&g, 1),
          [&](int read, int) -> std::int64_t {
            switch (s.reads[std::size_t(read)].how) {
              case access::same:
              case access::drawn:
                return start + i;
              case access::column:
                return i;
              case access::row:
                return row;
              default:
                return 0;
            }
          },
          [](int) { return std::int64_t{1}; }, single);
    };
    const auto none = [](int) -> T* { return nullptr; };
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      block_runner<T>& of = of_number[k];
      of.row_numbers(known.data());
      if (!numbers[k].sums) {
        compute(of, 0, 1, none);
        known[k] = of.result(0).at[0];
        continue;
      }
      long_sum<T> total;
      for (std::int64_t i = 0; i < e.width;) {
        const int n = int(std::min<std::int64_t>(e.width - i, of.block()));
        compute(of, i, n, none);
        const block_operand<T>& y = of.result(0);
        const auto value = [&](std::int64_t j) {
          return load_unaligned(y.at + (y.step ? j : std::int64_t{0}));
        };
        const int whole = n / L * L;
        vec<T> run = fold_terms<adding, T>(whole, L, value, [&](vec<T> r) { total.add(r); });
        if (whole < n) run = run + keep(first_bits(n - whole), value(whole));
        total.add(run);
        i += n;
      }
      known[k] = total.over_lanes();
    }
    runner.row_numbers(known.data());
    for (std::int64_t i = 0; i < e.width;) {
      const int n = int(std::min<std::int64_t>(e.width - i, runner.block()));
      const segment g{0, n};
      compute(runner, i, n, [&](int k) -> T* {
        const auto o = std::size_t(k);
        return once[o] || s.outputs[o].summed ? nullptr : a.out[o] + start + i;
      });
      for (int k = 0; k < s.output_count; ++k) {
        const auto o = std::size_t(k);
        if (once[o]) continue;
        if (!s.outputs[o].summed) {
          runner.store_segment(k, g, start + i);
          continue;
        }
        T* const to = a.out[o] + unit * e.width + i;
        const block_operand<T>& y = runner.result(k);
        const bool adds = row > unit * e.unit_rows;  // to the sums of earlier rows
        for (int j = 0; j < n; j += L) {
          const int valid = std::min(L, n - j);
          vec<T> v = load_unaligned(y.at + (y.step ? j : 0));
          if (adds) v = v + load_first(to + j, valid);
          store_first(to + j, valid, v);
        }
      }
      i += n;
    }
    if (!any_once) continue;
    compute(runner, 0, 1, none);
    for (int k = 0; k < s.output_count; ++k) {
      if (once[std::size_t(k)]) runner.store_segment(k, {0, 1}, row);
    }
  }
}

}  // namespace cella::cpu
