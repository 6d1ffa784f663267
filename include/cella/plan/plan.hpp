// What a program does, step by step, as one plain structure of compile-time constants: made by the
// planner, read by the back end, printed by `explain`.
#pragma once

#include <array>
#include <cella/graph/list.hpp>
#include <cella/graph/op_info.hpp>
#include <cella/plan/step_shapes.hpp>
#include <cstdint>
#include <string_view>

namespace cella {

/// How a tensor lies in memory. `lanes`: [ceil(N/L)][features...][L], the batch in the SIMD lanes.
/// `blocked`: an image as [N][C/L][H][W][L], L channels side by side.
enum class layout : std::uint8_t { plain, lanes, blocked };
constexpr std::string_view name(layout a) {
  return a == layout::plain ? "plain" : a == layout::lanes ? "lanes" : "blocks";
}

/// Which memory an address is relative to. Arguments follow from `first_argument` on.
enum memory_space : std::int32_t {
  arena_space,
  parameter_space,
  slot_space,
  scalar_space,
  first_argument
};

/// A place in memory, in bytes.
struct buffer_ref {
  std::int32_t space = -1;  ///< -1: none
  std::int64_t offset{};
  constexpr bool valid() const { return space >= 0; }
  friend constexpr bool operator==(const buffer_ref&, const buffer_ref&) = default;
};

/// What a step runs. Operands are described by `step::in`.
enum class step_kind : std::uint8_t {
  elementwise,                       ///< a fused group alone
  reduce,                            ///< a sum with its prologue and epilogue
  product,                           ///< matrix product: left, right
  product_weights,                   ///< sum over the batch in the lanes: dy, x
  convolution,                       ///< image, filter
  convolution_pool,                  ///< the same, 2x2 max pooling in registers
  convolution_input_gradient,        ///< dy, filter
  convolution_weight_gradient,       ///< image, dy
  convolution_pool_weight_gradient,  ///< image, pooled dy, pool_argmax: un-pools on the fly
  max_unpool_2x2,                    ///< pooled values, pool_argmax as bits
  max_pool,                          ///< largest elements of windows and their positions
  max_unpool,                        ///< pooled values, positions in their windows
  batch_norm,                        ///< image, gamma, beta -> result, mean, variance
  batch_norm_gradient,               ///< image, gamma, dy, mean, variance -> gradients
  cross_entropy,                     ///< logits, labels -> loss, gradient of the logits
  attention,                         ///< queries, keys, values: `reads`, with their strides
  attention_gradient,                ///< the same and the gradient of the result
  pack,                              ///< plain -> lanes, with a zero border
  unpack,                            ///< lanes -> plain
  pack_blocks,                       ///< plain -> blocks of channels
  unpack_blocks,                     ///< blocks of channels -> plain
  border,                            ///< lanes -> lanes with a zero border
  copy,
  control,         ///< runs the plans of the node's regions; its operands and results are links
  rows,            ///< sums of rows and what follows from them, row by row
  softmax,         ///< or its logarithm, along an axis of a plain tensor
  permute,         ///< a plain tensor with its axes in another order
  random_stream,   ///< a key -> what loops draw uniform numbers from as they need them
  random_uniform,  ///< uniform numbers in memory
  gather,          ///< rows of a table by index
  scatter,         ///< rows added to those of a table by index
  best_position,   ///< where the largest or smallest elements along an axis are
  generic          ///< the operation's own computation on plain tensors
};
/// Whether a step is one operation on plain tensors of any type, whose results are whole tensors.
constexpr bool runs_alone(step_kind k) {
  return k == step_kind::softmax || k == step_kind::permute || k == step_kind::random_uniform ||
         k == step_kind::gather || k == step_kind::scatter || k == step_kind::best_position ||
         k == step_kind::generic;
}
constexpr std::string_view name(step_kind k) {
  constexpr std::array<std::string_view, 33> names{"elementwise",
                                                   "reduce",
                                                   "product",
                                                   "product_weights",
                                                   "convolution",
                                                   "convolution_pool",
                                                   "convolution_input_gradient",
                                                   "convolution_weight_gradient",
                                                   "convolution_pool_weight_gradient",
                                                   "max_unpool_2x2",
                                                   "max_pool",
                                                   "max_unpool",
                                                   "batch_norm",
                                                   "batch_norm_gradient",
                                                   "cross_entropy",
                                                   "attention",
                                                   "attention_gradient",
                                                   "pack",
                                                   "unpack",
                                                   "pack_blocks",
                                                   "unpack_blocks",
                                                   "border",
                                                   "copy",
                                                   "control",
                                                   "rows",
                                                   "softmax",
                                                   "transpose",
                                                   "random_stream",
                                                   "random_uniform",
                                                   "gather",
                                                   "scatter",
                                                   "best_position",
                                                   "generic"};
  return names[static_cast<std::size_t>(k)];
}

/// How a fused expression reads a value that was computed before.
enum class access : std::uint8_t {
  same,     ///< at the element that is being computed
  row,      ///< one number per channel, or per row of a product
  column,   ///< one number per column of a product
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
  bool constant{};  ///< depends on nothing: its results are made once and kept
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

/// A whole plan, of exactly as many steps, results and links as the program has.
template <int Steps, int Results, int Links>
struct basic_plan {
  std::array<plan_step, std::size_t(Steps)> steps{};
  std::array<plan_value, std::size_t(Results)> results{};
  std::array<buffer_ref, std::size_t(Links)> links{};
  static constexpr int step_count = Steps;
  static constexpr int result_count = Results;
  std::int64_t arena_bytes{};
  std::int64_t arena_bytes_without_reuse{};
  std::int64_t live_bytes{};  ///< the largest set of values alive at once: no arena can be smaller
  std::int64_t parameter_bytes{};
  std::int64_t slot_bytes{};
};

/// A plan while it is made, or of a graph that exists at run time only.
struct growing_plan {
  list<plan_step> steps;
  list<plan_value> results;
  list<buffer_ref> links;
  std::int64_t arena_bytes{};
  std::int64_t arena_bytes_without_reuse{};
  std::int64_t live_bytes{};
  std::int64_t parameter_bytes{};
  std::int64_t slot_bytes{};
};

}  // namespace cella
