// The kinds of steps that a plan is made of.
#pragma once

#include <array>
#include <cella/plan/layout.hpp>
#include <cstdint>
#include <string_view>

namespace cella {

/// What a step runs. Operands are described by `plan_step::in`.
enum class step_kind : std::uint8_t {
  elementwise,                       ///< a fused group alone
  reduce,                            ///< a sum with its prologue and epilogue
  product,                           ///< matrix product: left, right
  product_weights,                   ///< sum over the batch in the lanes: dy, x
  convolution,                       ///< image, filter
  convolution_pool,                  ///< the same, 2x2 max pooling in registers
  convolution_input_gradient,        ///< dy, filter
  convolution_weight_gradient,       ///< image, dy
  convolution_pool_weight_gradient,  ///< image, pooled dy, positions: un-pools on the fly
  max_unpool_2x2,                    ///< pooled values, positions as bits
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
  control,             ///< runs the plans of the node's regions; its operands and results are links
  rows,                ///< sums of rows and what follows from them, row by row
  softmax,             ///< or its logarithm, along an axis of a plain tensor
  permute,             ///< a plain tensor with its axes in another order
  move,                ///< a box of elements, or zeros, into a part of a plain tensor
  random_stream,       ///< a key -> what loops draw uniform numbers from as they need them
  random_uniform,      ///< uniform numbers in memory
  random_permutation,  ///< numbers in a random order
  random_draw,         ///< numbers of a distribution, each of its own parameter
  gather,              ///< rows of a table by index
  scatter,             ///< rows added to those of a table by index
  put_rows,            ///< a table of which rows are replaced or added to, by index
  best_position,       ///< where the largest or smallest elements along an axis are
  max_pool_plain,      ///< plain images, as the four that follow: what `max_pool` is for blocks
  unpool,              ///< pooled values, positions -> image
  pool_gather,         ///< image, positions -> the elements there
  average_pool,        ///< means of windows
  average_spread,      ///< means -> image, each spread over its window
  integer_product,     ///< matrices of bytes and their zeros -> sums of 32 bits
  integer_convolution,  ///< the same of an image and filters
  running,              ///< running sums, recurrences and extrema along an axis
  order,                ///< the places of elements along an axis in their order, or these elements
  elements,             ///< single elements gathered or scattered by index along an axis
  one_hot,              ///< ones among zeros
  scatter_reduce,       ///< rows combined at those of a table by index
  sparse,               ///< products over the entries of a sparse matrix
  fold,                 ///< products along axes; sums and extrema of integers and truth values
  typed,                ///< an elementwise operation on other types than the program computes in
  special,              ///< a special function of the elements of its operands
  bitwise,              ///< digits of integers
  fourier,              ///< Fourier transforms along an axis
  fourier_of_real,      ///< of real numbers: the first half
  fourier_to_real,      ///< and back
  decomposition,        ///< factors of matrices, systems of equations, determinants
  generic               ///< the operation's own computation on plain tensors
};

/// What planning may assume of a kind of steps.
struct step_kind_traits {
  std::string_view name;
  /// One operation on plain tensors of any type, whose results are whole tensors.
  bool alone{};
  /// Computes further operations on its results in registers.
  bool fuses{};
  /// May overwrite an input with the value that replaces it.
  bool in_place{};
  /// Its result may be a contiguous part of a larger tensor.
  bool places{};
};
constexpr step_kind_traits step_traits(step_kind k) {
  constexpr bool alone = true, fuses = true, in_place = true, places = true;
  constexpr std::array all{
      step_kind_traits{"elementwise", {}, fuses, in_place, places},
      step_kind_traits{"reduce", {}, fuses, in_place, places},
      step_kind_traits{"product", {}, fuses, in_place, places},
      step_kind_traits{"product_weights", {}, fuses, in_place},
      step_kind_traits{"convolution", {}, fuses, in_place},
      step_kind_traits{"convolution_pool", {}, fuses, in_place},
      step_kind_traits{"convolution_input_gradient", {}, fuses, in_place},
      step_kind_traits{"convolution_weight_gradient", {}, fuses, in_place},
      step_kind_traits{"convolution_pool_weight_gradient", {}, fuses, in_place},
      step_kind_traits{"max_unpool_2x2", {}, fuses, in_place},
      step_kind_traits{"max_pool", {}, {}, in_place},
      step_kind_traits{"max_unpool", {}, fuses, in_place},
      step_kind_traits{"batch_norm", {}, fuses},
      step_kind_traits{"batch_norm_gradient", {}, fuses},
      step_kind_traits{"cross_entropy", {}, {}, in_place},
      step_kind_traits{"attention", {}, {}, in_place},
      step_kind_traits{"attention_gradient", {}, {}, in_place},
      step_kind_traits{"pack"},
      step_kind_traits{"unpack"},
      step_kind_traits{"pack_blocks"},
      step_kind_traits{"unpack_blocks"},
      step_kind_traits{"border"},
      step_kind_traits{"copy"},
      step_kind_traits{"control"},
      step_kind_traits{"rows", {}, fuses},
      step_kind_traits{"softmax", alone, {}, {}, places},
      step_kind_traits{"transpose", alone, {}, {}, places},
      step_kind_traits{"move"},
      step_kind_traits{"random_stream"},
      step_kind_traits{"random_uniform", alone},
      step_kind_traits{"random_permutation", alone},
      step_kind_traits{"random_draw", alone},
      step_kind_traits{"gather", alone},
      step_kind_traits{"scatter", alone},
      step_kind_traits{"put_rows", alone, {}, in_place},
      step_kind_traits{"best_position", alone},
      step_kind_traits{"max_pool_plain", alone},
      step_kind_traits{"unpool", alone},
      step_kind_traits{"pool_gather", alone},
      step_kind_traits{"average_pool", alone},
      step_kind_traits{"average_spread", alone},
      step_kind_traits{"integer_product", alone},
      step_kind_traits{"integer_convolution", alone},
      step_kind_traits{"running", alone},
      step_kind_traits{"order", alone},
      step_kind_traits{"elements", alone},
      step_kind_traits{"one_hot", alone},
      step_kind_traits{"scatter_reduce", alone},
      step_kind_traits{"sparse", alone},
      step_kind_traits{"fold", alone},
      step_kind_traits{"typed", alone},
      step_kind_traits{"special", alone},
      step_kind_traits{"bitwise", alone},
      step_kind_traits{"fourier", alone},
      step_kind_traits{"fourier_of_real", alone},
      step_kind_traits{"fourier_to_real", alone},
      step_kind_traits{"decomposition", alone},
      step_kind_traits{"generic", alone},
  };
  static_assert(all.size() == std::size_t(step_kind::generic) + 1, "each kind has its traits");
  return all[std::size_t(k)];
}
constexpr std::string_view name(step_kind k) { return step_traits(k).name; }

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
