// Factors of matrices and solutions of equations beside the reference computations of their
// operations, and multiplied back.
#include <doctest/doctest.h>

#include <cella/backend/cpu/matrices/decompositions.hpp>
#include <cella/ops/compute.hpp>
#include <cella/ops/linear_algebra.hpp>
#include <cmath>
#include <random>
#include <vector>

using namespace cella;
using namespace cella::cpu;

namespace {

template <class T>
using numbers = std::vector<T>;

/// A matrix of numbers in [-1, 1] whose diagonal has `more` on top.
template <class T>
numbers<T> random_matrix(int rows, int columns, double more = 0) {
  static std::mt19937 random(3);
  std::uniform_real_distribution<double> number(-1, 1);
  numbers<T> x;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) x.push_back(T(number(random) + (i == j ? more : 0)));
  return x;
}

struct results {
  numbers<double> first, second;
};

/// What Op makes of a square A, and of B if `columns` is not 0: by the kernel or by its own
/// computation.
template <class Op, class T>
results results_of(bool kernel, const attributes& o, int n, int columns, numbers<T> a,
                   numbers<T> b = {}) {
  list<tensor_type> in{{dtype_of<T>, {n, n}}}, types(2, {});
  if (columns) in.push_back({dtype_of<T>, {n, columns}});
  types[0] = columns ? in[1] : in[0];
  int count = 1;
  if constexpr (requires { Op::results(in, o, types); }) count = Op::results(in, o, types);
  numbers<T> first(std::size_t(types[0].size()), T(77));
  std::vector<std::byte> second(std::size_t(types[1].bytes()));
  if (kernel) {
    const decomposition_extents e{n, columns};
    std::vector<double> scratch(std::size_t(e.scratch_bytes() / 8 + 1));
    decomposition_of<Op, T>()(
        o, {e, a.data(), columns ? b.data() : nullptr, first.data(), second.data()},
        reinterpret_cast<std::byte*>(scratch.data()));
  } else {
    list<tensor_ref> x{{reinterpret_cast<std::byte*>(a.data()), in[0]}}, y;
    if (columns) x.push_back({reinterpret_cast<std::byte*>(b.data()), in[1]});
    y.push_back({reinterpret_cast<std::byte*>(first.data()), types[0]});
    if (count > 1) y.push_back({second.data(), types[1]});
    cella::compute(info_of<Op>, o, x, y);
  }
  results r{{first.begin(), first.end()}, {}};
  for (std::int64_t i = 0; count > 1 && i < types[1].size(); ++i)
    r.second.push_back(read_element({second.data(), types[1]}, i));
  return r;
}

/// The largest difference; infinite where only one is a number, or both are and differ in sign of
/// infinity.
double difference(const numbers<double>& a, const numbers<double>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double d = std::abs(a[i] - b[i]);
    most = std::isnan(d) ? INFINITY : std::max(most, d);
  }
  return most;
}
template <class Op, class T>
double difference_from_reference(int n, int columns, const numbers<T>& a, const numbers<T>& b = {},
                                 const attributes& o = {}) {
  const results x = results_of<Op>(true, o, n, columns, a, b);
  const results y = results_of<Op>(false, o, n, columns, a, b);
  return std::max(difference(x.first, y.first), difference(x.second, y.second));
}

template <class T>
constexpr double rounding = std::is_same_v<T, float> ? 2e-6 : 1e-11;

}  // namespace

TEST_CASE_TEMPLATE("decompositions: kernels agree with the operations' own computations", T, float,
                   double) {
  for (int n : {0, 1, 2, 7, 8, 9, 15, 16, 17, 24, 33, 64, 100, 131}) {
    CAPTURE(n);
    const auto any = random_matrix<T>(n, n), regular = random_matrix<T>(n, n, 0.7 * n + 1);
    CHECK(difference_from_reference<cholesky_op>(n, 0, regular) < rounding<T>);
    CHECK(difference_from_reference<cholesky_op>(n, 0, random_matrix<T>(n, n, -n)) == 0);
    CHECK(difference_from_reference<slogdet_op>(n, 0, any) < 100 * rounding<T>);
    CHECK(difference_from_reference<lu_op>(n, 0, any) < 100 * rounding<T>);
    for (int columns : {1, 3, 8, 17, 40}) {
      CAPTURE(columns);
      const auto right = random_matrix<T>(n, columns);
      CHECK(difference_from_reference<solve_op>(n, columns, regular, right) < rounding<T>);
      for (int form = 0; form < 8; ++form) {
        CAPTURE(form);
        const triangular_solve_op::options o{form & 1, form >> 1 & 1, form >> 2};
        const auto small = random_matrix<T>(n, n, 0.7 * n + 1);
        auto scaled = small;  // a diagonal of ones must outweigh the rest
        for (T& x : scaled) x /= T(n + 1);
        CHECK(difference_from_reference<triangular_solve_op>(n, columns, o.unit ? scaled : small,
                                                             right, o) < rounding<T>);
      }
    }
  }
}

TEST_CASE("solutions and factors multiply back to the matrix") {
  const int n = 75, columns = 5;
  const auto a = random_matrix<double>(n, n), b = random_matrix<double>(n, columns);
  const auto at = [](const numbers<double>& x, int i, int j, int width) {
    return x[std::size_t(i * width + j)];
  };
  const results x = results_of<solve_op>(true, {}, n, columns, a, b);
  const results f = results_of<lu_op>(true, {}, n, 0, a);
  double apart = 0, apart_from_rows = 0;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < columns; ++j) {
      double sum = 0;
      for (int k = 0; k < n; ++k) sum += at(a, i, k, n) * at(x.first, k, j, columns);
      apart = std::max(apart, std::abs(sum - at(b, i, j, columns)));
    }
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int k = 0; k <= std::min(i, j); ++k)
        sum += (k == i ? 1 : at(f.first, i, k, n)) * at(f.first, k, j, n);
      apart_from_rows =
          std::max(apart_from_rows, std::abs(sum - at(a, int(f.second[std::size_t(i)]), j, n)));
    }
  }
  CHECK(apart < 1e-12);
  CHECK(apart_from_rows < 1e-13);
}

TEST_CASE("determinants and factors of matrices with a row or a column of zeros") {
  const int n = 20;
  auto a = random_matrix<double>(n, n);
  for (int i = 0; i < n; ++i) a[std::size_t(i * n + 12)] = 0;
  const results d = results_of<slogdet_op>(true, {}, n, 0, a);
  CHECK(d.first[0] == 0);
  CHECK(d.second[0] == -INFINITY);
  auto b = random_matrix<double>(n, n, n);
  for (int j = 0; j < n; ++j) b[std::size_t(12 * n + j)] = 0;
  CHECK(std::isnan(results_of<cholesky_op>(true, {}, n, 0, b).first[0]));
}
