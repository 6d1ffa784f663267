// How an operation is declared: one struct, from which everything else is derived.
//
//   struct square_op : elementwise<square_op> {              // the kind selects generic rules
//     static constexpr std::string_view name = "square";
//     static constexpr std::string_view formula = "y = x^2";
//     static constexpr auto apply(auto x) { return x * x; }  // float, double, SIMD vector
//     static constexpr var partial(node_ref n, int) { return 2 * n.operand(0); }
//   };
//   constexpr var square(operand x) { return emit<square_op>({}, x.at(), x.in(*x.owner())); }
#pragma once

#include <cella/graph/span.hpp>
#include <cella/graph/var.hpp>
#include <cella/ops/application.hpp>
#include <cella/ops/declaration.hpp>
#include <cella/ops/emit_faults.hpp>
#include <cella/ops/numbers.hpp>
#include <type_traits>

namespace cella {

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

/// The description of `Op`, bound so that `op_of` finds the type again. Does not compile if the
/// struct lacks what its kind asks for.
template <class Op>
constexpr const op_info& bound() {
  (void)sizeof(bound_op<Op>);
  if constexpr (!info_of<Op>.fault.empty()) (void)&detail::report_operation<Op>;
  return info_of<Op>;
}

/// Appends `Op` to the graph. The operands are checked already; of a user's elementwise operation
/// that they are of one type is looked at here.
template <class Op, class... Operands>
requires detail::can_emit<Op, var, Operands...>
constexpr var emit(const attributes& options, std::source_location at, var x, Operands... more) {
  if constexpr (detail::is_own_elementwise<Op> && sizeof...(Operands) > 0) {
    if (!detail::are_alike<Op>(at, x, more...)) return x;
  }
  return {x.b, x.b->emit(bound<Op>(), {x.id, more.id...}, options, at)};
}
/// A wrong operation, or a wrong application of one, is refused where it is applied.
template <class Op, class... Operands, class = detail::if_asked<Op>,
          class Why = detail::emit_fault<Op, Operands...>>
requires(!detail::can_emit<Op, Operands...>)  //
    constexpr var emit(const attributes&, std::source_location, const Operands&...) = delete;
template <class Op, class Options, class... Others, class = detail::if_asked<Op>,
          class Why = detail::emit_options_fault<Op, Options>>
requires(!detail::is_options_of<Op, Options>())  //
    constexpr var emit(const Options&, const Others&...) = delete;

/// True if `op` describes `Op`.
template <class Op>
constexpr bool is(const op_info& op) {
  return op.identity == &identity_of<Op>;
}
/// True if `n` is an application of `Op`.
template <class Op>
constexpr bool is(const node& n) {
  return n.op->identity == &identity_of<Op>;  // not by the above, for the compiler's sake
}

// Helpers for `apply`, which is written once for numbers and for SIMD vectors.

/// `value` as the type of `x`, be that a number or a SIMD vector; an integer takes the nearest.
template <class T>
constexpr T like(const T&, double value) {
  if constexpr (std::is_arithmetic_v<T>)
    return from_double<T>(value);
  else
    return T(static_cast<typename T::value_type>(value));
}
/// The scalar counterpart of the SIMD library's select, found beside it by overload resolution.
template <class T>
requires(std::is_arithmetic_v<T> || is_complex_number<T>) constexpr T
    select(bool condition, T yes, T no) {
  return condition ? yes : no;
}

}  // namespace cella
