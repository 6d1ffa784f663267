// Matrices most of whose elements are 0, as structs of tensors: the elements that are not, and
// where they stand. As everywhere extents are fixed: a matrix has a number of entries, of which
// those whose place lies outside are none. Functions are made of gathers and scatters, and so are
// their derivatives, by the values and by what they are multiplied with; products of matrices whose
// entries lie row by row are operations of their own.
#pragma once

#include <cella/ops/cumulative.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/reduction.hpp>
#include <cella/ops/segments.hpp>
#include <cella/ops/sorting.hpp>
#include <cella/ops/sparse_product.hpp>
#include <concepts>

namespace cella {

/// Entries in any order, each with its row and column (SciPy's coo_matrix): three vectors of one
/// length, the places integers. Of entries with one place the sum counts; one whose row or column
/// lies outside is none.
struct coo_matrix {
  var values;
  var rows;
  var columns;
  shape extents;  ///< of the matrix
};

/// Entries row by row (SciPy's csr_matrix): those of row i are entries row_splits[i] to
/// row_splits[i + 1] - 1. What lies behind the last split is none.
struct csr_matrix {
  var values;
  var columns;
  var row_splits;  ///< one more than there are rows, ascending from 0
  shape extents;   ///< of the matrix
};

namespace detail {
constexpr bool is_vector_of(var x, int length) { return x.rank() == 1 && x.extent(0) == length; }
/// A fault unless values and places are vectors of one length, and the matrix has rows and columns.
constexpr bool fits_entries(std::string_view op, var values, var places, const shape& extents,
                            std::source_location at) {
  if (!are_indices(op, places, at)) return false;
  if (values.rank() == 1 && is_vector_of(places, values.extent(0)) && extents.rank == 2 &&
      extents[0] > 0 && extents[1] > 0)
    return true;
  values.b->fail(text() << at << ": " << op << ": the values " << values.shape()
                        << " and their places " << places.shape()
                        << " are not vectors of one length, or the matrix " << extents
                        << " has no rows and columns");
  return false;
}
/// Known places as a constant, or a fault that names the first that does not lie in `extent`.
constexpr var known_places(std::string_view op, std::string_view what, var values,
                           span<const std::int64_t> places, int extent, std::source_location at) {
  builder& b = *values.b;
  if (places.size() == 0) b.fail(text() << at << ": " << op << ": there are no entries");
  for (std::size_t k = 0; k < places.size() && !b.failed(); ++k)
    if (places[k] < 0 || places[k] >= extent)
      b.fail(text() << at << ": " << op << ": entry " << int(k) << " names " << what << " "
                    << places[k] << " of " << extent);
  return b.failed() ? values : constant(values, places, {std::int32_t(places.size())});
}
/// An array of the host, as opposed to a var.
template <class T>
concept list_of_places = std::convertible_to<const T&, span<const std::int64_t>>;

}  // namespace detail

/// A matrix of these entries, whose places are vars: they are not looked at.
constexpr coo_matrix coo(operand values, operand rows, operand columns, const shape& extents) {
  builder& b = owner_of(values, rows);
  const coo_matrix m{values.in(b), rows.in(b), columns.in(b), extents};
  if (detail::fits_entries("coo", m.values, m.rows, extents, values.at()))
    (void)detail::fits_entries("coo", m.values, m.columns, extents, values.at());
  return m;
}
/// The same of places that are known, from a file or a program: an entry outside of the matrix is a
/// fault that names it.
template <detail::list_of_places Rows, detail::list_of_places Columns>
constexpr coo_matrix coo(operand values, const Rows& rows, const Columns& columns,
                         const shape& extents) {
  builder& b = *values.owner();
  const var v = values.in(b);
  const int m = extents.rank == 2 ? extents[0] : 0, n = extents.rank == 2 ? extents[1] : 0;
  const var i = detail::known_places("coo", "row", v, rows, m, values.at());
  const var j = detail::known_places("coo", "column", v, columns, n, values.at());
  return b.failed() ? coo_matrix{v, i, j, extents} : coo(values, i, j, extents);
}
/// A matrix of these entries, row by row; places are not looked at.
constexpr csr_matrix csr(operand values, operand columns, operand row_splits,
                         const shape& extents) {
  builder& b = owner_of(values, columns);
  const csr_matrix m{values.in(b), columns.in(b), row_splits.in(b), extents};
  if (!detail::fits_entries("csr", m.values, m.columns, extents, values.at()) ||
      !detail::are_indices("csr", m.row_splits, row_splits.at()))
    return m;
  if (!detail::is_vector_of(m.row_splits, extents[0] + 1))
    b.fail(text() << row_splits.at() << ": csr: the row splits " << m.row_splits.shape()
                  << " are not one more than the " << extents[0] << " rows");
  return m;
}
/// The same of places that are known: a column outside, and splits that do not ascend from 0 to at
/// most the number of entries, are faults.
template <detail::list_of_places Columns, detail::list_of_places Splits>
constexpr csr_matrix csr(operand values, const Columns& columns, const Splits& splits_of_rows,
                         const shape& extents) {
  const span<const std::int64_t> row_splits = splits_of_rows;
  builder& b = *values.owner();
  const var v = values.in(b);
  const int n = extents.rank == 2 ? extents[1] : 0;
  const var j = detail::known_places("csr", "column", v, columns, n, values.at());
  const auto count = std::int64_t(columns.size());
  for (std::size_t k = 0; k < row_splits.size() && !b.failed(); ++k)
    if (row_splits[k] < (k ? row_splits[k - 1] : 0) || row_splits[k] > (k ? count : 0))
      b.fail(text() << values.at() << ": csr: row splits ascend from 0 to at most " << int(count)
                    << ", the number of entries, but split " << int(k) << " is " << row_splits[k]);
  if (row_splits.size() == 0) b.fail(text() << values.at() << ": csr: there are no row splits");
  if (b.failed()) return {v, j, j, extents};
  const var splits = constant(v, row_splits, {std::int32_t(row_splits.size())});
  return csr(values, j, splits, extents);
}

// ---- from one form to another

namespace detail {
/// The entries with places inside; those outside become zeros at the first place, so that no gather
/// reads what is not there.
constexpr coo_matrix with_places_inside(const coo_matrix& m) {
  const var i = cast(m.rows, dtype::i64), j = cast(m.columns, dtype::i64);
  const var inside =
      logical_and(logical_and(i >= 0, i < m.extents[0]), logical_and(j >= 0, j < m.extents[1]));
  const var none = zeros_like(i);
  return {select(inside, m.values, zeros_like(m.values)), select(inside, i, none),
          select(inside, j, none), m.extents};
}
}  // namespace detail

/// The same entries with the row of each; what is none gets the row behind the last one.
constexpr coo_matrix to_coo(const csr_matrix& m) {
  const int n = m.values.extent(0), rows = m.extents[0];
  const var ends = cast(slice(m.row_splits, 0, 1, rows + 1), dtype::i64);
  // Each row that ends before an entry adds one.
  const var ended = scatter(ones_like(ends), ends, n + 1);
  return {m.values, slice(cumsum(ended, 0), 0, 0, n), m.columns, m.extents};
}
/// The same entries, row by row; what is none is put behind.
constexpr csr_matrix to_csr(const coo_matrix& m) {
  const int rows = m.extents[0];
  const var i = cast(m.rows, dtype::i64), j = cast(m.columns, dtype::i64);
  const var inside =
      logical_and(logical_and(i >= 0, i < rows), logical_and(j >= 0, j < m.extents[1]));
  const var row = select(inside, i, full_like(i, rows));
  const var order = argsort(row, 0);
  const var counts = scatter(ones_like(row), row, rows);
  const var splits = concat({constant(*row.b, 0, {dtype::i64, {1}}), cumsum(counts, 0)}, 0);
  return {gather(m.values, order), gather(j, order), splits, m.extents};
}
/// All elements.
constexpr var to_dense(const coo_matrix& m) {
  const coo_matrix e = detail::with_places_inside(m);
  const var place = e.rows * m.extents[1] + e.columns;
  return reshape(scatter(e.values, place, std::int32_t(m.extents.size())), m.extents);
}
constexpr var to_dense(const csr_matrix& m) { return to_dense(to_coo(m)); }
/// The elements of a matrix that are not 0, row by row, up to `most` of them, which is how many
/// entries there are: what is left of these is none. Elements beyond are left out; how many there
/// are `sum(cast(x != 0, dtype::i64))` tells. The derivative goes to the elements that are entries.
constexpr coo_matrix coo_from_dense(operand x, int most) {
  const var v = x.in(*x.owner());
  builder& b = *v.b;
  if (v.rank() != 2 || most < 1 || v.shape().size() == 0) {
    b.fail(text() << x.at() << ": coo_from_dense: needs a matrix and an entry at least: "
                  << b.describe(v.id) << " is " << v.type() << ", for " << most << " entries");
    return {v, v, v, v.shape()};
  }
  const auto size = std::int32_t(v.shape().size());
  const var flat = reshape(v, {size});
  const var filled = not_equal(flat, zeros_like(flat));
  const var count = cast(filled, dtype::i64);
  const var entry = select(filled, cumsum(count, 0) - 1, full_like(count, -1));
  // The place of each entry and one more, so that 0 is none.
  const var place = scatter(iota(b, {dtype::i64, {size}}, 0) + 1, entry, most) - 1;
  const var is_entry = place >= 0;
  const var at = select(is_entry, place, zeros_like(place));
  const var values = gather(flat, at);
  const var none = full_like(place, -1);
  const var row = floor_div(at, v.extent(1));
  return {select(is_entry, values, zeros_like(values)), select(is_entry, row, none),
          select(is_entry, at - row * v.extent(1), none), v.shape()};
}
/// The same as rows that lie one behind the other.
constexpr csr_matrix csr_from_dense(operand x, int most) { return to_csr(coo_from_dense(x, most)); }

// ---- functions of matrices

/// Rows and columns changed.
constexpr coo_matrix transpose(const coo_matrix& m) {
  return {m.values, m.columns, m.rows, {m.extents[1], m.extents[0]}};
}
constexpr csr_matrix transpose(const csr_matrix& m) { return to_csr(transpose(to_coo(m))); }

namespace detail {
/// A fault unless a matrix of these extents and values has a product with x.
constexpr bool has_product(const shape& extents, var values, var x, std::source_location at) {
  if (x.rank() >= 1 && x.rank() <= 2 && x.extent(0) == extents[1] &&
      x.element() == values.element())
    return true;
  x.b->fail(text() << at << ": matmul: a sparse matrix " << extents << " of "
                   << name(values.element()) << " has no product with " << x.b->describe(x.id)
                   << ", which is " << x.type());
  return false;
}
}  // namespace detail

/// Product of a sparse matrix [M,N] and a dense one [N,K], or a vector [N].
constexpr var matmul(const coo_matrix& m, operand right) {
  const var x = right.in(*m.values.b);
  if (!detail::has_product(m.extents, m.values, x, right.at())) return x;
  const coo_matrix e = detail::with_places_inside(m);
  const var rows = gather(x, e.columns);
  return scatter(rows * detail::beside_rows(e.values, rows), e.rows, m.extents[0]);
}
constexpr var matmul(const csr_matrix& m, operand right) {
  const var x = right.in(*m.values.b);
  if (!detail::has_product(m.extents, m.values, x, right.at())) return x;
  const bool same = m.columns.element() == m.row_splits.element();
  const auto place = [same](var v) { return same ? v : cast(v, dtype::i64); };
  return emit<csr_product_op>(csr_product_op::options{m.extents[0], 0}, right.at(), m.values,
                              place(m.columns), place(m.row_splits), x);
}

/// The sum of all elements.
constexpr var sum(const coo_matrix& m) { return sum(detail::with_places_inside(m).values); }
constexpr var sum(const csr_matrix& m) { return sum(to_coo(m)); }
/// The sums along axis 0, one for each column, or 1, one for each row.
constexpr var sum_along(const coo_matrix& m, int axis) {
  builder& b = *m.values.b;
  const int along = axis < 0 ? axis + 2 : axis;
  if (along != 0 && along != 1) {
    b.fail(text() << "sum_along: a sparse matrix has no axis " << axis);
    return m.values;
  }
  const coo_matrix e = detail::with_places_inside(m);
  return scatter(e.values, along == 0 ? e.columns : e.rows, m.extents[1 - along]);
}
constexpr var sum_along(const csr_matrix& m, int axis) { return sum_along(to_coo(m), axis); }

/// The sum of two matrices: the entries of both.
constexpr coo_matrix add(const coo_matrix& x, const coo_matrix& y) {
  if (x.extents != y.extents || x.values.element() != y.values.element()) {
    x.values.b->fail(text() << "add: the sparse matrices " << x.extents << " of "
                            << name(x.values.element()) << " and " << y.extents << " of "
                            << name(y.values.element()) << " differ");
    return x;
  }
  const auto both = [](var a, var b) {
    return concat({cast(a, dtype::i64), cast(b, dtype::i64)}, 0);
  };
  return {concat({x.values, y.values}, 0), both(x.rows, y.rows), both(x.columns, y.columns),
          x.extents};
}
constexpr csr_matrix add(const csr_matrix& x, const csr_matrix& y) {
  return to_csr(add(to_coo(x), to_coo(y)));
}

}  // namespace cella
