// What follows from products in batches, whose rows and columns are not the last axes of the
// result.
#include <doctest/doctest.h>

#include <cella/ops/functions.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/runtime/executable.hpp>
#include <cella/transform/vmap.hpp>
#include <span>
#include <vector>

#include "support/compare.hpp"
#include "support/planned.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// Three matrices times one vector: rows are the last axis, and there is one column.
struct matrices_by_vector {
  constexpr var operator()(var w, var x, var u) const {
    return vmap([&](var m) { return matmul(m, x) + u; })(w);
  }
};
/// Rows are the first two axes in one run, of which the second has numbers of its own.
struct stacked_rows {
  constexpr var operator()(var x, var w, var u) const { return matmul(x, w) + reshape(u, {3, 1}); }
};
/// One matrix for all, and numbers for each of the batch.
struct numbers_of_the_batch {
  constexpr var operator()(var w, var x, var u) const {
    return matmul(w, x) * reshape(u, {3, 1, 1});
  }
};

/// Of the program and of the plan, given products that are 4 everywhere.
template <class Cell, int... A, int... B, int C>
void check_numbers(cella::tensor<dtype::f64, A...>, cella::tensor<dtype::f64, B...>,
                   cella::tensor<dtype::f64, C>, const std::vector<double>& wanted) {
  std::vector<double> u;
  for (int i = 0; i < C; ++i) u.push_back(10 * (i + 1));
  // What lies behind the numbers is not theirs.
  std::vector<double> in_memory = u;
  in_memory.resize(64, 1e6);
  const std::vector<valued_tensor> in{f64({A...}, reals((A * ...), 1.0)),
                                      f64({B...}, reals((B * ...), 1.0)), f64({C}, u)};
  using program = cella::program<Cell, false, dtype::f64, cella::tensor<dtype::f64, A...>,
                                 cella::tensor<dtype::f64, B...>, cella::tensor<dtype::f64, C>>;
  Cell cell;
  parameter_store store(cell, 1, dtype::f64);
  executable<program> run(store);
  run(in[0].values, in[1].values, std::span(in_memory).first(std::size_t(C)));
  check_close(run.template result<0>(), wanted, 0);

  const traced_function traced([](const vars& x) { return vars{Cell{}(x[0], x[1], x[2])}; },
                               {in[0].type, in[1].type, in[2].type});
  check_close(run_planned(traced.b.g, in)[0].values, wanted, 0);
}

}  // namespace

TEST_CASE("numbers beside a product in a batch are those of their own axis") {
  check_numbers<matrices_by_vector>(cella::tensor<dtype::f64, 3, 2, 4>{},
                                    cella::tensor<dtype::f64, 4>{}, cella::tensor<dtype::f64, 2>{},
                                    {14, 24, 14, 24, 14, 24});
  check_numbers<stacked_rows>(cella::tensor<dtype::f64, 2, 3, 4>{},
                              cella::tensor<dtype::f64, 4, 2>{}, cella::tensor<dtype::f64, 3>{},
                              {14, 14, 24, 24, 34, 34, 14, 14, 24, 24, 34, 34});
  check_numbers<numbers_of_the_batch>(
      cella::tensor<dtype::f64, 3, 2, 4>{}, cella::tensor<dtype::f64, 3, 4, 2>{},
      cella::tensor<dtype::f64, 3>{}, {40, 40, 40, 40, 80, 80, 80, 80, 120, 120, 120, 120});
}
