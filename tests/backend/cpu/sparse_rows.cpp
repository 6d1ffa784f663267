// Products over the entries of sparse matrices beside plain loops, which compute in double
// precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <cella/backend/cpu/rows/sparse_rows.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

using namespace cella::cpu;
using cella::work_range;

namespace {

/// A matrix of which some rows are empty; its columns stand in any order, some twice, some outside;
/// the last entries belong to no row.
template <class T, class Index>
struct matrix {
  sparse_rows e;
  std::vector<Index> columns, splits{0};
  std::vector<T> values;

  matrix(std::int64_t rows, std::int64_t width, std::int64_t most) : e{rows, 11, 0, width} {
    std::mt19937 random(5);
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto n = i % 3 == 0 ? 0 : std::int64_t(random() % unsigned(most));
      splits.push_back(static_cast<Index>(splits.back() + n));
    }
    e.count = splits.back() + 3;
    for (std::int64_t k = 0; k < e.count; ++k)
      columns.push_back(static_cast<Index>(int(random() % 13) - 1));
    values = dense(e.count);
  }
  static std::vector<T> dense(std::int64_t count) {
    static std::mt19937 random(7);
    std::vector<T> x(std::size_t(count), T(0));
    for (T& v : x) v = T(int(random() % 2001) - 1000) / T(512);
    return x;
  }
  /// f(entry, row, column) for all that are in the matrix.
  template <class F>
  void each(F f) const {
    for (std::int64_t i = 0; i < e.rows; ++i)
      for (auto k = std::size_t(splits[std::size_t(i)]);
           k < std::size_t(splits[std::size_t(i) + 1]); ++k)
        if (columns[k] >= 0 && columns[k] < e.columns)
          f(k, std::size_t(i), std::size_t(columns[k]));
  }
};

template <class T>
double largest_difference(const std::vector<T>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < b.size(); ++i)
    most = std::max(most, std::abs(double(a[i]) - b[i]) / (1 + std::abs(b[i])));
  return a.size() == b.size() + 1 && a.back() == T(77) ? most : 1e9;
}
/// Shares the units of a kernel out in two calls, and looks that nothing behind is written.
template <class T, class F>
std::vector<T> in_two(std::int64_t size, int units, F f) {
  std::vector<T> y(std::size_t(size) + 1, T(77));
  f(work_range{0, units / 2}, y.data());
  f(work_range{units / 2, units}, y.data());
  return y;
}

template <class T, class Index>
void check_products(std::int64_t rows, std::int64_t width, std::int64_t most) {
  const matrix<T, Index> m(rows, width, most);
  const sparse_rows& e = m.e;
  const auto w = std::size_t(width);
  const std::vector<T> x = m.dense(e.columns * width), z = m.dense(rows * width);
  std::vector<double> product(std::size_t(rows) * w), transposed(std::size_t(e.columns) * w),
      entries(m.values.size());
  m.each([&](std::size_t k, std::size_t i, std::size_t c) {
    for (std::size_t j = 0; j < w; ++j) {
      product[i * w + j] += double(m.values[k]) * double(x[c * w + j]);
      transposed[c * w + j] += double(m.values[k]) * double(z[i * w + j]);
      entries[k] += double(z[i * w + j]) * double(x[c * w + j]);
    }
  });
  const double rounding = 500 * double(std::numeric_limits<T>::epsilon());
  CAPTURE(rows);
  CAPTURE(width);
  CHECK(largest_difference(in_two<T>(rows * width, sparse_product_units(e),
                                     [&](work_range units, T* y) {
                                       sparse_product(units, e, m.values.data(), m.columns.data(),
                                                      m.splits.data(), x.data(), y);
                                     }),
                           product) < rounding);
  CHECK(largest_difference(in_two<T>(e.columns * width, sparse_transposed_units(e),
                                     [&](work_range units, T* y) {
                                       sparse_transposed(units, e, m.values.data(),
                                                         m.columns.data(), m.splits.data(),
                                                         z.data(), y);
                                     }),
                           transposed) < rounding);
  CHECK(largest_difference(in_two<T>(e.count, sparse_entries_units(e),
                                     [&](work_range units, T* y) {
                                       sparse_entries(units, e, z.data(), m.columns.data(),
                                                      m.splits.data(), x.data(), y);
                                     }),
                           entries) < rounding);
}

}  // namespace

TEST_CASE_TEMPLATE(
    "sparse products agree with plain loops, empty rows and entries outside included", T, float,
    double) {
  for (const std::int64_t rows : {1, 2, 40, 700})
    for (const std::int64_t width : {1, 2, 7, 16, 64, 65, 150}) {
      check_products<T, std::int32_t>(rows, width, 30);
      check_products<T, std::int64_t>(rows, width, 5);
    }
  // A few rows that have most of the entries.
  check_products<T, std::int64_t>(6, 64, 4000);
}

TEST_CASE("splits that do not ascend read and write nothing outside") {
  const std::vector<std::int64_t> columns{0, 5, -1, 2}, splits{3, -7, 90, 2, 4};
  const std::vector<float> values{1, 2, 3, 4}, x(3 * 9, 1.0f), z(4 * 9, 1.0f);
  const sparse_rows e{4, 3, 4, 9};
  const auto product = in_two<float>(36, sparse_product_units(e), [&](work_range units, float* y) {
    sparse_product(units, e, values.data(), columns.data(), splits.data(), x.data(), y);
  });
  const auto turned =
      in_two<float>(27, sparse_transposed_units(e), [&](work_range units, float* y) {
        sparse_transposed(units, e, values.data(), columns.data(), splits.data(), z.data(), y);
      });
  const auto entries = in_two<float>(4, sparse_entries_units(e), [&](work_range units, float* y) {
    sparse_entries(units, e, z.data(), columns.data(), splits.data(), x.data(), y);
  });
  for (const auto* y : {&product, &turned, &entries}) CHECK(y->back() == 77);
}
