// The formats of tensors in memory, and the kinds of steps that a plan is made of.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cella {

/// How a tensor lies in memory. `lanes`: [ceil(N/L)][features...][L], the batch in the SIMD lanes.
/// `blocked`: an image as [N][C/L][H][W][L], L channels side by side.
enum class layout : std::uint8_t { plain, lanes, blocked };
constexpr std::string_view name(layout a) {
  return a == layout::plain ? "plain" : a == layout::lanes ? "lanes" : "blocks";
}

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

/// The step that brings a plain tensor into a format, and the one that brings it back.
constexpr step_kind packing(layout a) {
  return a == layout::lanes ? step_kind::pack : step_kind::pack_blocks;
}
constexpr step_kind unpacking(layout a) {
  return a == layout::lanes ? step_kind::unpack : step_kind::unpack_blocks;
}
/// Whether a step only moves a value into another format or place.
constexpr bool is_conversion(step_kind k) {
  return k == step_kind::pack || k == step_kind::unpack || k == step_kind::border ||
         k == step_kind::pack_blocks || k == step_kind::unpack_blocks || k == step_kind::copy;
}

}  // namespace cella
