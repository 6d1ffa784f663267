// A step of a plan that is made at run time, as kernel records see it: what `program_step` is for
// compiled programs, with lines as data.
#pragma once

#include <cella/backend/cpu/bytecode/elementwise.hpp>
#include <cella/backend/cpu/bytecode/rows.hpp>
#include <cella/backend/cpu/bytecode/sums.hpp>
#include <cella/backend/cpu/loops/finish_form.hpp>
#include <cella/backend/cpu/lower/step.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/plan/plan.hpp>
#include <optional>

namespace cella::cpu {

/// The lines of a step.
template <class Number>
struct step_lines {
  std::optional<line_code<Number>> outputs;
  std::optional<line_code<Number>> term;      ///< reduce: what is summed
  list<row_number_code<Number>> row_numbers;  ///< rows
  finish_form finish;                         ///< of results in blocks
};

template <class Number>
step_lines<Number> lines_of_step(const graph& g, const plan_step& s) {
  step_lines<Number> lines;
  if (!step_traits(s.kind).fuses) return lines;
  ids outputs;
  for (int k = 0; k < s.output_count; ++k) outputs.push_back(s.outputs[std::size_t(k)].value);
  const line_finder<graph> find{g, s};
  lines.outputs.emplace(find, span<const node_id>(outputs), true);
  if (s.arrangement == layout::blocked) lines.finish = finish_of(find);
  if (s.kind == step_kind::reduce) {
    const node_id term = g.operand(s.anchor, 0);
    lines.term.emplace(find, span<const node_id>(&term, 1), false);
  }
  for (int k = 0; k < s.stat_count; ++k) {
    const node_id n = s.stats[std::size_t(k)];
    const bool sums = is<sum_op>(g.nodes[std::size_t(n)]);
    const line_finder<graph> of_number{g, s, n};
    const node_id value = sums ? g.operand(n, 0) : n;
    lines.row_numbers.push_back(
        {line_code<Number>(of_number, span<const node_id>(&value, 1), false), sums});
  }
  return lines;
}

/// A control node of such a plan: run/loaded_control.hpp.
template <class T>
class loaded_control;

/// References to a graph, its plan, and the step's lines, which outlive it.
template <class Number>
struct loaded_step {
  static constexpr bool compiled = false;
  /// Loops run over elements, whatever the layout: see in_elements.
  static constexpr bool whole_vectors = false;
  using T = Number;
  static constexpr int L = lanes<T>;

  const graph& g;
  const growing_plan& plan;
  const plan_step& s;
  const step_lines<T>& lines;

  const node& anchor() const { return g.nodes[std::size_t(s.anchor)]; }
  const op_info& operation() const { return *anchor().op; }
  template <class Options>
  Options options() const {
    return anchor().attributes.template as<Options>();
  }
  const attributes& all_options() const { return anchor().attributes; }
  tensor_type operand(int k) const { return g.type(g.operand(s.anchor, k)); }
  /// What kernels compute on is of the program's type, but for indices: see `with_indices`.
  template <int>
  using operand_type = T;
  template <class X>
  list<X> one_per_operand() const {
    return list<X>(std::size_t(anchor().operand_count), X{});
  }
  double constant_factor(node_id n) const {
    for (int k = 0; k < 2; ++k) {
      const node& o = g.nodes[std::size_t(g.operand(n, k))];
      if (is<constant_op>(o)) return o.attributes.template as<constant_op::options>().value;
    }
    return 1;
  }

  // ---- memory

  template <class U = const T>
  U* in(const memory& m, int k) const {
    return m.at<U>(s.in[std::size_t(k)]);
  }
  template <class U = T>
  U* out(const memory& m, int k) const {
    return m.at<U>(s.outputs[std::size_t(k)].at);
  }
  template <class U = T>
  U* scratch(const memory& m) const {
    return m.at<U>(s.scratch);
  }
  template <class U = const T>
  U* first_read(const memory& m, int k) const {
    return m.first<U>(s.reads[std::size_t(k)]);
  }
  template <class U = T>
  U* first_output(const memory& m, int k) const {
    return m.first<U>(s.outputs[std::size_t(k)]);
  }
  buffer_ref link(int k) const { return plan.links[std::size_t(k)]; }
  step_addresses<T> addresses_in(const memory& m) const {
    step_addresses<T> a;
    for (int k = 0; k < s.read_count; ++k) a.in[std::size_t(k)] = first_read(m, k);
    for (int k = 0; k < s.output_count; ++k) a.out[std::size_t(k)] = first_output(m, k);
    return a;
  }

  // ---- what is fused

  /// Scratch of the lines behind that of the kernel, for each thread.
  std::int64_t line_scratch() const {
    std::int64_t bytes = 0;
    if (s.kind == step_kind::elementwise) return block_runner<T>::scratch_bytes(*lines.outputs);
    if (s.kind == step_kind::rows) return row_scratch<T>(*lines.outputs, lines.row_numbers);
    if (lines.term) bytes += align_up(block_runner<T>::scratch_bytes(*lines.term));
    if (lines.outputs) bytes += bytecode_sink<T>::scratch_bytes(*lines.outputs);
    return bytes;
  }
  /// `kernel_scratch`: what the kernel has; the line's follows.
  bytecode_sink<T> plain_epilogue(const memory& m, std::byte* kernel_scratch) const {
    return {*lines.outputs, s, addresses_in(m), kernel_scratch + kernel_bytes};
  }
  /// Where a kernel may store its results itself, since nothing follows from them; or null.
  T* plain_target(const memory& m) const {
    return lines.outputs->is_given() ? addresses_in(m).out[0] : nullptr;
  }
  /// What follows from plain results that a kernel has stored: see `finish_results`.
  void finish(const memory& m, const T* given, std::int64_t offset, std::int64_t count,
              std::byte* kernel_scratch) const {
    finish_results(*lines.outputs, s, addresses_in(m), given, offset, count,
                   kernel_scratch + kernel_bytes);
  }
  lanes_bytecode_sink<T> lanes_epilogue(const memory& m, std::byte* kernel_scratch) const {
    const bool one_pixel = s.kind == step_kind::product;
    return {*lines.outputs, s, addresses_in(m), kernel_scratch + kernel_bytes, one_pixel, dead()};
  }
  pooled_bytecode_sink<T> pooled_epilogue(const memory& m, std::byte* kernel_scratch) const {
    return {lanes_epilogue(m, kernel_scratch),
            s.pool_argmax.valid() ? m.at<std::uint16_t>(s.pool_argmax) : nullptr};
  }
  discard side_epilogue(const memory&) const { return {}; }
  blocked_bytecode_sink<T> blocked_epilogue(const memory& m, std::byte* kernel_scratch) const {
    return {*lines.outputs, s, addresses_in(m), kernel_scratch + kernel_bytes, lines.finish};
  }
  static constexpr bool passes_caches() { return false; }
  loop_nest<16> nest() const { return nest_of(s); }
  void run_elementwise(const memory& m, work_range units, std::byte* scratch) const {
    cpu::run_elementwise<T>(units, s, *lines.outputs, addresses_in(m), scratch, dead());
  }
  void run_reduction(const memory& m, work_range units, std::byte* scratch) const {
    const auto a = addresses_in(m);
    const bool across = samples().across;
    const bytecode_sink<T> sink(*lines.outputs, s, a, scratch, layout::plain, 0,
                                across ? no_dead_lanes : dead());
    scratch += bytecode_sink<T>::scratch_bytes(*lines.outputs);
    if (is<max_op>(anchor()))
      run_reduction_by<extreme<true>>(units, a, sink, scratch);
    else if (is<min_op>(anchor()))
      run_reduction_by<extreme<false>>(units, a, sink, scratch);
    else
      run_reduction_by<adding>(units, a, sink, scratch);
  }
  void run_rows(const memory& m, work_range units, std::byte* scratch) const {
    cpu::run_rows<T>(units, s, *lines.outputs, lines.row_numbers, addresses_in(m), scratch);
  }

  /// Lanes of the results that hold no sample.
  dead_lanes dead() const {
    const shape& y = g.type(s.outputs[0].value).shape;
    if (s.arrangement != layout::lanes || y.rank == 0 || y[0] % L == 0) return no_dead_lanes;
    return {y[0] / L * (y.size() / y[0]), first_bits(y[0] % L)};
  }
  /// How a sum treats the samples in the lanes.
  lanes_of_sum samples() const {
    if (s.arrangement != layout::lanes) return {};
    const auto e = s.template as<reduce_step>();
    const int rest = e.samples % L;
    return {e.across_lanes != 0, lane_blocks<T>(e.samples), first_bits(rest ? rest : L)};
  }

  std::int64_t kernel_bytes = 0;  ///< scratch of the kernel itself, aligned
  const loaded_control<T>* control{};

 private:
  template <class Fold>
  void run_reduction_by(work_range units, const step_addresses<T>& a, const bytecode_sink<T>& sink,
                        std::byte* scratch) const {
    cpu::run_reduction<T, Fold>(units, s, *lines.term, a, samples(), sink, scratch);
  }
};

}  // namespace cella::cpu
