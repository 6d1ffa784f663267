// Products of sparse matrices whose entries lie row by row, and what their derivatives need: three
// sums over the same entries, in one pass each.
#pragma once

#include <algorithm>
#include <array>
#include <cella/ops/batching.hpp>
#include <cella/ops/complex.hpp>
#include <cella/ops/elementwise.hpp>
#include <cella/ops/indexed_places.hpp>

namespace cella {

namespace detail {

/// Operations on the entries of a matrix [M,N]: operands 1 and 2 are their columns [E] and the
/// splits of the rows [M+1], integers of one type.
template <class Op>
struct over_entries : opaque<Op>, computed_in_single, takes_complex {
  static constexpr compute_class computes = compute_class::indexed;
  static constexpr int operations_per_point = 2;
  static constexpr int operands = 4;
  static bool has_entries(const op_application& a) {
    return a.whole(1) && a.in[1].element == a.in[2].element && a.rank(1) == 1 && a.rank(2) == 1 &&
           a.of(2)[0] >= 1 && a.in[0].element == a.in[3].element && a.rank(3) >= 1;
  }
  /// Over the entries and what a row of `dense` has beside its first axis; tensor `entries` has an
  /// element for each entry, the two `tables` have rows where the data say. Entries stay together:
  /// the splits count all of them.
  static constexpr iteration_space entries_space(span<const tensor_type> in, int dense, int entries,
                                                 std::array<int, 2> tables) {
    iteration_space s(4);
    s.add(in[1][0], true);
    for (int d = 1; d < in[std::size_t(dense)].rank(); ++d) s.add(in[std::size_t(dense)][d]);
    for (int t : {1, entries}) s.along(t, 0, 0);
    s.by_data(2, 0);
    for (int t : tables) {
      s.by_data(t, 0);
      s.along_all(t, 1, in[std::size_t(dense)].rank() - 1, 1);
    }
    s.over = combination::sum;
    return s;
  }
};

/// Calls f(entry, row, column) for each entry whose column lies below `extent`.
template <class F>
void for_each_entry(const tensor_ref& columns, const tensor_ref& splits, std::int64_t extent, F f) {
  const std::int64_t count = columns.type.size();
  for (std::int64_t row = 0; row + 1 < splits.type.size(); ++row) {
    const std::int64_t last = std::min(count, read_position(splits, row + 1));
    for (std::int64_t e = std::max<std::int64_t>(0, read_position(splits, row)); e < last; ++e) {
      const std::int64_t column = read_position(columns, e);
      if (column >= 0 && column < extent) f(e, row, column);
    }
  }
}

}  // namespace detail

/// values [E], columns [E], splits [M+1], x [N,...] -> A x [M,...], of the matrix A with these
/// entries; or `transposed`, x [M,...] -> A^T x [N,...], N being the extent. An entry whose column
/// lies outside is none.
struct csr_product_op : detail::over_entries<csr_product_op> {
  static constexpr std::string_view name = "csr_product";
  static constexpr std::string_view numpy = "scipy.sparse.csr_matrix @";
  static constexpr std::string_view torch = "torch.sparse.mm";
  static constexpr std::string_view formula = "y = A x, or A^T x, A being given by its entries";
  struct options {
    std::int32_t extent{};  ///< rows of the result
    std::int32_t transposed{};
  };
  static bool fits(const op_application& a) {
    const auto o = a.as<options>();
    if (!has_entries(a) || a.of(0) != a.of(1) || (o.transposed != 0 && o.transposed != 1))
      return false;
    const int rows = a.of(2)[0] - 1;
    return o.transposed ? a.of(3)[0] == rows && o.extent >= 0 : o.extent == rows;
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes& o) {
    tensor_type t = in[3];
    t.shape[0] = o.as<options>().extent;
    return t;
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes&) {
    return entries_space(in, 3, 0, {3, 4});
  }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type> types,
                                   const attributes& o) {
    // Splits that do not ascend put an entry into several rows.
    const int rows = o.as<options>().transposed ? types[3][0] : 1;
    return double(types[1][0]) * double(rows) * hull(in[0] * in[3], {0, 0});
  }
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char> needed, span<var> dx);
  static constexpr void jvp(node_ref n, span<const var> dx, span<var> dy);
  /// Samples of x lie behind its rows, as more columns.
  static constexpr void batch(node_ref n, span<const var> in, unsigned batched, span<var> out) {
    if (batched != 8) return;
    out[0] = detail::swap_leading(emit<csr_product_op>(n.as<options>(),
                                                       std::source_location::current(), in[0],
                                                       in[1], in[2], detail::swap_leading(in[3])));
  }
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

/// a [M,...], columns [E], splits [M+1], b [N,...] -> [E], the elements of a b^T where there are
/// entries; 0 where an entry is none.
struct csr_entries_op : detail::over_entries<csr_entries_op> {
  static constexpr std::string_view name = "csr_entries";
  static constexpr std::string_view torch = "torch.sparse.sampled_addmm";
  static constexpr std::string_view formula =
      "y = the elements of a b^T at the entries of a matrix";
  static bool fits(const op_application& a) {
    return has_entries(a) && a.rank() == a.rank(3) && a.of(0)[0] == a.of(2)[0] - 1 &&
           a.of(0).size(1, a.rank()) == a.of(3).size(1, a.rank());
  }
  static constexpr tensor_type infer(span<const tensor_type> in, const attributes&) {
    return {in[0].element, in[1].shape};
  }
  static constexpr iteration_space space(span<const tensor_type> in, const attributes&) {
    return entries_space(in, 0, 4, {0, 3});
  }
  static constexpr interval bounds(span<const interval> in, span<const tensor_type> types,
                                   const attributes&) {
    return double(types[0].shape.size(1, types[0].rank())) * hull(in[0] * in[3], {0, 0});
  }
  static constexpr void vjp(node_ref n, span<const var> dy, span<const char> needed, span<var> dx);
  static constexpr void jvp(node_ref n, span<const var> dx, span<var> dy);
  static void compute(const attributes& o, span<const tensor_ref> in, span<const tensor_ref> out);
};

// ---- rules

namespace detail {
/// By entries of the node n, of which other values are given.
constexpr var csr_product(node_ref n, var values, var x, int extent, bool transposed) {
  return emit<csr_product_op>(csr_product_op::options{extent, transposed},
                              std::source_location::current(), values, n.operand(1), n.operand(2),
                              x);
}
constexpr var csr_entries(node_ref n, var a, var b) {
  return emit<csr_entries_op>({}, std::source_location::current(), a, n.operand(1), n.operand(2),
                              b);
}
/// The sum of what there is.
constexpr var sum_of_tangents(var x, var y) { return !x.b ? y : !y.b ? x : x + y; }
}  // namespace detail

constexpr void csr_product_op::vjp(node_ref n, span<const var> dy, span<const char> needed,
                                   span<var> dx) {
  const auto o = n.as<options>();
  const var x = n.operand(3);
  if (needed[0])
    dx[0] = o.transposed ? detail::csr_entries(n, conj(x), dy[0])
                         : detail::csr_entries(n, dy[0], conj(x));
  if (needed[3])
    dx[3] = detail::csr_product(n, conj(n.operand(0)), dy[0], x.extent(0), !o.transposed);
}
constexpr void csr_product_op::jvp(node_ref n, span<const var> dx, span<var> dy) {
  const auto o = n.as<options>();
  var by_values, by_x;
  if (dx[0].b) by_values = detail::csr_product(n, dx[0], n.operand(3), o.extent, o.transposed);
  if (dx[3].b) by_x = detail::csr_product(n, n.operand(0), dx[3], o.extent, o.transposed);
  dy[0] = detail::sum_of_tangents(by_values, by_x);
}
constexpr void csr_entries_op::vjp(node_ref n, span<const var> dy, span<const char> needed,
                                   span<var> dx) {
  const var a = n.operand(0), b = n.operand(3);
  if (needed[0]) dx[0] = detail::csr_product(n, dy[0], conj(b), a.extent(0), false);
  if (needed[3]) dx[3] = detail::csr_product(n, dy[0], conj(a), b.extent(0), true);
}
constexpr void csr_entries_op::jvp(node_ref n, span<const var> dx, span<var> dy) {
  var by_a, by_b;
  if (dx[0].b) by_a = detail::csr_entries(n, dx[0], n.operand(3));
  if (dx[3].b) by_b = detail::csr_entries(n, n.operand(0), dx[3]);
  dy[0] = detail::sum_of_tangents(by_a, by_b);
}

// ---- computation at run time, which programs that are linked with the kernels have there

#if CELLA_HAS_BODIES

inline void csr_product_op::compute(const attributes& o, span<const tensor_ref> in,
                                    span<const tensor_ref> out) {
  const bool transposed = o.as<options>().transposed != 0;
  const tensor_ref &x = in[3], &y = out[0];
  const std::int64_t width = x.type.shape.size(1, x.type.rank());
  with_any_number(y.type.element, [&]<class N>() {
    list<N> sums(std::size_t(y.type.size()), N{});
    detail::for_each_entry(
        in[1], in[2], transposed ? y.type[0] : x.type[0],
        [&](std::int64_t e, std::int64_t row, std::int64_t column) {
          const std::int64_t from = transposed ? row : column, to = transposed ? column : row;
          const N value = read_number<N>(in[0], e);
          for (std::int64_t j = 0; j < width; ++j) {
            N& sum = sums[std::size_t(to * width + j)];
            sum = detail::wrapping_sum(
                sum, detail::wrapping_product(value, read_number<N>(x, from * width + j)));
          }
        });
    for (std::size_t i = 0; i < sums.size(); ++i) write_number(y, std::int64_t(i), sums[i]);
  });
}
inline void csr_entries_op::compute(const attributes&, span<const tensor_ref> in,
                                    span<const tensor_ref> out) {
  const tensor_ref &a = in[0], &b = in[3];
  const std::int64_t width = a.type.shape.size(1, a.type.rank());
  fill(out[0], 0);
  with_any_number(a.type.element, [&]<class N>() {
    detail::for_each_entry(
        in[1], in[2], b.type[0], [&](std::int64_t e, std::int64_t row, std::int64_t column) {
          N sum{};
          for (std::int64_t j = 0; j < width; ++j)
            sum = detail::wrapping_sum(
                sum, detail::wrapping_product(read_number<N>(a, row * width + j),
                                              read_number<N>(b, column * width + j)));
          write_number(out[0], e, sum);
        });
  });
}

#endif

}  // namespace cella
