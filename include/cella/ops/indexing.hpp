// Reading and writing at places that the data name: gather, scatter.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/ops/indexed_places.hpp>
#include <cella/ops/one_hot.hpp>
#include <cella/ops/slicing.hpp>

namespace cella {

namespace detail {
struct indexing_options {
  std::int32_t axis{};
  std::int32_t extent{};   ///< of the table along the axis, where the operands do not tell
  std::int32_t indices{};  ///< rank of the indices, where the operands do not tell
};

/// What operations have in common that read at places, and those that add to zeros there.
template <class Op>
struct reads_places : linear<Op>, takes_complex {
  static constexpr compute_class computes = compute_class::indexed;
  using options = indexing_options;
  static constexpr int operands = 2;
  static constexpr interval bounds(span<const interval> in, span<const tensor_type> types,
                                   const attributes&) {
    return is_floating(types[0].element) ? in[0] : hull(in[0], {0, 0});
  }
  static void write_onnx(span<const tensor_type>, const attributes& o, onnx_attributes& to) {
    to.set("axis", o.as<options>().axis);
  }
};
template <class Op>
struct adds_to_places : linear<Op>, computed_in_single, takes_complex {
  static constexpr compute_class computes = compute_class::indexed;
  static constexpr int operations_per_point = 1;
  static constexpr int operands = 2;
  static constexpr interval bounds(span<const interval> in, span<const tensor_type> types,
                                   const attributes& o) {
    return sum_over_points(Op::space(types, o), Op::infer(types, o), in[0]);
  }
};
}  // namespace detail

/// table, indices -> the table with `axis` replaced by the axes of the indices. An index outside
/// the table reads NaN (integers: 0) rather than foreign memory.
struct gather_op : detail::reads_places<gather_op> {
  static constexpr std::string_view name = "gather";
  static constexpr std::string_view numpy = "np.take";
  static constexpr std::string_view torch = "torch.index_select";
  static constexpr std::string_view formula = "y[..., i, ...] = table[..., index[i], ...]";
  static constexpr onnx_operator onnx{"Gather", 1};
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    return is_axis(o.axis, a.rank()) && o.extent == a.of(0)[o.axis] && o.indices == a.rank(1) &&
           a.rank() + a.rank(1) - 1 <= max_rank && a.whole(1);
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    const int axis = o.as<options>().axis;
    tensor_type t = in[0];
    t.shape.erase(axis);
    for (int i = 0; i < in[1].rank(); ++i) t.shape.insert(axis + i, in[1][i]);
    return t;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::rows_space(infer(in, o).shape, o.as<options>().axis, in[1].rank(), 0, 2);
  }
  static attributes read_onnx(span<const tensor_type> in, const onnx_attributes& from) {
    from.only({"axis"});
    const int axis = from.axis("axis", 0, in[0].rank());
    return options{axis, in[0][axis], in[1].rank()};
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static constexpr void batch(node_ref n, span<const var> in, unsigned batched, span<var> out);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// values, indices -> zeros of the table's type, to which each value is added where its index
/// points: the transpose of `gather`. What an index outside the table names is dropped.
struct scatter_op : detail::adds_to_places<scatter_op> {
  static constexpr std::string_view name = "scatter";
  static constexpr std::string_view torch = "Tensor.index_add_";
  static constexpr std::string_view formula = "zeros, to which rows are added at their indices";
  using options = detail::indexing_options;
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    const int kept = a.rank() - a.rank(1);
    bool fits = 0 <= o.axis && o.axis <= kept && kept < max_rank && o.extent >= 0 &&
                o.indices == a.rank(1) && a.whole(1);
    for (int d = 0; fits && d < a.rank(1); ++d) fits = a.of(0)[o.axis + d] == a.of(1)[d];
    return fits;
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    const auto a = o.as<options>();
    tensor_type t = in[0];
    for (int i = 0; i < a.indices; ++i) t.shape.erase(a.axis);
    t.shape.insert(a.axis, a.extent);
    return t;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    auto s = detail::rows_space(in[0].shape, o.as<options>().axis, in[1].rank(), 2, 0);
    s.over = combination::sum;
    return s;
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static constexpr void batch(node_ref n, span<const var> in, unsigned batched, span<var> out);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// table, indices of the result's shape -> along `axis`, each element from where its own index
/// points; along the others, from its own place.
struct gather_elements_op : detail::reads_places<gather_elements_op>,
                            detail::moves_axis<gather_elements_op> {
  static constexpr std::string_view name = "gather_elements";
  static constexpr std::string_view numpy = "np.take_along_axis";
  static constexpr std::string_view torch = "torch.gather";
  static constexpr std::string_view formula = "y[i,j] = x[index[i,j], j] along an axis";
  static constexpr onnx_operator onnx{"GatherElements", 11};
  static bool fits(const op_application& a) {
    return detail::lies_in(a.of(1), a.of(0), a.as<options>().axis) && a.whole(1);
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return {in[0].element, in[1].shape};
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    return detail::picked_space(in[1].shape, o.as<options>().axis, 0, 2);
  }
  static attributes read_onnx(span<const tensor_type> in, const onnx_attributes& from) {
    from.only({"axis"});
    return options{from.axis("axis", 0, in[0].rank()), 0, 0};
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// values, indices of the same shape -> each value added to zeros where its index points: the
/// transpose of `gather_elements`.
struct scatter_elements_op : detail::adds_to_places<scatter_elements_op> {
  static constexpr std::string_view name = "scatter_elements";
  static constexpr std::string_view torch = "Tensor.scatter_add_";
  static constexpr std::string_view formula = "zeros, to which elements are added at their indices";
  struct options {
    cella::shape shape{};
    std::int32_t axis{};
  };
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    return a.of(0) == a.of(1) && detail::lies_in(a.of(0), o.shape, o.axis) && a.whole(1);
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    return {in[0].element, o.as<options>().shape};
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    auto s = detail::picked_space(in[1].shape, o.as<options>().axis, 2, 0);
    s.over = combination::sum;
    return s;
  }
  static constexpr var transpose(node_ref n, int, var dy);
  static constexpr attributes batch_options(node_ref n, int size, unsigned) {
    auto o = n.as<options>();
    o.shape.insert(0, size);
    ++o.axis;
    return o;
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

// ---- public functions

/// The slices of `table` along `axis` that integer `indices` of any rank name: `axis` is replaced
/// by the axes of the indices. gather([V,D], [N,T]) is [N,T,D].
CELLA_ONCE constexpr var gather(operand table, operand indices, int axis = 0) {
  builder& b = owner_of(table, indices);
  const var x = table.in(b);
  const var i = indices.in(b);
  const int a = detail::find_axis("gather", x, axis, table.at());
  if (a < 0 || !detail::are_indices("gather", i, indices.at())) return x;
  if (x.rank() - 1 + i.rank() > max_rank) {
    b.fail(text() << table.at() << ": gather: the result of " << x.shape() << " at indices "
                  << i.shape() << " has more than " << max_rank << " axes");
    return x;
  }
  return emit<gather_op>(detail::indexing_options{a, x.extent(a), i.rank()}, table.at(), x, i);
}
/// Rows of a table [V,D] by integer indices [...] -> [...,D].
constexpr var embedding(operand indices, operand table) { return gather(table, indices, 0); }

/// Element i of the result is the table's element at index i along `axis` and at its own place
/// along the others; the indices have the table's rank and fit into it along the other axes.
constexpr var gather_elements(operand table, operand indices, int axis) {
  builder& b = owner_of(table, indices);
  const var x = table.in(b);
  const var i = indices.in(b);
  const int a = detail::find_axis("gather_elements", x, axis, table.at());
  if (a < 0 || !detail::are_indices("gather_elements", i, indices.at())) return x;
  bool fits = x.rank() == i.rank();
  for (int d = 0; fits && d < x.rank(); ++d) fits = d == a || i.extent(d) <= x.extent(d);
  if (!fits) {
    b.fail(text() << table.at() << ": gather_elements: the indices " << i.shape()
                  << " do not fit into " << b.describe(x.id) << " " << x.shape() << " beside axis "
                  << axis);
    return x;
  }
  return emit<gather_elements_op>(detail::indexing_options{a, 0, 0}, table.at(), x, i);
}

/// Zeros with `extent` rows along axis 0, to which values [N..., D...] are added at the rows that
/// integer indices [N...] name; equal indices add up (also called unsorted segment sum).
constexpr var scatter(operand values, operand indices, int extent) {
  builder& b = owner_of(values, indices);
  const var v = values.in(b);
  const var i = indices.in(b);
  if (!detail::are_indices("scatter", i, indices.at())) return v;
  bool fits = i.rank() <= v.rank() && extent > 0 && (i.rank() || v.rank() < max_rank);
  for (int d = 0; fits && d < i.rank(); ++d) fits = i.extent(d) == v.extent(d);
  if (!fits) {
    b.fail(text() << values.at() << ": scatter: the indices " << i.shape()
                  << " are not the leading axes of " << b.describe(v.id) << " " << v.shape()
                  << ", or there are no rows (" << extent << ")");
    return v;
  }
  return emit<scatter_op>(detail::indexing_options{0, extent, i.rank()}, values.at(), v, i);
}
/// x with values added to the rows that the indices name.
constexpr var scatter_add(operand x, operand indices, operand values) {
  const var v = x.in(*x.owner());
  return v + operand(scatter(values, indices, v.rank() ? v.extent(0) : 0), x.at());
}
/// x with the rows that the indices name replaced by values. Indices that occur twice add up.
constexpr var scatter_update(operand x, operand indices, operand values) {
  const var v = x.in(*x.owner());
  const int rows = v.rank() ? v.extent(0) : 0;
  const var put = scatter(values, indices, rows);
  if (v.b->failed()) return v;
  // Numbers of the values' own type might be too small to count with.
  const var each = constant(*v.b, 1, {dtype::i32, indices.in(*v.b).shape()});
  shape s{rows};
  while (s.rank < v.rank()) s.push_back(1);
  const var hit = reshape(scatter(each, indices, rows), s);
  return select(hit > 0, {put, x.at()}, x);
}

namespace detail {
/// Index tuples along the last axis -> their row-major positions in the leading axes of `s`.
constexpr var flat_index(var i, const shape& s) {
  const int n = i.extent(-1);
  const list<var> parts = unstack(i, -1);
  var flat = parts[0];
  for (int d = 1; d < n; ++d) flat = flat * s[d] + parts[std::size_t(d)];
  return flat;
}
}  // namespace detail

/// Index tuples [..., K] name places in the first K axes of the table [...] -> the elements or
/// slices there.
constexpr var gather_nd(operand table, operand indices) {
  builder& b = owner_of(table, indices);
  const var x = table.in(b);
  const var i = indices.in(b);
  const shape s = x.shape();
  if (!detail::are_indices("gather_nd", i, indices.at())) return x;
  const int k = i.rank() ? i.extent(-1) : 0;
  if (k < 1 || k > s.rank) {
    b.fail(text() << table.at() << ": gather_nd: the last axis of the indices " << i.shape()
                  << " must name 1 to " << s.rank << " axes of " << b.describe(x.id) << " " << s);
    return x;
  }
  shape merged{s.size(0, k)};
  for (int d = k; d < s.rank; ++d) merged.push_back(s[d]);
  return gather({reshape(x, merged), table.at()}, detail::flat_index(i, s));
}
/// Zeros of shape `target` to which values are added at the places that index tuples [..., K] name.
constexpr var scatter_nd(operand indices, operand values, const shape& target) {
  builder& b = owner_of(values, indices);
  const var i = indices.in(b);
  if (!detail::are_indices("scatter_nd", i, indices.at())) return values.in(b);
  const int k = i.rank() ? i.extent(-1) : 0;
  if (k < 1 || k > target.rank) {
    b.fail(text() << indices.at() << ": scatter_nd: the last axis of the indices " << i.shape()
                  << " must name 1 to " << target.rank << " axes of the target " << target);
    return values.in(b);
  }
  const var put = scatter(values, detail::flat_index(i, target), std::int32_t(target.size(0, k)));
  return reshape({put, values.at()}, target);
}

// ---- rules

namespace detail {
/// The table or the values have samples, the indices have none.
template <class Op>
constexpr var batch_table(node_ref n, span<const var> in) {
  auto o = n.as<indexing_options>();
  ++o.axis;
  return emit<Op>(o, std::source_location::current(), in[0], in[1]);
}
}  // namespace detail

constexpr void gather_op::batch(node_ref n, span<const var> in, unsigned batched, span<var> out) {
  const auto o = n.as<options>();
  if (batched == 1) out[0] = detail::batch_table<gather_op>(n, in);
  if (batched != 2) return;
  // The samples are the first axis of the indices, and so axis `o.axis` of the result.
  detail::indexing_options all = o;
  ++all.indices;
  const var y = emit<gather_op>(all, std::source_location::current(), in[0], in[1]);
  std::array<int, max_rank> order{};
  for (int i = 0; i < y.rank(); ++i)
    order[std::size_t(i)] = i == 0 ? o.axis : i <= o.axis ? i - 1 : i;
  out[0] =
      o.axis == 0 ? y : cella::transpose(y, span<const int>(order.data(), std::size_t(y.rank())));
}
constexpr void scatter_op::batch(node_ref n, span<const var> in, unsigned batched, span<var> out) {
  if (batched == 1) out[0] = detail::batch_table<scatter_op>(n, in);
}
constexpr var gather_op::transpose(node_ref n, int, var dy) {
  return emit<scatter_op>(n.as<options>(), std::source_location::current(), dy, n.operand(1));
}
constexpr var scatter_op::transpose(node_ref n, int, var dy) {
  return emit<gather_op>(n.as<options>(), std::source_location::current(), dy, n.operand(1));
}
constexpr var gather_elements_op::transpose(node_ref n, int, var dy) {
  return emit<scatter_elements_op>(
      scatter_elements_op::options{n.operand(0).shape(), n.as<options>().axis},
      std::source_location::current(), dy, n.operand(1));
}
constexpr var scatter_elements_op::transpose(node_ref n, int, var dy) {
  return emit<gather_elements_op>(detail::indexing_options{n.as<options>().axis, 0, 0},
                                  std::source_location::current(), dy, n.operand(1));
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void gather_op::compute(const attributes& o, span<const tensor_ref> in,
                               span<const tensor_ref> out) {
  detail::for_each_gathered(
      in[1], in[0].type.shape, o.as<options>().axis,
      [&](std::int64_t from, std::int64_t to) { detail::copy_or_nan(in[0], from, out[0], to); });
}
inline void scatter_op::compute(const attributes& o, span<const tensor_ref> in,
                                span<const tensor_ref> out) {
  detail::scatter_sums(in[0], out[0], [&](auto add) {
    detail::for_each_gathered(in[1], out[0].type.shape, o.as<options>().axis, add);
  });
}
inline void gather_elements_op::compute(const attributes& o, span<const tensor_ref> in,
                                        span<const tensor_ref> out) {
  detail::for_each_gathered_element(
      in[1], in[0].type.shape, o.as<options>().axis,
      [&](std::int64_t from, std::int64_t to) { detail::copy_or_nan(in[0], from, out[0], to); });
}
inline void scatter_elements_op::compute(const attributes& o, span<const tensor_ref> in,
                                         span<const tensor_ref> out) {
  detail::scatter_sums(in[0], out[0], [&](auto add) {
    detail::for_each_gathered_element(in[1], out[0].type.shape, o.as<options>().axis, add);
  });
}

#endif

}  // namespace cella
