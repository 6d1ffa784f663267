// Products of great depth in single precision, against double precision.
#include <doctest/doctest.h>

#include <cella/backend/cpu/gemm/gemm.hpp>
#include <cella/backend/host/buffer.hpp>
#include <cella/graph/random.hpp>
#include <cmath>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

/// The worst relative error of A B for A [rows][depth] and B [depth][columns], either of which may
/// lie transposed. All numbers lie in [low, low + 1).
double error_of_product(int rows, int columns, int depth, bool a_turned, bool b_turned, float low) {
  std::vector<float> a(std::size_t(rows) * std::size_t(depth));
  std::vector<float> b(std::size_t(columns) * std::size_t(depth));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = low + uniform<float>(1, i);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = low + uniform<float>(2, i);
  product<float> p{.rows = rows, .columns = columns, .depth = depth, .c_row = columns};
  p.a = a_turned ? matrix<float>{a.data(), 1, rows} : matrix<float>{a.data(), depth, 1};
  p.b = b_turned ? matrix<float>{b.data(), 1, depth} : matrix<float>{b.data(), columns, 1};
  const auto size = std::size_t(rows) * std::size_t(columns);
  std::vector<float> c(size, -1.f), added(size, 1.f);
  const aligned_buffer scratch(std::size_t(gemm_scratch(p)));
  gemm(p, store_to<float>{c.data()}, scratch.data());
  gemm(p, accumulate<float>{added.data()}, scratch.data());
  double worst = 0;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      double expected = 0;
      for (int k = 0; k < depth; ++k)
        expected += double(p.a.data[i * p.a.row + k * p.a.column]) *
                    double(p.b.data[k * p.b.row + j * p.b.column]);
      const auto at = std::size_t(i) * std::size_t(columns) + std::size_t(j);
      worst = std::max({worst, std::abs(double(c[at]) / expected - 1),
                        std::abs(double(added[at]) / (expected + 1) - 1)});
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("a dot product of ten million numbers keeps the digits of single precision") {
  CHECK(error_of_product(1, 1, 10'000'000, false, true, 1000) < 5e-7);
  CHECK(error_of_product(1, 1, 9'999'991, false, true, 0) < 5e-7);
}
TEST_CASE("products of great depth are as good, whatever kernel computes them") {
  for (const float low : {0.f, 1000.f}) {
    CAPTURE(low);
    CHECK(error_of_product(1, 3, 999'999, false, true, low) < 1e-6);    // dot products
    CHECK(error_of_product(19, 1, 100'001, false, false, low) < 1e-6);  // the same, of rows
    CHECK(error_of_product(1, 10, 300'007, false, false, low) < 1e-6);  // a sum of rows
    CHECK(error_of_product(14, 20, 100'003, true, false, low) < 1e-6);  // tiles, in place
    CHECK(error_of_product(300, 5, 20'001, true, false, low) < 1e-6);   // in place, exchanged
    CHECK(error_of_product(24, 40, 40'003, false, false, low) < 1e-6);  // packed
    CHECK(error_of_product(60, 32, 30'000, true, false, low) < 1e-6);   // the gradient of weights
  }
}
TEST_CASE("a sum of rows, or of none, at the ends of a chain") {
  for (const int depth : {1, 63, 64, 65, 1023, 1024, 1025, 2049}) {
    CAPTURE(depth);
    CHECK(error_of_product(1, 37, depth, false, false, 1) < 1e-6);
    CHECK(error_of_product(3, 37, depth, false, true, 1) < 2e-6);
    CHECK(error_of_product(17, 33, depth, false, false, 1) < 2e-6);
  }
  const std::vector<float> none(64);
  std::vector<float> c(37, 5.f);
  product<float> p{.rows = 1, .columns = 37, .depth = 0, .c_row = 37};
  p.a = {none.data(), 1, 1};
  p.b = {none.data(), 37, 1};
  gemm(p, store_to<float>{c.data()}, nullptr);
  CHECK(c == std::vector<float>(37, 0.f));
}
