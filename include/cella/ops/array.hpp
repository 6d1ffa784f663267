// Operations that make, move or re-interpret elements: constant, broadcast, reshape, transpose,
// slice, pad, concat, cast, one_hot.
#pragma once

#include <array>
#include <cella/ops/op.hpp>
#include <cella/ops/strided.hpp>
#include <cstring>
#include <initializer_list>

namespace cella {

// ---- leaves

/// A tensor of one repeated value.
struct constant_op : leaf<constant_op> {
  static constexpr std::string_view name = "constant";
  struct options {
    double value{};
    cella::shape shape{};
    std::int32_t element{};
  };
  static constexpr std::string_view onnx = "Constant";
  static constexpr tensor_type infer(std::span<const tensor_type>, const attributes& o) {
    const auto a = o.as<options>();
    return {dtype(a.element), a.shape};
  }
  static void compute(const attributes& o, std::span<const tensor_ref>,
                      std::span<const tensor_ref> out);
};

/// Consecutive numbers 0, 1, ... along one axis.
struct iota_op : leaf<iota_op> {
  static constexpr std::string_view name = "iota";
  struct options {
    cella::shape shape{};
    std::int32_t element{};
    std::int32_t axis{};
  };
  static constexpr tensor_type infer(std::span<const tensor_type>, const attributes& o) {
    const auto a = o.as<options>();
    return {dtype(a.element), a.shape};
  }
  static void compute(const attributes& o, std::span<const tensor_ref>,
                      std::span<const tensor_ref> out);
};

/// A tensor of type `t` filled with `value`, in the graph of `b`.
constexpr var constant(builder& b, double value, const tensor_type& t) {
  constant_op::options o{value, t.shape, std::int32_t(t.element)};
  return {&b, b.emit(bound<constant_op>(), std::span<const node_id>{}, o)};
}
constexpr var full_like(operand x, double value) {
  return constant(*x.owner(), value, x.in(*x.owner()).type());
}
constexpr var zeros_like(operand x) { return full_like(x, 0); }
constexpr var ones_like(operand x) { return full_like(x, 1); }
/// 0, 1, 2 ... along `axis` of a tensor of type `t`.
constexpr var iota(builder& b, const tensor_type& t, int axis) {
  iota_op::options o{t.shape, std::int32_t(t.element), axis};
  return {&b, b.emit(bound<iota_op>(), std::span<const node_id>{}, o)};
}

// ---- movement

constexpr var sum_axes(var x, unsigned axes, std::source_location at);  // reduction.hpp

/// Repeats a tensor along new or one-element axes. Operand dimension i lies along result dimension
/// `axes[i]` (ascending). In the graph broadcasting is always this explicit node.
struct broadcast_op : linear<broadcast_op> {
  static constexpr std::string_view name = "broadcast";
  static constexpr std::string_view onnx = "Expand";
  static constexpr bool cheap = true;
  struct options {
    cella::shape shape{};
    iteration_space::axes axes = iteration_space::no_axes;
  };
  static constexpr tensor_type infer(std::span<const tensor_type> in, const attributes& o) {
    return {in[0].element, o.as<options>().shape};
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static constexpr iteration_space space(std::span<const tensor_type>, const attributes& o) {
    const auto a = o.as<options>();
    iteration_space s;
    s.factors = a.shape.rank;
    for (int i = 0; i < a.shape.rank; ++i) {
      s.extents[std::size_t(i)] = a.shape[i];
      s.result[std::size_t(i)] = std::int8_t(i);
    }
    s.operands[0] = a.axes;
    return s;
  }
  static void compute(const attributes& o, std::span<const tensor_ref> in,
                      std::span<const tensor_ref> out);
};

/// The same elements in row-major order under other extents.
struct reshape_op : linear<reshape_op> {
  static constexpr std::string_view name = "reshape";
  static constexpr std::string_view onnx = "Reshape";
  static constexpr bool cheap = true;
  struct options {
    cella::shape shape{};
  };
  static constexpr tensor_type infer(std::span<const tensor_type> in, const attributes& o) {
    return {in[0].element, o.as<options>().shape};
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static void compute(const attributes&, std::span<const tensor_ref> in,
                      std::span<const tensor_ref> out) {
    if (out[0].type.bytes()) std::memcpy(out[0].data, in[0].data, std::size_t(out[0].type.bytes()));
  }
};

/// Permutes axes: result axis i is operand axis `permutation[i]`.
struct transpose_op : linear<transpose_op> {
  static constexpr std::string_view name = "transpose";
  static constexpr std::string_view onnx = "Transpose";
  static constexpr bool cheap = true;
  struct options {
    iteration_space::axes permutation = iteration_space::no_axes;
  };
  static constexpr tensor_type infer(std::span<const tensor_type> in, const attributes& o) {
    const auto p = o.as<options>().permutation;
    tensor_type t{in[0].element, {}};
    for (int i = 0; i < in[0].rank(); ++i) t.shape.push_back(in[0][p[std::size_t(i)]]);
    return t;
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static void compute(const attributes& o, std::span<const tensor_ref> in,
                      std::span<const tensor_ref> out);
};

/// A regular sub-grid: result index i reads operand index `start + i * step` on each axis. Steps
/// may be negative (reversal).
struct slice_op : linear<slice_op> {
  static constexpr std::string_view name = "slice";
  static constexpr std::string_view onnx = "Slice";
  struct options {
    cella::shape shape{};
    std::array<std::int32_t, max_rank> start{};
    std::array<std::int16_t, max_rank> step{1, 1, 1, 1, 1, 1, 1, 1};
  };
  static constexpr tensor_type infer(std::span<const tensor_type> in, const attributes& o) {
    return {in[0].element, o.as<options>().shape};
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static void compute(const attributes& o, std::span<const tensor_ref> in,
                      std::span<const tensor_ref> out);
};

/// The transpose of `slice`: zeros, but operand index i lies at result index `start + i * step`.
struct embed_op : linear<embed_op> {
  static constexpr std::string_view name = "embed";
  using options = slice_op::options;  // `shape` is the result's
  static constexpr tensor_type infer(std::span<const tensor_type> in, const attributes& o) {
    return {in[0].element, o.as<options>().shape};
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static void compute(const attributes& o, std::span<const tensor_ref> in,
                      std::span<const tensor_ref> out);
};

/// Tensors one after the other along an axis; any number of operands.
struct concat_op : linear<concat_op> {
  static constexpr std::string_view name = "concat";
  static constexpr std::string_view onnx = "Concat";
  static constexpr unsigned linear_in = ~0u;
  struct options {
    std::int32_t axis{};
  };
  static constexpr tensor_type infer(std::span<const tensor_type> in, const attributes& o) {
    tensor_type t = in[0];
    const int axis = o.as<options>().axis;
    for (const auto& x : in.subspan(1)) t.shape[axis] += x[axis];
    return t;
  }
  static constexpr var transpose(node_ref n, int operand, var dy);
  static void compute(const attributes& o, std::span<const tensor_ref> in,
                      std::span<const tensor_ref> out);
};

/// Converts the element type; floating to integer truncates.
struct cast_op : linear<cast_op> {
  static constexpr std::string_view name = "cast";
  static constexpr std::string_view onnx = "Cast";
  struct options {
    std::int32_t element{};
  };
  static constexpr tensor_type infer(std::span<const tensor_type> in, const attributes& o) {
    return {dtype(o.as<options>().element), in[0].shape};
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static void compute(const attributes& o, std::span<const tensor_ref> in,
                      std::span<const tensor_ref> out);
};

/// 1 where the index equals the position along a new last axis, else 0.
struct one_hot_op : opaque<one_hot_op> {
  static constexpr std::string_view name = "one_hot";
  static constexpr std::string_view onnx = "OneHot";
  struct options {
    std::int32_t depth{};
    std::int32_t element{};
  };
  static constexpr tensor_type infer(std::span<const tensor_type> in, const attributes& o) {
    const auto a = o.as<options>();
    tensor_type t{dtype(a.element), in[0].shape};
    t.shape.push_back(a.depth);
    return t;
  }
  static void compute(const attributes& o, std::span<const tensor_ref> in,
                      std::span<const tensor_ref> out);
};

// ---- public functions

/// Repeats `x` to `target`, aligning axes from the last as NumPy does.
constexpr var broadcast_to(operand x, const shape& target) {
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

/// The same elements under other extents; one extent may be -1 and is then computed.
constexpr var reshape(operand x, shape target) {
  builder& b = *x.owner();
  const var v = x.in(b);
  const shape s = v.shape();
  int open = -1;
  std::int64_t known = 1;
  for (int i = 0; i < target.rank; ++i) {
    if (target[i] == -1)
      open = i;
    else
      known *= target[i];
  }
  if (open >= 0 && known > 0 && s.size() % known == 0)
    target[open] = std::int32_t(s.size() / known);
  if (target.size() != s.size()) {
    b.fail(text() << x.at() << ": reshape: " << b.describe(v.id) << " is " << s << " (" << s.size()
                  << " elements), which does not fit " << target << " (" << target.size() << ")");
    return v;
  }
  return s == target ? v : emit<reshape_op>(reshape_op::options{target}, x.at(), v);
}

/// [N, ...] -> [N, product of the rest]
constexpr var flatten(operand x) {
  const var v = x.in(*x.owner());
  return reshape(x, {v.rank() ? v.extent(0) : 1, -1});
}

/// Permutes the axes: result axis i is axis `permutation[i]` of x. Without a list: reversed.
constexpr var transpose(operand x, std::initializer_list<int> permutation = {}) {
  builder& b = *x.owner();
  const var v = x.in(b);
  transpose_op::options o;
  unsigned seen = 0;
  int i = 0;
  for (int axis : permutation) {
    if (axis < 0) axis += v.rank();
    if (axis >= 0 && axis < v.rank() && i < max_rank) {
      seen |= 1u << axis;
      o.permutation[std::size_t(i)] = std::int8_t(axis);
    }
    ++i;
  }
  if (permutation.size() == 0) {
    for (; i < v.rank(); ++i) o.permutation[std::size_t(i)] = std::int8_t(v.rank() - 1 - i);
    seen = (1u << v.rank()) - 1;
  }
  if (i != v.rank() || seen != (1u << v.rank()) - 1) {
    b.fail(text() << x.at() << ": transpose: the permutation does not name each axis of "
                  << b.describe(v.id) << " " << v.shape() << " once");
    return v;
  }
  return emit<transpose_op>(o, x.at(), v);
}

/// Inserts an axis of extent 1.
constexpr var expand_dims(operand x, int axis) {
  const var v = x.in(*x.owner());
  shape s = v.shape();
  s.insert(axis < 0 ? axis + s.rank + 1 : axis, 1);
  return reshape(x, s);
}
/// Removes an axis of extent 1.
constexpr var squeeze(operand x, int axis) {
  builder& b = *x.owner();
  const var v = x.in(b);
  shape s = v.shape();
  if (axis < 0) axis += s.rank;
  if (axis < 0 || axis >= s.rank || s[axis] != 1) {
    b.fail(text() << x.at() << ": squeeze: axis " << axis << " of " << b.describe(v.id) << " " << s
                  << " does not have extent 1");
    return v;
  }
  s.erase(axis);
  return reshape(x, s);
}

/// Elements [start, stop) with a step along one axis; negative bounds count from the end, and a
/// negative step reads backwards (then `stop` is exclusive below).
constexpr var slice(operand x, int axis, int start, int stop, int step = 1) {
  builder& b = *x.owner();
  const var v = x.in(b);
  const shape s = v.shape();
  if (axis < 0) axis += s.rank;
  const int n = axis >= 0 && axis < s.rank ? s[axis] : 0;
  if (start < 0) start += n;
  if (stop < 0 && step > 0) stop += n;
  const int count = step > 0   ? (stop - start + step - 1) / step
                    : step < 0 ? (start - stop - step - 1) / -step
                               : 0;
  const int last = start + (count - 1) * step;
  if (axis < 0 || axis >= s.rank || count < 1 || start < 0 || start >= n || last < 0 || last >= n) {
    b.fail(text() << x.at() << ": slice: [" << start << ", " << stop << ") by " << step
                  << " does not lie within axis " << axis << " of " << b.describe(v.id) << " "
                  << s);
    return v;
  }
  slice_op::options o{s, {}, {1, 1, 1, 1, 1, 1, 1, 1}};
  o.shape[axis] = count;
  o.start[std::size_t(axis)] = start;
  o.step[std::size_t(axis)] = std::int16_t(step);
  return emit<slice_op>(o, x.at(), v);
}
/// Reverses the order along an axis.
constexpr var reverse(operand x, int axis) {
  const int n = x.in(*x.owner()).extent(axis);
  return slice(x, axis, n - 1, -1, -1);
}

/// `before` and `after` zeros round the elements of each axis (one entry per axis).
constexpr var pad(operand x, std::initializer_list<int> before, std::initializer_list<int> after) {
  builder& b = *x.owner();
  const var v = x.in(b);
  slice_op::options o{v.shape(), {}, {1, 1, 1, 1, 1, 1, 1, 1}};
  if (int(before.size()) != v.rank() || int(after.size()) != v.rank()) {
    b.fail(text() << x.at() << ": pad: needs one width before and one after for each axis of "
                  << b.describe(v.id) << " " << v.shape());
    return v;
  }
  for (int i = 0; i < v.rank(); ++i) {
    o.start[std::size_t(i)] = before.begin()[i];
    o.shape[i] += before.begin()[i] + after.begin()[i];
  }
  return emit<embed_op>(o, x.at(), v);
}

/// Tensors one after the other along `axis`; all other extents agree.
constexpr var concat(std::span<const var> parts, int axis,
                     std::source_location at = std::source_location::current()) {
  builder& b = *parts[0].b;
  const shape first = parts[0].shape();
  if (axis < 0) axis += first.rank;
  ids in;
  for (const var& p : parts) {
    shape s = p.shape();
    if (axis < s.rank && axis < first.rank) s[axis] = first[axis];
    if (s != first || p.element() != parts[0].element() || axis < 0 || axis >= first.rank) {
      b.fail(text() << at << ": concat: " << b.describe(p.id) << " is " << p.type()
                    << " and the first operand is " << parts[0].type()
                    << "; they may differ along axis " << axis << " only");
      return parts[0];
    }
    in.push_back(p.id);
  }
  if (in.size() == 1) return parts[0];
  return {&b, b.emit(bound<concat_op>(), in, concat_op::options{axis}, at)};
}
constexpr var concat(std::initializer_list<var> parts, int axis,
                     std::source_location at = std::source_location::current()) {
  return concat(std::span<const var>(parts.begin(), parts.size()), axis, at);
}
/// Tensors of one shape side by side along a new axis.
constexpr var stack(std::initializer_list<var> parts, int axis,
                    std::source_location at = std::source_location::current()) {
  std::vector<var> expanded;
  for (const var& p : parts) expanded.push_back(expand_dims(p, axis));
  return concat(expanded, axis < 0 ? axis + expanded[0].rank() : axis, at);
}

/// Converts the element type.
constexpr var cast(operand x, dtype to) {
  const var v = x.in(*x.owner());
  return v.element() == to ? v : emit<cast_op>(cast_op::options{std::int32_t(to)}, x.at(), v);
}

/// Integer indices [...] -> [..., depth] with a 1 at each index.
constexpr var one_hot(operand indices, int depth, dtype element) {
  builder& b = *indices.owner();
  const var v = indices.in(b);
  if (is_floating(v.element())) {
    b.fail(text() << indices.at() << ": one_hot: the indices " << b.describe(v.id) << " are "
                  << v.type() << "; they must be integers");
    return v;
  }
  return emit<one_hot_op>(one_hot_op::options{depth, std::int32_t(element)}, indices.at(), v);
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
constexpr var reshape_op::transpose(node_ref n, int, var dy) {
  return reshape(dy, n.operand(0).shape());
}
constexpr var transpose_op::transpose(node_ref n, int, var dy) {
  const auto o = n.as<options>();
  options inverse;
  for (int i = 0; i < dy.rank(); ++i)
    inverse.permutation[std::size_t(o.permutation[std::size_t(i)])] = std::int8_t(i);
  return emit<transpose_op>(inverse, std::source_location::current(), dy);
}
constexpr var slice_op::transpose(node_ref n, int, var dy) {
  auto o = n.as<options>();
  o.shape = n.operand(0).shape();
  return emit<embed_op>(o, std::source_location::current(), dy);
}
constexpr var embed_op::transpose(node_ref n, int, var dy) {
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
constexpr var cast_op::transpose(node_ref n, int, var dy) {
  const dtype from = n.operand(0).element();
  return is_floating(from) ? cast(dy, from) : zero_partial;
}

// ---- computation at run time

inline void constant_op::compute(const attributes& o, std::span<const tensor_ref>,
                                 std::span<const tensor_ref> out) {
  const double value = o.as<options>().value;
  with_element(out[0].type.element, [&]<class T>() {
    T* y = reinterpret_cast<T*>(out[0].data);
    std::fill(y, y + out[0].type.size(), from_double<T>(value));
  });
}
inline void iota_op::compute(const attributes& o, std::span<const tensor_ref>,
                             std::span<const tensor_ref> out) {
  const int axis = o.as<options>().axis;
  for_each_index(out[0].type.shape, [&](std::int64_t k, const multi_index& i) {
    write_element(out[0], k, double(i[std::size_t(axis)]));
  });
}
inline void broadcast_op::compute(const attributes& o, std::span<const tensor_ref> in,
                                  std::span<const tensor_ref> out) {
  const auto a = o.as<options>();
  const auto from = row_major_strides(in[0].type.shape);
  stride_list step{};
  for (int i = 0; i < in[0].type.rank(); ++i)
    step[std::size_t(a.axes[std::size_t(i)])] = from[std::size_t(i)];
  copy_strided(in[0], 0, step, out[0]);
}
inline void transpose_op::compute(const attributes& o, std::span<const tensor_ref> in,
                                  std::span<const tensor_ref> out) {
  const auto p = o.as<options>().permutation;
  const auto from = row_major_strides(in[0].type.shape);
  stride_list step{};
  for (int i = 0; i < in[0].type.rank(); ++i)
    step[std::size_t(i)] = from[std::size_t(p[std::size_t(i)])];
  copy_strided(in[0], 0, step, out[0]);
}
inline void slice_op::compute(const attributes& o, std::span<const tensor_ref> in,
                              std::span<const tensor_ref> out) {
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
inline void embed_op::compute(const attributes& o, std::span<const tensor_ref> in,
                              std::span<const tensor_ref> out) {
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
inline void concat_op::compute(const attributes& o, std::span<const tensor_ref> in,
                               std::span<const tensor_ref> out) {
  const int axis = o.as<options>().axis;
  const shape& s = out[0].type.shape;
  const std::size_t unit = size_of(out[0].type.element) * std::size_t(s.size(axis + 1, s.rank));
  const auto rows = s.size(0, axis);
  std::byte* y = out[0].data;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (const tensor_ref& x : in) {
      const std::size_t bytes = unit * std::size_t(x.type[axis]);
      std::memcpy(y, x.data + std::size_t(r) * bytes, bytes);
      y += bytes;
    }
  }
}
inline void cast_op::compute(const attributes&, std::span<const tensor_ref> in,
                             std::span<const tensor_ref> out) {
  for (std::int64_t i = 0; i < out[0].type.size(); ++i)
    write_element(out[0], i, read_element(in[0], i));
}
inline void one_hot_op::compute(const attributes& o, std::span<const tensor_ref> in,
                                std::span<const tensor_ref> out) {
  const int depth = o.as<options>().depth;
  for (std::int64_t i = 0; i < in[0].type.size(); ++i) {
    const double hot = read_element(in[0], i);
    for (int d = 0; d < depth; ++d) write_element(out[0], i * depth + d, hot == d ? 1 : 0);
  }
}

}  // namespace cella
