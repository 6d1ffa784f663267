// Recognizes matrix products in contractions.
#pragma once

#include <cella/ops/matmul.hpp>
#include <utility>

namespace cella {

/// A matrix product in terms of strides, if each of its four kinds of factors (rows, columns,
/// summed, batch) is one evenly spaced run in every tensor that has it. The kernel writes rows: a
/// result whose columns lie apart is computed as the transposed product, `exchanged`. Leading
/// factors of the result that keep rows or columns from being one run count as batch, in which the
/// operand that lacks them is the same matrix for all. Batches may be two runs: samples and heads,
/// where these lie side by side at each place.
struct product_form {
  bool fits{};
  bool exchanged{};
  std::int64_t rows = 1, columns = 1, depth = 1, batch = 1, outer = 1;
  std::int64_t a_row{}, a_depth{}, a_batch{};
  std::int64_t b_depth{}, b_column{}, b_batch{};
  std::int64_t c_row{}, c_column{}, c_batch{};
  std::int64_t a_outer{}, b_outer{}, c_outer{};
};
constexpr product_form form_of_product(const matmul_op::options& o,
                                       const std::array<tensor_type, 3>& types) {
  const std::array<iteration_space::axes, 3> axes{o.a, o.b, o.result};
  // stride[t][f]: elements between neighbours along factor f in tensor t; 0: the tensor lacks f.
  std::array<std::array<std::int64_t, 24>, 3> stride{};
  std::array<std::int64_t, 24> extent{};
  std::array<std::array<bool, 24>, 3> has{};
  for (std::size_t t = 0; t < 3; ++t) {
    const auto own = row_major_strides(types[t].shape);
    for (int d = 0; d < types[t].rank(); ++d) {
      const auto f = std::size_t(axes[t][std::size_t(d)]);
      stride[t][f] = own[std::size_t(d)];
      extent[f] = types[t][d];
      has[t][f] = true;
    }
  }
  product_form p;
  // Collects the factors that lie in exactly the given tensors, in the order of tensor `by` from
  // axis `end` back, as one loop, up to one through which a tensor does not step evenly: returns
  // how many axes are left.
  auto collect_run = [&](bool in_a, bool in_b, bool in_c, std::size_t by, int end,
                         std::int64_t& size, std::array<std::int64_t*, 3> step) {
    bool first = true;
    for (int d = end; d-- > 0;) {
      const auto f = std::size_t(axes[by][std::size_t(d)]);
      if (has[0][f] != in_a || has[1][f] != in_b || has[2][f] != in_c || extent[f] == 1) continue;
      for (std::size_t t = 0; t < 3; ++t) {
        if (!step[t]) continue;
        if (first)
          *step[t] = stride[t][f];
        else if (stride[t][f] != *step[t] * size)
          return d + 1;
      }
      size *= extent[f];
      first = false;
    }
    return 0;
  };
  auto collect = [&](bool in_a, bool in_b, bool in_c, std::size_t by, std::int64_t& size,
                     std::array<std::int64_t*, 3> step) {
    return collect_run(in_a, in_b, in_c, by, types[by].rank(), size, step) == 0;
  };
  auto collect_batches = [&] {
    const int left = collect_run(true, true, true, 2, types[2].rank(), p.batch,
                                 {&p.a_batch, &p.b_batch, &p.c_batch});
    return left == 0 || collect_run(true, true, true, 2, left, p.outer,
                                    {&p.a_outer, &p.b_outer, &p.c_outer}) == 0;
  };
  const auto collect_all = [&] {
    p = {};
    return collect(true, false, true, 2, p.rows, {&p.a_row, nullptr, &p.c_row}) &&
           collect(false, true, true, 2, p.columns, {nullptr, &p.b_column, &p.c_column}) &&
           collect(true, true, false, 0, p.depth, {&p.a_depth, &p.b_depth, nullptr}) &&
           collect_batches();
  };
  p.fits = collect_all();
  for (int d = 0; !p.fits && d < types[2].rank(); ++d) {
    const auto lead = std::size_t(o.result[std::size_t(d)]);
    has[0][lead] = has[1][lead] = true;
    p.fits = collect_all();
  }
  // A column from a matrix whose columns lie side by side is a row times that matrix.
  const bool as_row =
      p.columns == 1 && p.rows > 1 && p.c_row == 1 && p.a_row == 1 && p.a_depth != 1 && p.depth > 1;
  if (p.fits && ((p.c_column != 1 && p.columns > 1) || as_row)) {
    p.exchanged = true;
    p.fits = p.c_row == 1 || p.rows == 1;
    std::swap(p.rows, p.columns);
    std::swap(p.a_row, p.b_column);
    std::swap(p.a_depth, p.b_depth);
    std::swap(p.a_batch, p.b_batch);
    std::swap(p.a_outer, p.b_outer);
    std::swap(p.c_row, p.c_column);
  }
  return p;
}

template <class Graph>
constexpr product_form form_of_product(const Graph& g, node_id n) {
  return form_of_product(g.nodes[std::size_t(n)].attributes.template as<matmul_op::options>(),
                         {g.type(g.operand(n, 0)), g.type(g.operand(n, 1)), g.type(n)});
}

/// How the operands of a product lie along the axes of its result, and along the one axis that it
/// sums over.
struct walk_of_product {
  bool steps{};  ///< whether there is one such axis
  std::int64_t depth = 1;
  std::array<std::int64_t, 2> along{};                            ///< elements between summands
  std::array<std::array<std::int64_t, max_rank>, 2> of_result{};  ///< between the result's elements
  std::int64_t columns = 1;                                       ///< the result's last axis
  std::array<std::int64_t, 2> column_step{};
  /// Of the operand that moves along the columns: elements that are read again and again.
  std::int64_t repeated{};

  constexpr walk_of_product(const graph& g, node_id n) {
    const auto o = g.nodes[std::size_t(n)].attributes.as<matmul_op::options>();
    const shape result = g.type(n).shape;
    std::array<int, 2> summed{};
    for (std::size_t k = 0; k < 2; ++k) {
      const shape own = g.type(g.operand(n, int(k))).shape;
      const auto strides = row_major_strides(own);
      const auto& walk = k == 0 ? o.a : o.b;
      for (std::size_t d = 0; d < std::size_t(own.rank); ++d) {
        if (own[int(d)] == 1) continue;
        std::size_t axis = 0;
        while (axis < std::size_t(result.rank) && o.result[axis] != walk[d]) ++axis;
        if (axis < std::size_t(result.rank)) {
          of_result[k][axis] = strides[d];
        } else {
          ++summed[k];
          along[k] = strides[d];
          depth = own[int(d)];
        }
      }
    }
    steps = summed[0] == 1 && summed[1] == 1 && result.rank > 0;
    if (!steps) return;
    const auto last = std::size_t(result.rank - 1);
    columns = result[int(last)];
    column_step = {of_result[0][last], of_result[1][last]};
    const auto& moving = of_result[column_step[1] != 0];
    std::int64_t inner = depth;
    for (int d = result.rank - 1; d >= 0; inner *= result[d--]) {
      if (moving[std::size_t(d)] == 0 && result[d] > 1) repeated = inner;
    }
  }
};

/// Whether the kernel's right matrix is worth packing once for many products: one of some size, and
/// enough rows for it.
constexpr bool worth_packing(const product_form& f, std::int64_t element_size) {
  return f.fits && f.batch == 1 && f.rows >= 16 &&
         f.columns * f.depth * element_size > std::int64_t{32} * 1024;
}

}  // namespace cella
