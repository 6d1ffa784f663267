// Sweeps over rows whose lines are known at run time: rows/row_loops.hpp for lines as data.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/bytecode/scaled_lines.hpp>
#include <cella/backend/cpu/bytecode/simple_lines.hpp>
#include <cella/plan/step.hpp>
#include <optional>

namespace cella::cpu {

/// A number of a row: the sum of a line over it, or a line's own value.
template <class T>
struct row_number_code {
  line_code<T> line;
  bool sums{};
};

/// As many rows are computed together at most.
inline constexpr int most_rows_together = 16;

/// Bytes of scratch of a sweep over rows.
template <class T>
std::int64_t row_scratch(const line_code<T>& outputs, span<const row_number_code<T>> numbers) {
  const auto known = std::int64_t(numbers.size()) * most_rows_together * lanes<T>;
  std::int64_t bytes = align_up(known * std::int64_t(sizeof(T)));
  bytes += align_up(block_runner<T>::scratch_bytes(outputs));
  for (const auto& n : numbers) bytes += align_up(block_runner<T>::scratch_bytes(n.line));
  return bytes;
}

/// Some rows at a time: numbers of each row, then all outputs. Units are those of `row_units`.
template <class T>
void run_rows(work_range units, const plan_step& s, const line_code<T>& line,
              span<const row_number_code<T>> numbers, const step_addresses<T>& a,
              std::byte* scratch) {
  constexpr int L = lanes<T>, most = most_rows_together;
  const auto e = s.as<rows_step>();
  // A vector of equal lanes for each number of each row.
  T* const known = reinterpret_cast<T*>(scratch);
  const auto known_at = [&](std::size_t k, int row) {
    return known + (std::int64_t(k) * most + row) * L;
  };
  scratch += align_up(std::int64_t(numbers.size()) * most * L * std::int64_t(sizeof(T)));
  block_runner<T> runner(line, s, a, scratch);
  scratch += align_up(block_runner<T>::scratch_bytes(line));
  const detail::scaled_line<T> scaled = detail::scaled_line_of(line, s, a);
  std::array<std::optional<block_runner<T>>, most_row_numbers> of_number;
  std::array<detail::simple_line<T>, most_row_numbers> simple_number;
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    const auto simple = detail::simple_line_of(numbers[k].line, s, a);
    if (simple.at && simple.read->how == access::same && !simple.center_read)
      simple_number[k] = simple;
    of_number[k].emplace(numbers[k].line, s, a, scratch);
    scratch += align_up(block_runner<T>::scratch_bytes(numbers[k].line));
  }
  // As many rows as half of the nearest cache holds, where they are written beside: what is done
  // once for several costs each of them less.
  constexpr std::int64_t near = 16 << 10;
  const int together = int(std::clamp<std::int64_t>(
      near / std::int64_t(sizeof(T)) / std::max<std::int64_t>(1, e.width), 1, most));
  unsigned whole_rows = 0;  // outputs that have each element of a row
  for (int k = 0; k < s.output_count; ++k) {
    const step_output& o = s.outputs[std::size_t(k)];
    whole_rows |= unsigned{!o.summed && s.find_stat(o.value) < 0} << k;
  }

  const std::int64_t last = std::min(e.rows, units.last * e.unit_rows);
  for (std::int64_t row = units.first * e.unit_rows; row < last; row += together) {
    const int rows = int(std::min<std::int64_t>(together, last - row));
    // Computes columns [i, i + n) of `count` of these rows from `first` on.
    const auto compute = [&](block_runner<T>& of, int first, int count, std::int64_t i, int n,
                             unsigned stored) {
      const std::int64_t at = row + first;
      of.give_row_numbers(known + std::int64_t{first} * L, most);
      of.compute({count, n, at * e.width + i, e.width, at, i, false, e.number_at(at, i)}, stored);
    };
    // Calls f(first row, how many, i, n) for pieces of the rows that fit a block: what is no whole
    // vector is one by itself, so that the others are read and written where they lie.
    const auto for_pieces = [&](const block_runner<T>& of, auto f) {
      const std::int64_t whole = e.width / L * L;
      const auto for_rows = [&](std::int64_t i, std::int64_t end) {
        if (i == end) return;
        const int at_a_time = of.rows_of(end - i);
        for (int first = 0; first < rows; first += at_a_time) {
          const int count = std::min(rows - first, at_a_time);
          for (std::int64_t j = i; j < end; j += of.block())
            f(first, count, j, int(std::min<std::int64_t>(end - j, of.block())));
        }
      };
      if (!e.stretch) {
        for_rows(0, whole);
        return for_rows(whole, e.width);
      }
      // Pieces of one row and one stretch.
      for (int first = 0; first < rows; ++first) {
        for (std::int64_t i = 0, end = e.stretch; i < e.width; i = end, end += e.stretch) {
          const std::int64_t rest = end - e.stretch % L;
          for (std::int64_t j = i; j < rest; j += of.block())
            f(first, 1, j, int(std::min<std::int64_t>(rest - j, of.block())));
          if (rest < end) f(first, 1, rest, int(end - rest));
        }
      }
    };
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      block_runner<T>& of = *of_number[k];
      if (!numbers[k].sums) {
        for (int first = 0; first < rows; first += of.rows_of(1)) {
          const int count = std::min(rows - first, of.rows_of(1));
          compute(of, first, count, 0, 1, 0);
          const block_operand<T>& y = of.result(0);
          for (int r = 0; r < count; ++r)
            store_unaligned(known_at(k, first + r), vec<T>(y.at[r * y.row]));
        }
        continue;
      }
      if (const auto& simple = simple_number[k]; simple.at) {
        for (int i = 0; i < rows; ++i) {
          const bool centered = simple.center >= 0;
          const vec<T> center =
              load_unaligned(known_at(std::size_t(centered ? simple.center : 0), i));
          long_sum<T> total;
          detail::fold_simple_row<adding, T>(simple.term, simple.at + (row + i) * e.width, e.width,
                                             center, total);
          store_unaligned(known_at(k, i), vec<T>(total.over_lanes()));
        }
        continue;
      }
      std::array<long_sum<T>, most> totals;
      for_pieces(of, [&](int first, int count, std::int64_t i, int n) {
        compute(of, first, count, i, n, 0);
        for (int r = 0; r < count; ++r) {
          // One that lies in registers until the piece ends.
          long_sum<T> total;
          if (i > 0) total = totals[std::size_t(first + r)];
          of.template fold_row<adding>(r, n, [&](vec<T> run) { total.add(run); });
          totals[std::size_t(first + r)] = total;
        }
      });
      for (int r = 0; r < rows; ++r)
        store_unaligned(known_at(k, r), vec<T>(totals[std::size_t(r)].over_lanes()));
    }
    if (scaled.x) {
      for (int i = 0; i < rows; ++i) {
        const auto number = [&](int k) { return load_unaligned(known_at(std::size_t(k), i)); };
        const vec<T> center = scaled.center < 0 ? vec<T>(T(0)) : number(scaled.center);
        if (!scaled.by_stretch) {
          detail::scale_row(scaled, (row + i) * e.width, e.width, center, number(scaled.factor));
          continue;
        }
        for (std::int64_t j = 0; j < e.width; j += e.stretch)
          detail::scale_stretch(scaled, (row + i) * e.width + j, e.stretch, center,
                                number(scaled.factor), e.number_at(row + i, j));
      }
      continue;
    }
    for_pieces(runner, [&](int first, int count, std::int64_t i, int n) {
      compute(runner, first, count, i, n, whole_rows);
      for (int k = 0; k < s.output_count; ++k) {
        if (!s.outputs[std::size_t(k)].summed) continue;
        const block_operand<T>& y = runner.result(k);
        for (int r = 0; r < count; ++r) {
          const std::int64_t at = row + first + r, unit = at / e.unit_rows;
          const bool adds = at > unit * e.unit_rows;  // to the sums of earlier rows
          T* const to = a.out[std::size_t(k)] + unit * e.width + i;
          for (int j = 0; j < n; j += L) {
            const int valid = std::min(L, n - j);
            vec<T> v = load_unaligned(y.at + r * y.row + (y.step ? j : 0));
            if (adds) v = v + load_first(to + j, valid);
            store_first(to + j, valid, v);
          }
        }
      }
    });
    for (int k = 0; k < s.output_count; ++k) {
      const step_output& o = s.outputs[std::size_t(k)];
      const int stat = s.find_stat(o.value);
      if (o.summed || stat < 0) continue;
      T* const to = a.out[std::size_t(k)] + row;
      for (int r = 0; r < rows; ++r) to[r] = *known_at(std::size_t(stat), r);
    }
  }
}

}  // namespace cella::cpu
