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
  static constexpr std::int64_t scratch_bytes(auto step) { return extents(step).scratch_bytes(); }
  template <int, class S>
  static void run(S step, const memory& m, work_range units, std::byte* scratch) {
    using T = typename S::T;
    const decomposition_extents e = extents(step);
    const std::int64_t square = std::int64_t{e.n} * e.n, right = std::int64_t{e.n} * e.columns;
    constexpr auto of_determinant = [](auto s) { return is<slogdet_op>(s.anchor()); };
    const bool determinant = constant_of(step, of_determinant);
    const std::int64_t first = determinant ? 1 : e.columns ? right : square;
    const std::int64_t second = determinant ? std::int64_t{sizeof(T)} : std::int64_t{8} * e.n;
    const auto f = with_operation(step, decomposition_operations{},
                                  [&]<class Op>() { return decomposition_of<Op, T>(); });
    const T* const right_sides = step.anchor().operand_count > 1 ? step.in(m, 1) : nullptr;
    std::byte* const others =
        step.anchor().result_count > 1 ? step.template out<std::byte>(m, 1) : nullptr;
    for (std::int64_t b = units.first; b < units.last; ++b)
      f(step.all_options(),
        {e, step.in(m, 0) + b * square, right_sides + b * right, step.out(m, 0) + b * first,
         others + b * second},
        scratch);
  }

 private:
  static constexpr decomposition_extents extents(auto step) {
    const tensor_type a = step.operand(0);
    const bool solves = step.anchor().operand_count > 1;
    return {a[a.rank() - 1], solves ? step.operand(1)[a.rank() - 1] : 0};
  }
};

using matrix_records = record_list<decomposition_record>;

}  // namespace cella::cpu
