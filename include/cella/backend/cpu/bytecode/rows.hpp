// Sweeps over rows whose lines are known at run time: rows/row_loops.hpp for lines as data.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/bytecode/block_runner.hpp>
#include <cella/backend/cpu/loops/folds.hpp>
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
  using rectangle = typename block_runner<T>::rectangle;
  const auto e = s.as<rows_step>();
  // A vector of equal lanes for each number of each row.
  T* const known = reinterpret_cast<T*>(scratch);
  const auto known_at = [&](std::size_t k, int row) {
    return known + (std::int64_t(k) * most + row) * L;
  };
  scratch += align_up(std::int64_t(numbers.size()) * most * L * std::int64_t(sizeof(T)));
  block_runner<T> runner(line, s, a, scratch);
  runner.give_row_numbers(known, most);
  scratch += align_up(block_runner<T>::scratch_bytes(line));
  std::array<std::optional<block_runner<T>>, most_row_numbers> of_number;
  int together = std::min(most, runner.rows_of(e.width));
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    block_runner<T>& of = of_number[k].emplace(numbers[k].line, s, a, scratch);
    of.give_row_numbers(known, most);
    scratch += align_up(block_runner<T>::scratch_bytes(numbers[k].line));
    together = std::min(together, of.rows_of(e.width));
  }
  unsigned whole_rows = 0;  // outputs that have each element of a row
  for (int k = 0; k < s.output_count; ++k) {
    const step_output& o = s.outputs[std::size_t(k)];
    whole_rows |= unsigned{!o.summed && s.find_stat(o.value) < 0} << k;
  }

  const std::int64_t last = std::min(e.rows, units.last * e.unit_rows);
  for (std::int64_t row = units.first * e.unit_rows; row < last; row += together) {
    const int rows = int(std::min<std::int64_t>(together, last - row));
    const auto part = [&](std::int64_t i, int n) {
      return rectangle{rows, n, row * e.width + i, e.width, row, i};
    };
    // Calls f(i, n) for pieces of the rows that fit a block: what is no whole vector is one by
    // itself, so that the others are read and written where they lie.
    const auto for_pieces = [&](const block_runner<T>& of, auto f) {
      const std::int64_t whole = e.width / L * L;
      for (std::int64_t i = 0; i < whole; i += of.block())
        f(i, int(std::min<std::int64_t>(whole - i, of.block())));
      if (whole < e.width) f(whole, int(e.width - whole));
    };
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      block_runner<T>& of = *of_number[k];
      if (!numbers[k].sums) {
        of.compute(part(0, 1), 0);
        const block_operand<T>& y = of.result(0);
        for (int r = 0; r < rows; ++r) store_unaligned(known_at(k, r), vec<T>(y.at[r * y.row]));
        continue;
      }
      std::array<long_sum<T>, most> totals;
      for_pieces(of, [&](std::int64_t i, int n) {
        of.compute(part(i, n), 0);
        for (int r = 0; r < rows; ++r) {
          of.template fold_row<adding>(r, n, [&](vec<T> run) { totals[std::size_t(r)].add(run); });
        }
      });
      for (int r = 0; r < rows; ++r)
        store_unaligned(known_at(k, r), vec<T>(totals[std::size_t(r)].over_lanes()));
    }
    for_pieces(runner, [&](std::int64_t i, int n) {
      runner.compute(part(i, n), whole_rows);
      for (int k = 0; k < s.output_count; ++k) {
        if (!s.outputs[std::size_t(k)].summed) continue;
        const block_operand<T>& y = runner.result(k);
        for (int r = 0; r < rows; ++r) {
          const std::int64_t unit = (row + r) / e.unit_rows;
          const bool adds = row + r > unit * e.unit_rows;  // to the sums of earlier rows
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
