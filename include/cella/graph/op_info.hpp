// The description of an operation: what passes and transforms may ask without knowing its type.
#pragma once

#include <cella/graph/attributes.hpp>
#include <cella/graph/interval.hpp>
#include <cella/graph/iteration_space.hpp>
#include <cella/graph/options.hpp>
#include <cella/graph/shape.hpp>
#include <cella/graph/span.hpp>
#include <complex>
#include <cstdint>
#include <string_view>

namespace cella {

/// Index of a node in its graph's array; -1 stands for "no node".
using node_id = std::int32_t;
inline constexpr node_id no_node = -1;

/// The kind of an operation is that of its derivative: it selects the generic rules of both modes,
/// and of batching. What the operation does is its `compute_class`.
enum class op_kind : std::uint8_t {
  leaf,         ///< no operands: inputs and constants; also `get`, which reads one result of a node
  elementwise,  ///< one result element from one element of each operand, all of one shape
  linear,       ///< jointly linear in the operands of `linear_in`
  bilinear,     ///< linear in each of its two operands: contractions and convolutions
  opaque,       ///< any other: differentiable through its own `vjp` only, if at all
  control       ///< owns or calls regions, or handles records; derivatives stand in transform/
};

/// What an operation does with its operands.
enum class compute_class : std::uint8_t {
  source,         ///< makes values of nothing
  pointwise,      ///< one result element from one element of each operand
  movement,       ///< elements of the operands in other places, and zeros
  contraction,    ///< sums of products over shared axes
  reduction,      ///< sums, products or extrema along axes
  window,         ///< of neighbours: convolution and pooling
  normalization,  ///< elementwise, with numbers that follow from whole axes
  sequential,     ///< along an axis, each element from the one before
  indexed,        ///< in places that the data say
  random,         ///< numbers from a key
  control,        ///< runs regions, or handles records
  other
};

/// What a control operation does with its regions. Transforms and back ends have a case for each.
enum class control_form : std::uint8_t {
  none,
  branch,  ///< one of two regions
  scan,    ///< a region for each slice
  loop,    ///< as long as a condition holds
  call,    ///< a region that others may call
  custom,  ///< a region with a derivative of its own
  pack,    ///< a record of tensors
  unpack   ///< the tensors of a record
};

/// What passes may assume, besides: the tags of ops/kinds.hpp.
struct op_traits {
  bool alias{}, rearranges{}, foldable{}, commutative{}, nondecreasing{}, monotone{}, impure{},
      computed_in_single{}, stored{}, takes_complex{}, takes_records{}, in_place_of_last_operand{};
};

/// An operator of ONNX.
struct onnx_operator {
  std::string_view name;
  std::int32_t since{};       ///< the opset from which on it means what the operation does
  std::string_view domain{};  ///< empty: ai.onnx
};

class builder;
class onnx_attributes;
class text;
struct graph;
struct var;
struct node_ref;
struct op_application;

/// A plain row-major tensor in memory, for the run-time computation of an operation.
struct tensor_ref {
  std::byte* data{};
  tensor_type type{};
};

/// What operations are told apart by: whoever asks whether a node is a product does not ask for all
/// that is known of products, and programs without products do not get it.
template <class Op>
inline constexpr char identity_of{};

/// One constant object per operation, made from its struct by `info_of` (see ops/op.hpp).
struct op_info {
  const char* identity{};  ///< the address of its `identity_of`; null for inputs and `get`
  std::string_view name;
  /// What is wrong with its struct; empty if nothing is.
  std::string_view fault{};
  op_kind kind{};
  compute_class computes = compute_class::other;
  op_traits traits{};
  control_form form{};
  /// Cheaper to compute again in a backward pass than to store.
  bool cheap{};
  /// Has an `apply` from elements to an element, which kernels can fuse.
  bool pointwise{};
  /// Pointwise operations that also have exact integer semantics: modulo 2^n in n bits.
  bool integral{};
  /// A user's: what its rules make is looked at where they are called.
  bool is_own{};
  /// How many operands it takes; -1: any number.
  int operands = -1;
  /// Floating-point operations at each point of the loops.
  int operations_per_point{};
  /// Bit i: linear (jointly, or on its own when bilinear) in operand i.
  unsigned linear_in{};
  /// Bit i: the result is zero wherever operand i is, with its last bit for all operands behind.
  unsigned zero_where{};
  /// The result is zero where all of these operands are; none if there is no such set.
  unsigned zero_of{};
  /// The derivative by operands that no rule covers is zero, rather than missing.
  bool zero_derivative{};
  /// Functions of one element: where they are defined. Elsewhere they are NaN.
  interval domain{};
  /// The fields of its options; null if it has none.
  const option_schema* options{};
  /// How it is written between two operands, ` + `, and how strongly it binds: products 3.
  std::string_view infix{};
  int precedence{};
  /// What it computes, in a line.
  std::string_view formula{};
  /// What has the same meaning in ONNX, NumPy and PyTorch; empty if there is nothing.
  onnx_operator onnx{};
  std::string_view numpy{}, torch{};

  /// The type of the result, given operand types that the public function has checked. Operations
  /// with several results write their types into the last argument of `results` instead, and return
  /// how many there are.
  tensor_type (*infer)(span<const tensor_type>, const attributes&){};
  int (*results)(span<const tensor_type>, const attributes&, span<tensor_type>){};

  /// Derivatives: the partial derivative of an elementwise operation by an operand; the cotangent
  /// of an operand in which the operation is linear; the cotangents of all operands that are
  /// needed.
  var (*partial)(node_ref, int operand){};
  var (*transpose)(node_ref, int operand, var dy){};
  void (*vjp)(node_ref, span<const var> dy, span<const char> needed, span<var> dx){};
  /// Beside a `vjp`: the tangents of the results from those of the operands, where they take fewer
  /// nodes than the transposed `vjp`, which forward mode makes otherwise. Tangents that are zero,
  /// of operands and of results, have no node.
  void (*jvp)(node_ref, span<const var> dx, span<var> dy){};
  /// The loops, if there are any to tell: all but control operations have them.
  iteration_space (*space)(span<const tensor_type>, const attributes&){};

  /// Where the elements of the (first) result lie, if those of the operands lie in these intervals,
  /// which their types can hold. For others `bounds_of` derives it (ops/bounds.hpp).
  interval (*bounds)(span<const interval> in, span<const tensor_type>, const attributes&){};

  /// Batching: the options with which the operation does the same for each of `size` samples that
  /// lie along a new leading axis of all its operands (of those in `batched`, if it is bilinear).
  attributes (*batch_options)(node_ref, int size, unsigned batched){};
  /// Batching of operations for which other options are not enough. `in` are the new operands;
  /// those in `batched` have the leading axis, as must all of `out`. Leaves `out` alone if there is
  /// no rule for this combination: then the operation runs sample by sample.
  void (*batch)(node_ref, span<const var> in, unsigned batched, span<var> out){};

  /// The options with which the operation computes a part of this shape of its result, from those
  /// parts of its operands that its loops name.
  attributes (*part_options)(const attributes&, const shape& part){};
  /// The options with which it does the same for each of `size` directions that lie along a last
  /// axis, behind `rank` others, of the operands in `marked` (of all, if it is not bilinear).
  attributes (*direction_options)(const attributes&, int rank, int size, unsigned marked){};

  /// The options as attributes of the ONNX operator, and back, where they are not the fields by
  /// their names (interop/onnx.hpp).
  void (*write_onnx)(span<const tensor_type>, const attributes&, onnx_attributes&){};
  attributes (*read_onnx)(span<const tensor_type>, const onnx_attributes&){};

  /// Whether it can be applied to operands of these types and extents, as many as it takes, with
  /// these options: what its public function checks, once more for graphs from files. Where there
  /// is no such rule, pointwise operations take operands of one type, and others any.
  bool (*fits)(const op_application&){};

  /// Control operations: what is wrong between a node and its regions; empty if nothing is.
  text (*validate)(const graph&, node_id){};

  /// Pointwise operations: the function itself, for eager mode and folding; of those with integer
  /// semantics also on integers with a sign and without, and of those that take them on complex
  /// numbers.
  double (*scalar)(const attributes&, double, double, double){};
  std::int64_t (*integer)(const attributes&, std::int64_t, std::int64_t, std::int64_t){};
  std::uint64_t (*without_sign)(const attributes&, std::uint64_t, std::uint64_t, std::uint64_t){};
  std::complex<double> (*complex)(const attributes&, std::complex<double>, std::complex<double>,
                                  std::complex<double>){};
  /// Others: computes the results from the operands, all plain row-major, none overlapping.
  void (*compute)(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out){};
};

}  // namespace cella
