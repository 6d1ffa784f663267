// Operations that cut and join: slice, pad, concat and what is made of them.
#pragma once

#include <cella/graph/list.hpp>
#include <cella/graph/once.hpp>
#include <cella/ops/batching.hpp>
#include <cella/ops/var_list.hpp>
#include <initializer_list>
#include <utility>

namespace cella {

/// A regular sub-grid: result index i reads operand index `start + i * step` on each axis. Steps
/// may be negative (reversal).
struct slice_op : linear<slice_op>, rearranges {
  static constexpr std::string_view name = "slice";
  static constexpr std::string_view numpy = "x[start:stop:step]";
  static constexpr std::string_view torch = "x[start:stop:step]";
  static constexpr std::string_view formula = "y[i] = x[start + i step]";
  static constexpr onnx_operator onnx{"Slice", 10};
  static constexpr compute_class computes = compute_class::movement;
  struct options {
    cella::shape shape{};
    std::array<std::int32_t, max_rank> start{};
    std::array<std::int32_t, max_rank> step{1, 1, 1, 1, 1, 1, 1, 1};
  };
  static constexpr int operands = 1;
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    return lies_in_grid(o, a.of(0), o.shape);
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return {in[0].element, o.as<options>().shape};
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static constexpr attributes batch_options(node_ref n, int size, unsigned);
  static constexpr attributes direction_options(const attributes& o, int, int size, unsigned) {
    auto a = o.as<options>();
    a.shape.push_back(size);
    return a;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return grid(o.as<options>(), in[0].rank(), o.as<options>().shape, 0, 1);
  }
  /// The loops over the elements of a grid: tensor `whole` has it at `start + i step`.
  static constexpr iteration_space grid(const options& o, int rank, const shape& elements,
                                        int whole, int part) {
    iteration_space s(1);
    s.add(elements);
    s.along_all(part, 0, rank);
    for (int d = 0; d < rank; ++d) {
      s.along(whole, d, d, o.step[std::size_t(d)]);
      s.offset(whole, d, o.start[std::size_t(d)]);
    }
    return s;
  }
  /// Whether a grid of these extents lies in a tensor of shape `all`.
  static bool lies_in_grid(const options& o, const shape& all, const shape& grid) {
    if (all.rank != grid.rank) return false;
    for (int d = 0; d < all.rank; ++d) {
      if (grid[d] == 0) continue;
      const std::int64_t first = o.start[std::size_t(d)];
      const std::int64_t last = first + std::int64_t{o.step[std::size_t(d)]} * (grid[d] - 1);
      if (!is_axis(first, all[d]) || !is_axis(last, all[d])) return false;
    }
    return true;
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// The transpose of `slice`: zeros, but operand index i lies at result index `start + i * step`.
struct scatter_slice_op : linear<scatter_slice_op>, keeps_zero, takes_complex {
  static constexpr std::string_view name = "scatter_slice";
  static constexpr std::string_view formula = "zeros, but y[start + i step] = x[i]";
  using options = slice_op::options;  // `shape` is the result's
  static constexpr compute_class computes = compute_class::movement;
  static constexpr attributes batch_options(node_ref n, int size, unsigned batched) {
    return slice_op::batch_options(n, size, batched);
  }
  static constexpr attributes direction_options(const attributes& o, int, int size, unsigned) {
    auto a = o.as<options>();
    a.shape.push_back(size);
    return a;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return slice_op::grid(o.as<options>(), in[0].rank(), in[0].shape, 1, 0);
  }
  static constexpr int operands = 1;
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    return slice_op::lies_in_grid(o, o.shape, a.of(0));
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return {in[0].element, o.as<options>().shape};
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// Tensors one after the other along an axis; any number of operands.
struct concat_op : linear<concat_op>, detail::moves_axis<concat_op>, rearranges, keeps_zero {
  static constexpr std::string_view name = "concat";
  static constexpr std::string_view numpy = "np.concatenate";
  static constexpr std::string_view torch = "torch.cat";
  static constexpr std::string_view formula = "operands one behind the other along an axis";
  static constexpr onnx_operator onnx{"Concat", 4};
  static constexpr compute_class computes = compute_class::movement;
  static constexpr unsigned linear_in = ~0u;
  struct options {
    std::int32_t axis{};
  };
  static bool fits(const op_application& a);
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    tensor_type t = in[0];
    const int axis = o.as<options>().axis;
    for (const auto& x : in.subspan(1)) t.shape[axis] += x[axis];
    return t;
  }
  /// Each operand has a stretch of the result; the rest of its axis is padding.
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    const int axis = o.as<options>().axis;
    iteration_space s = pointwise_space(infer(in, o).shape, in.size());
    int begin = 0;
    for (std::size_t k = 0; k < in.size(); ++k) {
      s.offset(int(k), axis, -begin);
      begin += in[k][axis];
    }
    return s;
  }
  static constexpr attributes direction_options(const attributes& o, int, int, unsigned) {
    return o;
  }
  static constexpr var transpose(node_ref n, int operand, var dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

// ---- public functions

namespace detail {

constexpr slice_op::options whole(const shape& s) { return {s, {}, {1, 1, 1, 1, 1, 1, 1, 1}}; }

/// Sets one axis of a slice to [start, stop) by `step`, of `n` elements. Returns what is wrong with
/// that, or nothing.
constexpr std::string_view set_range(slice_op::options& o, int axis, int n, int start, int stop,
                                     int step) {
  if (start < 0) start += n;
  if (stop < 0 && step > 0) stop += n;
  if (start < 0 || start >= n || stop < -1 || stop > n) return "does not lie within";
  if (step == 0) return "does not move along";
  const int length = step > 0 ? stop - start : start - stop;
  if (length < 1) return "holds no element of";
  const std::int64_t distance = step > 0 ? step : -std::int64_t{step};
  const int count = int((length - 1) / distance) + 1;
  o.shape[axis] = count;
  o.start[std::size_t(axis)] = start;
  // With one element the step says nothing; any other is less than the extent.
  o.step[std::size_t(axis)] = count > 1 ? step : 1;
  return {};
}

/// Reports a range with which something is wrong.
CELLA_ONCE constexpr var refuse_range(std::string_view op, std::string_view why, var x, int axis,
                                      int start, int stop, int step, std::source_location at) {
  x.b->fail(text() << at << ": " << op << ": [" << start << ", " << stop << ") by " << step << " "
                   << why << " axis " << axis << " of " << x.b->describe(x.id) << " " << x.shape());
  return x;
}

}  // namespace detail

/// Elements [start, stop) with a step along one axis; negative bounds count from the end, and a
/// negative step reads backwards (then `stop` is exclusive below, and -1 lies before the first).
CELLA_ONCE constexpr var slice(operand x, int axis, int start, int stop, int step = 1) {
  const var v = x.in(*x.owner());
  const int a = axis < 0 ? axis + v.rank() : axis;
  auto o = detail::whole(v.shape());
  std::string_view wrong = "does not lie within";
  if (a >= 0 && a < v.rank()) wrong = detail::set_range(o, a, v.extent(a), start, stop, step);
  if (!wrong.empty())
    return detail::refuse_range("slice", wrong, v, axis, start, stop, step, x.at());
  return emit<slice_op>(o, x.at(), v);
}

namespace detail {
/// x[i] along the leading axis, without that axis.
constexpr var leading_slice(var x, int i) {
  shape s = x.shape();
  s.erase(0);
  return reshape(slice(x, 0, i, i + 1), s);
}
}  // namespace detail

/// Elements [start, stop) by `step` along every axis, with one entry per axis; no steps mean 1.
/// Bounds as in `slice`.
constexpr var strided_slice(operand x, const axis_list& start, const axis_list& stop,
                            const axis_list& step = {}) {
  builder& b = *x.owner();
  const var v = x.in(b);
  auto o = detail::whole(v.shape());
  if (start.size() != v.rank() || stop.size() != v.rank() ||
      (step.size() && step.size() != v.rank())) {
    b.fail(text() << x.at() << ": strided_slice: needs one start, one stop and one step for each "
                  << "axis of " << b.describe(v.id) << " " << v.shape());
    return v;
  }
  for (int i = 0; i < v.rank(); ++i) {
    const int by = step.size() ? step[i] : 1;
    const auto wrong = detail::set_range(o, i, v.extent(i), start[i], stop[i], by);
    if (!wrong.empty())
      return detail::refuse_range("strided_slice", wrong, v, i, start[i], stop[i], by, x.at());
  }
  return emit<slice_op>(o, x.at(), v);
}

/// Reverses the order along some axes.
constexpr var reverse(operand x, const axis_list& axes) {
  const var v = x.in(*x.owner());
  auto o = detail::whole(v.shape());
  for (int axis : axes) {
    const int a = detail::find_axis("reverse", v, axis, x.at());
    if (a < 0) return v;
    o.start[std::size_t(a)] = v.extent(a) - 1;
    o.step[std::size_t(a)] = -1;
  }
  return emit<slice_op>(o, x.at(), v);
}
constexpr var reverse(operand x, int axis) { return reverse(x, axis_list{axis}); }

namespace detail {
/// Not constexpr on purpose: without a part there is no trace that could keep a sentence, so that
/// the compiler prints this call.
inline no_place nothing_is_concatenated_or_stacked_it_takes_at_least_one_var(
    std::source_location at) {
  throw model_error(text() << at << ": concat and stack take at least one var");
}
struct not_in_braces {
  __attribute__((unavailable("write the tensors in braces, then the axis: concat({x, y}, 1)")))  //
  constexpr not_in_braces(const var& v)
      : x(v) {}
  var x;
};
}  // namespace detail

/// Tensors one after the other along `axis`; all other extents agree. At least one.
CELLA_ONCE constexpr var concat(span<const var> parts, int axis,
                                std::source_location at = std::source_location::current()) {
  if (parts.empty())
    const no_place stop = detail::nothing_is_concatenated_or_stacked_it_takes_at_least_one_var(at);
  builder& b = *parts[0].b;
  const shape first = parts[0].shape();
  const int a = axis < 0 ? axis + first.rank : axis;
  ids in;
  for (const var& p : parts) {
    shape s = p.shape();
    if (a >= 0 && a < s.rank && a < first.rank) s[a] = first[a];
    if (s != first || p.element() != parts[0].element() || a < 0 || a >= first.rank) {
      b.fail(text() << at << ": concat: " << b.describe(p.id) << " is " << p.type()
                    << " and the first operand is " << parts[0].type()
                    << "; they may differ along axis " << axis << " only");
      return parts[0];
    }
    in.push_back(p.id);
  }
  if (in.size() == 1) return parts[0];
  return {&b, b.emit(bound<concat_op>(), in, concat_op::options{a}, at)};
}
constexpr var concat(std::initializer_list<var> parts, int axis,
                     std::source_location at = std::source_location::current()) {
  return concat(span<const var>(parts.begin(), parts.size()), axis, at);
}

/// Braces are easily forgotten.
constexpr var concat(detail::not_in_braces first, const auto&...) { return first.x; }

/// Tensors of one shape side by side along a new axis. At least one.
constexpr var stack(span<const var> parts, int axis,
                    std::source_location at = std::source_location::current()) {
  list<var> expanded;
  for (const var& p : parts) expanded.push_back(expand_dims({p, at}, axis));
  return concat(expanded, axis, at);
}
constexpr var stack(std::initializer_list<var> parts, int axis,
                    std::source_location at = std::source_location::current()) {
  return stack(span<const var>(parts.begin(), parts.size()), axis, at);
}

constexpr var stack(detail::not_in_braces first, const auto&...) { return first.x; }

/// `count` parts of equal extent along an axis, in order.
constexpr var_list split(operand x, int count, int axis) {
  builder& b = *x.owner();
  const var v = x.in(b);
  const int a = detail::find_axis("split", v, axis, x.at());
  if (a >= 0 && (count < 1 || v.extent(a) % count)) {
    b.fail(text() << x.at() << ": split: axis " << axis << " of " << b.describe(v.id) << " "
                  << v.shape() << " does not divide into " << count << " equal parts");
  }
  list<var> parts(std::size_t(count < 1 ? 1 : count), v);
  const int n = b.failed() ? 0 : v.extent(a) / count;
  for (int k = 0; n > 0 && k < count; ++k)
    parts[std::size_t(k)] = slice({v, x.at()}, a, k * n, (k + 1) * n);
  return {std::move(parts), "split", x.at()};
}
/// The elements along an axis, which vanishes from them.
constexpr var_list unstack(operand x, int axis) {
  const var v = x.in(*x.owner());
  const int a = detail::find_axis("unstack", v, axis, x.at());
  list<var> parts(1, v);
  if (a >= 0) parts = split({v, x.at()}, v.extent(a), a);
  for (var& p : parts) p = a < 0 ? p : squeeze({p, x.at()}, a);
  return {std::move(parts), "unstack", x.at()};
}

// ---- rules

constexpr attributes slice_op::batch_options(node_ref n, int size, unsigned) {
  auto o = n.as<options>();
  o.shape.insert(0, size);
  for (std::size_t i = o.start.size() - 1; i > 0; --i) {
    o.start[i] = o.start[i - 1];
    o.step[i] = o.step[i - 1];
  }
  o.start[0] = 0;
  o.step[0] = 1;
  return o;
}
constexpr var slice_op::transpose(node_ref n, int, var dy) {
  auto o = n.as<options>();
  o.shape = n.operand(0).shape();
  return emit<scatter_slice_op>(o, std::source_location::current(), dy);
}
constexpr var scatter_slice_op::transpose(node_ref n, int, var dy) {
  auto o = n.as<options>();
  o.shape = n.operand(0).shape();
  return emit<slice_op>(o, std::source_location::current(), dy);
}
constexpr var concat_op::transpose(node_ref n, int operand, var dy) {
  const int axis = n.as<options>().axis;
  int start = 0;
  for (int k = 0; k < operand; ++k) start += n.operand(k).extent(axis);
  return slice(dy, axis, start, start + n.operand(operand).extent(axis));
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline bool concat_op::fits(const op_application& a) {
  const int axis = a.as<options>().axis;
  bool fits = !a.in.empty() && is_axis(axis, a.rank());
  std::int64_t sum = 0;
  for (std::size_t k = 0; fits && k < a.in.size(); ++k) {
    shape s = a.of(int(k));
    fits = a.in[k].element == a.in[0].element && s.rank == a.rank();
    sum += s[axis];
    s[axis] = a.of(0)[axis];
    fits = fits && s == a.of(0);
  }
  return fits && sum == a.n.type.shape[axis];
}
inline void slice_op::compute(const attributes& o, span<const tensor_ref> in,
                              span<const tensor_ref> out) {
  const auto a = o.as<options>();
  const auto from = row_major_strides(in[0].type.shape);
  stride_list step{};
  std::int64_t origin = 0;
  for (std::size_t i = 0; i < std::size_t(in[0].type.rank()); ++i) {
    step[i] = from[i] * a.step[i];
    origin += from[i] * a.start[i];
  }
  copy_strided(in[0], origin, step, out[0]);
}
inline void scatter_slice_op::compute(const attributes& o, span<const tensor_ref> in,
                                      span<const tensor_ref> out) {
  const auto a = o.as<options>();
  std::memset(out[0].data, 0, std::size_t(out[0].type.bytes()));
  const auto to = row_major_strides(out[0].type.shape);
  stride_list step{};
  std::int64_t origin = 0;
  for (std::size_t i = 0; i < std::size_t(in[0].type.rank()); ++i) {
    step[i] = to[i] * a.step[i];
    origin += to[i] * a.start[i];
  }
  scatter_strided(in[0], out[0], origin, step);
}
inline void concat_op::compute(const attributes& o, span<const tensor_ref> in,
                               span<const tensor_ref> out) {
  const int axis = o.as<options>().axis;
  const auto to = row_major_strides(out[0].type.shape);
  std::int64_t origin = 0;
  for (const tensor_ref& x : in) {
    scatter_strided(x, out[0], origin, to);
    origin += x.type[axis] * to[std::size_t(axis)];
  }
}

#endif

}  // namespace cella
