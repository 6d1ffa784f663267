// Factors of matrices and solutions of equations beside the reference computations of their
// operations, and multiplied back.
#include <doctest/doctest.h>

#include <array>
#include <cella/backend/cpu/matrices/decompositions.hpp>
#include <cella/ops/compute.hpp>
#include <cella/ops/linear_algebra.hpp>
#include <cmath>
#include <numbers>
#include <random>
#include <string>
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

using results = std::array<numbers<double>, 3>;

/// What Op makes of A [rows,n], and of B if `columns` is not 0: by the kernel or by its own
/// computation.
template <class Op, class T>
results results_of(bool kernel, const attributes& o, const decomposition_extents& e, numbers<T> a,
                   numbers<T> b = {}) {
  list<tensor_type> in{{dtype_of<T>, {e.rows, e.n}}}, types(3, {});
  if (e.columns) in.push_back({dtype_of<T>, {e.n, e.columns}});
  types[0] = e.columns ? in[1] : in[0];
  int count = 1;
  if constexpr (requires { Op::results(in, o, types); }) count = Op::results(in, o, types);
  std::array<std::vector<std::byte>, 3> memory;
  list<tensor_ref> y;
  for (std::size_t k = 0; k < std::size_t(count); ++k) {
    memory[k].resize(std::size_t(types[k].bytes()), std::byte{77});
    y.push_back({memory[k].data(), types[k]});
  }
  if (kernel) {
    const auto f = decomposition_of<Op, T>(e);
    std::vector<double> scratch(std::size_t(decomposition_scratch<Op>(e) / 8 + 8), 1e300);
    decomposition_task<T> t{e, a.data(), e.columns ? b.data() : nullptr, {}};
    for (std::size_t k = 0; k < y.size(); ++k) {
      t.results[k] = y[k].data;
      CHECK(f.bytes[k] == types[k].bytes());
    }
    f.run(o, t,
          part_room(reinterpret_cast<std::byte*>((std::uintptr_t(scratch.data()) + 63) / 64 * 64)));
  } else {
    list<tensor_ref> x{{reinterpret_cast<std::byte*>(a.data()), in[0]}};
    if (e.columns) x.push_back({reinterpret_cast<std::byte*>(b.data()), in[1]});
    cella::compute(info_of<Op>, o, x, y);
  }
  results r;
  for (std::size_t k = 0; k < y.size(); ++k)
    for (std::int64_t i = 0; i < y[k].type.size(); ++i) r[k].push_back(read_element(y[k], i));
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
  const results x = results_of<Op>(true, o, {n, n, columns}, a, b);
  const results y = results_of<Op>(false, o, {n, n, columns}, a, b);
  return std::max(difference(x[0], y[0]), difference(x[1], y[1]));
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
  const results x = results_of<solve_op>(true, {}, {n, n, columns}, a, b);
  const results f = results_of<lu_op>(true, {}, {n, n, 0}, a);
  double apart = 0, apart_from_rows = 0;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < columns; ++j) {
      double sum = 0;
      for (int k = 0; k < n; ++k) sum += at(a, i, k, n) * at(x[0], k, j, columns);
      apart = std::max(apart, std::abs(sum - at(b, i, j, columns)));
    }
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int k = 0; k <= std::min(i, j); ++k)
        sum += (k == i ? 1 : at(f[0], i, k, n)) * at(f[0], k, j, n);
      apart_from_rows =
          std::max(apart_from_rows, std::abs(sum - at(a, int(f[1][std::size_t(i)]), j, n)));
    }
  }
  CHECK(apart < 1e-12);
  CHECK(apart_from_rows < 1e-13);
}

TEST_CASE("determinants and factors of matrices with a row or a column of zeros") {
  const int n = 20;
  auto a = random_matrix<double>(n, n);
  for (int i = 0; i < n; ++i) a[std::size_t(i * n + 12)] = 0;
  const results d = results_of<slogdet_op>(true, {}, {n, n, 0}, a);
  CHECK(d[0][0] == 0);
  CHECK(d[1][0] == -INFINITY);
  auto b = random_matrix<double>(n, n, n);
  for (int j = 0; j < n; ++j) b[std::size_t(12 * n + j)] = 0;
  CHECK(std::isnan(results_of<cholesky_op>(true, {}, {n, n, 0}, b)[0][0]));
}

// ---- orthogonal factors

namespace {

/// Element (i, j) of rows of `width`.
double at(const numbers<double>& x, int i, int j, int width) {
  return x[std::size_t(i) * std::size_t(width) + std::size_t(j)];
}
/// How far A [rows,n] is from X diag(w) Y^T, whose columns count n; w or Y may be empty.
double apart_from_product(const numbers<double>& a, int rows, const numbers<double>& x, int n,
                          const numbers<double>& w, const numbers<double>& y, int columns) {
  double most = 0;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      double sum = 0;
      for (int k = 0; k < n; ++k)
        sum += at(x, i, k, n) * (w.empty() ? 1 : w[std::size_t(k)]) * at(y, j, k, n);
      const double d = std::abs(sum - at(a, i, j, columns));
      most = std::isnan(d) ? INFINITY : std::max(most, d);
    }
  return most;
}
numbers<double> transpose(const numbers<double>& x, int rows, int columns) {
  numbers<double> y;
  for (int j = 0; j < columns; ++j)
    for (int i = 0; i < rows; ++i) y.push_back(at(x, i, j, columns));
  return y;
}
/// How far X^T X, of columns of X [rows,n], is from the identity.
double apart_from_orthonormal(const numbers<double>& x, int rows, int n) {
  numbers<double> one(std::size_t(n * n), 0.0);
  for (int i = 0; i < n; ++i) one[std::size_t(i * (n + 1))] = 1;
  const auto t = transpose(x, rows, n);
  return apart_from_product(one, n, t, rows, {}, t, n);
}
template <class T>
numbers<double> as_double(const numbers<T>& x) {
  return {x.begin(), x.end()};
}
double largest(const numbers<double>& x) {
  double most = 0;
  for (double v : x) most = std::max(most, std::abs(v));
  return most;
}

/// Matrices of many kinds: of full rank, of rank 1, zeros, ones, diagonal, with equal columns, with
/// elements far apart, upper triangles.
template <class T>
std::vector<numbers<T>> matrices_of_all_kinds(int rows, int n) {
  std::vector<numbers<T>> all{random_matrix<T>(rows, n)};
  const auto add = [&](auto f) {
    numbers<T> x;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < n; ++j) x.push_back(T(f(i, j)));
    all.push_back(x);
  };
  const auto any = as_double(all[0]);
  add([](int, int) { return 0.0; });
  add([](int, int) { return 1.0; });
  add([](int i, int j) { return i == j ? 1.0 : 0.0; });
  add([](int i, int j) { return i == j ? double(i % 3) - 1 : 0.0; });
  add([](int i, int j) { return (i + 1) * 0.5 - (i + 1) * 0.25 * j; });
  add([&](int i, int j) { return at(any, i, j / 2, n); });
  add([&](int i, int j) { return at(any, i, j, n) * std::pow(10.0, -(j % 12)); });
  add([&](int i, int j) { return at(any, i, j, n) * std::pow(10.0, i % 12 - 12.0); });
  add([&](int i, int j) { return i <= j ? at(any, i, j, n) : 0.0; });
  add([&](int i, int j) { return at(any, i, j, n) * (std::is_same_v<T, float> ? 1e-30 : 1e-200); });
  add([&](int i, int j) { return at(any, i, j, n) * (std::is_same_v<T, float> ? 1e30 : 1e200); });
  return all;
}

template <class T>
constexpr double residual = std::is_same_v<T, float> ? 1e-5 : 2e-13;

}  // namespace

TEST_CASE_TEMPLATE("qr: orthonormal columns and a triangle whose product is the matrix", T, float,
                   double) {
  for (int n : {0, 1, 2, 7, 8, 9, 16, 32, 33, 67, 100}) {
    for (int more : {0, 1, 70}) {
      CAPTURE(n);
      CAPTURE(more);
      const int rows = n + more;
      int kind = 0;
      for (const auto& a : matrices_of_all_kinds<T>(rows, n)) {
        CAPTURE(kind);
        const auto x = results_of<qr_op>(true, {}, {rows, n}, a);
        const double size = largest(as_double(a)) + 1e-300;
        CHECK(apart_from_orthonormal(x[0], rows, n) < residual<T>);
        CHECK(apart_from_product(as_double(a), rows, x[0], n, {}, transpose(x[1], n, n), n) <
              residual<T> * size * (std::sqrt(n) + 1));
        for (int i = 0; i < n; ++i)
          for (int j = 0; j < i; ++j) REQUIRE(at(x[1], i, j, n) == 0);
        if (kind++ != 0) continue;
        const auto y = results_of<qr_op>(false, {}, {rows, n}, a);
        CHECK(difference(x[0], y[0]) < 100 * rounding<T>);
        CHECK(difference(x[1], y[1]) < 100 * rounding<T>);
      }
    }
  }
}

TEST_CASE_TEMPLATE("eigh: orthonormal vectors, A V = V diag(w), w ascending", T, float, double) {
  for (int n : {0, 1, 2, 3, 7, 8, 9, 16, 32, 33, 67, 100}) {
    CAPTURE(n);
    int kind = 0;
    for (auto a : matrices_of_all_kinds<T>(n, n)) {
      CAPTURE(kind);
      auto both = as_double(a);  // of the lower triangle, which alone is read
      for (int i = 0; i < n; ++i)
        for (int j = 0; j < i; ++j) both[std::size_t(j * n + i)] = at(both, i, j, n);
      const auto x = results_of<eigh_op>(true, {}, {n, n}, a);
      const double size = largest(both) * (std::sqrt(n) + 1) + 1e-300;
      CHECK(apart_from_orthonormal(x[1], n, n) < residual<T>);
      CHECK(apart_from_product(both, n, x[1], n, x[0], x[1], n) < residual<T> * size);
      CHECK(std::is_sorted(x[0].begin(), x[0].end()));
      for (int j = 0; j < n; ++j) {
        double most = 0;
        for (int i = 0; i < n; ++i)
          if (std::abs(at(x[1], i, j, n)) > std::abs(most) * (1 + 1e-6)) most = at(x[1], i, j, n);
        REQUIRE(most > 0);
      }
      const auto y = results_of<eigh_op>(false, {}, {n, n}, a);
      if (kind < 10) CHECK(difference(x[0], y[0]) < residual<T> * size);
      if (kind++ == 0) CHECK(difference(x[1], y[1]) < 1e4 * rounding<T>);
    }
  }
}

TEST_CASE_TEMPLATE("svd: orthonormal vectors whose product is the matrix, s descending", T, float,
                   double) {
  for (int n : {0, 1, 2, 3, 7, 8, 9, 16, 32, 33, 67, 100}) {
    for (int more : {0, 1, 70}) {
      CAPTURE(n);
      CAPTURE(more);
      const int rows = n + more;
      int kind = 0;
      for (const auto& a : matrices_of_all_kinds<T>(rows, n)) {
        CAPTURE(kind);
        const auto x = results_of<svd_op>(true, {}, {rows, n}, a);
        const double size = largest(as_double(a)) * (std::sqrt(n) + 1) + 1e-300;
        CHECK(apart_from_orthonormal(x[0], rows, n) < residual<T>);
        CHECK(apart_from_orthonormal(x[2], n, n) < residual<T>);
        CHECK(apart_from_product(as_double(a), rows, x[0], n, x[1], x[2], n) < residual<T> * size);
        CHECK(std::is_sorted(x[1].rbegin(), x[1].rend()));
        CHECK((n == 0 || x[1].back() >= 0));
        if (kind++ != 0 || more == 1) continue;
        const auto y = results_of<svd_op>(false, {}, {rows, n}, a);
        CHECK(difference(x[1], y[1]) < residual<T> * size);
        CHECK(difference(x[0], y[0]) < 1e4 * rounding<T>);
        CHECK(difference(x[2], y[2]) < 1e4 * rounding<T>);
      }
    }
  }
}

TEST_CASE("results that nobody reads are not written, and the others do not change") {
  const int rows = 37, n = 33;
  const auto check = [&]<class Op>(Op, const numbers<double>& a, int height) {
    const decomposition_extents e{height, n};
    const auto f = decomposition_of<Op, double>(e);
    const auto all = results_of<Op>(true, {}, e, a);
    std::vector<double> scratch(std::size_t(decomposition_scratch<Op>(e) / 8 + 8));
    auto* const room =
        reinterpret_cast<std::byte*>((std::uintptr_t(scratch.data()) + 63) / 64 * 64);
    for (unsigned read = 0; read < 8; ++read) {
      results y;
      decomposition_task<double> t{e, a.data(), nullptr, {}};
      for (std::size_t k = 0; k < 3; ++k) {
        y[k].resize(std::size_t(f.bytes[k] / 8));
        if (read >> k & 1 && f.bytes[k]) t.results[k] = reinterpret_cast<std::byte*>(y[k].data());
      }
      f.run({}, t, part_room(room));
      for (std::size_t k = 0; k < 3; ++k)
        if (t.results[k] && !std::is_same_v<Op, lu_op>) CHECK(difference(y[k], all[k]) < 1e-13);
    }
  };
  const auto a = random_matrix<double>(n, n), tall = random_matrix<double>(rows, n);
  check(lu_op{}, a, n);
  check(qr_op{}, tall, rows);
  check(eigh_op{}, a, n);
  check(svd_op{}, tall, rows);
}

TEST_CASE_TEMPLATE("what is not finite has no orthogonal factors", T, float, double) {
  for (T what : {std::numeric_limits<T>::infinity(), std::numeric_limits<T>::quiet_NaN()}) {
    for (int n : {1, 5, 40}) {
      auto a = random_matrix<T>(n + 2, n);
      a[std::size_t(n / 2 * n)] = what;
      const auto check = [&]<class Op>(Op, int rows) {
        for (bool kernel : {true, false})
          for (const auto& y : results_of<Op>(kernel, {}, {rows, n}, a))
            for (double v : y) REQUIRE(std::isnan(v));
      };
      check(qr_op{}, n + 2);
      check(svd_op{}, n + 2);
      check(eigh_op{}, n);
    }
  }
}

TEST_CASE("a method that finds no values says so") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const int n = 5;
  numbers<double> diagonal(std::size_t(n), 1.0), beside(std::size_t(n), 0.5);
  beside[4] = 0;
  auto d = diagonal, e = beside;
  CHECK(find_eigenvalues(n, d.data(), e.data(), nullptr, {}));
  d = diagonal, e = beside;
  CHECK(find_singular_values(n, d.data(), e.data(), {}, {}));
  d = diagonal, e = beside;
  d[2] = nan;
  CHECK_FALSE(find_eigenvalues(n, d.data(), e.data(), nullptr, {}));
  d = diagonal, e = beside;
  d[2] = nan;
  CHECK_FALSE(find_singular_values(n, d.data(), e.data(), {}, {}));
  list<double> values(std::size_t(n), 1.0), below(std::size_t(n), 0.5);
  cella::detail::matrix rows(n, n);
  rows.set_identity();
  CHECK(cella::detail::diagonalize(values, below, rows));
  values.assign(std::size_t(n), 1.0);
  below.assign(std::size_t(n), 0.5);
  values[2] = nan;
  CHECK_FALSE(cella::detail::diagonalize(values, below, rows));
}

namespace {

/// A matrix [rows,n], and the sizes of its elements, which rows and columns have as factors.
template <class T>
struct hard_matrix {
  std::string what;
  numbers<T> elements;
};
/// Matrices whose elements are huge, tiny or far apart, whose values are 0 or equal.
template <class T>
std::vector<hard_matrix<T>> hard_matrices(int rows, int n) {
  constexpr bool single = std::is_same_v<T, float>;
  std::vector<hard_matrix<T>> all;
  const auto add = [&](const char* what, auto f) {
    numbers<T> x;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < n; ++j) x.push_back(T(f(i, j)));
    all.push_back({what, x});
  };
  const auto any = as_double(random_matrix<T>(rows, n));
  const auto symmetric = [&](int i, int j) {
    return i < n ? at(any, std::max(i, j), std::min(i, j), n) : at(any, i, j, n);
  };
  const auto times = [&](double factor) {
    return [&symmetric, factor](int i, int j) { return symmetric(i, j) * factor; };
  };
  const auto graded = [&](double ratio) {
    const double least = std::pow(ratio, 1.0 / std::max(n - 1, 1));
    return [&symmetric, least](int i, int j) {
      return symmetric(i, j) * std::pow(least, std::max(i, j));
    };
  };
  add("huge", times(single ? 1e37 : 1e300));
  add("the largest", times(double(std::numeric_limits<T>::max()) / (4 * (n + 1))));
  add("tiny", times(single ? 1e-37 : 1e-300));
  add("denormal", times(single ? 1e-42 : 1e-318));
  add("least", [](int i, int j) { return i == j ? std::numeric_limits<T>::denorm_min() : T(0); });
  add("zero", [](int, int) { return 0.0; });
  add("negative zero", [](int, int) { return -0.0; });
  add("huge and tiny", [&](int i, int j) {
    return symmetric(i, j) * ((i + j) % 2 ? (single ? 1e-37 : 1e-300) : (single ? 1e37 : 1e300));
  });
  add("one huge element", [&](int i, int j) {
    return symmetric(i, j) * (i == n / 2 && j == n / 2 ? (single ? 1e37 : 1e300) : 1);
  });
  add("graded", graded(1e-30));
  add("graded to the end", graded(single ? 1e-44 : 1e-300));
  add("graded upwards", [&](int i, int j) { return graded(1e-30)(n - 1 - i % n, n - 1 - j); });
  add("upwards to the end",
      [&](int i, int j) { return graded(single ? 1e-44 : 1e-300)(n - 1 - i % n, n - 1 - j); });
  add("equal values", [](int i, int j) { return i == j ? 3 : 0; });
  // A reflection: values 1 and -1.
  add("equal values, full", [&](int i, int j) {
    double square = 0;
    for (int k = 0; k < n; ++k) square += at(any, k, 0, n) * at(any, k, 0, n);
    return i < n ? (i == j) - 2 * at(any, i, 0, n) * at(any, j, 0, n) / square : 0;
  });
  add("of rank 1", [&](int i, int j) { return at(any, i % n, 0, n) * at(any, j, 0, n); });
  // Wilkinson's: pairs of values that agree to all digits.
  add("neighbours", [&](int i, int j) {
    return i == j ? std::abs(i - n / 2) : std::abs(i - j) == 1 ? 1 : 0;
  });
  return all;
}
/// As it is where squares are safe: near 1. What multiplies back is judged there.
double factor_to_one(const numbers<double>& a) {
  const double most = largest(a);
  return most == 0 ? 1 : std::ldexp(1.0, std::clamp(-std::ilogb(most), -1022, 1022));
}
numbers<double> times(numbers<double> x, double factor) {
  for (double& v : x) v *= factor;
  return x;
}
/// How far values may be off: by rounding, and by that of the type they are written in.
template <class T>
double allowed(int n, double factor) {
  return (residual<T> + double(std::numeric_limits<T>::denorm_min()) * factor) * (std::sqrt(n) + 1);
}

}  // namespace

TEST_CASE_TEMPLATE("eigh of hard matrices: on all tiers A V = V diag(w), no NaN", T, float,
                   double) {
  for (int n : {1, 2, 3, 8, 21, 40}) {
    for (const auto& [what, a] : hard_matrices<T>(n, n)) {
      for (bool kernel : {true, false}) {
        INFO(n, " ", what, " ", kernel);
        const auto x = results_of<eigh_op>(kernel, {}, {n, n}, a);
        const double f = factor_to_one(as_double(a));
        CHECK(apart_from_orthonormal(x[1], n, n) < residual<T>);
        CHECK(apart_from_product(times(as_double(a), f), n, x[1], n, times(x[0], f), x[1], n) <
              allowed<T>(n, f));
        CHECK(std::is_sorted(x[0].begin(), x[0].end()));
      }
    }
  }
}

TEST_CASE_TEMPLATE("svd of hard matrices: on all tiers the product is the matrix, no NaN", T, float,
                   double) {
  for (int n : {1, 2, 3, 8, 21, 40}) {
    for (int rows : {n, n + 5}) {
      for (const auto& [what, a] : hard_matrices<T>(rows, n)) {
        for (bool kernel : {true, false}) {
          INFO(rows, "x", n, " ", what, " ", kernel);
          const auto x = results_of<svd_op>(kernel, {}, {rows, n}, a);
          const double f = factor_to_one(as_double(a));
          CHECK(apart_from_orthonormal(x[0], rows, n) < residual<T>);
          CHECK(apart_from_orthonormal(x[2], n, n) < residual<T>);
          CHECK(apart_from_product(times(as_double(a), f), rows, x[0], n, times(x[1], f), x[2], n) <
                allowed<T>(n, f));
          CHECK(std::is_sorted(x[1].rbegin(), x[1].rend()));
          CHECK(x[1].back() >= 0);
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("qr of hard matrices: on all tiers the product is the matrix, no NaN", T, float,
                   double) {
  for (int n : {1, 2, 3, 8, 21, 40}) {
    for (const auto& [what, a] : hard_matrices<T>(n + 2, n)) {
      for (bool kernel : {true, false}) {
        INFO(n, " ", what, " ", kernel);
        const auto x = results_of<qr_op>(kernel, {}, {n + 2, n}, a);
        const double f = factor_to_one(as_double(a));
        CHECK(apart_from_orthonormal(x[0], n + 2, n) < residual<T>);
        CHECK(apart_from_product(times(as_double(a), f), n + 2, x[0], n, {},
                                 times(transpose(x[1], n, n), f), n) < allowed<T>(n, f));
      }
    }
  }
}

TEST_CASE("eigenvalues of a known matrix: second differences") {
  const int n = 24;
  numbers<double> a(std::size_t(n * n), 0.0);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j < n; ++j)
      a[std::size_t(i * n + j)] = i == j ? 2e300 : std::abs(i - j) == 1 ? -1e300 : 0;
  for (bool kernel : {true, false}) {
    const auto w = results_of<eigh_op>(kernel, {}, {n, n}, a)[0];
    const auto s = results_of<svd_op>(kernel, {}, {n, n}, a)[1];
    for (int k = 0; k < n; ++k) {
      const double root = std::sin((k + 1) * std::numbers::pi / (2 * (n + 1)));
      CHECK(w[std::size_t(k)] / 1e300 == doctest::Approx(4 * root * root).epsilon(1e-13));
      CHECK(s[std::size_t(n - 1 - k)] / 1e300 == doctest::Approx(4 * root * root).epsilon(1e-13));
    }
  }
}

TEST_CASE("the compiler knows what memory a decomposition takes") {
  constexpr decomposition_extents square{8, 8, 3}, tall{40, 8, 0};
  constexpr std::int64_t element = sizeof(double);
  static_assert(decomposition_scratch<cholesky_op>(square) > 8 * 8 * element);
  static_assert(decomposition_scratch<qr_op>(tall) > 2 * 40 * 8 * element);
  static_assert(decomposition_scratch<eigh_op>(square) > 2 * 8 * 8 * element);
  static_assert(decomposition_scratch<svd_op>(tall) > decomposition_scratch<qr_op>(tall));
}
