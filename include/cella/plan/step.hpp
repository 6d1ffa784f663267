// A step of a plan: which kernel runs, on what, and where it lies.
#pragma once

#include <array>
#include <cella/graph/op_info.hpp>
#include <cella/plan/step_kind.hpp>
#include <cella/plan/step_shapes.hpp>
#include <cstdint>

namespace cella {

/// Which memory an address is relative to. Arguments follow from `first_argument` on.
enum memory_space : std::int32_t {
  arena_space,
  parameter_space,
  slot_space,
  scalar_space,
  constant_space,
  first_argument
};

/// A place in memory, in bytes.
struct buffer_ref {
  std::int32_t space = -1;  ///< -1: none
  std::int64_t offset{};
  constexpr bool valid() const { return space >= 0; }
  friend constexpr bool operator==(const buffer_ref&, const buffer_ref&) = default;
};

/// How a fused expression reads a value that was computed before.
enum class access : std::uint8_t {
  same,     ///< at the element that is being computed
  row,      ///< one number per channel, or per row of a product
  column,   ///< one number per column of a product
  stretch,  ///< rows: one number per stretch of a row, such as a channel: see rows_step
  scalar,   ///< one number
  moving,   ///< in a loop nest: contiguous with the innermost loop
  fixed,    ///< in a loop nest: one number for the whole innermost loop
  strided,  ///< in a loop nest: evenly spaced along the innermost loop
  drawn     ///< a random number, made from its stream and its place
};

inline constexpr int max_loops = 5;
inline constexpr int most_row_numbers = 20;

struct operand_read {
  node_id value = no_node;
  access how{};
  buffer_ref at{};
  /// In a loop nest: the first element, and elements (or lane vectors) to step per loop.
  std::int64_t first{};
  std::array<std::int64_t, max_loops> strides{};
  /// In a loop nest that sums up a short product, which is `value`: which of its operands this is,
  /// how many summands there are, and elements between them. The two follow each other.
  int factor = -1;
  int depth{};
  std::int64_t along{};
};

struct step_output {
  node_id value = no_node;
  buffer_ref at{};
  layout form{};  ///< in which it is written
  /// Plain loops that write into a part of a larger tensor: its first element, and elements to step
  /// per loop. Otherwise outputs are dense.
  bool part{};
  std::int64_t first{};
  std::array<std::int64_t, max_loops> strides{};
  /// rows: of this value only sums over the rows are wanted: it is written as [units][width], one
  /// sum for the rows of each unit of work.
  bool summed{};
};

struct plan_step {
  step_kind kind{};
  layout arrangement{};
  node_id anchor = no_node;  ///< the node that the kernel computes; elementwise: the first root
  node_id accumulated = no_node;  ///< the value that the epilogue starts from
  std::array<buffer_ref, 8> in{};
  buffer_ref scratch{};
  buffer_ref pool_argmax{};  ///< where convolution_pool writes the positions of its maxima
  attributes shape{};        ///< a struct of step_shapes.hpp
  int loops{};               ///< elementwise and reduce: the loop nest
  std::array<std::int64_t, max_loops> loop{};
  unsigned folded{};  ///< reduce: which loops are summed over
  int output_count{};
  std::array<step_output, 10> outputs{};
  int read_count{};
  std::array<operand_read, 16> reads{};
  /// A sum that this step's kernel yields beside its own result (a bias gradient), as the index of
  /// the step that describes it; that step is `carried` and has no kernel of its own.
  int side = -1;
  bool carried{};
  int prepared_operand = -1;  ///< the operand that is read only when the step is prepared
  bool constant{};            ///< depends on nothing: its results are made once and kept
  /// control: its operands, then its results, as a range of the plan's links; generic: its operands
  /// where `in` has no room for them.
  int first_link{};
  int link_count{};
  std::int64_t flops{};
  std::int64_t bytes{};

  /// rows: the numbers of a row, in the order in which they are computed.
  int stat_count{};
  std::array<node_id, most_row_numbers> stats{};

  /// What the kernel works on.
  template <class T>
  constexpr T as() const {
    return shape.as<T>();
  }
  constexpr int find_stat(node_id n) const {
    for (int k = 0; k < stat_count; ++k) {
      if (stats[std::size_t(k)] == n) return k;
    }
    return -1;
  }
  constexpr int find_read(node_id n) const {
    for (int k = 0; k < read_count; ++k) {
      if (reads[std::size_t(k)].value == n) return k;
    }
    return -1;
  }
};

/// Whether the step is a convolution or a gradient of one, of the form that it has in blocks.
constexpr bool has_form(const plan_step& s, convolution_form form) {
  const bool convolves = s.kind == step_kind::convolution ||
                         s.kind == step_kind::convolution_input_gradient ||
                         s.kind == step_kind::convolution_weight_gradient;
  return convolves && s.arrangement == layout::blocked && s.as<convolution_step>().form == form;
}

/// Where a result of the program lies, and its type.
struct plan_value {
  node_id value = no_node;
  buffer_ref at{};
};

}  // namespace cella
