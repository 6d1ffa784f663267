// What an operation's struct derives from: its kind, and what it says instead of a derivative.
#pragma once

#include <cella/graph/span.hpp>
#include <cella/graph/var.hpp>

namespace cella {

/// Operations without options say so with this empty set.
struct no_options {
  friend constexpr bool operator==(no_options, no_options) = default;
};

/// What follows where each result element comes from one element of each operand, all of one shape:
/// the loops, and options that are the same for parts and for directions.
struct element_by_element {
  static constexpr iteration_space space(span<const tensor_type> in, const attributes&) {
    return pointwise_space(in[0].shape, in.size());
  }
  static constexpr attributes part_options(const attributes& o, const shape&) { return o; }
  static constexpr attributes direction_options(const attributes& o, int, int, unsigned) {
    return o;
  }
};

/// Base of operations that compute each result element from one element of each operand. `Op` gives
/// `name`, `apply`, and `partial` (or `vjp`) or one of the bases below.
template <class Op>
struct elementwise : element_by_element {
  static constexpr op_kind kind = op_kind::elementwise;
  static constexpr compute_class computes = compute_class::pointwise;
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
};

/// Base of operations that are linear in the operands of `linear_in`. `Op` gives `name`, `infer`,
/// `transpose` and `compute`.
template <class Op>
struct linear {
  static constexpr op_kind kind = op_kind::linear;
  static constexpr compute_class computes = compute_class::other;
  static constexpr unsigned linear_in = 1;
};

/// Base of contractions: linear in each of two operands. `Op` gives the same.
template <class Op>
struct bilinear {
  static constexpr op_kind kind = op_kind::bilinear;
  static constexpr compute_class computes = compute_class::contraction;
  static constexpr unsigned linear_in = 3;
};

/// Base of all others. `Op` gives `name`, `infer` (or `results`), `compute`, and `vjp` or one of
/// the bases below.
template <class Op>
struct opaque {
  static constexpr op_kind kind = op_kind::opaque;
  static constexpr compute_class computes = compute_class::other;
};

/// Base of operations without operands. `Op` gives `name`, `infer` and `compute`.
template <class Op>
struct leaf {
  static constexpr op_kind kind = op_kind::leaf;
  static constexpr compute_class computes = compute_class::source;
  static constexpr bool cheap = true;
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return pointwise_space(Op::infer(in, o).shape, 0);
  }
};

/// Base of operations that own regions or handle records. Their derivatives stand in transform/.
template <class Op>
struct control {
  static constexpr op_kind kind = op_kind::control;
  static constexpr compute_class computes = compute_class::control;
};

// A derivative that no rule computes is said, so that none is forgotten.

/// Second base of operations whose derivative is zero wherever there is one: floor, comparisons,
/// argmax. Of a linear operation: by the operands in which it is not linear.
struct zero_derivative {};

/// Second base of operations that have no derivative, or whose derivative nobody has written: it is
/// a fault to ask for one.
struct not_differentiable {};

// What passes may assume of an operation is said by further bases.

/// Has a meaning for complex numbers, too. Where others get one, that is a fault.
struct takes_complex {};
/// Each element of the result is one of the operands'.
struct rearranges : takes_complex {};
/// `compute` may be given its last operand's memory for its result.
struct in_place_of_last_operand {};
/// Has a meaning for records, too, as have all operations that move elements.
struct takes_records {};
/// The result is the operand, under another shape or name: it shares the memory.
struct alias_of_operand : rearranges {};
/// Any compiler can call `apply` in constant evaluation (std::exp and its kin cannot be).
struct foldable {};
/// f(x, y) = f(y, x), bit for bit. `maximum` is not: it returns its second operand when the
/// comparison fails, NaN included.
struct commutative {};
/// The result is 0 where all operands are; those of indices and conditions do not count. `gather`
/// is not: it reads NaN where an index is wrong. Operations that have an operand whose zeros alone
/// make zeros say which (`zero_where`, one bit each); what a zero multiplies counts as zero.
struct keeps_zero {};
/// The result never falls as an operand grows, where it is a number: its bounds are its values at
/// those of the operands.
struct nondecreasing {};
/// f(x) never falls as x grows, and has the same derivative wherever it has the same value: f of
/// the largest element is the largest f, and either element may have its gradient.
struct monotone : nondecreasing {};
/// Does something besides its result: whoever leaves it out, or runs it once for twice, is seen.
struct impure {};
/// `apply` takes as long as tens of multiplications: one vector for a few elements is worth it.
struct transcendental {};
/// Computes numbers of 16 bits in single precision, between casts. Others convert what they load
/// and store.
struct computed_in_single {};

/// Computes nothing: the result is a constant tensor of the graph. Options are `values_options`.
struct stored_in_graph {};

/// Base of elementwise operations with a truth value as result.
template <class Op>
struct predicate : elementwise<Op>, zero_derivative {
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return {dtype::boolean, in[0].shape};
  }
};

}  // namespace cella
