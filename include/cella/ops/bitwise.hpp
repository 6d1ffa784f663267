// Operations on the binary digits of integers.
#pragma once

#include <cella/ops/arithmetic.hpp>
#include <cella/ops/batching.hpp>

namespace cella {

namespace detail {

/// Base of operations that compute each integer from those of the operands: `Op::on(x, y)`, in 64
/// bits, of which the result keeps the low ones. Truth values are integers of one bit.
template <class Op>
struct bitwise : opaque<Op>, zero_derivative, element_by_element, keeps_options {
  static constexpr compute_class computes = compute_class::pointwise;
  static constexpr int operands = 2;
  static bool fits(const op_application& a) {
    for (int i = 0; i < int(a.in.size()); ++i)
      if (!a.whole(i) || !a.same(0, i)) return false;
    return true;
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out) {
    const bool without_sign = is_unsigned(out[0].type.element);
    for (std::int64_t i = 0; i < out[0].type.size(); ++i) {
      auto number = [&](std::size_t k) { return read_number<std::int64_t>(in[k], i); };
      const std::int64_t y = in.size() > 1 ? number(1) : 0;
      if (out[0].type.element == dtype::boolean)
        write_number(out[0], i, Op::on(number(0), y) & 1);
      else if (without_sign)
        write_number(out[0], i, Op::on(std::uint64_t(number(0)), std::uint64_t(y)));
      else
        write_number(out[0], i, Op::on(number(0), y));
    }
  }
};

}  // namespace detail

struct bitwise_and_op : detail::bitwise<bitwise_and_op> {
  static constexpr std::string_view name = "bitwise_and";
  static constexpr std::string_view numpy = "np.bitwise_and";
  static constexpr std::string_view torch = "torch.bitwise_and";
  static constexpr std::string_view formula = "y = a and b, bit by bit";
  static constexpr onnx_operator onnx{"BitwiseAnd", 18};
  static constexpr auto on(auto x, auto y) { return x & y; }
};
struct bitwise_or_op : detail::bitwise<bitwise_or_op> {
  static constexpr std::string_view name = "bitwise_or";
  static constexpr std::string_view numpy = "np.bitwise_or";
  static constexpr std::string_view torch = "torch.bitwise_or";
  static constexpr std::string_view formula = "y = a or b, bit by bit";
  static constexpr onnx_operator onnx{"BitwiseOr", 18};
  static constexpr auto on(auto x, auto y) { return x | y; }
};
struct bitwise_xor_op : detail::bitwise<bitwise_xor_op> {
  static constexpr std::string_view name = "bitwise_xor";
  static constexpr std::string_view numpy = "np.bitwise_xor";
  static constexpr std::string_view torch = "torch.bitwise_xor";
  static constexpr std::string_view formula = "y = a or b but not both, bit by bit";
  static constexpr onnx_operator onnx{"BitwiseXor", 18};
  static constexpr auto on(auto x, auto y) { return x ^ y; }
};
struct bitwise_not_op : detail::bitwise<bitwise_not_op> {
  static constexpr std::string_view name = "bitwise_not";
  static constexpr std::string_view numpy = "np.bitwise_not";
  static constexpr std::string_view torch = "torch.bitwise_not";
  static constexpr std::string_view formula = "y = not a, bit by bit";
  static constexpr onnx_operator onnx{"BitwiseNot", 18};
  static constexpr int operands = 1;
  static constexpr auto on(auto x, auto) { return ~x; }
};
/// a 2^b; 0 where b is negative or names more bits than there are.
struct left_shift_op : detail::bitwise<left_shift_op> {
  static constexpr std::string_view name = "left_shift";
  static constexpr std::string_view numpy = "np.left_shift";
  static constexpr std::string_view torch = "torch.bitwise_left_shift";
  static constexpr std::string_view formula = "y = a 2^b";
  static constexpr auto on(auto x, auto y) {
    using T = decltype(x);
    using bits = std::make_unsigned_t<T>;
    return bits(y) < 8 * sizeof(T) ? T(bits(x) << bits(y)) : T(0);
  }
};
/// a / 2^b rounded down; 0, or -1 of negative numbers, where b is negative or names more bits than
/// there are.
struct right_shift_op : detail::bitwise<right_shift_op> {
  static constexpr std::string_view name = "right_shift";
  static constexpr std::string_view numpy = "np.right_shift";
  static constexpr std::string_view torch = "torch.bitwise_right_shift";
  static constexpr std::string_view formula = "y = a / 2^b, rounded down";
  static constexpr auto on(auto x, auto y) {
    using T = decltype(x);
    const auto by = std::make_unsigned_t<T>(y);
    return by < 8 * sizeof(T) ? T(x >> by) : T(x < T(0) ? ~T(0) : T(0));
  }
};

// ---- public functions

namespace detail {
/// A fault unless x consists of integers or of truth values.
constexpr bool has_bits(std::string_view op, var x, std::source_location at) {
  if (is_integer(x.element()) || x.element() == dtype::boolean) return true;
  x.b->fail(text() << at << ": " << op << ": " << x.b->describe(x.id) << " is " << x.type()
                   << "; it must consist of integers or truth values");
  return false;
}
template <class Op>
constexpr var of_bits(operand x, operand y) {
  builder& b = owner_of(x, y);
  if (!x.is_number() && !has_bits(Op::name, x.in(b), x.at())) return x.in(b);
  if (!y.is_number() && !has_bits(Op::name, y.in(b), y.at())) return y.in(b);
  return binary<Op>(x, y);
}
}  // namespace detail

constexpr var bitwise_and(operand x, operand y) { return detail::of_bits<bitwise_and_op>(x, y); }
constexpr var bitwise_or(operand x, operand y) { return detail::of_bits<bitwise_or_op>(x, y); }
constexpr var bitwise_xor(operand x, operand y) { return detail::of_bits<bitwise_xor_op>(x, y); }
constexpr var bitwise_not(operand x) {
  const var v = x.in(*x.owner());
  return detail::has_bits("bitwise_not", v, x.at()) ? detail::unary<bitwise_not_op>(x) : v;
}
/// The digits of x moved towards the higher ones by y.
constexpr var left_shift(operand x, operand y) { return detail::of_bits<left_shift_op>(x, y); }
/// The digits of x moved towards the lower ones by y; negative numbers stay negative.
constexpr var right_shift(operand x, operand y) { return detail::of_bits<right_shift_op>(x, y); }

}  // namespace cella
