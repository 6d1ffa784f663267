// Places that indices name: the loops over them, and what reference computations do there.
#pragma once

#include <cella/ops/application.hpp>
#include <cella/ops/strided.hpp>
#include <limits>

namespace cella::detail {

// ---- loops

/// The loops over the rows that indices of `rank` axes, operand 1, name along an axis of tensor
/// `table`: tensor `rows`, of shape `s`, has one for each index.
constexpr iteration_space rows_space(const shape& s, int axis, int rank, int table, int rows) {
  iteration_space space(2);
  space.add(s);
  space.along_all(rows, 0, s.rank);
  space.along_all(1, axis, rank);
  space.by_data(table, axis);
  for (int d = 0; d < s.rank; ++d) {
    if (d < axis || d >= axis + rank) space.along(table, d < axis ? d : d - rank + 1, d);
  }
  return space;
}
/// The loops over elements, each of which has an index of its own along an axis of tensor `table`.
constexpr iteration_space picked_space(const shape& s, int axis, int table, int picked) {
  iteration_space space(2);
  space.add(s);
  space.along_all(picked, 0, s.rank);
  space.along_all(1, 0, s.rank);
  space.by_data(table, axis);
  for (int d = 0; d < s.rank; ++d) {
    if (d != axis) space.along(table, d, d);
  }
  return space;
}

/// Whether `part` has no more elements than `all` along each axis but this one.
inline bool lies_in(const shape& part, const shape& all, int axis) {
  bool inside = part.rank == all.rank && is_axis(axis, all.rank);
  for (int d = 0; inside && d < all.rank; ++d) inside = d == axis || part[d] <= all[d];
  return inside;
}

// ---- computation at run time

/// Calls f(table element or -1, value element) for each value of a gather along an axis.
template <class F>
void for_each_gathered(const tensor_ref& indices, const shape& table, int axis, F f) {
  const std::int64_t inner = table.size(axis + 1, table.rank);
  const std::int64_t count = indices.type.size();
  for (std::int64_t outer = 0; outer < table.size(0, axis); ++outer) {
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t i = read_position(indices, k);
      const bool inside = i >= 0 && i < table[axis];
      for (std::int64_t q = 0; q < inner; ++q) {
        f(inside ? (outer * table[axis] + i) * inner + q : -1, (outer * count + k) * inner + q);
      }
    }
  }
}
/// The same for a gather whose indices have the values' shape.
template <class F>
void for_each_gathered_element(const tensor_ref& indices, const shape& table, int axis, F f) {
  const auto stride = row_major_strides(table);
  for_each_index(indices.type.shape, [&](std::int64_t k, const multi_index& at) {
    const std::int64_t i = read_position(indices, k);
    std::int64_t p = 0;
    for (int d = 0; d < table.rank; ++d)
      p += stride[std::size_t(d)] * (d == axis ? i : at[std::size_t(d)]);
    f(i >= 0 && i < table[axis] ? p : -1, k);
  });
}
/// y[to] = x[from]; NaN (0 among integers) if there is no such element.
inline void copy_or_nan(const tensor_ref& x, std::int64_t from, const tensor_ref& y,
                        std::int64_t to) {
  if (from >= 0)
    copy_element(x, from, y, to);
  else
    write_element(y, to, std::numeric_limits<double>::quiet_NaN());
}
/// y = 0, then y[to] += x[from] for each pair that `gather` calls its argument with; summed as
/// reference computations sum: in double precision, and integers modulo 2^n.
template <class Gather>
void scatter_sums(const tensor_ref& x, const tensor_ref& y, Gather gather) {
  with_any_number(y.type.element, [&]<class N>() {
    list<N> sums(std::size_t(y.type.size()), N{});
    gather([&](std::int64_t to, std::int64_t from) {
      if (to >= 0)
        sums[std::size_t(to)] = wrapping_sum(sums[std::size_t(to)], read_number<N>(x, from));
    });
    for (std::size_t i = 0; i < sums.size(); ++i) write_number(y, std::int64_t(i), sums[i]);
  });
}

}  // namespace cella::detail
