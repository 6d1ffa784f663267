// Integers of all widths: every operation against the integers of the language, in 128 bits and cut
// to the type, at the ends of each type's range.
#include <cella/ops/activation.hpp>
#include <cella/ops/convolution.hpp>
#include <cella/ops/indexing.hpp>
#include <cella/ops/matmul.hpp>
#include <cella/ops/pooling.hpp>
#include <cella/transform/control.hpp>
#include <cella/transform/gradient.hpp>
#include <limits>

#include "element_types.hpp"

using namespace cella;
using namespace cella::test;

namespace {

__extension__ using wide = __int128;
__extension__ using modular = unsigned __int128;

template <class T>
T sum_of(T x, T y) {
  return static_cast<T>(static_cast<modular>(x) + static_cast<modular>(y));
}
template <class T>
T product_of(T x, T y) {
  return static_cast<T>(static_cast<modular>(x) * static_cast<modular>(y));
}
wide floor_of_quotient(wide x, wide y) {
  return y == 0 ? 0 : x / y - (x % y != 0 && (x < 0) != (y < 0));
}

/// An operation of two tensors, and what it is for two numbers of a type.
template <class T>
struct operation_case {
  const char* name;
  var (*f)(var, var);
  T (*expected)(T, T);
};

constexpr var number(var truth, var like) { return cast(truth, like.element()); }

template <class T>
constexpr operation_case<T> operations[] = {
    {"add", [](var x, var y) { return x + y; }, sum_of<T>},
    {"sub", [](var x, var y) { return x - y; },
     [](T x, T y) { return static_cast<T>(static_cast<modular>(x) - static_cast<modular>(y)); }},
    {"mul", [](var x, var y) { return x * y; }, product_of<T>},
    {"div", [](var x, var y) { return x / y; },
     [](T x, T y) { return static_cast<T>(y == 0 ? wide(0) : wide(x) / wide(y)); }},
    {"floor_div", [](var x, var y) { return floor_div(x, y); },
     [](T x, T y) { return static_cast<T>(floor_of_quotient(x, y)); }},
    {"mod", [](var x, var y) { return mod(x, y); },
     [](T x, T y) { return static_cast<T>(x - floor_of_quotient(x, y) * y); }},
    {"fmod", [](var x, var y) { return fmod(x, y); },
     [](T x, T y) { return static_cast<T>(y == 0 ? wide(x) : wide(x) % wide(y)); }},
    {"neg", [](var x, var) { return -x; },
     [](T x, T) { return static_cast<T>(-static_cast<modular>(x)); }},
    {"abs", [](var x, var) { return abs(x); },
     [](T x, T) { return static_cast<T>(x < 0 ? -wide(x) : wide(x)); }},
    {"sign", [](var x, var) { return sign(x); },
     [](T x, T) { return static_cast<T>((x > 0) - (x < 0)); }},
    {"square", [](var x, var) { return square(x); }, [](T x, T) { return product_of(x, x); }},
    {"pow", [](var x, var y) { return pow(x, clamp(y, -1, 3)); },
     [](T x, T y) {
       if (y < 0) return static_cast<T>(x == 0 ? 0 : 1 / wide(x));
       T power = 1;
       for (int k = 0; k < 3 && wide(k) < wide(y); ++k) power = product_of(power, x);
       return power;
     }},
    {"maximum", [](var x, var y) { return maximum(x, y); }, [](T x, T y) { return x > y ? x : y; }},
    {"minimum", [](var x, var y) { return minimum(x, y); }, [](T x, T y) { return x < y ? x : y; }},
    {"clamp", [](var x, var) { return clamp(x, -3, 100.5); },
     [](T x, T) {
       return static_cast<T>(x < wide(-3) ? wide(-3) : x > 100 ? wide(100) : wide(x));
     }},
    {"relu", [](var x, var) { return relu(x); }, [](T x, T) { return x < 0 ? T(0) : x; }},
    {"floor", [](var x, var) { return floor(x); }, [](T x, T) { return x; }},
    {"ceil", [](var x, var) { return ceil(x); }, [](T x, T) { return x; }},
    {"round", [](var x, var) { return round(x); }, [](T x, T) { return x; }},
    {"trunc", [](var x, var) { return trunc(x); }, [](T x, T) { return x; }},
    {"equal", [](var x, var y) { return number(equal(x, y), x); },
     [](T x, T y) { return T(x == y); }},
    {"not_equal", [](var x, var y) { return number(not_equal(x, y), x); },
     [](T x, T y) { return T(x != y); }},
    {"less", [](var x, var y) { return number(x < y, x); }, [](T x, T y) { return T(x < y); }},
    {"less_equal", [](var x, var y) { return number(x <= y, x); },
     [](T x, T y) { return T(x <= y); }},
    {"greater", [](var x, var y) { return number(x > y, x); }, [](T x, T y) { return T(x > y); }},
    {"greater_equal", [](var x, var y) { return number(x >= y, x); },
     [](T x, T y) { return T(x >= y); }},
    {"logical_and", [](var x, var y) { return number(logical_and(x, y), x); },
     [](T x, T y) { return T(x && y); }},
    {"logical_or", [](var x, var y) { return number(logical_or(x, y), x); },
     [](T x, T y) { return T(x || y); }},
    {"logical_not", [](var x, var) { return number(logical_not(x), x); },
     [](T x, T) { return T(!x); }},
    {"select", [](var x, var y) { return select(x > y, y, x); },
     [](T x, T y) { return x > y ? y : x; }},
    {"numbers", [](var x, var) { return 2 * (x + 100) - 7; },
     [](T x, T) { return static_cast<T>(2 * static_cast<modular>(x) + 193); }},
};

/// Half of the operations in a program: then it has room for all results.
template <class T, std::size_t Half>
struct half_of_operations {
  static constexpr std::size_t all = std::size(operations<T>);
  static constexpr std::size_t first = Half ? all / 2 : 0, last = Half ? all : all / 2;
  constexpr std::array<var, last - first> operator()(var x, var y) const {
    std::array<var, last - first> results{};
    for (std::size_t k = first; k < last; ++k) results[k - first] = operations<T>[k].f(x, y);
    return results;
  }
};

/// The ends of a type's range, and numbers about zero: each with each.
template <class T>
constexpr auto ends = std::array{std::numeric_limits<T>::min(),
                                 static_cast<T>(std::numeric_limits<T>::min() + 1),
                                 static_cast<T>(-1),
                                 T(0),
                                 T(1),
                                 T(7),
                                 static_cast<T>(std::numeric_limits<T>::max() / 2),
                                 static_cast<T>(std::numeric_limits<T>::max() / 2 + 1),
                                 std::numeric_limits<T>::max()};
constexpr int pairs = 81;

template <class T>
std::array<std::vector<T>, 2> all_pairs() {
  std::array<std::vector<T>, 2> p;
  for (T x : ends<T>) {
    for (T y : ends<T>) {
      p[0].push_back(x);
      p[1].push_back(y);
    }
  }
  return p;
}

template <class T, std::size_t Half>
void check_operations() {
  using cell = half_of_operations<T, Half>;
  using argument = tensor<dtype_of<T>, pairs>;
  const auto [x, y] = all_pairs<T>();
  for (const typed_results& r :
       run_all_ways<argument, argument>(cell{}, {bytes_of(x), bytes_of(y)})) {
    for (std::size_t k = cell::first; k < cell::last; ++k) {
      const auto found = r.as<T>(k - cell::first);
      REQUIRE(found.size() == x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        INFO(operations<T>[k].name, " of ", x[i], " and ", y[i], " as ", name(dtype_of<T>), ", ",
             r.way);
        CHECK(found[i] == operations<T>[k].expected(x[i], y[i]));
      }
    }
  }
}

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

TEST_SUITE("runtime/integers") {
  TEST_CASE_TEMPLATE("operations of integers are those of the language, modulo 2^n", T, std::int8_t,
                     std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                     std::uint32_t, std::uint64_t) {
    check_operations<T, 0>();
    check_operations<T, 1>();
  }
  TEST_CASE_TEMPLATE("so are sums, extrema, products and what moves elements", T, std::int8_t,
                     std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                     std::uint32_t, std::uint64_t) {
    check_several<T>();
  }
  TEST_CASE_TEMPLATE("indices may be integers of any type", T, std::int8_t, std::uint8_t,
                     std::int16_t, std::uint16_t, std::uint32_t, std::uint64_t) {
    check_indices<T>();
  }
  TEST_CASE_TEMPLATE("so is the body of a loop", T, std::int8_t, std::int16_t, std::int32_t,
                     std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t) {
    check_loop<T>();
  }
}
