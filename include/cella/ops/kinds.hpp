// What an operation's struct derives from: its kind, and what it says instead of a derivative.
#pragma once

#include <cella/graph/span.hpp>
#include <cella/graph/var.hpp>

namespace cella {

/// Operations without options say so with this empty set.
struct no_options {
  friend constexpr bool operator==(no_options, no_options) = default;
};

/// Base of operations that compute each result element from one element of each operand. `Op` gives
/// `name`, `apply`, and `partial` (or `vjp`) or one of the bases below.
template <class Op>
struct elementwise {
  static constexpr op_kind kind = op_kind::elementwise;
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
};

/// Base of operations that are linear in the operands of `linear_in`. `Op` gives `name`, `infer`,
/// `transpose` and `compute`.
template <class Op>
struct linear {
  static constexpr op_kind kind = op_kind::linear;
  static constexpr unsigned linear_in = 1;
};

/// Base of contractions: linear in each of two operands. `Op` gives the same.
template <class Op>
struct bilinear {
  static constexpr op_kind kind = op_kind::bilinear;
  static constexpr unsigned linear_in = 3;
};

/// Base of all others. `Op` gives `name`, `infer` (or `results`), `compute`, and `vjp` or one of
/// the bases below.
template <class Op>
struct opaque {
  static constexpr op_kind kind = op_kind::opaque;
};

/// Base of operations without operands. `Op` gives `name`, `infer` and `compute`.
template <class Op>
struct leaf {
  static constexpr op_kind kind = op_kind::leaf;
  static constexpr bool cheap = true;
};

/// Base of operations that own regions or handle records. Their derivatives stand in transform/.
template <class Op>
struct control {
  static constexpr op_kind kind = op_kind::control;
};

// A derivative that no rule computes is said, so that none is forgotten.

/// Second base of operations whose derivative is zero wherever there is one: floor, comparisons,
/// argmax. Of a linear operation: by the operands in which it is not linear.
struct zero_derivative {};

/// Second base of operations that have no derivative, or whose derivative nobody has written: it is
/// a fault to ask for one.
struct not_differentiable {};

/// Base of elementwise operations with a truth value as result.
template <class Op>
struct predicate : elementwise<Op>, zero_derivative {
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return {dtype::boolean, in[0].shape};
  }
};

}  // namespace cella
