#include <doctest/doctest.h>

#include <cella/backend/cpu/loops/sums.hpp>
#include <cella/graph/random.hpp>
#include <cmath>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

/// Stores sums where the kernel says they belong.
template <class T>
struct store_sums {
  T* to;
  void operator()(vec<T> value, std::int64_t offset, int count) const {
    store_first(to + offset, count, value);
  }
};

/// Folds x [outer][rows][columns] along its middle axis, in units of any order and in one go; both
/// must be equal. The worst error is relative to the sum of the absolute values.
template <class T, class Fold>
double error_of_columns(std::int64_t outer, std::int64_t rows, std::int64_t columns) {
  using line = straight_line<terms<operand_at<0, access::moving>>, result<0>>;
  std::vector<T> x(std::size_t(outer * rows * columns));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = uniform<T>(7, i) * 2 - 1;
  std::vector<T> apart(std::size_t(outer * columns) + 2, T(9)), together(apart);
  const loop_nest<1> nest{3, {outer, rows, columns}, {{{rows * columns, columns, 1}}}, 2u};
  const addresses<T, 1, 1> a{{x.data()}, {}};
  const int units = sum_units<T, false>(nest);
  for (int u = units; u-- > 0;)
    sum_loops<T, 1, false, line, Fold>({u, u + 1}, nest, a, {}, store_sums<T>{apart.data()});
  sum_loops<T, 1, false, line, Fold>({0, units}, nest, a, {}, store_sums<T>{together.data()});
  CHECK(apart == together);
  double worst = 0;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t j = 0; j < columns; ++j) {
      double expected = std::is_same_v<Fold, adding> ? 0 : -2, size = 1;
      for (std::int64_t i = 0; i < rows; ++i) {
        const double v = x[std::size_t((o * rows + i) * columns + j)];
        expected = std::is_same_v<Fold, adding> ? expected + v : std::max(expected, v);
        size += std::abs(v);
      }
      const double error = std::abs(double(apart[std::size_t(o * columns + j)]) - expected) / size;
      worst = error <= worst ? worst : error;
    }
  }
  CHECK(apart[std::size_t(outer * columns)] == T(9));
  return worst;
}

}  // namespace

TEST_CASE_TEMPLATE("columns are summed, and searched for the largest", T, float, double) {
  for (const std::int64_t outer : {1, 3}) {
    for (const std::int64_t rows : {1, 2, 7, 8, 9, 16, 131}) {
      for (const std::int64_t columns : {1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 257, 2048, 2081}) {
        CAPTURE(outer);
        CAPTURE(rows);
        CAPTURE(columns);
        CHECK(error_of_columns<T, adding>(outer, rows, columns) <
              (std::is_same_v<T, float> ? 2e-6 : 1e-14));
        CHECK(error_of_columns<T, extreme<true>>(outer, rows, columns) == 0);
      }
    }
  }
}
