// From a step of a plan to calls of a kernel, at compile time: the records of all kernels, and the
// look-up. To add a kernel, write its record and name it in a list.
#pragma once

#include <cella/backend/cpu/lower/alone.hpp>
#include <cella/backend/cpu/lower/blocks.hpp>
#include <cella/backend/cpu/lower/convolutions.hpp>
#include <cella/backend/cpu/lower/elements.hpp>
#include <cella/backend/cpu/lower/integers.hpp>
#include <cella/backend/cpu/lower/lanes.hpp>
#include <cella/backend/cpu/lower/lines.hpp>
#include <cella/backend/cpu/lower/loops.hpp>
#include <cella/backend/cpu/lower/matrices.hpp>
#include <cella/backend/cpu/lower/movement.hpp>
#include <cella/backend/cpu/lower/norms.hpp>
#include <cella/backend/cpu/lower/pooling.hpp>
#include <cella/backend/cpu/lower/products.hpp>
#include <cella/backend/cpu/lower/rows.hpp>
#include <cella/backend/cpu/lower/special.hpp>

namespace cella::cpu {

/// The records of the CPU's kernels.
using kernel_records =
    join_records<loop_records, product_records, convolution_records, lanes_records, block_records,
                 norm_records, pooling_records, row_records, movement_records, element_records,
                 line_records, integer_records, special_records, matrix_records,
                 records_of_operations>::type;

/// One call of a kernel, for step `step` of the plan: `units` independent units of work, `scratch`
/// bytes for each thread. Where steps share code, the memory that it is given names `places`.
struct kernel_call {
  void (*run)(const memory&, work_range, std::byte* scratch){};
  const buffer_ref* places{};
  int units{};
  int step{};
  std::int64_t scratch{};
};

/// Step I of program P as one or more calls in sequence.
template <class P, int I>
struct lowered : program_step<P, I> {
  using step = program_step<P, I>;
  static constexpr step_code whose = step_codes<P>[I];
  /// Whose functions these are: those of the first step that is like it.
  using code = lowered<P, whose.of>;
  /// What the memory that they are given must name.
  static constexpr const buffer_ref* places() {
    return whose.shared ? shared_places<P>.data() + whose.first_place : nullptr;
  }

  static constexpr std::size_t found = kernel_records::find(step::s);
  static_assert(
      found < kernel_records::size,
      "cella: no kernel of the CPU runs a step of this kind in this layout; add its record "
      "to backend/cpu/lower.hpp");
  using record = kernel_records::at<found>;

  template <int Phase>
  static void run(const memory& m, work_range units, std::byte* scratch) {
    record::template run<Phase>(step{}, m, units, scratch);
    if constexpr (step::passes_caches()) finish_stores();
  }
  static constexpr int phases() { return record::phases(step{}); }
  static constexpr bool prepares() { return record::prepares(step{}); }
  static constexpr int units(int phase) { return record::units(step{}, phase); }
  static constexpr std::int64_t scratch_bytes() { return record::scratch_bytes(step{}); }
};

}  // namespace cella::cpu
