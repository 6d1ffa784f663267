// Factors of matrices, systems of equations and determinants, for each matrix of a batch.
#pragma once

#include <cella/backend/cpu/lower/record.hpp>
#include <cella/backend/cpu/matrices/decompositions.hpp>
#include <cella/backend/cpu/plan/default_kernel.hpp>

namespace cella::cpu {

struct decomposition_record : record_for<step_kind::decomposition> {
  static constexpr int units(auto step, int) {
    const shape s = step.operand(0).shape;
    return int(s.size(0, s.rank - 2));
  }
  static constexpr std::int64_t scratch_bytes(auto step) {
    const decomposition_extents e = extents(step);
    return with_operation(step, decomposition_operations{},
                          [&]<class Op>() { return decomposition_scratch<Op>(e); });
  }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    using T = typename S::T;
    const decomposition_extents e = extents(step);
    const decomposition_kernel<T> kernel = with_operation(
        step, decomposition_operations{}, [&]<class Op>() { return decomposition_of<Op, T>(e); });
    const std::int64_t matrix = std::int64_t{e.rows} * e.n, right = std::int64_t{e.n} * e.columns;
    const T* const right_sides = step.anchor().operand_count > 1 ? step.in(m, 1) : nullptr;
    decomposition_task<T> t{e, step.in(m, 0), right_sides, {}};
    // Of several results those that nobody reads are not computed.
    for (std::size_t k = 0; k < std::size_t(step.s.output_count); ++k)
      if (step.s.outputs[k].value >= 0) t.results[k] = step.template out<std::byte>(m, int(k));
    for (std::int64_t b = units.first; b < units.last; ++b) {
      decomposition_task<T> one = t;
      one.a += b * matrix;
      if (right_sides) one.b += b * right;
      for (std::size_t k = 0; k < t.results.size(); ++k)
        if (t.results[k]) one.results[k] += b * kernel.bytes[k];
      kernel.run(step.all_options(), one, part_room(scratch));
    }
  }

 private:
  static constexpr decomposition_extents extents(auto step) {
    const tensor_type a = step.operand(0);
    const bool solves = step.anchor().operand_count > 1;
    return {a[a.rank() - 2], a[a.rank() - 1], solves ? step.operand(1)[a.rank() - 1] : 0};
  }
};

using matrix_records = record_list<decomposition_record>;

}  // namespace cella::cpu
