// Integers of all widths: every elementwise operation against the integers of the language, in 128
// bits and cut to the type, at the ends of each type's range.
#include "integers.hpp"

#include <cella/ops/activation.hpp>

using namespace cella;
using namespace cella::test;

namespace {

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

}  // namespace

TEST_SUITE("runtime/integers") {
  TEST_CASE_TEMPLATE("operations of integers are those of the language, modulo 2^n", T, std::int8_t,
                     std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
                     std::uint32_t, std::uint64_t) {
    check_operations<T, 0>();
    check_operations<T, 1>();
  }
}
