#include <doctest/doctest.h>

#include <cella/backend/cpu/loops/elementwise.hpp>
#include <cella/backend/cpu/loops/short_rows.hpp>
#include <cella/backend/cpu/loops/sums.hpp>
#include <cella/graph/random.hpp>
#include <cmath>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

template <class T>
struct store_sums {
  T* to;
  void operator()(vec<T> value, std::int64_t offset, int count) const {
    store_first(to + offset, count, value);
  }
};
/// Marks what nobody may write.
template <class T>
inline constexpr T untouched = T(9);

template <class T>
std::vector<T> some(int count) {
  std::vector<T> x(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = uniform<T>(7, i) * 2 - 1;
  return x;
}

/// x [Outer][Rows][Columns] times y, which has a row for each of the outer turns.
template <int Outer, int Rows, int Columns>
struct scaled {
  static constexpr loop_nest<2> nest{
      3, {Outer, Rows, Columns}, {{{Rows * Columns, Columns, 1}, {Columns, 0, 1}}}, 0};
  /// The first output is dense, the second every other row of another tensor.
  static constexpr output_strides<2> outputs{{{}, {2 * Rows * Columns, 2 * Columns, 1}}};
  template <class T>
  static void check() {
    static_assert(has_short_rows<T>(nest));
    using product = operation<mul_op, 0, 1>;
    using line = straight_line<terms<operand_at<0, access::moving>, operand_at<1, access::moving>,
                                     product, operation<add_op, 0, 2>>,
                               result<2, void>, result<3, void>>;
    const auto x = some<T>(Outer * Rows * Columns), y = some<T>(Outer * Columns);
    std::vector<T> dense(x.size() + 1, untouched<T>), part(2 * x.size() + 1, untouched<T>);
    const addresses<T, 2, 2> a{{x.data(), y.data()}, {dense.data(), part.data()}};
    for (int u = short_row_units(nest); u-- > 0;)
      elementwise_short_rows<T, nest, outputs, line>({u, u + 1}, a);
    int wrong = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::size_t row = i / Columns, column = i % Columns;
      const T expected = x[i] * y[row / Rows * Columns + column];
      wrong += dense[i] != expected;
      wrong += std::abs(part[2 * row * Columns + column] - (x[i] + expected)) > T(1e-6);
      wrong += part[(2 * row + 1) * Columns + column] != untouched<T>;
    }
    CHECK(wrong == 0);
    CHECK(dense.back() == untouched<T>);
    CHECK(part.back() == untouched<T>);
  }
};

/// x [A][B][C][Columns] folded along two axes, of which one may be the first.
template <unsigned Folded, int A, int B, int C, int Columns>
struct folded {
  static constexpr loop_nest<1> nest{
      4, {A, B, C, Columns}, {{{B * C * Columns, C* Columns, Columns, 1}}}, Folded};
  template <class T, class Fold>
  static void check() {
    static_assert(has_short_rows<T>(nest));
    using line = straight_line<terms<operand_at<0, access::moving>>, result<0>>;
    const auto x = some<T>(A * B * C * Columns);
    const std::int64_t sums = nest.turns(0, 4) / nest.size[std::countr_zero(Folded)] /
                              nest.size[std::size_t(std::bit_width(Folded)) - 1];
    std::vector<T> found(std::size_t(sums) + 1, untouched<T>);
    const addresses<T, 1, 1> a{{x.data()}, {}};
    for (int u = short_row_units(nest); u-- > 0;)
      sum_short_rows<T, nest, line, Fold>({u, u + 1}, a, store_sums<T>{found.data()});
    constexpr bool adds = std::is_same_v<Fold, adding>;
    std::vector<double> expected(std::size_t(sums), adds ? 0 : -2);
    for (int i = 0; i < int(x.size()); ++i) {
      std::array<int, 4> index{};
      int rest = i;
      for (std::size_t d = 4; d-- > 0; rest /= int(nest.size[d]))
        index[d] = rest % int(nest.size[d]);
      std::size_t at = 0;
      for (int d = 0; d < 4; ++d) {
        if (!nest.folds(d))
          at = at * std::size_t(nest.size[std::size_t(d)]) + std::size_t(index[std::size_t(d)]);
      }
      const double v = x[std::size_t(i)];
      expected[at] = adds ? expected[at] + v : std::max(expected[at], v);
    }
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      worst = std::max(worst, std::abs(found[i] - expected[i]));
    CHECK(worst < 1e-5);
    CHECK(found.back() == untouched<T>);
  }
};

}  // namespace

TEST_CASE_TEMPLATE("short rows are computed where they belong", T, float, double) {
  scaled<1, 1, 1>::template check<T>();
  scaled<2, 3, 4>::template check<T>();
  scaled<5, 7, lanes<T> - 1>::template check<T>();
  scaled<3, 2, lanes<T>>::template check<T>();
  scaled<4, 3, lanes<T> + 1>::template check<T>();
  scaled<3, 131, 2 * lanes<T>>::template check<T>();
}
TEST_CASE_TEMPLATE("and folded", T, float, double) {
  folded<0b0011, 3, 4, 5, 2>::template check<T, adding>();
  folded<0b0101, 3, 9, 8, lanes<T> + 1>::template check<T, adding>();
  folded<0b0110, 2, 3, 11, lanes<T>>::template check<T, adding>();
  folded<0b0110, 5, 2, 3, 1>::template check<T, extreme<true>>();
  folded<0b0101, 2, 7, 13, 2 * lanes<T> - 1>::template check<T, extreme<true>>();
}
TEST_CASE("long rows, sums of rows and few large units have other kernels") {
  CHECK_FALSE(has_short_rows<float>(loop_nest<1>{2, {8, 2 * lanes<float> + 1}, {}, 0}));
  CHECK_FALSE(has_short_rows<float>(loop_nest<1>{2, {8, 4}, {}, 2}));
  CHECK_FALSE(has_short_rows<float>(loop_nest<1>{3, {2, 1 << 20, 4}, {}, 0}));
  CHECK(has_short_rows<float>(loop_nest<1>{3, {64, 1 << 20, 4}, {}, 0}));
}
