// Making tensors larger: pad with zeros, a value, mirrored or repeated elements; tile.
#pragma once

#include <cella/ops/slicing.hpp>

namespace cella {

/// The whole tensor `multiples[i]` times one after the other along each axis i.
constexpr var tile(operand x, const axis_list& multiples) {
  builder& b = *x.owner();
  var v = x.in(b);
  shape s = v.shape();
  bool fits = multiples.size() == s.rank;
  for (int m : multiples) fits &= m > 0;
  if (!fits) {
    b.fail(text() << x.at() << ": tile: needs one positive multiple for each axis of "
                  << b.describe(v.id) << " " << s);
    return v;
  }
  // As few broadcasts as there is room for axes: each has a factor in front of an axis and of all
  // behind it that are left as they are.
  for (int i = s.rank; i > 0;) {
    shape one, many;
    std::int64_t run = s.size(i, s.rank);
    for (; i > 0 && one.rank + 2 < max_rank; --i) {
      run *= s[i - 1];
      if (multiples[i - 1] == 1) continue;
      one.insert(0, int(run));
      one.insert(0, 1);
      many.insert(0, int(run));
      many.insert(0, multiples[i - 1]);
      s[i - 1] *= multiples[i - 1];
      run = 1;
    }
    if (one.rank == 0) break;
    const int untouched = int(run * s.size(0, i));
    one.insert(0, untouched);
    many.insert(0, untouched);
    v = broadcast_to({reshape({v, x.at()}, one), x.at()}, many);
    v = reshape({v, x.at()}, s);
  }
  return v;
}

namespace detail {
/// True if there is one width >= 0 before and after each axis; `most` limits them per axis.
template <class Limit>
constexpr bool has_widths(operand x, std::string_view op, const axis_list& before,
                          const axis_list& after, std::string_view range, Limit most) {
  builder& b = *x.owner();
  const var v = x.in(b);
  bool fits = before.size() == v.rank() && after.size() == v.rank();
  for (int i = 0; fits && i < v.rank(); ++i) {
    const int n = most(v.extent(i));
    fits = before[i] >= 0 && after[i] >= 0 && before[i] <= n && after[i] <= n;
  }
  if (!fits) {
    b.fail(text() << x.at() << ": " << op << ": needs one width before and one after for each axis "
                  << "of " << b.describe(v.id) << " " << v.shape() << ", " << range);
  }
  return fits;
}

/// Joins what `edge(x, axis, width, at the end)` makes to both ends of each axis.
template <class Edge>
constexpr var join_edges(operand x, const axis_list& before, const axis_list& after, Edge edge) {
  var v = x.in(*x.owner());
  for (int i = 0; i < v.rank(); ++i) {
    list<var> parts;
    if (before[i]) parts.push_back(edge(v, i, before[i], false));
    parts.push_back(v);
    if (after[i]) parts.push_back(edge(v, i, after[i], true));
    v = concat(parts, i, x.at());
  }
  return v;
}
}  // namespace detail

/// `before` and `after` elements of `value` round each axis (one width per axis).
constexpr var pad(operand x, const axis_list& before, const axis_list& after, double value = 0) {
  builder& b = *x.owner();
  const var v = x.in(b);
  if (!detail::has_widths(x, "pad", before, after, "none negative", [](int) { return 1 << 30; }))
    return v;
  if (value != 0) {
    return detail::join_edges(x, before, after, [&](var y, int axis, int width, bool) {
      tensor_type t = y.type();
      t.shape[axis] = width;
      return constant(b, value, t);
    });
  }
  auto o = detail::whole(v.shape());
  for (int i = 0; i < v.rank(); ++i) {
    o.start[std::size_t(i)] = before[i];
    o.shape[i] += before[i] + after[i];
  }
  return emit<scatter_slice_op>(o, x.at(), v);
}
/// Pads with the elements mirrored at the first and the last one, which are not repeated.
constexpr var pad_reflect(operand x, const axis_list& before, const axis_list& after) {
  if (!detail::has_widths(x, "pad_reflect", before, after, "each less than the extent",
                          [](int n) { return n - 1; }))
    return x.in(*x.owner());
  return detail::join_edges(x, before, after, [&](var y, int axis, int width, bool end) {
    const int n = y.extent(axis);
    return end ? slice({y, x.at()}, axis, n - 2, n - 2 - width, -1)
               : slice({y, x.at()}, axis, width, 0, -1);
  });
}
/// Pads by repeating the first and the last element of each axis.
constexpr var pad_replicate(operand x, const axis_list& before, const axis_list& after) {
  if (!detail::has_widths(x, "pad_replicate", before, after, "none negative",
                          [](int) { return 1 << 30; }))
    return x.in(*x.owner());
  return detail::join_edges(x, before, after, [&](var y, int axis, int width, bool end) {
    const int n = y.extent(axis);
    const var edge = end ? slice({y, x.at()}, axis, n - 1, n) : slice({y, x.at()}, axis, 0, 1);
    shape s = y.shape();
    s[axis] = width;
    return broadcast_to({edge, x.at()}, s);
  });
}

}  // namespace cella
