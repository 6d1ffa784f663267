// Comparison, logic, and the choice between values.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/arithmetic.hpp>

namespace cella {

struct equal_op : predicate<equal_op>, foldable, commutative, takes_complex {
  static constexpr std::string_view name = "equal";
  static constexpr std::string_view infix = " == ";
  static constexpr int precedence = 1;
  static constexpr std::string_view numpy = "np.equal";
  static constexpr std::string_view torch = "torch.eq";
  static constexpr std::string_view formula = "y = a == b";
  static constexpr onnx_operator onnx{"Equal", 11};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x, auto y) { return x == y; }
};
struct not_equal_op : predicate<not_equal_op>, keeps_zero, foldable, commutative, takes_complex {
  static constexpr std::string_view name = "not_equal";
  static constexpr std::string_view infix = " != ";
  static constexpr int precedence = 1;
  static constexpr std::string_view numpy = "np.not_equal";
  static constexpr std::string_view torch = "torch.ne";
  static constexpr std::string_view formula = "y = a != b";
  static constexpr bool integral = true;
  // Not x != y: in AVX-512 xsimd's is false for NaN.
  static constexpr auto apply(auto x, auto y) { return !(x == y); }
};
struct less_op : predicate<less_op>, keeps_zero, foldable {
  static constexpr std::string_view name = "less";
  static constexpr std::string_view infix = " < ";
  static constexpr int precedence = 1;
  static constexpr std::string_view numpy = "np.less";
  static constexpr std::string_view torch = "torch.lt";
  static constexpr std::string_view formula = "y = a < b";
  static constexpr onnx_operator onnx{"Less", 9};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x, auto y) { return x < y; }
};
struct less_equal_op : predicate<less_equal_op>, foldable {
  static constexpr std::string_view name = "less_equal";
  static constexpr std::string_view infix = " <= ";
  static constexpr int precedence = 1;
  static constexpr std::string_view numpy = "np.less_equal";
  static constexpr std::string_view torch = "torch.le";
  static constexpr std::string_view formula = "y = a <= b";
  static constexpr onnx_operator onnx{"LessOrEqual", 12};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x, auto y) { return x <= y; }
};
struct greater_op : predicate<greater_op>, keeps_zero, foldable {
  static constexpr std::string_view name = "greater";
  static constexpr std::string_view infix = " > ";
  static constexpr int precedence = 1;
  static constexpr std::string_view numpy = "np.greater";
  static constexpr std::string_view torch = "torch.gt";
  static constexpr std::string_view formula = "y = a > b";
  static constexpr onnx_operator onnx{"Greater", 9};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x, auto y) { return x > y; }
};
struct greater_equal_op : predicate<greater_equal_op>, foldable {
  static constexpr std::string_view name = "greater_equal";
  static constexpr std::string_view infix = " >= ";
  static constexpr int precedence = 1;
  static constexpr std::string_view numpy = "np.greater_equal";
  static constexpr std::string_view torch = "torch.ge";
  static constexpr std::string_view formula = "y = a >= b";
  static constexpr onnx_operator onnx{"GreaterOrEqual", 12};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x, auto y) { return x >= y; }
};

constexpr var equal(operand x, operand y) { return detail::binary<equal_op>(x, y); }
constexpr var not_equal(operand x, operand y) { return detail::binary<not_equal_op>(x, y); }
namespace detail {
/// Which of two is larger, unless a truth value is asked that of a number: as `0 < x < 1` does.
template <class Op>
constexpr var in_order(operand x, operand y) {
  const operand& truth = x.is_var() ? x : y;
  if (truth.is_var() && (x.is_number() || y.is_number())) {
    const var v = truth.in(*truth.owner());
    if (v.element() == dtype::boolean) {
      v.b->fail(text() << x.at() << ": " << Op::name << ": " << v.b->describe(v.id) << " is "
                       << v.type()
                       << ", and truth values are not compared with a number; write "
                          "logical_and(a < x, x < b) for a < x < b");
      return v;
    }
  }
  return binary<Op>(x, y);
}
}  // namespace detail
constexpr var less(operand x, operand y) { return detail::in_order<less_op>(x, y); }
constexpr var less_equal(operand x, operand y) { return detail::in_order<less_equal_op>(x, y); }
constexpr var greater(operand x, operand y) { return detail::in_order<greater_op>(x, y); }
constexpr var greater_equal(operand x, operand y) {
  return detail::in_order<greater_equal_op>(x, y);
}

template <literal_operand S>
constexpr var operator<(const S& x, detail::located y) {
  return less({x, y.at}, y);
}
template <literal_operand S>
constexpr var operator<=(const S& x, detail::located y) {
  return less_equal({x, y.at}, y);
}
template <literal_operand S>
constexpr var operator>(const S& x, detail::located y) {
  return greater({x, y.at}, y);
}
template <literal_operand S>
constexpr var operator>=(const S& x, detail::located y) {
  return greater_equal({x, y.at}, y);
}
constexpr var operator<(var x, operand y) { return less({x, y.at()}, y); }
constexpr var operator<=(var x, operand y) { return less_equal({x, y.at()}, y); }
constexpr var operator>(var x, operand y) { return greater({x, y.at()}, y); }
constexpr var operator>=(var x, operand y) { return greater_equal({x, y.at()}, y); }

namespace detail {
template <class T>
constexpr auto truth(T x) {
  if constexpr (std::is_arithmetic_v<T>)
    return x != T(0);
  else
    return x;
}
}  // namespace detail

struct logical_and_op : predicate<logical_and_op>, foldable, commutative {
  static constexpr std::string_view name = "logical_and";
  static constexpr std::string_view numpy = "np.logical_and";
  static constexpr std::string_view torch = "torch.logical_and";
  static constexpr std::string_view formula = "y = a and b";
  static constexpr onnx_operator onnx{"And", 7};
  static constexpr unsigned zero_where = 0b11;
  static constexpr bool integral = true;
  static constexpr auto apply(auto x, auto y) { return detail::truth(x) && detail::truth(y); }
};
struct logical_or_op : predicate<logical_or_op>, keeps_zero, foldable, commutative {
  static constexpr std::string_view name = "logical_or";
  static constexpr std::string_view numpy = "np.logical_or";
  static constexpr std::string_view torch = "torch.logical_or";
  static constexpr std::string_view formula = "y = a or b";
  static constexpr onnx_operator onnx{"Or", 7};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x, auto y) { return detail::truth(x) || detail::truth(y); }
};
struct logical_not_op : predicate<logical_not_op>, foldable {
  static constexpr std::string_view name = "logical_not";
  static constexpr std::string_view numpy = "np.logical_not";
  static constexpr std::string_view torch = "torch.logical_not";
  static constexpr std::string_view formula = "y = not x";
  static constexpr onnx_operator onnx{"Not", 1};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x) { return !detail::truth(x); }
};
constexpr var logical_and(operand x, operand y) { return detail::binary<logical_and_op>(x, y); }
constexpr var logical_or(operand x, operand y) { return detail::binary<logical_or_op>(x, y); }
constexpr var logical_not(operand x) { return detail::unary<logical_not_op>(x); }
/// Whether one of two conditions holds, and not the other.
constexpr var logical_xor(operand x, operand y) { return not_equal(x, y); }

/// x where the condition holds, else y. Linear in x and y; the branch not taken gets a zero
/// derivative, even where it is infinite or NaN.
struct select_op : elementwise<select_op>, keeps_zero, takes_complex, takes_records {
  static constexpr std::string_view name = "select";
  static constexpr std::string_view numpy = "np.where";
  static constexpr std::string_view torch = "torch.where";
  static constexpr std::string_view formula = "y = a where c, else b";
  static constexpr onnx_operator onnx{"Where", 9};
  static constexpr op_kind kind = op_kind::linear;
  static constexpr unsigned linear_in = 0b110;
  static constexpr bool integral = true;
  static bool fits(const op_application& a) {
    return a.in[0] == tensor_type{dtype::boolean, a.of(1)} && a.same(1, 2);
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[1];
  }
  static constexpr auto apply(auto condition, auto x, auto y) { return select(condition, x, y); }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type>,
                                   const attributes&) {
    if (in[0].low > 0) return in[1];
    return in[0].high < 1 ? in[2] : hull(in[1], in[2]);
  }
  static constexpr var transpose(node_ref n, int i, var dy) {
    const var p = n.operand(0);
    const var z = zeros_like(dy);
    return i == 1 ? cella::emit<select_op>({}, std::source_location::current(), p, dy, z)
                  : cella::emit<select_op>({}, std::source_location::current(), p, z, dy);
  }
};
/// `x` where `condition` holds, else `y`; all three broadcast to one shape.
CELLA_ONCE constexpr var select(var condition, operand x, operand y) {
  builder& b = *condition.b;
  if (condition.element() != dtype::boolean) {
    b.fail(text() << x.at() << ": select: the condition " << b.describe(condition.id) << " is "
                  << condition.type() << "; it must be bool (compare with >, ==, ...)");
    return condition;
  }
  if (x.is_number() && y.is_number()) {
    const tensor_type t{b.precision, condition.shape()};
    return emit<select_op>({}, x.at(), condition, constant(b, x.number(), t),
                           constant(b, y.number(), t));
  }
  const var like = x.is_number() ? y.in(b) : x.in(b);
  const var v = x.is_number() ? detail::literal("select", like, x, x.at()) : x.in(b);
  const var w = y.is_number() ? detail::literal("select", like, y, y.at()) : y.in(b);
  if (v.element() != w.element()) {
    b.fail(text() << x.at() << ": select: element types differ: " << b.describe(v.id) << " is "
                  << v.type() << ", " << b.describe(w.id) << " is " << w.type()
                  << "; convert one with cast()");
    return v;
  }
  shape s = v.shape();
  if (!detail::broadcast_with(s, w.shape()) || !detail::broadcast_with(s, condition.shape())) {
    b.fail(text() << x.at() << ": select: shapes do not broadcast: the condition is "
                  << condition.shape() << ", " << b.describe(v.id) << " is " << v.shape() << ", "
                  << b.describe(w.id) << " is " << w.shape());
    return v;
  }
  return emit<select_op>({}, x.at(), broadcast_to({condition, x.at()}, s),
                         broadcast_to({v, x.at()}, s), broadcast_to({w, x.at()}, s));
}

/// The same for what && || and ! make of conditions, which ask for one truth at once, as an `if`
/// does.
constexpr var select(bool condition, operand x, operand y) {
  if (x.is_number() && y.is_number()) return {};
  const var like = x.is_number() ? y.in(*y.owner()) : x.in(*x.owner());
  const operand chosen = condition ? x : y;
  return chosen.is_number() ? detail::literal("select", like, chosen, chosen.at())
                            : chosen.in(*like.b);
}

/// The larger of two, NaN if one is; where they are equal each gets half the derivative, as in
/// PyTorch.
struct maximum_op : elementwise<maximum_op>, keeps_zero, foldable, nondecreasing {
  static constexpr std::string_view name = "maximum";
  static constexpr std::string_view numpy = "np.maximum";
  static constexpr std::string_view torch = "torch.maximum";
  static constexpr std::string_view formula = "y = max(a, b)";
  static constexpr onnx_operator onnx{"Max", 8};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x, auto y) { return select(x > y || !(x == x), x, y); }
  static constexpr var partial(node_ref n, int i) {
    const var x = n.operand(i);
    const var y = n.operand(1 - i);
    return select(x > y, 1, select(equal(x, y), full_like(x, 0.5), 0));
  }
};
struct minimum_op : elementwise<minimum_op>, keeps_zero, foldable, nondecreasing {
  static constexpr std::string_view name = "minimum";
  static constexpr std::string_view numpy = "np.minimum";
  static constexpr std::string_view torch = "torch.minimum";
  static constexpr std::string_view formula = "y = min(a, b)";
  static constexpr onnx_operator onnx{"Min", 8};
  static constexpr bool integral = true;
  static constexpr auto apply(auto x, auto y) { return select(x < y || !(x == x), x, y); }
  static constexpr var partial(node_ref n, int i) {
    const var x = n.operand(i);
    const var y = n.operand(1 - i);
    return select(x < y, 1, select(equal(x, y), full_like(x, 0.5), 0));
  }
};
constexpr var maximum(operand x, operand y) { return detail::binary<maximum_op>(x, y); }
constexpr var minimum(operand x, operand y) { return detail::binary<minimum_op>(x, y); }

/// x limited to [low, high]; derivative 1 inside, bounds included.
struct clamp_op : elementwise<clamp_op> {
  static constexpr std::string_view name = "clamp";
  static constexpr std::string_view numpy = "np.clip";
  static constexpr std::string_view torch = "torch.clamp";
  static constexpr std::string_view formula = "y = min(max(x, low), high)";
  static constexpr onnx_operator onnx{"Clip", 6};
  static constexpr bool integral = true;
  struct options {
    double low{};
    double high{};
  };
  static constexpr auto apply(options o, auto x) {
    const auto low = like(x, o.low);
    const auto high = like(x, o.high);
    return select(x < low, low, select(x > high, high, x));
  }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type>,
                                   const attributes& o) {
    const auto a = o.as<options>();
    if (a.low > a.high) return {a.high, a.low};
    return {apply(a, in[0].low), apply(a, in[0].high)};
  }
  /// Attributes until opset 10, rounded to floats; from 11 on these are operands.
  static void write_onnx(span<const tensor_type>, const attributes& o, onnx_attributes& to) {
    const auto a = o.as<options>();
    to.set("min", float(a.low));
    to.set("max", float(a.high));
  }
  static attributes read_onnx(span<const tensor_type>, const onnx_attributes& from) {
    using limits = std::numeric_limits<float>;
    from.only({"min", "max"});
    return options{from.number("min", limits::lowest()), from.number("max", limits::max())};
  }
  static constexpr var partial(node_ref n, int) {
    const auto o = n.as<options>();
    const var x = n.operand(0);
    return select(logical_and(x >= o.low, x <= o.high), ones_like(x), 0);
  }
};
constexpr var clamp(operand x, double low, double high) {
  if (low > high) low = high;  // the smaller bound comes last
  return detail::unary<clamp_op>(x, clamp_op::options{low, high});
}

}  // namespace cella
