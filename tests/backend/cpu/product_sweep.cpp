// Matrix products of random shapes, from the operation to the kernel: every transposition, batches,
// vectors, all element types, against sums that xtensor takes in double precision.
#include <doctest/doctest.h>

#include <cella/backend/cpu/gemm/product_of.hpp>
#include <cella/backend/host/buffer.hpp>
#include <cella/graph/random.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>

#include "emulated_bf16.hpp"

using namespace cella;
using namespace cella::cpu;

namespace {

using reals = xt::xtensor<double, 3>;

/// Extents at which kernels change their ways: 1, primes, vectors and tiles, and their neighbours.
int random_extent(generator& random) {
  constexpr int L = lanes<float>;
  constexpr std::array extents{1,         2,  3,     5,  7,     13, L - 1, L,  L + 1, 2 * L - 1,
                               2 * L + 1, 29, 3 * L, 61, 4 * L, 97, 131,   14, 15,    5 * L + 1};
  return extents[random.below(std::uint32_t(extents.size()))];
}

/// Random numbers that S can hold: as an operand lies in memory, and as matrices [batch,i,j].
template <class S>
struct random_operand {
  tensor_type type;
  std::vector<S> data;
  reals matrices;

  random_operand(int rank, int batch, int rows, int columns, bool transposed, bool is_row,
                 generator& random) {
    shape s;
    if (rank == 3) s.push_back(batch);
    if (rank > 1 || !is_row) s.push_back(transposed ? columns : rows);
    if (rank > 1 || is_row) s.push_back(transposed ? rows : columns);
    type = {dtype_of<S>, s};
    using wide = std::conditional_t<std::is_same_v<S, double>, double, float>;
    for (std::int64_t i = 0; i < s.size(); ++i)
      data.push_back(S(static_cast<wide>(random.uniform(-1.0, 1.0))));
    matrices = reals::from_shape({std::size_t(batch), std::size_t(rows), std::size_t(columns)});
    for (int n = 0; n < batch; ++n) {
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < columns; ++j) {
          const int at =
              (transposed ? j * rows + i : i * columns + j) + (rank == 3 ? n * rows * columns : 0);
          matrices(n, i, j) = static_cast<double>(data[std::size_t(at)]);
        }
      }
    }
  }
};

template <class T, class S>
void check_product(std::uint64_t seed) {
  generator random(seed, 5);
  // A vector, a matrix, or (at most one of them shared) a batch of matrices.
  const auto rank_a = 1 + int(random.below(3));
  const auto rank_b = 1 + int(random.below(3));
  const int rows = rank_a == 1 ? 1 : random_extent(random);
  const int columns = rank_b == 1 ? 1 : random_extent(random);
  const int depth = random_extent(random);
  const int batch = rank_a == 3 || rank_b == 3 ? 1 + int(random.below(3)) : 1;
  const bool transpose_a = rank_a > 1 && random.below(2);
  const bool transpose_b = rank_b > 1 && random.below(2);
  const random_operand<S> a(rank_a, batch, rows, depth, transpose_a, true, random);
  const random_operand<S> b(rank_b, batch, depth, columns, transpose_b, false, random);
  INFO("seed ", seed, ": ", rows, " x ", depth, " x ", columns, ", ranks ", rank_a, " ", rank_b,
       ", transposed ", transpose_a, transpose_b, ", batch ", batch);

  builder g;
  const var x{&g, g.input(a.type)};
  const var y{&g, g.input(b.type)};
  const var z = matmul(x, y, transpose_a, transpose_b);
  const product_form form = form_of_product(g.g, z.id);
  REQUIRE(form.fits);
  const auto p = product_of<T>(form, a.data.data(), b.data.data());
  std::vector<T> found(std::size_t(z.shape().size()), std::numeric_limits<T>::quiet_NaN());
  const aligned_buffer scratch(std::size_t(gemm_scratch(p)));
  gemm(p, store_to<T>{found.data()}, scratch.data());

  const reals& left = a.matrices;
  const reals& right = b.matrices;
  reals wanted = xt::zeros<double>({left.shape(0), left.shape(1), right.shape(2)});
  for (int k = 0; k < depth; ++k)
    wanted += xt::view(left, xt::all(), xt::all(), k, xt::newaxis()) *
              xt::view(right, xt::all(), k, xt::newaxis(), xt::all());
  REQUIRE(wanted.size() == found.size());
  const double tolerance = std::numeric_limits<T>::epsilon() * (4 + 4 * std::sqrt(double(depth)));
  int wrong = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double expected = wanted.storage()[i];
    wrong += !(std::abs(double(found[i]) - expected) <= tolerance * (1 + std::abs(expected)));
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("products of random shapes, transposed or not, in every element type") {
  for (std::uint64_t seed = 0; seed < 250; ++seed) {
    check_product<float, float>(seed);
    check_product<double, double>(seed);
    check_product<float, float16>(seed);
    check_product<float, bfloat16>(seed);
    check_product<float, emulated_bf16>(seed);
  }
}

TEST_CASE("a row by a matrix that comes from memory, and that matrix by a column") {
  // Longer than one chain of sums, and with ends of whole vectors, rows and columns.
  constexpr int depth = 1111, columns = 301;
  generator random(3, 5);
  std::vector<float> x(depth), w(std::size_t(depth) * columns);
  for (float& v : x) v = float(random.uniform()) - 0.5f;
  for (float& v : w) v = float(random.uniform()) - 0.5f;
  REQUIRE(is_far<float>(std::int64_t(w.size())));
  std::vector<float> row(columns), column(columns);
  const product<float> by_row{.rows = 1,
                              .columns = columns,
                              .depth = depth,
                              .a = {x.data(), depth, 1},
                              .b = {w.data(), 1, depth},
                              .c_row = columns};
  const product<float> by_column{.rows = columns,
                                 .columns = 1,
                                 .depth = depth,
                                 .a = {w.data(), depth, 1},
                                 .b = {x.data(), 1, 1},
                                 .c_row = 1};
  const aligned_buffer scratch(
      std::size_t(std::max(gemm_scratch(by_row), gemm_scratch(by_column)) + 64));
  gemm(by_row, store_to<float>{row.data()}, scratch.data());
  gemm(by_column, store_to<float>{column.data()}, scratch.data());
  for (int j = 0; j < columns; ++j) {
    double wanted = 0;
    for (int k = 0; k < depth; ++k)
      wanted += double(x[std::size_t(k)]) * double(w[std::size_t(j * depth + k)]);
    CHECK(row[std::size_t(j)] == doctest::Approx(wanted).epsilon(1e-5).scale(10));
    CHECK(column[std::size_t(j)] == doctest::Approx(wanted).epsilon(1e-5).scale(10));
  }
}
