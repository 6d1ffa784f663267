// A tensor with some of its rows replaced or added to. Where the result takes the tensor's place,
// only those rows are touched: a cache that grows, a table of which a step trains few rows.
#pragma once

#include <cella/graph/once.hpp>
#include <cella/ops/indexing.hpp>

namespace cella {

/// x, indices, values -> x, but the slices along `axis` that the indices name are the values', or
/// have these added. The values have the axes of the indices in the place of `axis`. What an index
/// outside names is dropped; of equal indices the last one counts, or all of those that add.
struct put_rows_op : linear<put_rows_op>, computed_in_single, takes_complex {
  static constexpr std::string_view name = "put_rows";
  static constexpr std::string_view torch = "Tensor.index_copy";
  static constexpr std::string_view formula =
      "y = x, but y[..., index[i], ...] = values[..., i, ...]";
  static constexpr compute_class computes = compute_class::indexed;
  static constexpr int operations_per_point = 1;
  static constexpr unsigned linear_in = 5;
  struct options {
    std::int32_t axis{};
    std::int32_t adds{};
  };
  static constexpr int operands = 3;
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    const int rank = a.rank(), count = a.rank(1);
    bool fits = is_axis(o.axis, rank) && a.whole(1) && a.rank(2) == rank - 1 + count &&
                a.in[0].element == a.in[2].element && (o.adds == 0 || o.adds == 1);
    for (int d = 0; fits && d < a.rank(2); ++d) {
      const bool index = d >= o.axis && d < o.axis + count;
      fits = a.of(2)[d] == (index ? a.of(1)[d - o.axis] : a.of(0)[d < o.axis ? d : d - count + 1]);
    }
    return fits;
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return in[0];
  }
  /// Over the values; x and the result are walked where the data say.
  static constexpr iteration_space space(span<const tensor_type> in, const attributes& o) {
    const int axis = o.as<options>().axis, rank = in[1].rank();
    const shape& s = in[2].shape;
    iteration_space space(3);
    space.add(s);
    space.along_all(2, 0, s.rank);
    space.along_all(1, axis, rank);
    for (const int table : {0, 3}) {
      space.by_data(table, axis);
      for (int d = 0; d < s.rank; ++d) {
        if (d < axis || d >= axis + rank) space.along(table, d < axis ? d : d - rank + 1, d);
      }
    }
    return space;
  }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type>,
                                   const attributes& o) {
    return o.as<options>().adds ? interval{} : hull(in[0], in[2]);
  }
  static constexpr var transpose(node_ref n, int operand, var dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// x with the slices along `axis` that integer indices of any rank name replaced by the values,
/// which have the axes of the indices in the place of `axis`. An index outside is dropped. Indices
/// that occur twice: the last one counts, and derivatives are right for different ones only. A
/// state or parameter that is assigned this changes in these slices alone: the rest stays where it
/// is.
constexpr var put_rows(operand x, operand indices, operand values, int axis = 0) {
  builder& b = owner_of(x, values);
  const var t = x.in(b), i = indices.in(b), v = values.in(b);
  const int a = detail::find_axis("put_rows", t, axis, x.at());
  if (a < 0 || !detail::are_indices("put_rows", i, indices.at())) return t;
  shape part = t.shape();
  part.erase(a);
  bool fits = part.rank + i.rank() <= max_rank && v.element() == t.element();
  for (int d = 0; fits && d < i.rank(); ++d) part.insert(a + d, i.extent(d));
  if (!fits || v.shape() != part) {
    b.fail(text() << values.at() << ": put_rows: values of " << tensor_type{t.element(), part}
                  << " are needed for the indices " << i.shape() << " along axis " << a << " of "
                  << b.describe(t.id) << " " << t.shape() << ": " << b.describe(v.id) << " is "
                  << v.type());
    return t;
  }
  return emit<put_rows_op>(put_rows_op::options{a, 0}, x.at(), t, i, v);
}

constexpr var put_rows_op::transpose(node_ref n, int operand, var dy) {
  const auto o = n.as<options>();
  const var i = n.operand(1);
  const detail::indexing_options rows{o.axis, dy.extent(o.axis), i.rank()};
  const auto here = std::source_location::current();
  if (operand == 2) return emit<gather_op>(rows, here, dy, i);
  return o.adds ? dy : emit<put_rows_op>(o, here, dy, i, zeros_like(n.operand(2)));
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void put_rows_op::compute(const attributes& o, span<const tensor_ref> in,
                                 span<const tensor_ref> out) {
  const auto how = o.as<options>();
  const tensor_ref &x = in[0], &values = in[2], &y = out[0];
  for (std::int64_t i = 0; i < x.type.size(); ++i) copy_element(x, i, y, i);
  with_any_number(y.type.element, [&]<class N>() {
    detail::for_each_gathered(
        in[1], y.type.shape, how.axis, [&](std::int64_t to, std::int64_t from) {
          if (to < 0) return;
          if (!how.adds) return copy_element(values, from, y, to);
          write_number(y, to,
                       detail::wrapping_sum(read_number<N>(y, to), read_number<N>(values, from)));
        });
  });
}

#endif

}  // namespace cella
