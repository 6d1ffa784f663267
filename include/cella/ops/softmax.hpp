// Softmax and the losses made of it.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/reduction.hpp>

namespace cella {

namespace detail {
/// Calls f(pointer-like accessor) for each line along the axis: f(base element, stride, length).
template <class F>
void for_each_line(const shape& s, int axis, F f) {
  const std::int64_t inner = s.size(axis + 1, s.rank);
  const std::int64_t lines = s.size(0, axis) * inner;
  for (std::int64_t r = 0; r < lines; ++r)
    f(r / inner * s[axis] * inner + r % inner, inner, s[axis]);
}

/// The sum of e^(x_j - x_i) over all other j of n, each larger by `spread`.
inline double sum_of_others(int n, double spread) { return n > 1 ? (n - 1) * std::exp(spread) : 0; }

/// What softmax and its logarithm have in common.
template <class Op>
struct softmax_along : opaque<Op>, moves_axis<Op>, computed_in_single {
  static constexpr compute_class computes = compute_class::normalization;
  static constexpr int operations_per_point = 5;
  using options = axis_options;
  static constexpr int operands = 1;
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return pointwise_but_along(o.as<options>().axis, in[0].shape, 1);
  }
  static void write_onnx(span<const tensor_type>, const attributes& o, onnx_attributes& to) {
    to.set("axis", o.as<options>().axis);
  }
  static attributes read_onnx(span<const tensor_type> in, const onnx_attributes& from) {
    from.only({"axis"});
    return options{from.axis("axis", -1, in[0].rank())};
  }
};
}  // namespace detail

/// e^x / sum(e^x) along an axis.
struct softmax_op : detail::softmax_along<softmax_op> {
  static constexpr std::string_view name = "softmax";
  static constexpr std::string_view numpy = "scipy.special.softmax";
  static constexpr std::string_view torch = "F.softmax";
  static constexpr std::string_view formula = "y = e^x / sum of e^x along an axis";
  static constexpr onnx_operator onnx{"Softmax", 13};
  /// Least where all others have the high end, largest where they have the low one.
  static interval bounds(span<const interval> in, span<const tensor_type> types,
                         const attributes& o) {
    const int n = types[0][o.as<options>().axis];
    const double spread = in[0].high - in[0].low;
    return {1 / (1 + detail::sum_of_others(n, spread)),
            1 / (1 + detail::sum_of_others(n, -spread))};
  }
  /// dx = y (dy - sum(dy y))
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    const int axis = n.as<options>().axis;
    const var y = n.output();
    dx[0] = y * (dy[0] - sum(dy[0] * y, {axis}, true));
  }
  /// Its Jacobian is symmetric.
  static constexpr void jvp(node_ref n, span<const var> dx, span<var> dy) { vjp(n, dx, {}, dy); }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// log(softmax(x)) without overflow.
struct log_softmax_op : detail::softmax_along<log_softmax_op> {
  static constexpr std::string_view name = "log_softmax";
  static constexpr std::string_view numpy = "scipy.special.log_softmax";
  static constexpr std::string_view torch = "F.log_softmax";
  static constexpr std::string_view formula = "y = x - ln(sum of e^x along an axis)";
  static constexpr onnx_operator onnx{"LogSoftmax", 13};
  static interval bounds(span<const interval> in, span<const tensor_type> types,
                         const attributes& o) {
    const int n = types[0][o.as<options>().axis];
    const double spread = in[0].high - in[0].low;
    return {-std::log1p(detail::sum_of_others(n, spread)),
            -std::log1p(detail::sum_of_others(n, -spread))};
  }
  /// dx = dy - softmax(x) sum(dy)
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    const int axis = n.as<options>().axis;
    const var p =
        emit<softmax_op>(detail::axis_options{axis}, std::source_location::current(), n.operand(0));
    dx[0] = dy[0] - p * sum(dy[0], {axis}, true);
  }
  /// dy = dx - sum(softmax(x) dx)
  static constexpr void jvp(node_ref n, span<const var> dx, span<var> dy) {
    const int axis = n.as<options>().axis;
    dy[0] = dx[0] - sum(exp(n.output()) * dx[0], {axis}, true);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// logits [N,C], labels (integers) [N] -> -log softmax(logits)[label], per sample [N].
struct cross_entropy_op : opaque<cross_entropy_op>,
                          detail::merges_batches<cross_entropy_op>,
                          computed_in_single {
  static constexpr std::string_view name = "cross_entropy";
  static constexpr std::string_view torch = "F.cross_entropy(reduction=\"none\")";
  static constexpr std::string_view formula = "y = ln(sum of e^z) - z[label]";
  static constexpr compute_class computes = compute_class::normalization;
  static constexpr int operations_per_point = 4;
  static constexpr onnx_operator onnx{"SoftmaxCrossEntropyLoss", 12};
  static constexpr int operands = 2;
  static bool fits(const op_application& a) {
    return a.rank() == 2 && a.of(1) == shape{a.of(0)[0]} && a.whole(1) &&
           is_floating(a.in[0].element);
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return {in[0].element, {in[0][0]}};
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes&) {
    iteration_space s(2);
    s.add(in[0].shape);
    s.factors[1].whole = true;
    s.along_all(0, 0, 2);
    s.along(1, 0, 0);
    s.along(s.result(), 0, 0);
    return s;
  }
  static interval bounds(span<const interval> in, span<const tensor_type> types,
                         const attributes&) {
    const int n = types[0][1];
    const double spread = in[0].high - in[0].low;
    return {std::log1p(detail::sum_of_others(n, -spread)),
            std::log1p(detail::sum_of_others(n, spread))};
  }
  /// For labels without one to be ignored.
  static void write_onnx(span<const tensor_type>, const attributes&, onnx_attributes& to) {
    to.set("reduction", "none");
  }
  static attributes read_onnx(span<const tensor_type>, const onnx_attributes& from) {
    from.only({"reduction"});
    if (from.string("reduction", "mean") != "none")
      from.refuse("reduction", "must be \"none\" here");
    return {};
  }
  /// dx = (softmax(x) - one_hot(label)) dy
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char>, span<var> dx) {
    const var z = n.operand(0);
    const var p = emit<softmax_op>(detail::axis_options{1}, std::source_location::current(), z);
    const var hot = one_hot(n.operand(1), z.extent(1), z.element());
    dx[0] = (p - hot) * expand_dims(dy[0], 1);
  }
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out);
};

namespace detail {
template <class Op>
constexpr var along(operand x, int axis) {
  const var v = x.in(*x.owner());
  const int a = find_axis(Op::name, v, axis, x.at());
  return a < 0 ? v : emit<Op>(axis_options{a}, x.at(), v);
}
}  // namespace detail

constexpr var softmax(operand x, int axis = -1) { return detail::along<softmax_op>(x, axis); }
constexpr var log_softmax(operand x, int axis = -1) {
  return detail::along<log_softmax_op>(x, axis);
}

/// Loss of each sample: logits [N,C], integer labels [N] -> [N].
CELLA_ONCE constexpr var cross_entropy_per_sample(operand logits, operand labels) {
  builder& b = *logits.owner();
  const var z = logits.in(b);
  const var y = labels.in(b);
  auto refuse = [&](std::string_view why) {
    b.fail(text() << logits.at() << ": softmax_cross_entropy: " << why << ": " << b.describe(z.id)
                  << " is " << z.type() << ", " << b.describe(y.id) << " is " << y.type());
    return z;
  };
  if (is_floating(y.element()) || y.element() == dtype::boolean)
    return refuse("labels must be integers");
  if (z.rank() != 2 || y.rank() != 1) return refuse("needs logits [N,C] and labels [N]");
  if (z.extent(0) != y.extent(0)) return refuse("batch sizes differ");
  return emit<cross_entropy_op>({}, logits.at(), z, y);
}
/// Mean softmax cross-entropy: logits [N,C], integer labels [N] -> scalar.
constexpr var softmax_cross_entropy(operand logits, operand labels) {
  const var l = cross_entropy_per_sample(logits, labels);
  return l.rank() == 1 ? mean({l, logits.at()}) : l;
}

/// Mean of the squared differences.
constexpr var mean_squared_error(operand prediction, operand target) {
  return mean({squared_difference(prediction, target), prediction.at()});
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

namespace detail {
/// Writes softmax (or its logarithm) of a line.
inline void softmax_line(const tensor_ref& x, const tensor_ref& y, std::int64_t base,
                         std::int64_t step, int n, bool logarithm) {
  double top = -std::numeric_limits<double>::infinity();
  for (int i = 0; i < n; ++i) top = std::max(top, read_element(x, base + i * step));
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += std::exp(read_element(x, base + i * step) - top);
  for (int i = 0; i < n; ++i) {
    const double v = read_element(x, base + i * step) - top;
    write_element(y, base + i * step, logarithm ? v - std::log(sum) : std::exp(v) / sum);
  }
}
}  // namespace detail

inline void softmax_op::compute(const attributes& o, span<const tensor_ref> in,
                                span<const tensor_ref> out) {
  detail::for_each_line(in[0].type.shape, o.as<options>().axis,
                        [&](std::int64_t base, std::int64_t step, int n) {
                          detail::softmax_line(in[0], out[0], base, step, n, false);
                        });
}
inline void log_softmax_op::compute(const attributes& o, span<const tensor_ref> in,
                                    span<const tensor_ref> out) {
  detail::for_each_line(in[0].type.shape, o.as<options>().axis,
                        [&](std::int64_t base, std::int64_t step, int n) {
                          detail::softmax_line(in[0], out[0], base, step, n, true);
                        });
}
inline void cross_entropy_op::compute(const attributes&, span<const tensor_ref> in,
                                      span<const tensor_ref> out) {
  const int classes = in[0].type[1];
  for (std::int64_t r = 0; r < in[0].type[0]; ++r) {
    double top = -std::numeric_limits<double>::infinity();
    for (int c = 0; c < classes; ++c) top = std::max(top, read_element(in[0], r * classes + c));
    double sum = 0;
    for (int c = 0; c < classes; ++c) sum += std::exp(read_element(in[0], r * classes + c) - top);
    const std::int64_t label = read_position(in[1], r);
    // A label outside the classes makes the loss NaN rather than reading foreign memory.
    const double z = label >= 0 && label < classes ? read_element(in[0], r * classes + label)
                                                   : std::numeric_limits<double>::quiet_NaN();
    write_element(out[0], r, std::log(sum) + top - z);
  }
}

#endif

}  // namespace cella
