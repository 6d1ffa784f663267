// Operations that fold axes: sum, mean, max, min, any, all, argmax, variance, logsumexp.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/batching.hpp>
#include <cella/ops/cast.hpp>
#include <cella/ops/exponential.hpp>
#include <cella/ops/rounding.hpp>
#include <limits>

namespace cella {

namespace detail {

/// What reductions to one value per line have in common.
template <class Op>
struct folding : opaque<Op>, moves_axes {
  using options = axes_options;
  static constexpr int operands = 1;
  static bool fits(const op_application& a) { return a.as<options>().axes >> a.rank() == 0; }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return without_axes(in[0], o.as<options>().axes);
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return reduction_space(in[0], o.as<options>().axes, Op::over);
  }
  /// `axes` is an attribute until opset 17.
  static void write_onnx(span<const tensor_type> in, const attributes& o, onnx_attributes& to) {
    write_onnx_axes(in[0].rank(), o, to);
  }
  static attributes read_onnx(span<const tensor_type> in, const onnx_attributes& from) {
    return read_onnx_axes(in[0].rank(), from);
  }
};

/// Positions of the best elements along an axis, the first of equal ones; the first NaN is best.
template <class Better>
void best_positions(const tensor_ref& x, int axis, const tensor_ref& y, Better better) {
  list<std::int64_t> at(std::size_t(y.type.size()), -1);
  with_wide_number(x.type.element, [&]<class N>() {
    list<N> best(at.size(), N(0));
    fold_axes(x, 1u << axis, best.data(), [&](N& a, N v, const multi_index& i) {
      std::int64_t& position = at[std::size_t(&a - best.data())];
      if (position >= 0 && !better(v, a) && !(v != v && a == a)) return;
      position = i[std::size_t(axis)];
      a = v;
    });
  });
  for (std::size_t i = 0; i < at.size(); ++i) write_number(y, std::int64_t(i), at[i]);
}

/// What argmax and argmin have in common.
template <class Op>
struct search : opaque<Op>, zero_derivative, moves_axis<Op> {
  using options = axis_options;
  static constexpr int operands = 1;
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return {dtype::i64, without_axes(in[0], 1u << o.as<options>().axis).shape};
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    const int axis = o.as<options>().axis;
    iteration_space s = reduction_space(in[0], 1u << axis, combination::none);
    s.factors[std::size_t(axis)].whole = true;
    return s;
  }
  static constexpr interval bounds(span<const interval>, span<const tensor_type> types,
                                   const attributes& o) {
    return bounds_of_positions(types[0].shape, o.as<options>().axis);
  }
  static void write_onnx(span<const tensor_type>, const attributes& o, onnx_attributes& to) {
    to.set("axis", o.as<options>().axis);
    to.set("keepdims", 0);
  }
  static attributes read_onnx(span<const tensor_type> in, const onnx_attributes& from) {
    from.only({"axis", "keepdims", "select_last_index"});
    from.must_be("keepdims", 0, 1);
    from.must_be("select_last_index", 0, 0);
    return options{from.axis("axis", 0, in[0].rank())};
  }
};

}  // namespace detail

/// Largest element over axes, NaN if one is; ties share the derivative evenly.
struct max_op : detail::folding<max_op> {
  static constexpr std::string_view name = "max";
  static constexpr std::string_view numpy = "np.max";
  static constexpr std::string_view torch = "torch.amax";
  static constexpr std::string_view formula = "y = the largest x along axes";
  static constexpr compute_class computes = compute_class::reduction;
  static constexpr onnx_operator onnx{"ReduceMax", 1};
  static constexpr combination over = combination::maximum;
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx);
  static constexpr void jvp(node_ref n, span<const var> dx, span<var> dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// Smallest element over axes, NaN if one is; ties share the derivative evenly.
struct min_op : detail::folding<min_op> {
  static constexpr std::string_view name = "min";
  static constexpr std::string_view numpy = "np.min";
  static constexpr std::string_view torch = "torch.amin";
  static constexpr std::string_view formula = "y = the least x along axes";
  static constexpr compute_class computes = compute_class::reduction;
  static constexpr onnx_operator onnx{"ReduceMin", 1};
  static constexpr combination over = combination::minimum;
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx);
  static constexpr void jvp(node_ref n, span<const var> dx, span<var> dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// Position of the first largest element (or NaN) along one axis, as i64.
struct argmax_op : detail::search<argmax_op>, computed_in_single {
  static constexpr std::string_view name = "argmax";
  static constexpr std::string_view numpy = "np.argmax";
  static constexpr std::string_view torch = "torch.argmax";
  static constexpr std::string_view formula =
      "y = where the first of the largest x is along an axis";
  static constexpr compute_class computes = compute_class::reduction;
  static constexpr onnx_operator onnx{"ArgMax", 1};
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// Position of the first smallest element (or NaN) along one axis, as i64.
struct argmin_op : detail::search<argmin_op>, computed_in_single {
  static constexpr std::string_view name = "argmin";
  static constexpr std::string_view numpy = "np.argmin";
  static constexpr std::string_view torch = "torch.argmin";
  static constexpr std::string_view formula = "y = where the first of the least x is along an axis";
  static constexpr compute_class computes = compute_class::reduction;
  static constexpr onnx_operator onnx{"ArgMin", 1};
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

// ---- public functions

namespace detail {

/// Axes as a mask; none given means all. A fault names the axis that does not exist, or is there
/// twice.
constexpr unsigned axis_mask(std::string_view op, var x, const axis_list& axes,
                             std::source_location at) {
  unsigned m = axes.size() ? 0 : (1u << x.rank()) - 1;
  for (int a : axes) {
    const int axis = find_axis(op, x, a, at);
    if (axis < 0) return 0;
    if (m >> axis & 1) {
      x.b->fail(text() << at << ": " << op << ": axis " << axis << " is named twice");
      return 0;
    }
    m |= 1u << axis;
  }
  return m;
}

constexpr shape kept_extents(shape s, unsigned axes) {
  for (int i = 0; i < s.rank; ++i) {
    if (axes >> i & 1) s[i] = 1;
  }
  return s;
}

template <class Op>
constexpr var reduce(operand x, const axis_list& axes, bool keep_dims) {
  const var v = x.in(*x.owner());
  const unsigned m = axis_mask(Op::name, v, axes, x.at());
  if (m == 0) return v;
  const var r = emit<Op>(axes_options{m}, x.at(), v);
  return keep_dims ? reshape({r, x.at()}, kept_extents(v.shape(), m)) : r;
}

/// Repeats a reduced value along the axes that were folded.
constexpr var repeat_along(var reduced, const shape& full, unsigned axes) {
  return broadcast_to(reshape(reduced, kept_extents(full, axes)), full);
}

/// A fault that tells what type the operand must have.
constexpr var refuse_type(std::string_view op, var x, std::string_view remedy,
                          std::source_location at) {
  x.b->fail(text() << at << ": " << op << ": " << x.b->describe(x.id) << " is " << x.type() << "; "
                   << remedy);
  return x;
}

/// What means, norms and normalizations of numbers of type `t` compute with: single precision where
/// they are of 16 bits, whose squares and sums, and the derivatives of these, leave the range of 16
/// bits. The result is rounded once, by a cast back, as in PyTorch.
constexpr operand in_single(operand x, dtype t) {
  if (x.is_number() || !is_storage_only(t)) return x;
  const var v = x.in(*x.owner());
  return {v.element() == t ? cast(x, dtype::f32) : v, x.at()};
}
/// What was computed so, as a number of type `t` again.
constexpr var rounded(operand y, dtype t) {
  return is_storage_only(t) ? cast(y, t) : y.in(*y.owner());
}

}  // namespace detail

/// Sum over `axes` (none: all); `keep_dims` leaves extents of 1 in their place.
CELLA_ONCE constexpr var sum(operand x, const axis_list& axes = {}, bool keep_dims = false) {
  const var v = x.in(*x.owner());
  if (v.element() == dtype::boolean)
    return detail::refuse_type("sum", v, "convert it to numbers with cast()", x.at());
  return detail::reduce<sum_op>(x, axes, keep_dims);
}
/// Mean over `axes` (none: all); `keep_dims` leaves extents of 1 in their place.
CELLA_ONCE constexpr var mean(operand x, const axis_list& axes = {}, bool keep_dims = false) {
  const var v = x.in(*x.owner());
  if (!is_floating(v.element()) && !is_complex(v.element()))
    return detail::refuse_type("mean", v, "convert it to floating point with cast()", x.at());
  if (detail::axis_mask("mean", v, axes, x.at()) == 0) return v;
  const var s = sum(detail::in_single(x, v.element()), axes, keep_dims);
  const std::int64_t count = v.shape().size() ? v.shape().size() / s.shape().size() : 1;
  return detail::rounded({s * operand(1 / double(count), x.at()), x.at()}, v.element());
}
constexpr var max(operand x, const axis_list& axes = {}, bool keep_dims = false) {
  return detail::reduce<max_op>(x, axes, keep_dims);
}
constexpr var min(operand x, const axis_list& axes = {}, bool keep_dims = false) {
  return detail::reduce<min_op>(x, axes, keep_dims);
}
/// Whether any of the truth values holds.
constexpr var any(operand x, const axis_list& axes = {}, bool keep_dims = false) {
  const var v = x.in(*x.owner());
  if (v.element() != dtype::boolean)
    return detail::refuse_type("any", v, "it must be bool (compare with >, ==, ...)", x.at());
  return detail::reduce<max_op>(x, axes, keep_dims);
}
/// Whether all of the truth values hold.
constexpr var all(operand x, const axis_list& axes = {}, bool keep_dims = false) {
  const var v = x.in(*x.owner());
  if (v.element() != dtype::boolean)
    return detail::refuse_type("all", v, "it must be bool (compare with >, ==, ...)", x.at());
  return detail::reduce<min_op>(x, axes, keep_dims);
}
namespace detail {
/// The squares that norms and variances sum up.
constexpr var square_of_size(var x) { return is_complex(x.element()) ? square(abs(x)) : square(x); }
}  // namespace detail
/// Mean of the squared deviations (divided by the count, not by the count less one).
constexpr var variance(operand x, const axis_list& axes = {}, bool keep_dims = false) {
  const dtype t = x.in(*x.owner()).element();
  const operand wide = detail::in_single(x, t);
  const var v = wide.in(*x.owner());
  const var squares = detail::square_of_size(v - mean(wide, axes, true));
  return detail::rounded({mean({squares, x.at()}, axes, keep_dims), x.at()}, t);
}
/// log(sum(exp(x))) without overflow.
constexpr var logsumexp(operand x, const axis_list& axes = {}, bool keep_dims = false) {
  const var v = x.in(*x.owner());
  const unsigned m = detail::axis_mask("logsumexp", v, axes, x.at());
  if (m == 0) return v;
  const var top = stop_gradient(max(x, axes, true));
  // An infinite maximum would make infinity - infinity.
  const var offset =
      select(abs(top) < std::numeric_limits<double>::infinity(), top, zeros_like(top));
  const var s = log(sum(exp(v - offset), axes, true)) + offset;
  return keep_dims ? s : reshape(s, detail::without_axes(v.type(), m).shape);
}
namespace detail {
/// The square root of a sum of squares. Where that is 0 so are the derivatives, as in PyTorch: the
/// root's own is infinite there, and meets squares whose derivative is 0.
constexpr var root_of_squares(var s) {
  const var none = equal(s, 0);
  return select(none, 0, sqrt(select(none, 1, s)));
}
/// epsilon^2 for squares of norms, which are f32 or f64; more where the type would make 0 of it.
constexpr double least_square_of_norm(dtype t, double epsilon) {
  const double least = t == dtype::f64 ? 0x1p-1022 : 0x1p-126;
  return epsilon * epsilon > least ? epsilon * epsilon : least;
}
}  // namespace detail
/// Euclidean norm over `axes` (none: all). Its derivative at 0 is taken to be 0.
constexpr var l2_norm(operand x, const axis_list& axes = {}, bool keep_dims = false) {
  const dtype t = x.in(*x.owner()).element();
  const var v = detail::in_single(x, t).in(*x.owner());
  const var squares = sum({detail::square_of_size(v), x.at()}, axes, keep_dims);
  return detail::rounded({detail::root_of_squares(squares), x.at()}, t);
}
/// x divided by its norm over `axes`, which counts as at least `epsilon`.
constexpr var l2_normalize(operand x, const axis_list& axes = {}, double epsilon = 1e-12) {
  const dtype t = x.in(*x.owner()).element();
  const var v = detail::in_single(x, t).in(*x.owner());
  const var squares = sum({square(v), x.at()}, axes, true);
  const double least = detail::least_square_of_norm(v.element(), epsilon);
  return detail::rounded({v * rsqrt(maximum(squares, least)), x.at()}, t);
}
constexpr var argmax(operand x, int axis) {
  const var v = x.in(*x.owner());
  const int a = detail::find_axis("argmax", v, axis, x.at());
  return a < 0 ? v : emit<argmax_op>(detail::axis_options{a}, x.at(), v);
}
constexpr var argmin(operand x, int axis) {
  const var v = x.in(*x.owner());
  const int a = detail::find_axis("argmin", v, axis, x.at());
  return a < 0 ? v : emit<argmin_op>(detail::axis_options{a}, x.at(), v);
}

// ---- rules

namespace detail {

/// Spreads dy evenly over the elements that equal the extremum. It selects rather than multiplies,
/// so that an infinite cotangent does not become NaN.
constexpr var share_among_equals(node_ref n, var dy) {
  const unsigned axes = n.as<axes_options>().axes;
  const var x = n.operand(0);
  const var hits =
      select(equal(x, repeat_along(n.output(), x.shape(), axes)), ones_like(x), zeros_like(x));
  const var count = sum_axes(hits, axes, std::source_location::current());
  return select(hits > 0, repeat_along(dy / count, x.shape(), axes), zeros_like(x));
}

/// The mean of the dx of the elements that equal the extremum.
constexpr var mean_of_equals(node_ref n, var dx) {
  const unsigned axes = n.as<axes_options>().axes;
  const var x = n.operand(0);
  const var hits = equal(x, repeat_along(n.output(), x.shape(), axes));
  auto total = [&](var v) {
    return sum_axes(select(hits, v, zeros_like(x)), axes, std::source_location::current());
  };
  return total(dx) / total(ones_like(x));
}

}  // namespace detail

constexpr void max_op::vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
  dx[0] = detail::share_among_equals(n, dy[0]);
}
constexpr void max_op::jvp(node_ref n, span<const var> dx, span<var> dy) {
  dy[0] = detail::mean_of_equals(n, dx[0]);
}
constexpr void min_op::vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
  dx[0] = detail::share_among_equals(n, dy[0]);
}
constexpr void min_op::jvp(node_ref n, span<const var> dx, span<var> dy) {
  dy[0] = detail::mean_of_equals(n, dx[0]);
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void max_op::compute(const attributes& o, span<const tensor_ref> in,
                            span<const tensor_ref> out) {
  detail::reduce_to(in[0], o.as<options>().axes, -std::numeric_limits<double>::infinity(), out[0],
                    [](auto a, auto v) { return v > a || v != v ? v : a; });
}
inline void min_op::compute(const attributes& o, span<const tensor_ref> in,
                            span<const tensor_ref> out) {
  detail::reduce_to(in[0], o.as<options>().axes, std::numeric_limits<double>::infinity(), out[0],
                    [](auto a, auto v) { return v < a || v != v ? v : a; });
}
inline void argmax_op::compute(const attributes& o, span<const tensor_ref> in,
                               span<const tensor_ref> out) {
  detail::best_positions(in[0], o.as<options>().axis, out[0], [](auto v, auto a) { return v > a; });
}
inline void argmin_op::compute(const attributes& o, span<const tensor_ref> in,
                               span<const tensor_ref> out) {
  detail::best_positions(in[0], o.as<options>().axis, out[0], [](auto v, auto a) { return v < a; });
}

#endif

}  // namespace cella
