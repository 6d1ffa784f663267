// Operations that make tensors or re-interpret their elements: iota, reshape, transpose (and, in
// constant.hpp, constants).
#pragma once

#include <algorithm>
#include <array>
#include <cella/graph/once.hpp>
#include <cella/graph/onnx_attributes.hpp>
#include <cella/ops/axis_list.hpp>
#include <cella/ops/constant.hpp>
#include <cella/ops/op.hpp>
#include <cella/ops/strided.hpp>
#include <cmath>
#include <cstring>

namespace cella {

namespace detail {
/// Of the numbers 0, 1, ... along an axis.
constexpr interval bounds_of_positions(const shape& s, int axis) {
  return {0, double(std::max(s[axis] - 1, 0))};
}
}  // namespace detail

// ---- leaves

/// Consecutive numbers 0, 1, ... along one axis.
struct iota_op : leaf<iota_op> {
  static constexpr std::string_view name = "iota";
  static constexpr std::string_view numpy = "np.arange";
  static constexpr std::string_view torch = "torch.arange";
  static constexpr std::string_view formula = "y[i] = i along an axis";
  struct options {
    cella::shape shape{};
    stored_dtype element{};
    std::int32_t axis{};
  };
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    return is_axis(o.axis, o.shape.rank) && is_flat(dtype(o.element));
  }
  static constexpr tensor_type infer(span<const tensor_type>, const attributes& o) {
    const auto a = o.as<options>();
    return {dtype(a.element), a.shape};
  }
  static constexpr interval bounds(span<const interval>, span<const tensor_type>,
                                   const attributes& o) {
    const auto a = o.as<options>();
    return detail::bounds_of_positions(a.shape, a.axis);
  }
  static void compute(const attributes& o, span<const tensor_ref>, span<const tensor_ref> out);
};

/// 0, 1, 2 ... along `axis` of a tensor of type `t`. Precondition: 0 <= axis < t.rank().
constexpr var iota(builder& b, const tensor_type& t, int axis) {
  iota_op::options o{t.shape, {std::int32_t(t.element)}, axis};
  return {&b, b.emit(bound<iota_op>(), span<const node_id>{}, o)};
}

// ---- movement

/// The same elements in row-major order under other extents.
struct reshape_op : linear<reshape_op>, alias_of_operand {
  static constexpr std::string_view name = "reshape";
  static constexpr std::string_view numpy = "np.reshape";
  static constexpr std::string_view torch = "torch.reshape";
  static constexpr std::string_view formula =
      "the same elements in row-major order under another shape";
  static constexpr onnx_operator onnx{"Reshape", 5};
  static constexpr compute_class computes = compute_class::movement;
  static constexpr bool cheap = true;
  struct options {
    cella::shape shape{};
  };
  static constexpr int operands = 1;
  static bool fits(const op_application& a) {
    return a.as<options>().shape.size() == a.of(0).size();
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return {in[0].element, o.as<options>().shape};
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static constexpr attributes batch_options(node_ref n, int size, unsigned) {
    auto o = n.as<options>();
    o.shape.insert(0, size);
    return o;
  }
  static constexpr attributes direction_options(const attributes& o, int, int size, unsigned) {
    auto a = o.as<options>();
    a.shape.push_back(size);
    return a;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o);
  static void compute(const attributes&, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// Permutes axes: result axis i is operand axis `permutation[i]`.
struct transpose_op : linear<transpose_op>, rearranges {
  static constexpr std::string_view name = "transpose";
  static constexpr std::string_view numpy = "np.transpose";
  static constexpr std::string_view torch = "torch.permute";
  static constexpr std::string_view formula = "y[i_p(0), i_p(1), ...] = x[i_0, i_1, ...]";
  static constexpr onnx_operator onnx{"Transpose", 1};
  static constexpr compute_class computes = compute_class::movement;
  static constexpr bool cheap = true;
  struct options {
    iteration_space::axes permutation = iteration_space::no_axes;
  };
  static constexpr int operands = 1;
  static bool fits(const op_application& a) {
    return names_axes(a.as<options>().permutation, a.rank(), a.rank());
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    const auto p = o.as<options>().permutation;
    tensor_type t{in[0].element, {}};
    for (int i = 0; i < in[0].rank(); ++i) t.shape.push_back(in[0][p[std::size_t(i)]]);
    return t;
  }
  /// Without `perm` the axes are reversed.
  static void write_onnx(span<const tensor_type> in, const attributes& o, onnx_attributes& to) {
    list<std::int64_t> perm;
    for (std::int8_t axis : o.as<options>().permutation)
      if (int(perm.size()) < in[0].rank()) perm.push_back(axis);
    to.set("perm", perm);
  }
  static attributes read_onnx(span<const tensor_type> in, const onnx_attributes& from) {
    from.only({"perm"});
    const int rank = in[0].rank();
    options o;
    unsigned seen = 0;
    const bool reversed = !from.find("perm");
    const list<std::int32_t> perm = from.integers("perm");
    const bool fits = reversed || perm.size() == std::size_t(rank);
    for (int d = 0; d < rank && fits; ++d) {
      const auto i = std::size_t(d);
      const int axis = reversed ? rank - 1 - d : from.axis_of("perm", perm[i], rank);
      o.permutation[i] = std::int8_t(axis);
      seen |= 1u << axis;
    }
    if (seen != (1u << rank) - 1) from.refuse("perm", "does not name each axis once");
    return o;
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static constexpr attributes batch_options(node_ref n, int, unsigned) {
    const auto o = n.as<options>();
    options batched;
    batched.permutation[0] = 0;
    for (std::size_t i = 0; i + 1 < batched.permutation.size() && o.permutation[i] >= 0; ++i)
      batched.permutation[i + 1] = std::int8_t(o.permutation[i] + 1);
    return batched;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    iteration_space s(1);
    s.add(in[0].shape);
    s.along_all(0, 0, in[0].rank());
    for (int i = 0; i < in[0].rank(); ++i)
      s.along(s.result(), i, o.as<options>().permutation[std::size_t(i)]);
    return s;
  }
  static constexpr attributes part_options(const attributes& o, const shape&) { return o; }
  static constexpr attributes direction_options(const attributes& o, int rank, int, unsigned) {
    auto a = o.as<options>();
    iteration_space::append(a.permutation, std::int8_t(rank));
    return a;
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

// ---- public functions

namespace detail {
/// `axis` of x counted from the first axis; a fault and -1 if x has no such axis.
constexpr int find_axis(std::string_view op, var x, int axis, std::source_location at) {
  const int found = axis < 0 ? axis + x.rank() : axis;
  if (found >= 0 && found < x.rank()) return found;
  x.b->fail(text() << at << ": " << op << ": " << x.b->describe(x.id) << " " << x.shape()
                   << " has no axis " << axis);
  return -1;
}
}  // namespace detail

/// The same elements under other extents; one extent may be -1 and is then computed.
CELLA_ONCE constexpr var reshape(operand x, shape target) {
  builder& b = *x.owner();
  const var v = x.in(b);
  const shape s = v.shape();
  int open = -1;
  bool fits = true;
  std::int64_t known = 1;
  for (int i = 0; i < target.rank; ++i) {
    if (target[i] == -1 && open < 0)
      open = i;
    else
      known *= target[i];
    fits &= target[i] >= -1;
  }
  // Beside an extent of 0 any number would do, so none is chosen.
  if (open >= 0 && known > 0 && s.size() % known == 0)
    target[open] = std::int32_t(s.size() / known);
  else
    fits &= open < 0;
  if (!fits || target.size() != s.size()) {
    text count;
    if (open < 0) count << " (" << target.size() << ")";
    b.fail(text() << x.at() << ": reshape: " << b.describe(v.id) << " is " << s << " (" << s.size()
                  << " elements), which does not fit " << target << count);
    return v;
  }
  return s == target ? v : emit<reshape_op>(reshape_op::options{target}, x.at(), v);
}

/// [N, ...] -> [N, product of the rest]
CELLA_ONCE constexpr var flatten(operand x) {
  const var v = x.in(*x.owner());
  const shape s = v.shape();
  if (s.rank == 0) return reshape(x, {1, 1});
  return reshape(x, {s[0], s.size(1, s.rank)});
}

/// Permutes the axes: result axis i is axis `permutation[i]` of x. Without a list: reversed.
CELLA_ONCE constexpr var transpose(operand x, const axis_list& permutation = {}) {
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
    for (; i < v.rank() && i < max_rank; ++i)
      o.permutation[std::size_t(i)] = std::int8_t(v.rank() - 1 - i);
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
  builder& b = *x.owner();
  const var v = x.in(b);
  shape s = v.shape();
  const int at = axis < 0 ? axis + s.rank + 1 : axis;
  if (at < 0 || at > s.rank || s.rank == max_rank) {
    b.fail(text() << x.at() << ": expand_dims: " << b.describe(v.id) << " " << s
                  << " cannot get a new axis at " << axis << "; a tensor has at most " << max_rank
                  << " axes");
    return v;
  }
  s.insert(at, 1);
  return reshape(x, s);
}
/// Removes an axis of extent 1.
constexpr var squeeze(operand x, int axis) {
  builder& b = *x.owner();
  const var v = x.in(b);
  shape s = v.shape();
  const int at = axis < 0 ? axis + s.rank : axis;
  if (at < 0 || at >= s.rank || s[at] != 1) {
    b.fail(text() << x.at() << ": squeeze: axis " << axis << " of " << b.describe(v.id) << " " << s
                  << " does not have extent 1");
    return v;
  }
  s.erase(at);
  return reshape(x, s);
}

// ---- rules

/// Runs of axes whose products of extents agree hold the same elements. Within such a run the loops
/// are the finest cut of both: each axis is a number whose digits are some of the loops' places.
/// Where the extents do not divide each other the run is one loop that neither side can name, its
/// last digits included: an axis of which only some digits were named would seem to be shorter.
constexpr iteration_space reshape_op::space(span<const tensor_type> in, const attributes& o) {
  const shape from = in[0].shape, to = o.as<options>().shape;
  iteration_space s(1);
  // From the last axis to the first: `x` and `y` elements of the axes at hand are still uncut.
  int i = from.rank, j = to.rank;
  std::int64_t x = 1, y = 1, step_x = 1, step_y = 1;
  // Where the run at hand begins: its axes of the operand, its loops.
  int axes = i;
  std::size_t factors = 0, walks = 0;
  while (i > 0 || j > 0 || x > 1 || y > 1) {
    if (x == 1 && y == 1) axes = i, factors = s.factors.size(), walks = s.walks.size();
    if (x == 1 && y == 1 && i > 0 && j > 0 && from[i - 1] == 1 && to[j - 1] == 1) {
      // Axes of one element that stand opposite each other have a loop, as all others have.
      const int f = s.add(1);
      s.along(0, --i, f);
      s.along(s.result(), --j, f);
      continue;
    }
    while (x == 1 && i > 0) x = from[--i], step_x = 1;
    while (y == 1 && j > 0) y = to[--j], step_y = 1;
    const std::int64_t least = std::min(x, y);
    if (least == 0 || x % least || y % least) {
      // An empty tensor, or extents as 6 and 4: what is left is read and written as a whole.
      s.factors.resize(factors);
      s.walks.resize(walks);
      s.add(from.size(0, axes), true);
      break;
    }
    if (least == 1 && x == y) break;
    const int f = s.add(least);
    s.along(0, i, f, int(step_x));
    s.along(s.result(), j, f, int(step_y));
    step_x *= least, step_y *= least;
    x /= least, y /= least;
  }
  return s;
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

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void iota_op::compute(const attributes& o, span<const tensor_ref>,
                             span<const tensor_ref> out) {
  const int axis = o.as<options>().axis;
  const shape& s = out[0].type.shape;
  const std::int64_t inner = s.size(axis + 1, s.rank), outer = s.size(0, axis);
  with_element(out[0].type.element, [&]<class T>() {
    T* y = reinterpret_cast<T*>(out[0].data);
    for (std::int64_t k = 0; k < outer; ++k) {
      if (inner == 1) {
        for (std::int32_t i = 0; i < s[axis]; ++i) y[i] = from_number<T>(i);
        y += s[axis];
        continue;
      }
      for (std::int64_t i = 0; i < s[axis]; ++i, y += inner)
        std::fill_n(y, inner, from_number<T>(i));
    }
  });
}
inline void reshape_op::compute(const attributes&, span<const tensor_ref> in,
                                span<const tensor_ref> out) {
  if (out[0].type.bytes()) std::memcpy(out[0].data, in[0].data, std::size_t(out[0].type.bytes()));
}
inline void transpose_op::compute(const attributes& o, span<const tensor_ref> in,
                                  span<const tensor_ref> out) {
  const auto p = o.as<options>().permutation;
  const auto from = row_major_strides(in[0].type.shape);
  stride_list step{};
  for (int i = 0; i < in[0].type.rank(); ++i)
    step[std::size_t(i)] = from[std::size_t(p[std::size_t(i)])];
  copy_strided(in[0], 0, step, out[0]);
}

#endif

}  // namespace cella
