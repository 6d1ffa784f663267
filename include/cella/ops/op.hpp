// How an operation is declared: one struct, from which everything else is derived.
//
//   struct square_op : elementwise<square_op> {                 // the kind selects the generic
//   rules
//     static constexpr std::string_view name = "square";
//     static constexpr auto apply(auto x) { return x * x; }     // float, double, SIMD vector
//     static constexpr var partial(node_ref n, int) { return 2 * n.operand(0); }
//   };
//   constexpr var square(operand x) { return apply<square_op>(x); }
#pragma once

#include <cella/graph/span.hpp>
#include <cella/graph/var.hpp>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace cella {

/// Operations without options say so with this empty set.
struct no_options {
  friend constexpr bool operator==(no_options, no_options) = default;
};

/// Base of operations that compute each result element from one element of each operand. `Op` gives
/// `name`, `apply` and `partial` (or `vjp`).
template <class Op>
struct elementwise {
  static constexpr op_kind kind = op_kind::elementwise;
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static constexpr var partial(node_ref, int) { return zero_partial; }
};

/// Base of elementwise operations with a truth value as result; no derivative.
template <class Op>
struct predicate : elementwise<Op> {
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return {dtype::boolean, in[0].shape};
  }
};

/// Base of operations that are linear in the operands of `linear_in`. `Op` gives `name`, `infer`,
/// `transpose` and `compute`.
template <class Op>
struct linear {
  static constexpr op_kind kind = op_kind::linear;
  static constexpr unsigned linear_in = 1;
};

/// Base of contractions: linear in each of two operands.
template <class Op>
struct bilinear {
  static constexpr op_kind kind = op_kind::bilinear;
  static constexpr unsigned linear_in = 3;
};

/// Base of operations whose derivative is their own `vjp`, or that have none.
template <class Op>
struct opaque {
  static constexpr op_kind kind = op_kind::opaque;
};

/// Base of operations without operands.
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

namespace detail {

/// Calls Op::apply on the operands that the operation has, with its options if it has any.
template <class Op, class T>
constexpr auto apply_scalar(const attributes& options, T x, T y, T z) {
  if constexpr (requires { typename Op::options; }) {
    const auto o = options.as<typename Op::options>();
    if constexpr (requires { Op::apply(o, x); })
      return Op::apply(o, x);
    else if constexpr (requires { Op::apply(o, x, y); })
      return Op::apply(o, x, y);
    else
      return Op::apply(o, x, y, z);
  } else {
    if constexpr (requires { Op::apply(x); })
      return Op::apply(x);
    else if constexpr (requires { Op::apply(x, y); })
      return Op::apply(x, y);
    else
      return Op::apply(x != T(0), y, z);  // select: the first operand is a truth value
  }
}

template <class Op>
constexpr op_info describe() {
  op_info i{.name = Op::name, .kind = Op::kind};
  if constexpr (requires { Op::cheap; }) i.cheap = Op::cheap;
  if constexpr (requires { Op::linear_in; }) i.linear_in = Op::linear_in;
  if constexpr (requires { Op::onnx; }) i.onnx = Op::onnx;
  if constexpr (requires { &Op::infer; }) i.infer = &Op::infer;
  if constexpr (requires { &Op::results; }) i.results = &Op::results;
  if constexpr (requires { &Op::partial; }) i.partial = &Op::partial;
  if constexpr (requires { &Op::transpose; }) i.transpose = &Op::transpose;
  if constexpr (requires { &Op::vjp; }) i.vjp = &Op::vjp;
  if constexpr (requires { &Op::space; }) i.space = &Op::space;
  if constexpr (requires { &Op::batch_options; }) i.batch_options = &Op::batch_options;
  if constexpr (requires { &Op::batch; }) i.batch = &Op::batch;
  if constexpr (requires { &Op::validate; }) i.validate = &Op::validate;
  if constexpr (requires { &Op::compute; }) {
    i.compute = &Op::compute;
  } else if constexpr (Op::kind != op_kind::leaf && Op::kind != op_kind::control) {
    i.pointwise = true;
    i.scalar = [](const attributes& o, double x, double y, double z) {
      return static_cast<double>(apply_scalar<Op, double>(o, x, y, z));
    };
    if constexpr (requires { Op::integral; }) {
      i.integral = true;
      i.integer = [](const attributes& o, std::int64_t x, std::int64_t y, std::int64_t z) {
        return static_cast<std::int64_t>(apply_scalar<Op, std::int64_t>(o, x, y, z));
      };
    }
  }
  return i;
}

}  // namespace detail

/// The description of an operation: its address identifies the operation in a graph.
template <class Op>
inline constexpr op_info info_of = detail::describe<Op>();

// A node knows its operation by address; lowering needs the operation's TYPE. Binding an operation
// injects a friend function that maps the one back to the other, so there is no registry to keep,
// and a user's own operation works like a built-in one.
template <const op_info* Info>
struct op_key {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnon-template-friend"
#endif
  friend constexpr auto op_type(op_key);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
};
template <class Op>
struct bound_op {
  friend constexpr auto op_type(op_key<&info_of<Op>>) { return std::type_identity<Op>{}; }
};
/// The struct of the operation that `Info` describes.
template <const op_info* Info>
using op_of = typename decltype(op_type(op_key<Info>{}))::type;

/// The description of `Op`, bound so that `op_of` finds the type again.
template <class Op>
constexpr const op_info& bound() {
  (void)sizeof(bound_op<Op>);
  return info_of<Op>;
}

/// Appends `Op` to the graph. The operands are checked already.
template <class Op, class... Operands>
constexpr var emit(const attributes& options, std::source_location at, var x, Operands... more) {
  return {x.b, x.b->emit(bound<Op>(), {x.id, more.id...}, options, at)};
}

/// True if `n` is an application of `Op`.
template <class Op>
constexpr bool is(const node& n) {
  return n.op == &info_of<Op>;
}

// Helpers for `apply`, which is written once for numbers and for SIMD vectors.

/// `value` as the type of `x`, be that a number or a SIMD vector.
template <class T>
constexpr T like(const T&, double value) {
  if constexpr (std::is_arithmetic_v<T>)
    return static_cast<T>(value);
  else
    return T(static_cast<typename T::value_type>(value));
}
/// The scalar counterpart of the SIMD library's select, found beside it by overload resolution.
template <class T>
requires std::is_arithmetic_v<T>
constexpr T select(bool condition, T yes, T no) { return condition ? yes : no; }

}  // namespace cella
