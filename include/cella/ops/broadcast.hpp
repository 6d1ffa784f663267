// Repeating along axes and its transpose, the sum over axes.
#pragma once

#include <algorithm>
#include <cella/graph/list.hpp>
#include <cella/graph/once.hpp>
#include <cella/graph/point_bounds.hpp>
#include <cella/ops/cast.hpp>
#include <utility>

namespace cella {

/// Which axes a reduction folds, as a bit mask.
struct axes_options {
  std::uint32_t axes{};
};

namespace detail {

/// The axis that an operation works along.
struct axis_options {
  std::int32_t axis{};
};

constexpr tensor_type without_axes(const tensor_type& t, unsigned axes) {
  tensor_type r{t.element, {}};
  for (int i = 0; i < t.rank(); ++i) {
    if (!(axes >> i & 1)) r.shape.push_back(t[i]);
  }
  return r;
}

/// Reductions in ONNX: `axes` (none: all) as an attribute, and `keepdims`, which takes a reshape
/// besides if it is set, as it is by default.
inline void write_onnx_axes(int rank, const attributes& o, onnx_attributes& to) {
  list<std::int64_t> axes;
  for (int i = 0; i < rank; ++i) {
    if (o.as<axes_options>().axes >> i & 1) axes.push_back(i);
  }
  to.set("axes", axes);
  to.set("keepdims", 0);
}
inline attributes read_onnx_axes(int rank, const onnx_attributes& from) {
  from.only({"axes", "keepdims"});
  from.must_be("keepdims", 0, 1);
  axes_options o;
  for (std::int32_t a : from.integers("axes")) o.axes |= 1u << from.axis_of("axes", a, rank);
  return o.axes ? o : axes_options{(1u << rank) - 1};
}

/// Every axis of the operand is a factor; the result walks the kept ones.
constexpr iteration_space reduction_space(const tensor_type& t, unsigned axes, combination over) {
  iteration_space s(1);
  s.add(t.shape);
  s.along_all(0, 0, t.rank());
  int kept = 0;
  for (int i = 0; i < t.rank(); ++i) {
    if (!(axes >> i & 1)) s.along(s.result(), kept++, i);
  }
  s.over = over;
  return s;
}

/// Calls f(accumulator, element, its index) for each element; N is what x is computed in.
template <class N, class F>
void fold_axes(const tensor_ref& x, unsigned axes, N* accumulators, F f) {
  const auto kept = row_major_strides(without_axes(x.type, axes).shape);
  for_each_index(x.type.shape, [&](std::int64_t k, const multi_index& i) {
    std::int64_t p = 0;
    for (int d = 0, e = 0; d < x.type.rank(); ++d) {
      if (!(axes >> d & 1)) p += kept[std::size_t(e++)] * i[std::size_t(d)];
    }
    f(accumulators[p], read_number<N>(x, k), i);
  });
}

/// Folds the elements of x into those of y.
template <class N, class F>
void reduce_into(const tensor_ref& x, unsigned axes, const tensor_ref& y, F f) {
  list<N> sums;
  for (std::int64_t i = 0; i < y.type.size(); ++i) sums.push_back(read_number<N>(y, i));
  fold_axes(x, axes, sums.data(), [&](N& a, N v, const multi_index&) { a = f(a, v); });
  for (std::size_t i = 0; i < sums.size(); ++i) write_number(y, std::int64_t(i), sums[i]);
}
/// The same from `first`, as near as y's type comes to it. Complex numbers have their own way: f
/// may ask for an order.
template <class F>
void reduce_to(const tensor_ref& x, unsigned axes, double first, const tensor_ref& y, F f) {
  fill(y, y.type.element == dtype::boolean ? double(first > 0) : first);
  with_wide_number(x.type.element, [&]<class N>() { reduce_into<N>(x, axes, y, f); });
}

}  // namespace detail

/// Repeats a tensor along new or one-element axes. Operand dimension i lies along result dimension
/// `axes[i]` (ascending). In the graph broadcasting is always this explicit node.
struct broadcast_op : linear<broadcast_op>, rearranges {
  static constexpr std::string_view name = "broadcast";
  static constexpr std::string_view numpy = "np.broadcast_to";
  static constexpr std::string_view torch = "Tensor.expand";
  static constexpr std::string_view formula = "x repeated along axes that it lacks";
  static constexpr onnx_operator onnx{"Expand", 8};
  static constexpr compute_class computes = compute_class::movement;
  static constexpr bool cheap = true;
  struct options {
    cella::shape shape{};
    iteration_space::axes axes = iteration_space::no_axes;
  };
  static constexpr int operands = 1;
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    bool fits = names_axes(o.axes, a.rank(), o.shape.rank);
    for (int d = 0; fits && d < a.rank(); ++d) fits = a.of(0)[d] == o.shape[o.axes[std::size_t(d)]];
    return fits;
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return {in[0].element, o.as<options>().shape};
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static constexpr attributes batch_options(node_ref n, int size, unsigned) {
    const auto o = n.as<options>();
    options batched{o.shape, iteration_space::no_axes};
    batched.shape.insert(0, size);
    batched.axes[0] = 0;
    for (std::size_t i = 0; i + 1 < o.axes.size() && o.axes[i] >= 0; ++i)
      batched.axes[i + 1] = std::int8_t(o.axes[i] + 1);
    return batched;
  }
  static constexpr iteration_space space(span<const tensor_type>, const attributes& o) {
    const auto a = o.as<options>();
    iteration_space s(1);
    s.add(a.shape);
    for (int i = 0; i < a.shape.rank && a.axes[std::size_t(i)] >= 0; ++i)
      s.along(0, i, a.axes[std::size_t(i)]);
    s.along_all(s.result(), 0, a.shape.rank);
    return s;
  }
  static constexpr attributes part_options(const attributes& o, const shape& part) {
    auto a = o.as<options>();
    a.shape = part;
    return a;
  }
  static constexpr attributes direction_options(const attributes& o, int rank, int size, unsigned) {
    auto a = o.as<options>();
    a.shape.push_back(size);
    iteration_space::append(a.axes, std::int8_t(rank));
    return a;
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};
/// The first axis of the result along which what the broadcast `n` repeats varies, and the one
/// behind the last. An operand of one element varies along none: the second is 0 then.
template <class Graph>
constexpr std::pair<int, int> varying_axes(const Graph& g, node_id n) {
  const auto o = g.nodes[std::size_t(n)].attributes.template as<broadcast_op::options>();
  const tensor_type from = g.type(g.operand(n, 0));
  int first = max_rank, last = 0;
  for (int d = 0; d < from.rank(); ++d) {
    if (from[d] == 1) continue;
    first = std::min<int>(first, o.axes[std::size_t(d)]);
    last = std::max<int>(last, o.axes[std::size_t(d)] + 1);
  }
  return {first, last};
}

/// Sum over axes. Its transpose repeats the cotangent along them.
struct sum_op : linear<sum_op>, keeps_zero, takes_complex, takes_records {
  static constexpr std::string_view name = "sum";
  static constexpr std::string_view numpy = "np.sum";
  static constexpr std::string_view torch = "torch.sum";
  static constexpr std::string_view formula = "y = sum of x along axes";
  static constexpr compute_class computes = compute_class::reduction;
  static constexpr onnx_operator onnx{"ReduceSum", 1};
  using options = axes_options;
  static constexpr int operands = 1;
  static bool fits(const op_application& a) { return a.as<options>().axes >> a.rank() == 0; }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return detail::without_axes(in[0], o.as<options>().axes);
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::reduction_space(in[0], o.as<options>().axes, combination::sum);
  }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type> types,
                                   const attributes& o) {
    return sum_over_points(space(types, o), infer(types, o), in[0]);
  }
  /// `axes` is an attribute until opset 12.
  static void write_onnx(span<const tensor_type> in, const attributes& o, onnx_attributes& to) {
    detail::write_onnx_axes(in[0].rank(), o, to);
  }
  static attributes read_onnx(span<const tensor_type> in, const onnx_attributes& from) {
    return detail::read_onnx_axes(in[0].rank(), from);
  }
  static constexpr var transpose(node_ref n, int, var dy) {
    broadcast_op::options o{n.operand(0).shape(), iteration_space::no_axes};
    int kept = 0;
    for (int i = 0; i < o.shape.rank; ++i) {
      if (!(n.as<options>().axes >> i & 1)) o.axes[std::size_t(kept++)] = std::int8_t(i);
    }
    return emit<broadcast_op>(o, std::source_location::current(), dy);
  }
  static constexpr attributes batch_options(node_ref n, int, unsigned) {
    return options{n.as<options>().axes << 1};
  }
  static constexpr attributes part_options(const attributes& o, const shape&) { return o; }
  static constexpr attributes direction_options(const attributes& o, int, int, unsigned) {
    return o;
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

// ---- public functions

/// Repeats `x` to `target`, aligning axes from the last as NumPy does.
CELLA_ONCE constexpr var broadcast_to(operand x, const shape& target) {
  builder& b = *x.owner();
  var v = x.in(b);
  const shape s = v.shape();
  if (s == target) return v;
  broadcast_op::options o{target, iteration_space::no_axes};
  shape kept;
  bool fits = s.rank <= target.rank;
  for (int i = 0; fits && i < s.rank; ++i) {
    const int axis = i + target.rank - s.rank;
    if (s[i] == target[axis]) {
      o.axes[std::size_t(kept.rank)] = std::int8_t(axis);
      kept.push_back(s[i]);
    } else {
      fits = s[i] == 1;
    }
  }
  if (!fits) {
    b.fail(text() << x.at() << ": broadcast_to: " << b.describe(v.id) << " is " << s
                  << ", which does not repeat to " << target);
    return v;
  }
  // One-element axes are dropped first, so that each operand axis equals its result axis.
  if (kept != s) v = emit<reshape_op>(reshape_op::options{kept}, x.at(), v);
  if (kept == target) return v;
  return emit<broadcast_op>(o, x.at(), v);
}

/// Sum over the axes of a mask; the axes vanish.
constexpr var sum_axes(var x, unsigned axes, std::source_location at) {
  return axes ? emit<sum_op>(axes_options{axes}, at, x) : x;
}

// ---- rules

constexpr var broadcast_op::transpose(node_ref n, int, var dy) {
  const auto o = n.as<options>();
  unsigned kept = 0;
  for (std::int8_t a : o.axes) {
    if (a >= 0) kept |= 1u << a;
  }
  return sum_axes(dy, ((1u << o.shape.rank) - 1) & ~kept, std::source_location::current());
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void broadcast_op::compute(const attributes& o, span<const tensor_ref> in,
                                  span<const tensor_ref> out) {
  const auto a = o.as<options>();
  const auto from = row_major_strides(in[0].type.shape);
  stride_list step{};
  for (int i = 0; i < in[0].type.rank(); ++i)
    step[std::size_t(a.axes[std::size_t(i)])] = from[std::size_t(i)];
  copy_strided(in[0], 0, step, out[0]);
}
inline void sum_op::compute(const attributes& o, span<const tensor_ref> in,
                            span<const tensor_ref> out) {
  fill(out[0], 0);
  with_any_number(in[0].type.element, [&]<class N>() {
    detail::reduce_into<N>(in[0], o.as<options>().axes, out[0],
                           [](N a, N v) { return detail::wrapping_sum(a, v); });
  });
}

#endif

}  // namespace cella
