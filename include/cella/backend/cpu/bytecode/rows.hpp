// Sweeps over rows whose lines are known at run time: rows/row_loops.hpp for lines as data.
#pragma once

#include <algorithm>
#include <array>
#include <cella/backend/cpu/bytecode/block_runner.hpp>
#include <cella/backend/cpu/bytecode/sink.hpp>
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
  std::array<std::optional<block_runner<T>>, most_row_numbers> of_number;
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    of_number[k].emplace(numbers[k].line, s, a, scratch);
    scratch += align_up(block_runner<T>::scratch_bytes(numbers[k].line));
  }
  block_runner<T> runner(line, s, a, scratch);
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
          [&](int read, int) {
            return place_of_read(s.reads[std::size_t(read)].how, start + i, row, i);
          },
          [](int) { return std::int64_t{1}; }, single);
    };
    const auto none = [](int) -> T* { return nullptr; };
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      block_runner<T>& of = *of_number[k];
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
        of.template fold<adding>({0, n}, [&](vec<T> run) { total.add(run); });
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
