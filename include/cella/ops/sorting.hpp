// The order of elements along an axis, and what is made of it.
#pragma once

#include <algorithm>
#include <bit>
#include <cella/graph/once.hpp>
#include <cella/ops/cumulative.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/slicing.hpp>
#include <concepts>
#include <utility>

namespace cella {

namespace detail {

/// A number whose order among others is that of x: -0 is 0, and NaN is larger than all.
template <class N>
std::uint64_t sort_key(N x) {
  constexpr std::uint64_t sign = std::uint64_t{1} << 63;
  if constexpr (std::is_floating_point_v<N>) {
    if (x != x) return ~std::uint64_t{0};
    const auto bits = std::bit_cast<std::uint64_t>(double(x) + 0.0);
    return bits & sign ? ~bits : bits | sign;
  } else if constexpr (std::is_signed_v<N>) {
    return std::uint64_t(x) ^ sign;
  } else {
    return std::uint64_t(x);
  }
}

/// Base of operations that find places along an axis, as i64, from the elements along it.
template <class Op>
struct places_along : opaque<Op>, zero_derivative, moves_axis<Op> {
  static constexpr compute_class computes = compute_class::sequential;
  static constexpr int operands = 1;
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return {dtype::i64, in[0].shape};
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return pointwise_but_along(o.as<typename Op::options>().axis, in[0].shape, 1);
  }
  static constexpr interval bounds(span<const interval>, span<const tensor_type> types,
                                   const attributes& o) {
    return bounds_of_positions(types[0].shape, o.as<typename Op::options>().axis);
  }
};

}  // namespace detail

/// Where the elements along an axis lie in ascending or descending order, as i64: of all, or of the
/// first `count`. Equal elements keep their order; NaN is larger than all.
struct argsort_op : detail::places_along<argsort_op> {
  static constexpr std::string_view name = "argsort";
  static constexpr std::string_view numpy = "np.argsort";
  static constexpr std::string_view torch = "torch.argsort";
  static constexpr std::string_view formula =
      "y = the places of x along an axis in the order of their elements";
  struct options {
    std::int32_t axis{};  ///< first, as among those of gather_elements: planning compares them
    std::int32_t descending{};
    std::int32_t count{};  ///< 0: all
    /// Of a line of so many.
    constexpr std::int64_t wanted(std::int64_t extent) const { return count ? count : extent; }
  };
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    return is_axis(o.axis, a.rank()) && 0 <= o.count && o.count <= a.of(0)[o.axis];
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    const auto a = o.as<options>();
    tensor_type t{dtype::i64, in[0].shape};
    t.shape[a.axis] = std::int32_t(a.wanted(t[a.axis]));
    return t;
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// Where the largest (or smallest) of the elements up to each one lies along an axis, the first of
/// equal ones, as i64; NaN is both.
struct running_argmax_op : detail::places_along<running_argmax_op> {
  static constexpr std::string_view name = "running_argmax";
  static constexpr std::string_view torch = "torch.cummax";
  static constexpr std::string_view formula =
      "y_i = where the first of the largest x_j, j <= i, is along an axis";
  struct options {
    std::int32_t axis{};
    std::int32_t reverse{};
    std::int32_t least{};
  };
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

// ---- public functions

namespace detail {
struct no_axis_of_sort {
  __attribute__((unavailable("write the axis, then the order: sort(x, -1, true)")))  //
  constexpr no_axis_of_sort(const var& v)
      : x(v) {}
  var x;
};
}  // namespace detail

/// Where the elements along `axis` lie in ascending order, or else in descending order: i64. Equal
/// elements keep their order, so that the first comes first; NaN counts as the largest.
constexpr var argsort(operand x, int axis = -1, bool descending = false) {
  const var v = x.in(*x.owner());
  const int a = detail::find_axis("argsort", v, axis, x.at());
  if (a < 0) return v;
  return emit<argsort_op>(argsort_op::options{a, descending}, x.at(), v);
}
/// The elements along `axis` in ascending order, or else in descending order.
constexpr var sort(operand x, int axis = -1, bool descending = false) {
  const var v = x.in(*x.owner());
  const int a = detail::find_axis("sort", v, axis, x.at());
  return a < 0 ? v : gather_elements(x, argsort(x, a, descending), a);
}

/// An order in the place of the axis.
template <std::same_as<bool> Order>
constexpr var argsort(detail::no_axis_of_sort x, Order) {
  return x.x;
}
template <std::same_as<bool> Order>
constexpr var sort(detail::no_axis_of_sort x, Order) {
  return x.x;
}

/// What `top_k` returns.
struct top_k_result {
  var values;
  var indices;  ///< i64
};
/// The k largest elements along `axis`, or else the k smallest, the best one first, and where they
/// lie.
constexpr top_k_result top_k(operand x, int k, int axis = -1, bool largest = true) {
  const var v = x.in(*x.owner());
  const int a = detail::find_axis("top_k", v, axis, x.at());
  if (a < 0) return {v, v};
  if (k < 1 || k > v.extent(a)) {
    v.b->fail(text() << x.at() << ": top_k: there are no " << k << " elements along axis " << axis
                     << " of " << v.b->describe(v.id) << " " << v.shape());
    return {v, v};
  }
  const int count = k == v.extent(a) ? 0 : k;
  const var first = emit<argsort_op>(argsort_op::options{a, largest, count}, x.at(), v);
  return {gather_elements(x, first, a), first};
}

namespace detail {
constexpr var running_extremum(std::string_view op, operand x, int axis, bool reverse, bool least) {
  const var v = x.in(*x.owner());
  const int a = find_axis(op, v, axis, x.at());
  if (a < 0) return v;
  const var at = emit<running_argmax_op>(running_argmax_op::options{a, reverse, least}, x.at(), v);
  return gather_elements(x, at, a);
}
}  // namespace detail
/// The largest of the elements up to and including each one along an axis.
constexpr var cummax(operand x, int axis, bool reverse = false) {
  return detail::running_extremum("cummax", x, axis, reverse, false);
}
/// The smallest of the elements up to and including each one along an axis.
constexpr var cummin(operand x, int axis, bool reverse = false) {
  return detail::running_extremum("cummin", x, axis, reverse, true);
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void argsort_op::compute(const attributes& o, span<const tensor_ref> in,
                                span<const tensor_ref> out) {
  const auto a = o.as<options>();
  const shape s = in[0].type.shape;
  const std::int64_t n = s[a.axis], step = s.size(a.axis + 1, s.rank), lines = n ? s.size() / n : 0;
  const std::int64_t wanted = a.wanted(n);
  list<std::pair<std::uint64_t, std::int64_t>> order(std::size_t(n), {});
  for (std::int64_t line = 0; line < lines; ++line) {
    const std::int64_t first = line / step * step * n + line % step;
    with_wide_number(in[0].type.element, [&]<class N>() {
      for (std::int64_t i = 0; i < n; ++i) {
        const std::uint64_t key = detail::sort_key(read_number<N>(in[0], first + i * step));
        order[std::size_t(i)] = {a.descending ? ~key : key, i};
      }
    });
    std::sort(order.begin(), order.end());
    const std::int64_t to = line / step * step * wanted + line % step;
    for (std::int64_t i = 0; i < wanted; ++i)
      write_number(out[0], to + i * step, order[std::size_t(i)].second);
  }
}
inline void running_argmax_op::compute(const attributes& o, span<const tensor_ref> in,
                                       span<const tensor_ref> out) {
  const auto [axis, reverse, least] = o.as<options>();
  const std::int64_t inner = in[0].type.shape.size(axis + 1, in[0].type.rank());
  with_wide_number(in[0].type.element, [&]<class N>() {
    N best{};
    std::int64_t at = -1;
    detail::for_each_in_order(
        in[0].type.shape, axis, reverse, [&] { at = -1; },
        [&](std::int64_t i) {
          const N x = read_number<N>(in[0], i);
          if (at < 0 || (best == best && (x != x || (least ? x < best : x > best)))) {
            best = x;
            at = i / inner % in[0].type[axis];
          }
          write_number(out[0], i, at);
        });
  });
}

#endif

}  // namespace cella
