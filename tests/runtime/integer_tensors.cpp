// Integers of all widths in operations of whole tensors, as indices and in loops.
#include <cella/ops/indexing.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/ops/prod.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>

#include "integers.hpp"

using namespace cella;
using namespace cella::test;

namespace {

/// What has more than one element of the operand in one of the result.
struct several_at_once {
  constexpr auto operator()(var x, var y) const {
    const var at = iota(*x.b, {x.element(), {4}}, 0);
    const var rows = reshape(x, {9, 9});
    return std::array{sum(rows, {1}),
                      max(rows, {1}),
                      min(rows, {0}),
                      prod(rows, {1}),
                      cumsum(rows, 1),
                      matmul(rows, reshape(y, {9, 9})),
                      transpose(rows),
                      gather(rows, at),
                      max_pool(reshape(x, {1, 1, 9, 9}), 3),
                      cast(argmax(rows, 1), x.element()),
                      flatten(one_hot(at, 3, x.element())),
                      concat({slice(x, 0, 60, 81), y}, 0)};
  }
};

template <class T>
void check_several() {
  using argument = tensor<dtype_of<T>, pairs>;
  const auto [x, y] = all_pairs<T>();
  const auto at = [](std::size_t i, std::size_t j) { return i * 9 + j; };
  const auto table = [](std::size_t rows, std::size_t columns, auto f) {
    std::vector<T> all;
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) all.push_back(static_cast<T>(f(i, j)));
    }
    return all;
  };
  // Of the other operand, whose rows differ in each column.
  const auto over_rows = [&](std::size_t count, T first, auto f) {
    return table(1, count, [&](std::size_t, std::size_t i) {
      T a = first;
      for (std::size_t j = 0; j < 9; ++j) a = f(a, i, j);
      return a;
    });
  };
  const T zero = 0, one = 1;
  std::vector<std::vector<T>> expected{
      over_rows(9, zero, [&](T a, auto i, auto j) { return sum_of(a, x[at(i, j)]); }),
      over_rows(9, std::numeric_limits<T>::min(),
                [&](T a, auto i, auto j) { return std::max(a, x[at(i, j)]); }),
      over_rows(9, std::numeric_limits<T>::max(),
                [&](T a, auto i, auto j) { return std::min(a, x[at(j, i)]); }),
      over_rows(9, one, [&](T a, auto i, auto j) { return product_of(a, x[at(i, j)]); }),
      table(9, 9,
            [&](auto i, auto j) {
              T a = 0;
              for (std::size_t k = 0; k <= j; ++k) a = sum_of(a, x[at(i, k)]);
              return a;
            }),
      table(9, 9,
            [&](auto i, auto j) {
              T a = 0;
              for (std::size_t k = 0; k < 9; ++k)
                a = sum_of(a, product_of(x[at(i, k)], y[at(k, j)]));
              return a;
            }),
      table(9, 9, [&](auto i, auto j) { return x[at(j, i)]; }),
      table(4, 9, [&](auto i, auto j) { return x[at(i, j)]; }),
      table(3, 3,
            [&](auto i, auto j) {
              T a = std::numeric_limits<T>::min();
              for (std::size_t k = 0; k < 9; ++k)
                a = std::max(a, x[at(3 * i + k / 3, 3 * j + k % 3)]);
              return a;
            }),
      table(1, 9,
            [&](auto, auto i) {
              std::size_t best = 0;
              for (std::size_t j = 1; j < 9; ++j)
                if (x[at(i, j)] > x[at(i, best)]) best = j;
              return best;
            }),
      table(4, 3, [&](auto i, auto j) { return i == j; }),
      table(1, 102, [&](auto, auto i) { return i < 21 ? x[60 + i] : y[i - 21]; })};
  for (const typed_results& r :
       run_all_ways<argument, argument>(several_at_once{}, {bytes_of(x), bytes_of(y)})) {
    REQUIRE(r.bytes.size() == expected.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      INFO("result ", k, " as ", name(dtype_of<T>), ", ", r.way);
      CHECK(r.as<T>(k) == expected[k]);
    }
  }
}

/// A body that is one straight line of code, in registers.
struct in_a_loop {
  constexpr var operator()(var x, var y) const {
    return for_i(
        3, [y](var, var h) { return maximum(h * y + 5, mod(h, y)) - sum(h) / 3; }, x);
  }
};

template <class T>
void check_loop() {
  using argument = tensor<dtype_of<T>, 9>;
  static_assert(
      cpu::runs_in_registers<program<in_a_loop, false, dtype::f32, argument, argument>, 1>);
  const std::vector<T> x(ends<T>.begin(), ends<T>.end()), y(ends<T>.rbegin(), ends<T>.rend());
  std::vector<T> h = x;
  for (int step = 0; step < 3; ++step) {
    T sum = 0;
    for (T v : h) sum = sum_of(sum, v);
    for (std::size_t i = 0; i < 9; ++i) {
      const T a = sum_of(product_of(h[i], y[i]), T(5));
      const auto b = static_cast<T>(h[i] - floor_of_quotient(h[i], y[i]) * y[i]);
      h[i] =
          static_cast<T>(static_cast<modular>(std::max(a, b)) - static_cast<modular>(sum / T(3)));
    }
  }
  for (const typed_results& r :
       run_all_ways<argument, argument>(in_a_loop{}, {bytes_of(x), bytes_of(y)})) {
    INFO(name(dtype_of<T>), ", ", r.way);
    CHECK(r.as<T>(0) == h);
  }
}

struct rows_of_a_table {
  constexpr auto operator()(var x, var at) const {
    return std::array{gather(x, at), grad([at](var t) { return sum(square(gather(t, at))); })(x)};
  }
};

template <class T>
void check_indices() {
  const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<T> at{3, 0, std::numeric_limits<T>::max(), 3};
  for (const typed_results& r : run_all_ways<tensor<dtype::f32, 4, 3>, tensor<dtype_of<T>, 4>>(
           rows_of_a_table{}, {bytes_of(x), bytes_of(at)})) {
    INFO(name(dtype_of<T>), ", ", r.way);
    const auto y = r.as<float>(0), dx = r.as<float>(1);
    for (std::size_t k = 0; k < 3; ++k) {
      CHECK(y[k] == x[9 + k]);
      CHECK(y[3 + k] == x[k]);
      CHECK(y[6 + k] != y[6 + k]);  // there is no such row
      CHECK(y[9 + k] == x[9 + k]);
      CHECK(dx[k] == 2 * x[k]);
      CHECK(dx[3 + k] == 0);
      CHECK(dx[9 + k] == 4 * x[9 + k]);
    }
  }
}

}  // namespace

TEST_SUITE("runtime/integer_tensors") {
  TEST_CASE_TEMPLATE("sums, extrema and products are those of the language, modulo 2^n", T,
                     std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                     std::uint16_t, std::uint32_t, std::uint64_t) {
    check_several<T>();
  }
  TEST_CASE_TEMPLATE("so are the bodies of loops, in registers", T, std::int8_t, std::int16_t,
                     std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
                     std::uint64_t) {
    check_loop<T>();
  }
  TEST_CASE_TEMPLATE("indices may be integers of any type", T, std::int8_t, std::uint8_t,
                     std::int16_t, std::uint16_t, std::uint32_t, std::uint64_t) {
    check_indices<T>();
  }
}
