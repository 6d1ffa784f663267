// How lines read their operands: where, and how elements follow each other there.
#pragma once

#include <cella/plan/layout.hpp>
#include <cella/plan/step.hpp>
#include <cstdint>

namespace cella::cpu {

/// Where a value begins that is read in this way at a place of a result: its offset, row and
/// column; in elements, those of a row being `row_elements`.
constexpr std::int64_t place_of_read(access how, std::int64_t offset, std::int64_t row,
                                     std::int64_t column, std::int64_t row_elements = 1) {
  switch (how) {
    case access::same:
    case access::drawn:
      return offset;
    case access::row:
      return row * row_elements;
    case access::column:
      return column;
    default:
      return 0;
  }
}

/// How elements of a segment follow each other in memory.
enum class element_walk : std::uint8_t {
  contiguous,
  one,      ///< one number for all
  vector,   ///< one vector for each vector of them
  numbers,  ///< one number for each vector of them, evenly spaced
  spaced,
  drawn
};

/// `form`: of the values that a line computes. What is not plain comes in whole vectors, and loops
/// move by `along` elements from one to the next, as `in_elements` has it; kernels of the lanes by
/// so many channels.
constexpr element_walk walk_of(access how, layout form, std::int64_t along) {
  const bool plain = form == layout::plain;
  switch (how) {
    case access::same:
    case access::column:
      return element_walk::contiguous;
    case access::moving:
      return plain || along != 0 ? element_walk::contiguous : element_walk::vector;
    case access::fixed:
      return plain || along == 0 ? element_walk::one : element_walk::numbers;
    case access::row:
      if (form == layout::blocked) return element_walk::vector;
      return form == layout::lanes && along != 0 ? element_walk::numbers : element_walk::one;
    case access::strided:
      return element_walk::spaced;
    case access::drawn:
      return element_walk::drawn;
    default:
      return element_walk::one;
  }
}

}  // namespace cella::cpu
