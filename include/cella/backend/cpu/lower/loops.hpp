// Loops over elements: fused groups, sums, sweeps over rows.
#pragma once

#include <cella/backend/cpu/loops/elementwise.hpp>
#include <cella/backend/cpu/loops/short_rows.hpp>
#include <cella/backend/cpu/loops/sums.hpp>
#include <cella/backend/cpu/lower/record.hpp>
#include <cella/backend/cpu/rows/row_loops.hpp>
#include <cella/ops/reduction.hpp>
#include <utility>

namespace cella::cpu {

/// Whether rows are so short that their loops have constant extents.
template <class S>
inline constexpr bool loops_over_short_rows = [] {
  if constexpr (S::compiled)
    return !S::whole_vectors && has_short_rows<typename S::T>(S::nest());
  else
    return false;
}();

struct elementwise_record : record_for<step_kind::elementwise> {
  template <class S>
  static constexpr int units(S step, int) {
    if constexpr (loops_over_short_rows<S>)
      return short_row_units(S::nest());
    else
      return elementwise_units(step.nest());
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    if constexpr (S::compiled)
      run_line(step, m, units);
    else
      step.run_elementwise(m, units, scratch);
  }

 private:
  template <class S>
  static void run_line(S, const memory& m, work_range units) {
    using line = line_of_outputs<typename S::program, S::index>;
    static constexpr auto loops = S::nest();
    static constexpr auto strides = S::output_strides();
    if constexpr (loops_over_short_rows<S>) {
      elementwise_short_rows<typename S::T, loops, strides, line>(units, S::addresses_in(m));
    } else {
      elementwise<typename S::T, S::s.read_count, S::whole_vectors, S::ragged(), line>(
          units, loops, S::addresses_in(m), S::dead(), strides);
    }
  }
};

struct reduce_record : record_for<step_kind::reduce> {
  template <class S>
  static constexpr int units(S step, int) {
    if constexpr (loops_over_short_rows<S>)
      return short_row_units(S::nest());
    else
      return sum_units<typename S::T, S::whole_vectors>(step.nest());
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    if constexpr (S::compiled)
      run_line(step, m, units);
    else
      step.run_reduction(m, units, scratch);
  }

 private:
  template <class S>
  static void run_line(S, const memory& m, work_range units) {
    using T = typename S::T;
    constexpr const plan_step& s = S::s;
    using term = line_of<typename S::program, S::index, S::g.operand(s.anchor, 0)>;
    static constexpr auto loops = S::nest();
    addresses<T, s.read_count, 1> a;
    for (int k = 0; k < s.read_count; ++k) a.in[std::size_t(k)] = S::first_read(m, k);
    constexpr auto e = s.template as<reduce_step>();
    constexpr int lanes_used = e.samples % S::L ? e.samples % S::L : S::L;
    constexpr lanes_of_sum how{S::in_lanes && e.across_lanes,
                               S::in_lanes ? lane_blocks<T>(e.samples) : 1, first_bits(lanes_used)};
    constexpr sum_length length = length_of_sums<T, S::whole_vectors>(loops);
    if constexpr (S::in_blocks) {
      sum_loops<T, s.read_count, true, term, adding, length>(units, loops, a, lanes_of_sum{},
                                                             S::lanes_epilogue(m));
    } else if constexpr (S::in_lanes && !e.across_lanes) {
      sum_loops<T, s.read_count, true, term, adding, length>(units, loops, a, how,
                                                             S::lanes_epilogue(m));
    } else {
      using fold =
          std::conditional_t<is<max_op>(S::anchor()), extreme<true>,
                             std::conditional_t<is<min_op>(S::anchor()), extreme<false>, adding>>;
      if constexpr (loops_over_short_rows<S>)
        sum_short_rows<T, loops, term, fold>(units, a, S::plain_epilogue(m));
      else
        sum_loops<T, s.read_count, S::in_lanes, term, fold, length>(units, loops, a, how,
                                                                    S::plain_epilogue(m));
    }
  }
};

struct rows_record : record_for<step_kind::rows> {
  static constexpr row_extents extents(auto step) {
    const auto e = step.s.template as<rows_step>();
    if (e.stretch == 0) return {e.rows, e.width, e.unit_rows};
    return {e.rows, e.width, e.unit_rows, e.stretch, e.numbers};
  }
  static constexpr int units(auto step, int) { return row_units(extents(step)); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    if constexpr (S::compiled)
      run_lines(step, m, units);
    else
      step.run_rows(m, units, scratch);
  }

 private:
  template <class S>
  static void run_lines(S step, const memory& m, work_range units) {
    using P = typename S::program;
    constexpr const plan_step& s = S::s;
    [&]<std::size_t... K, std::size_t... O>(std::index_sequence<K...>, std::index_sequence<O...>) {
      row_loops<few_in_row<typename S::T>(extents(step)), (s.as<rows_step>().stretch > 0)>(
          units, extents(step), S::addresses_in(m),
          row_numbers<row_number_of<line_of_row_number<P, S::index, s.stats[K]>,
                                    is<sum_op>(S::g.nodes[std::size_t(s.stats[K])])>...>{},
          row_outputs<line_of_outputs<P, S::index>, written_as(s, O)...>{});
    }
    (std::make_index_sequence<std::size_t(s.stat_count)>{},
     std::make_index_sequence<std::size_t(s.output_count)>{});
  }
  static constexpr row_form written_as(const plan_step& s, std::size_t k) {
    const step_output& o = s.outputs[k];
    return o.summed                    ? row_form::summed
           : s.find_stat(o.value) >= 0 ? row_form::once
                                       : row_form::each;
  }
};

using loop_records = record_list<elementwise_record, reduce_record, rows_record>;

}  // namespace cella::cpu
