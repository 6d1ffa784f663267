// Running results along an axis: cumsum, cumprod, and the linear recurrence that they are cases of.
// (The largest so far: sorting.hpp.)
#pragma once

#include <cella/ops/elementwise.hpp>
#include <cella/ops/slicing.hpp>

namespace cella {

namespace detail {

/// Calls f(element) for the elements of each line along an axis in order, first or last first, and
/// `start()` before each line.
template <class Start, class F>
void for_each_in_order(const shape& s, int axis, bool reverse, Start start, F f) {
  const std::int64_t n = s[axis];
  const std::int64_t inner = s.size(axis + 1, s.rank);
  for (std::int64_t row = 0; row < s.size(0, axis) * inner; ++row) {
    const std::int64_t base = row / inner * n * inner + row % inner;
    start();
    for (std::int64_t k = 0; k < n; ++k) f(base + (reverse ? n - 1 - k : k) * inner);
  }
}

/// x moved one place on along an axis (or back), with a zero moving in.
constexpr var shift(var x, int axis, bool on) {
  const shape s = x.shape();
  auto o = whole(s);
  o.shape[axis] = s[axis] - 1;
  o.start[std::size_t(axis)] = on ? 0 : 1;
  if (s[axis] == 1) return zeros_like(x);
  const var kept = emit<slice_op>(o, std::source_location::current(), x);
  o.shape[axis] = s[axis];
  o.start[std::size_t(axis)] = on ? 1 : 0;
  return emit<scatter_slice_op>(o, std::source_location::current(), kept);
}

}  // namespace detail

/// Running sum along an axis; `exclusive` leaves out the element itself.
struct cumsum_op : linear<cumsum_op>,
                   detail::moves_axis<cumsum_op>,
                   computed_in_single,
                   takes_complex {
  static constexpr std::string_view name = "cumsum";
  static constexpr std::string_view numpy = "np.cumsum";
  static constexpr std::string_view torch = "torch.cumsum";
  static constexpr std::string_view formula = "y_i = sum of x_j, j <= i, along an axis";
  static constexpr compute_class computes = compute_class::sequential;
  static constexpr onnx_operator onnx{"CumSum", 11};
  struct options {
    std::int32_t axis{};
    std::int32_t reverse{};
    std::int32_t exclusive{};
  };
  static constexpr int operands = 1;
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return pointwise_but_along(o.as<options>().axis, in[0].shape, 1);
  }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type> types,
                                   const attributes& o) {
    const auto a = o.as<options>();
    const int n = types[0][a.axis];
    const double least = a.exclusive ? 0 : 1,
                 most = a.exclusive ? std::max(n - 1, 0) : std::max(n, 1);
    return hull(least * in[0], most * in[0]);
  }
  /// The axis is an operand there: it is not written, and read as 0.
  static void write_onnx(span<const tensor_type>, const attributes& o, onnx_attributes& to) {
    const auto a = o.as<options>();
    to.set("exclusive", a.exclusive);
    to.set("reverse", a.reverse);
  }
  static attributes read_onnx(span<const tensor_type>, const onnx_attributes& from) {
    from.only({"exclusive", "reverse"});
    return options{0, from.integer("reverse", 0), from.integer("exclusive", 0)};
  }
  static constexpr var transpose(node_ref n, int, var dy) {
    auto o = n.as<options>();
    o.reverse = !o.reverse;
    return emit<cumsum_op>(o, std::source_location::current(), dy);
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const auto a = o.as<options>();
    with_any_number(in[0].type.element, [&]<class N>() {
      N sum{};
      detail::for_each_in_order(
          in[0].type.shape, a.axis, a.reverse, [&] { sum = 0; },
          [&](std::int64_t i) {
            const N next = detail::wrapping_sum(sum, read_number<N>(in[0], i));
            write_number(out[0], i, a.exclusive ? sum : next);
            sum = next;
          });
    });
  }
};

/// a, x -> h with h[k] = a[k] h[k-1] + x[k] along an axis, from h[-1] = 0; `reverse` starts at the
/// other end. Any order of derivatives is such a recurrence again, without a division.
struct linear_recurrence_op : opaque<linear_recurrence_op>,
                              detail::moves_axis<linear_recurrence_op>,
                              computed_in_single {
  static constexpr std::string_view name = "linear_recurrence";
  static constexpr std::string_view formula = "y_i = a_i y_(i-1) + x_i along an axis";
  static constexpr compute_class computes = compute_class::sequential;
  static constexpr int operations_per_point = 2;
  struct options {
    std::int32_t axis{};
    std::int32_t reverse{};
  };
  static constexpr int operands = 2;
  static bool fits(const op_application& a) {
    return a.same(0, 1) && detail::moves_axis<linear_recurrence_op>::fits(a);
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return pointwise_but_along(o.as<options>().axis, in[0].shape, 2);
  }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type> types,
                                   const attributes& o) {
    interval one = in[1], all = one;
    for (int k = 1; k < types[0][o.as<options>().axis]; ++k) {
      const interval next = in[0] * one + in[1];
      if (next == one) break;
      all = hull(all, one = next);
    }
    return all;
  }
  /// dx = g and da[k] = g[k] h[k-1], where g[k] = a[k+1] g[k+1] + dh[k].
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char> needed, span<var> dx) {
    auto o = n.as<options>();
    const bool forward = !o.reverse;
    o.reverse = forward;
    const var g = emit<linear_recurrence_op>(o, std::source_location::current(),
                                             detail::shift(n.operand(0), o.axis, !forward), dy[0]);
    if (needed[0]) dx[0] = g * detail::shift(n.output(), o.axis, forward);
    dx[1] = g;
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out) {
    const auto a = o.as<options>();
    with_wide_number(in[0].type.element, [&]<class N>() {
      N h{};
      bool first = true;
      detail::for_each_in_order(
          in[0].type.shape, a.axis, a.reverse, [&] { first = true; },
          [&](std::int64_t i) {
            const N x = read_number<N>(in[1], i);
            const N before = detail::wrapping_product(read_number<N>(in[0], i), h);
            h = first ? x : detail::wrapping_sum(before, x);
            first = false;
            write_number(out[0], i, h);
          });
    });
  }
};

// ---- public functions

/// Running sum of the elements up to and including each one.
constexpr var cumsum(operand x, int axis, bool reverse = false, bool exclusive = false) {
  const var v = x.in(*x.owner());
  const int a = detail::find_axis("cumsum", v, axis, x.at());
  return a < 0 ? v : emit<cumsum_op>(cumsum_op::options{a, reverse, exclusive}, x.at(), v);
}

/// h[k] = factor[k] h[k-1] + x[k] along an axis, with h[-1] = 0.
constexpr var linear_recurrence(operand factor, operand x, int axis, bool reverse = false) {
  builder& b = owner_of(factor, x);
  const var a = factor.in(b);
  const var v = x.in(b);
  const int at = detail::find_axis("linear_recurrence", v, axis, x.at());
  if (at < 0) return v;
  if (a.type() != v.type()) {
    b.fail(text() << x.at() << ": linear_recurrence: types differ: " << b.describe(a.id) << " is "
                  << a.type() << ", " << b.describe(v.id) << " is " << v.type());
    return v;
  }
  return emit<linear_recurrence_op>(linear_recurrence_op::options{at, reverse}, x.at(), a, v);
}

/// Running product of the elements up to each one; `exclusive` leaves out the element itself.
constexpr var cumprod(operand x, int axis, bool reverse = false, bool exclusive = false) {
  builder& b = *x.owner();
  var v = x.in(b);
  const int a = detail::find_axis("cumprod", v, axis, x.at());
  if (a < 0) return v;
  // The first element, or 1, starts the recurrence; the others follow as factors.
  const int n = v.extent(a);
  if (exclusive) v = detail::shift(v, a, !reverse);
  if (n < 2) return exclusive ? ones_like(v) : v;
  auto part = detail::whole(v.shape());
  part.shape[a] = 1;
  part.start[std::size_t(a)] = reverse ? n - 1 : 0;
  const var first = emit<slice_op>(part, x.at(), v);
  part.shape[a] = n;
  const var start = emit<scatter_slice_op>(part, x.at(), exclusive ? ones_like(first) : first);
  return linear_recurrence(v, {start, x.at()}, a, reverse);
}

}  // namespace cella
