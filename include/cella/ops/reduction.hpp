// Operations that fold axes: sum, mean, max, min, prod, argmax, variance, logsumexp, cumulative
// sums.
#pragma once

#include <cella/ops/functions.hpp>
#include <limits>

namespace cella {

/// Which axes a reduction folds, as a bit mask.
struct axes_options {
  std::uint32_t axes{};
};

namespace detail {

constexpr tensor_type without_axes(const tensor_type& t, unsigned axes) {
  tensor_type r{t.element, {}};
  for (int i = 0; i < t.rank(); ++i) {
    if (!(axes >> i & 1)) r.shape.push_back(t[i]);
  }
  return r;
}

/// Every factor of the operand; the result walks the kept ones.
constexpr iteration_space reduction_space(const tensor_type& t, unsigned axes) {
  iteration_space s;
  s.factors = t.rank();
  std::size_t kept = 0;
  for (int i = 0; i < t.rank(); ++i) {
    s.extents[std::size_t(i)] = t[i];
    s.operands[0][std::size_t(i)] = std::int8_t(i);
    if (!(axes >> i & 1)) s.result[kept++] = std::int8_t(i);
  }
  return s;
}

/// Folds with f(accumulator, x, axis index of the folded position).
template <class F>
void fold_axes(const tensor_ref& x, unsigned axes, double first, double* accumulators, F f) {
  const auto kept = row_major_strides(without_axes(x.type, axes).shape);
  for_each_index(x.type.shape, [&](std::int64_t k, const multi_index& i) {
    std::int64_t p = 0;
    for (int d = 0, e = 0; d < x.type.rank(); ++d) {
      if (!(axes >> d & 1)) p += kept[std::size_t(e++)] * i[std::size_t(d)];
    }
    f(accumulators[p], read_element(x, k), i);
  });
  (void)first;
}

template <class F>
void reduce_to(const tensor_ref& x, unsigned axes, double first, const tensor_ref& y, F f) {
  std::vector<double> sums(std::size_t(y.type.size()), first);
  fold_axes(x, axes, first, sums.data(), [&](double& a, double v, const multi_index&) { a = f(a, v); });
  for (std::size_t i = 0; i < sums.size(); ++i) write_element(y, std::int64_t(i), sums[i]);
}

}  // namespace detail

/// Sum over axes. Its transpose repeats the cotangent along them.
struct sum_op : linear<sum_op> {
  static constexpr std::string_view name = "sum";
  static constexpr std::string_view onnx = "ReduceSum";
  using options = axes_options;
  static constexpr tensor_type infer(std::span<const tensor_type> in, const attributes& o) {
    return detail::without_axes(in[0], o.as<options>().axes);
  }
  static constexpr iteration_space space(std::span<const tensor_type> in, const attributes& o) {
    return detail::reduction_space(in[0], o.as<options>().axes);
  }
  static constexpr var transpose(node_ref n, int, var dy) {
    const tensor_type x = n.operand(0).type();
    const auto s = space({&x, 1}, n.b->g.nodes[std::size_t(n.id)].attributes);
    return emit<broadcast_op>(broadcast_op::options{x.shape, s.result},
                              std::source_location::current(), dy);
  }
  static void compute(const attributes& o, std::span<const tensor_ref> in,
                      std::span<const tensor_ref> out) {
    detail::reduce_to(in[0], o.as<options>().axes, 0, out[0],
                      [](double a, double v) { return a + v; });
  }
};

/// Largest element over axes; ties share the derivative evenly.
struct max_op : opaque<max_op> {
  static constexpr std::string_view name = "max";
  static constexpr std::string_view onnx = "ReduceMax";
  using options = axes_options;
  static constexpr tensor_type infer(std::span<const tensor_type> in, const attributes& o) {
    return detail::without_axes(in[0], o.as<options>().axes);
  }
  static constexpr iteration_space space(std::span<const tensor_type> in, const attributes& o) {
    return detail::reduction_space(in[0], o.as<options>().axes);
  }
  static constexpr void vjp(node_ref n, std::span<const var> dy, std::span<const char>,
                            std::span<var> dx);
  static void compute(const attributes& o, std::span<const tensor_ref> in,
                      std::span<const tensor_ref> out) {
    detail::reduce_to(in[0], o.as<options>().axes, -std::numeric_limits<double>::infinity(), out[0],
                      [](double a, double v) { return v > a || v != v ? v : a; });
  }
};

/// Product over axes. The derivative divides by the elements, which must not be zero.
struct prod_op : opaque<prod_op> {
  static constexpr std::string_view name = "prod";
  static constexpr std::string_view onnx = "ReduceProd";
  using options = axes_options;
  static constexpr tensor_type infer(std::span<const tensor_type> in, const attributes& o) {
    return detail::without_axes(in[0], o.as<options>().axes);
  }
  static constexpr void vjp(node_ref n, std::span<const var> dy, std::span<const char>,
                            std::span<var> dx);
  static void compute(const attributes& o, std::span<const tensor_ref> in,
                      std::span<const tensor_ref> out) {
    detail::reduce_to(in[0], o.as<options>().axes, 1, out[0],
                      [](double a, double v) { return a * v; });
  }
};

/// Position of the first largest element along one axis, as i64.
struct argmax_op : opaque<argmax_op> {
  static constexpr std::string_view name = "argmax";
  static constexpr std::string_view onnx = "ArgMax";
  struct options {
    std::int32_t axis{};
  };
  static constexpr tensor_type infer(std::span<const tensor_type> in, const attributes& o) {
    tensor_type t = detail::without_axes(in[0], 1u << o.as<options>().axis);
    t.element = dtype::i64;
    return t;
  }
  static void compute(const attributes& o, std::span<const tensor_ref> in,
                      std::span<const tensor_ref> out) {
    const int axis = o.as<options>().axis;
    std::vector<double> best(std::size_t(out[0].type.size()),
                             -std::numeric_limits<double>::infinity());
    std::vector<std::int64_t> at(best.size(), 0);
    detail::fold_axes(in[0], 1u << axis, 0, best.data(), [&](double& a, double v, const multi_index& i) {
      if (v > a) {
        at[std::size_t(&a - best.data())] = i[std::size_t(axis)];
        a = v;
      }
    });
    std::copy(at.begin(), at.end(), reinterpret_cast<std::int64_t*>(out[0].data));
  }
};

/// Running sum along an axis; `exclusive` leaves out the element itself.
struct cumsum_op : linear<cumsum_op> {
  static constexpr std::string_view name = "cumsum";
  static constexpr std::string_view onnx = "CumSum";
  struct options {
    std::int32_t axis{};
    std::int32_t reverse{};
    std::int32_t exclusive{};
  };
  static constexpr tensor_type infer(std::span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static constexpr var transpose(node_ref n, int, var dy) {
    auto o = n.as<options>();
    o.reverse = !o.reverse;
    return emit<cumsum_op>(o, std::source_location::current(), dy);
  }
  static void compute(const attributes& o, std::span<const tensor_ref> in,
                      std::span<const tensor_ref> out) {
    const auto a = o.as<options>();
    const shape& s = in[0].type.shape;
    const std::int64_t n = s[a.axis];
    const std::int64_t inner = s.size(a.axis + 1, s.rank);
    for (std::int64_t row = 0; row < s.size(0, a.axis) * inner; ++row) {
      const std::int64_t base = row / inner * n * inner + row % inner;
      double sum = 0;
      for (std::int64_t k = 0; k < n; ++k) {
        const std::int64_t at = base + (a.reverse ? n - 1 - k : k) * inner;
        const double v = read_element(in[0], at);
        write_element(out[0], at, a.exclusive ? sum : sum + v);
        sum += v;
      }
    }
  }
};

// ---- public functions

namespace detail {

/// Axes as a mask; none given means all. A fault names the axis that does not exist.
constexpr unsigned axis_mask(builder& b, std::string_view op, var x,
                             std::initializer_list<int> axes, std::source_location at) {
  unsigned m = axes.size() ? 0 : (1u << x.rank()) - 1;
  for (int a : axes) {
    const int axis = a < 0 ? a + x.rank() : a;
    if (axis < 0 || axis >= x.rank()) {
      b.fail(text() << at << ": " << op << ": " << b.describe(x.id) << " " << x.shape()
                    << " has no axis " << a);
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
constexpr var reduce(operand x, std::initializer_list<int> axes, bool keep_dims) {
  builder& b = *x.owner();
  const var v = x.in(b);
  const unsigned m = axis_mask(b, Op::name, v, axes, x.at());
  if (m == 0) return v;
  const var r = emit<Op>(axes_options{m}, x.at(), v);
  return keep_dims ? reshape({r, x.at()}, kept_extents(v.shape(), m)) : r;
}

/// Repeats a reduced value along the axes that were folded.
constexpr var repeat_along(var reduced, const shape& full, unsigned axes) {
  return broadcast_to(reshape(reduced, kept_extents(full, axes)), full);
}

}  // namespace detail

constexpr var sum_axes(var x, unsigned axes, std::source_location at) {
  return axes ? emit<sum_op>(axes_options{axes}, at, x) : x;
}
/// Sum over `axes` (none: all); `keep_dims` leaves extents of 1 in their place.
constexpr var sum(operand x, std::initializer_list<int> axes = {}, bool keep_dims = false) {
  return detail::reduce<sum_op>(x, axes, keep_dims);
}
constexpr var mean(operand x, std::initializer_list<int> axes = {}, bool keep_dims = false) {
  const var v = x.in(*x.owner());
  const var s = sum(x, axes, keep_dims);
  return s * operand(double(s.shape().size()) / double(v.shape().size()), x.at());
}
constexpr var max(operand x, std::initializer_list<int> axes = {}, bool keep_dims = false) {
  return detail::reduce<max_op>(x, axes, keep_dims);
}
constexpr var min(operand x, std::initializer_list<int> axes = {}, bool keep_dims = false) {
  return -max({-x.in(*x.owner()), x.at()}, axes, keep_dims);
}
constexpr var prod(operand x, std::initializer_list<int> axes = {}, bool keep_dims = false) {
  return detail::reduce<prod_op>(x, axes, keep_dims);
}
/// Mean of the squared deviations (divided by the count, not by the count less one).
constexpr var variance(operand x, std::initializer_list<int> axes = {}, bool keep_dims = false) {
  const var v = x.in(*x.owner());
  return mean({square(v - mean(x, axes, true)), x.at()}, axes, keep_dims);
}
/// log(sum(exp(x))) without overflow.
constexpr var logsumexp(operand x, std::initializer_list<int> axes = {}, bool keep_dims = false) {
  const var v = x.in(*x.owner());
  const var m = stop_gradient(max(x, axes, true));
  const var s = log(sum(exp(v - m), axes, true)) + m;
  return keep_dims ? s : sum(s, axes);
}
constexpr var argmax(operand x, int axis) {
  builder& b = *x.owner();
  const var v = x.in(b);
  if (axis < 0) axis += v.rank();
  if (axis < 0 || axis >= v.rank()) {
    b.fail(text() << x.at() << ": argmax: " << b.describe(v.id) << " " << v.shape()
                  << " has no axis " << axis);
    return v;
  }
  return emit<argmax_op>(argmax_op::options{axis}, x.at(), v);
}
constexpr var argmin(operand x, int axis) { return argmax({-x.in(*x.owner()), x.at()}, axis); }
constexpr var cumsum(operand x, int axis, bool reverse = false, bool exclusive = false) {
  const var v = x.in(*x.owner());
  return emit<cumsum_op>(cumsum_op::options{axis < 0 ? axis + v.rank() : axis, reverse, exclusive},
                         x.at(), v);
}

// ---- rules

constexpr void max_op::vjp(node_ref n, std::span<const var> dy, std::span<const char>,
                           std::span<var> dx) {
  const unsigned axes = n.as<options>().axes;
  const var x = n.operand(0);
  const var hit =
      select(equal(x, detail::repeat_along(n.output(), x.shape(), axes)), ones_like(x), 0);
  const var share = dy[0] / sum_axes(hit, axes, std::source_location::current());
  dx[0] = hit * detail::repeat_along(share, x.shape(), axes);
}
constexpr void prod_op::vjp(node_ref n, std::span<const var> dy, std::span<const char>,
                            std::span<var> dx) {
  const unsigned axes = n.as<options>().axes;
  const var x = n.operand(0);
  dx[0] = detail::repeat_along(dy[0] * n.output(), x.shape(), axes) / x;
}

}  // namespace cella
